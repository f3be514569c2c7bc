"""Real agents behind pagefold, against the provider that enforces its rules, and then without pagefold."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.provider.referee import Referee
from pagefold.provider.reply import RequestRecord
from pagefold.provider.script import parse_script
from pagefold.provider.server import ProviderApp
from tests.agents.kit import FOLDER, KIT, PROGRAMS

CLAUDE = "claude-opus-5-5"
LIMITS = {"name": CLAUDE, "tool_call": True, "reasoning": True, "limit": {"context": 200_000, "output": 32_000}}
AGENTS = {
    "claude-code": {"MODEL": CLAUDE},
    "claude-code (older)": {"MODEL": "claude-fable-5-1"},
    "codex": {"MODEL": "gpt-5.6-sol"},
    "opencode": {"API": "messages"},
}
WINDOWS = {"claude-code": 50_000, "codex": 25_000, "opencode": 20_000}
LINES = [
    f"def function_{n}(page, level_{n % 7}):  # line {n} of this file, recorded by reader_{n * 7919 % 1000}"
    for n in range(700)
]


def script(turns: int) -> str:
    """Reads parts of a file again and again, as agents do, and then says so; once more, and then no more."""
    starts = range(1, turns * 9, 9)
    commands = [{"name": "$shell", "input": {"command": f"sed -n {at},{at + 60}p code.py"}} for at in starts]
    steps = [{"text": f"Step {number}.", "tool_call": call} for number, call in enumerate(commands)]
    return json.dumps([*steps, {"text": "All is read."}, {"text": "Nothing is left."}])


def drive(name: str, url: str, folder: Path, prompt: str, *more: str, seconds: int = 240) -> str:
    agent, program = PROGRAMS[name]
    chosen = ("--model", f"scripted/{CLAUDE}") if agent == "opencode" else ()
    command = ["bash", str(KIT / f"drive_{agent}.sh"), url, str(folder / "work"), prompt, "", *chosen, *more]
    settings = {"AGENT_BIN": str(program), "AGENTS_DIR": str(FOLDER), "STATE_DIR": str(folder / "state")}
    environment = {"PATH": os.environ["PATH"], "TIME_LIMIT": str(seconds), **settings, **AGENTS[name]}
    driven = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert driven.returncode == 0, driven.stdout + driven.stderr + (folder / "state" / "stdout").read_text()[-2000:]
    return (folder / "state" / "stdout").read_text()


def continued(name: str) -> tuple[str, ...]:
    return ("resume", "--last") if name == "codex" else ("--continue",)


@dataclass
class Refereed:
    """A provider that serves and what it has judged: `url` is its address."""

    referee: Referee
    url: str = ""
    records: list[RequestRecord] = field(default_factory=list)

    @property
    def rules(self) -> list[str]:
        """The rule that each request broke, or ""."""
        return [record.rule for record in self.records]


@contextmanager
def refereed(turns: int) -> Iterator[Refereed]:
    """A provider that has an agent read a file in so many turns."""
    judged = Refereed(Referee(answers=parse_script(script(turns), "the script")))
    app = ProviderApp(judged.referee, seen=lambda record, body: judged.records.append(record))
    with running(app) as judged.url:
        yield judged


def work_in(folder: Path) -> None:
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "code.py").write_text("\n".join(LINES))
    # OpenCode knows by a model's name what it has to ask for; the kit's own model has another name.
    (folder / "work" / "opencode.json").write_text(json.dumps({"provider": {"scripted": {"models": {CLAUDE: LIMITS}}}}))


def drive_folding(agent: str, provider: Refereed, folder: Path) -> Proxy:
    """Drives an agent behind a proxy that folds early. Returns the proxy, for what it counted."""
    library = Library(open_store(folder / "store.sqlite3"))
    try:
        conversations = Conversations(Economic(), store=library.store, window=WINDOWS[agent])
        addresses = Upstreams({"anthropic": provider.url, "openai": provider.url})
        proxy = Proxy(addresses, conversations, put=PageKeeper(library), answers=RecallAnswers(library))
        with running(proxy) as url:
            said = drive(agent, url, folder, "Read code.py in parts")
    finally:
        library.close()
    assert "All is read." in said
    return proxy
