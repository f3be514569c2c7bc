"""Real agents against the provider that enforces its rules, straight and through pagefold: nothing is refused.

Thinking is in every answer and bound to its prefix. The agents are driven by the kit beside the project; where it or
they are missing the tests skip. Everything stays on loopback.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.provider.answer import Answer
from pagefold.provider.referee import Referee
from pagefold.provider.reply import Record, Reply
from pagefold.provider.script import parse_script
from pagefold.provider.server import ProviderApp
from tests.agents.kit import FOLDER, KIT, PROGRAMS, program_of

pytestmark = pytest.mark.skipif(not KIT.exists(), reason="the agents kit (../shared/agents) is not on this machine")
AGENTS = {
    "claude-code": {"MODEL": "claude-opus-5-5"},
    "claude-code (older)": {"MODEL": "claude-fable-5-1"},
    "codex": {"MODEL": "gpt-5.6-sol"},
    "opencode": {"API": "messages"},
}
WINDOWS = {"claude-code": 50_000, "codex": 25_000, "opencode": 20_000}
TURNS = 40
LINES = [
    f"def function_{n}(page, level_{n % 7}):  # line {n} of this file, recorded by reader_{n * 7919 % 1000}"
    for n in range(700)
]


class Renaming(Referee):
    """The kit has OpenCode ask for a model called `scripted`, which no provider has."""

    def answer(
        self, path: str, headers: Mapping[str, str], body: bytes, now: float, answer: Answer | None = None
    ) -> Reply:
        return super().answer(
            path, headers, body.replace(b'"model":"scripted"', b'"model":"claude-opus-5-5"'), now, answer
        )


def script(turns: int) -> str:
    """Reads parts of a file again and again, as agents do, and then says so; once more, and then no more."""
    starts = range(1, turns * 9, 9)
    commands = [{"name": "$shell", "input": {"command": f"sed -n {at},{at + 60}p code.py"}} for at in starts]
    steps = [{"text": f"Step {number}.", "tool_call": call} for number, call in enumerate(commands)]
    return json.dumps([*steps, {"text": "All is read."}, {"text": "Nothing is left."}])


def drive(name: str, url: str, folder: Path, prompt: str, *more: str) -> str:
    agent, program = PROGRAMS[name]
    command = ["bash", str(KIT / f"drive_{agent}.sh"), url, str(folder / "work"), prompt, "", *more]
    settings = {"AGENT_BIN": str(program), "AGENTS_DIR": str(FOLDER), "STATE_DIR": str(folder / "state")}
    environment = {"PATH": os.environ["PATH"], "TIME_LIMIT": "240", **settings, **AGENTS[name]}
    driven = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert driven.returncode == 0, driven.stdout + driven.stderr + (folder / "state" / "stdout").read_text()[-2000:]
    return (folder / "state" / "stdout").read_text()


def continued(name: str) -> tuple[str, ...]:
    return ("resume", "--last") if name == "codex" else ("--continue",)


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    name: str = request.param
    program_of(name)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "code.py").write_text("\n".join(LINES))
    return name


def test_an_agent_keeps_its_thinking_valid_and_is_not_refused(agent: str, tmp_path: Path) -> None:
    records: list[Record] = []
    referee = Renaming(answers=parse_script(script(8), "the script"))
    with running(ProviderApp(referee, seen=lambda record, body: records.append(record))) as url:
        assert "All is read." in drive(agent, url, tmp_path, "Read code.py in parts")
        assert "Nothing is left." in drive(agent, url, tmp_path, "And now?", *continued(agent))
    assert [record.reason for record in records if record.rule] == []
    assert max(record.thinking for record in records) == 9
    assert (referee.totals.dropped, referee.totals.unreadable) == (0, 0)
    last = [record.charge for record in records if record.charge][-1]
    assert last.read > 0.9 * last.prompt


def test_an_agent_behind_pagefold_is_not_refused_and_goes_on_without_it(agent: str, tmp_path: Path) -> None:
    """Past its window, with folds. Without pagefold the provider is shown another prefix than the one that thinking is
    bound to: Claude Code then sends the same without thinking, by itself."""
    if agent == "claude-code (older)":
        pytest.skip("does what the newest does, and takes as long")
    records: list[Record] = []
    referee = Renaming(answers=parse_script(script(TURNS), "the script"))
    library = Library(open_store(tmp_path / "store.sqlite3"))
    try:
        with running(ProviderApp(referee, seen=lambda record, body: records.append(record))) as upstream:
            conversations = Conversations(Economic(), store=library.store, window=WINDOWS[agent])
            addresses = Upstreams({"anthropic": upstream, "openai": upstream})
            proxy = Proxy(addresses, conversations, put=PageKeeper(library), answers=RecallAnswers(library))
            with running(proxy) as url:
                assert "All is read." in drive(agent, url, tmp_path, "Read code.py in parts")
            behind = len(records)
            if agent != "opencode":  # it has no way to go on from such an error, and says so
                assert "Nothing is left." in drive(agent, upstream, tmp_path, "And now?", *continued(agent))
    finally:
        library.close()
    assert [record.reason for record in records[:behind] if record.rule] == []
    assert (proxy.totals.faults, proxy.totals.failed) == (0, 0)
    assert proxy.totals.work.folds >= 1
    left = [record.rule for record in records[behind:]]
    assert left == {"claude-code": ["thinking_bound", ""], "codex": [""], "opencode": []}[agent]
