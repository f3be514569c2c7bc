"""A real Claude Code through the proxy, against a scripted model: it must not notice, and all of it must be seen.

The agents are looked for in the folder that AGENTS_DIR names, else in `.agents` of the repository. Everything
stays on loopback and below the test's own folder; no key is needed.
"""

import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pagefold.model_proxy import agents
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.totals import Prefix
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.wire.message import Usage
from tests.agents.kit import CLAUDES, program_of
from tests.scripted_model import ScriptedCall, ScriptedModel, ScriptedTurn

SECONDS = 50


@pytest.fixture(params=CLAUDES)
def claude(request: pytest.FixtureRequest) -> Path:
    return program_of(request.param)


def run(claude: Path, url: str, folder: Path, *options: str, **variables: str) -> list[dict[str, Any]]:
    """The events that it printed."""
    home, work = folder / "home", folder / "work"
    home.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CLAUDE_CONFIG_DIR": str(home / "config"),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        **variables,
    }
    command = [str(claude), *options, "--output-format", "stream-json", "--verbose", "--strict-mcp-config"]
    done = subprocess.run(
        [*command, "--allowedTools", "Bash,Read"],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def results_in(body: bytes) -> list[str]:
    """What the tools of the newest message answered."""
    content = json.loads(body)["messages"][-1]["content"]
    return [str(block["content"]) for block in content if block["type"] == "tool_result"]


def test_claude_code_works_as_without_the_proxy_and_all_of_it_is_seen(claude: Path, tmp_path: Path) -> None:
    notes = tmp_path / "work" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("\n".join(f"line {number}" for number in range(1, 31)))
    usages = [Usage(fresh=10, cache_write=20_000, output=50), *(Usage(7, 20_000 + n, 300, 40) for n in range(3))]
    model = ScriptedModel(
        [
            ScriptedTurn(
                "I look.", "Where am I?", [ScriptedCall("Bash", {"command": "echo from-bash"})], usages[0], fail=[529]
            ),
            ScriptedTurn("I read.", "", [ScriptedCall("Read", {"file_path": str(notes)})], usages[1]),
            ScriptedTurn(
                "Both.",
                "",
                [ScriptedCall("Bash", {"command": "wc -l < notes.txt"}), ScriptedCall("Bash", {"command": "pwd"})],
                usages[2],
            ),
            ScriptedTurn("All thirty lines are there.", usage=usages[3]),
        ]
    )
    passed: list[str] = []

    def exchange(method: str, path: str, body: bytes | None, conversations: Conversations, **more: Any) -> Exchange:
        if path.partition("?")[0] == "/v1/messages":
            passed.append(hashlib.sha256(body or b"").hexdigest())
        return Exchange(method, path, body, conversations, **more)

    with (
        running(model) as upstream,
        running(proxy := Proxy(Upstreams({"anthropic": upstream}), exchange=exchange)) as url,
    ):
        events = run(claude, url, tmp_path, "-p", "Read the notes")

    assert [event["result"] for event in events if event["type"] == "result"] == ["All thirty lines are there."]
    assert [hashlib.sha256(body).hexdigest() for body in model.requests] == passed

    first, *rest = model.requests[1:]
    assert "from-bash" in results_in(rest[0])[0]
    assert "line 30" in results_in(rest[1])[0]
    assert len(results_in(rest[2])) == 2

    totals = proxy.totals
    asked = [len(json.loads(body)["messages"]) for body in (first, *rest)]
    assert (totals.failed, totals.errors, totals.faults, totals.unread) == (1, {"overloaded_error": 1}, 0, {})
    assert (totals.streamed, totals.messages) == (4, sum(asked))
    assert totals.usage == Usage(31, 60_003, 20_900, 170)
    assert totals.prefix == Prefix(histories=1, kept=sum(asked[:-1]))
    assert all(totals.estimated[part] > 0 for part in ("tools", "system", "user", "assistant", "results"))
    assert sum(part.requests for part in totals.by_model.values()) == 4


def test_a_second_prompt_extends_the_first(claude: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    model = ScriptedModel([ScriptedTurn("Hello."), ScriptedTurn("Hello again.")])
    with running(model) as upstream, running(proxy := Proxy(Upstreams({"anthropic": upstream}))) as url:
        run(claude, url, tmp_path, "-p", "Say hello")
        events = run(claude, url, tmp_path, "-p", "And again", "--continue")

    assert [event["result"] for event in events if event["type"] == "result"] == ["Hello again."]
    assert len(model.requests) == 2
    assert (proxy.totals.prefix.moved, proxy.totals.prefix.histories, proxy.totals.faults) == (0, 1, 0)


def test_run_wins_over_an_address_that_claude_codes_settings_name(claude: Path, tmp_path: Path) -> None:
    """As `pagefold init claude-code --proxy` leaves it, with no `pagefold serve` that runs."""
    (tmp_path / "work").mkdir()
    (tmp_path / "home" / "config").mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    settings = {"env": {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}"}}
    (tmp_path / "home" / "config" / "settings.json").write_text(json.dumps(settings))
    pagefold = tmp_path / "pagefold"
    pagefold.write_text(f'#!/bin/sh\nexec {sys.executable} -m pagefold run --port 0 {claude} "$@"\n')
    pagefold.chmod(0o755)
    model = ScriptedModel([ScriptedTurn("Hello.")])
    with running(model) as upstream:
        told = {"PAGEFOLD_SERVE_ANTHROPIC_URL": upstream, "PAGEFOLD_SERVE_PORT": str(port)}
        events = run(pagefold, upstream, tmp_path, "-p", "Say hello", **told)

    assert [event["result"] for event in events if event["type"] == "result"] == ["Hello."]


def test_why_the_cache_was_missed_goes_from_the_provider_by_its_log_into_the_report(tmp_path: Path) -> None:
    """Only the newest asks the provider for it, and only where it takes its address for the vendor's."""
    (tmp_path / "work").mkdir()
    changed = {"type": "tools_changed", "cache_missed_input_tokens": 20_300}
    call = [ScriptedCall("Bash", {"command": "echo here"})]
    model = ScriptedModel(
        [
            ScriptedTurn("One.", "", call, Usage(10, 0, 20_000, 40)),
            ScriptedTurn("Two.", "", call, Usage(10, 0, 21_000, 40), cache_miss=changed),
            ScriptedTurn("Done.", usage=Usage(10, 21_000, 100, 40)),
        ]
    )
    with running(model) as upstream, running(Proxy(Upstreams({"anthropic": upstream}))) as url:
        told = {agents.FIRST_PARTY: "1"}
        run(program_of("claude-code"), url, tmp_path, "-p", "Go", **told)

    assert [json.loads(body).get("diagnostics") for body in model.requests][1:] == [
        {"previous_message_id": f"msg_{number:06}"} for number in (1, 2)
    ]
    (log,) = (tmp_path / "home" / "config" / "projects").rglob("*.jsonl")
    reported = subprocess.run(
        [sys.executable, "-m", "pagefold", "report", str(log), "--json"], capture_output=True, check=True
    )
    (reason,) = (misses := json.loads(reported.stdout)["cache_losses"])
    assert (reason, misses[reason]["times"], misses[reason]["tokens"]) == ("tools_changed", 1, 20_300)
    assert misses[reason]["usd"] > 0
