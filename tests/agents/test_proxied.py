"""Real agents through a proxy that derives, against a scripted model: they end as scripted, and nothing upstream moves.

The agents are driven by the kit beside the project (../shared/agents); the programs lie in AGENTS_DIR, or in `.agents`
here (`make agents`). Where either is missing the tests skip. Everything stays on loopback.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policy import Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from tests.agents.kit import CLAUDES, FOLDER, KIT, PROGRAMS, answers_in, kit, program_of

pytestmark = [
    pytest.mark.skipif(not KIT.exists(), reason="the agents kit (../shared/agents) is not on this machine"),
    pytest.mark.skipif(not PROGRAMS, reason=f"no agents in {FOLDER}: make agents, or set AGENTS_DIR"),
]
TURNS = 62


def script(turns: int) -> list[Any]:
    """Reads parts of a file again and again, as agents do."""
    calls = [
        {"name": "$shell", "input": {"command": f"sed -n {at},{at + 60}p code.py"}} for at in range(1, turns * 9, 9)
    ]
    found: list[Any] = [{"text": f"Step {n}.", "tool_call": call} for n, call in enumerate(calls[:turns])]
    return [*found, {"text": "All is read."}]


def work_in(folder: Path) -> Path:
    folder.mkdir()
    lines = (
        f"def function_{n}(page, level_{n % 7}):  # line {n} of this file, recorded by reader_{n * 7919 % 1000}"
        for n in range(700)
    )
    (folder / "code.py").write_text("\n".join(lines))
    return folder


@contextmanager
def proxy_for(model: Any, policy: Policy, folder: Path, **more: Any) -> Iterator[Proxy]:
    library = Library(open_store(folder / "store.sqlite3"))
    conversations = Conversations(policy, store=library.store, **more)
    try:
        yield Proxy(
            Upstreams({"anthropic": model.url, "openai": model.url}),
            conversations,
            put=PageKeeper(library),
            answers=RecallAnswers(library),
        )
    finally:
        library.close()


@contextmanager
def proxied(model: Any, policy: Policy, folder: Path, **more: Any) -> Iterator[tuple[Proxy, str]]:
    with proxy_for(model, policy, folder, **more) as proxy, running(proxy) as url:
        yield proxy, url


def drive(name: str, url: str, work: Path, state: Path, **settings: str) -> str:
    agent, program = PROGRAMS[name]
    driven = subprocess.run(
        ["bash", str(KIT / f"drive_{agent}.sh"), url, str(work), "Read code.py in parts"],
        env={
            "PATH": os.environ["PATH"],
            "TIME_LIMIT": "240",
            "AGENT_BIN": str(program),
            "AGENTS_DIR": str(FOLDER),
            "STATE_DIR": str(state),
            **settings,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert driven.returncode == 0, driven.stdout + driven.stderr
    return (state / "stdout").read_text()


def pairs_are_whole(request: Any) -> bool:
    """Whether every call in a request has its one result, and every result its call."""
    calls: list[str] = []
    results: list[str] = []
    for message in request["body"].get("messages") or request["body"]["input"]:
        blocks = message["content"] if isinstance(message.get("content"), list) else []
        for block in [message, *blocks, *(message.get("tool_calls") or [])]:
            kind = block.get("type")
            if kind in ("tool_use", "function"):
                calls.append(block["id"])
            elif kind in ("function_call", "custom_tool_call"):
                calls.append(block["call_id"])
            elif kind == "tool_result":
                results.append(block["tool_use_id"])
            elif kind in ("function_call_output", "custom_tool_call_output"):
                results.append(block["call_id"])
            elif block.get("role") == "tool":
                results.append(block["tool_call_id"])
    return sorted(calls) == sorted(results) and len(set(calls)) == len(calls)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_long_session_ends_as_scripted_and_every_request_extends_the_last(name: str, tmp_path: Path) -> None:
    work = work_in(tmp_path / "work")
    with kit("scripted_model").ScriptedModel(script(TURNS)) as model:
        with proxied(model, Lossless(), tmp_path) as (proxy, url):
            said = drive(name, url, work, tmp_path / "state")
        requests = answers_in(model)

    assert "All is read." in said
    assert len(requests) == TURNS + 1
    assert all(map(pairs_are_whole, requests))
    totals = proxy.totals
    assert (totals.faults, totals.failed, totals.unread, totals.prefix.moved) == (0, 0, {}, 0)
    assert totals.work.changed >= TURNS - 1
    assert totals.work.saved > 20_000
    assert totals.work.folds == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_session_past_the_window_folds_and_ends_as_scripted(name: str, tmp_path: Path) -> None:
    work = work_in(tmp_path / "work")
    with kit("scripted_model").ScriptedModel(script(TURNS)) as model:
        window = {"codex": 25_000, "opencode": 20_000}.get(name, 36_000)
        with proxied(model, Economic(), tmp_path, window=window, recall_rounds=3) as (proxy, url):
            said = drive(name, url, work, tmp_path / "state")
        requests = answers_in(model)

    assert "All is read." in said
    assert len(requests) == TURNS + 1
    assert all(map(pairs_are_whole, requests))
    assert (proxy.totals.faults, proxy.totals.failed) == (0, 0)
    moved = sum(not extends(now, before) for before, now in pairwise(requests))
    assert moved == proxy.totals.work.folds > 1


@pytest.mark.skipif("codex" not in PROGRAMS, reason="no Codex here")
def test_codex_is_refused_its_websocket_at_once_and_goes_on_by_http(tmp_path: Path) -> None:
    asked: list[tuple[str, bool]] = []
    turns = [{"text": "Look.", "tool_call": {"name": "$shell", "input": {"command": "ls"}}}, {"text": "Done."}]
    (tmp_path / "work").mkdir()
    with kit("scripted_model").ScriptedModel(turns) as model, proxy_for(model, Lossless(), tmp_path) as proxy:

        async def watched(scope: Event, receive: Receive, send: Send) -> None:
            if scope["type"] != "lifespan":
                asked.append((scope["method"], any(name == b"upgrade" for name, _ in scope["headers"])))
            await proxy(scope, receive, send)

        with running(watched) as url:
            (tmp_path / "config.toml").write_text(f'openai_base_url = "{url}/v1"\nmodel = "gpt-5.2"\n')
            done = subprocess.run(
                [
                    *(str(PROGRAMS["codex"][1]), "exec", "--json", "--skip-git-repo-check"),
                    *("--dangerously-bypass-approvals-and-sandbox", "-C", str(tmp_path / "work"), "Look around"),
                ],
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(tmp_path),
                    "CODEX_HOME": str(tmp_path),
                    "CODEX_API_KEY": "sk-scripted",
                },
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=110,
                check=False,
            )

    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert [method for method, upgrade in asked if upgrade] == ["GET"]
    assert [method for method, upgrade in asked if not upgrade].count("POST") == 2
    assert b"Done." in done.stdout


@pytest.mark.parametrize("name", CLAUDES)
def test_claude_code_started_by_run_searches_for_tools_and_works(name: str, tmp_path: Path) -> None:
    """`pagefold run` gives it the proxy and its tool search back, and hands on what it says and how it ends."""
    (tmp_path / "work").mkdir()
    turns = [
        {"text": "Look.", "tool_call": {"name": "Bash", "input": {"command": "echo $ENABLE_TOOL_SEARCH"}}},
        {"text": "Done."},
    ]
    with kit("scripted_model").ScriptedModel(turns) as model:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pagefold", "run", "--store", str(tmp_path / "store.sqlite3"), "--"),
                *(str(program_of(name)), "-p", "Look around", "--output-format", "stream-json", "--verbose"),
                *("--strict-mcp-config", "--allowedTools", "Bash"),
            ],
            cwd=tmp_path / "work",
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "CLAUDE_CONFIG_DIR": str(tmp_path / "config"),
                "ANTHROPIC_API_KEY": "sk-scripted",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "PAGEFOLD_SERVE_ANTHROPIC_URL": model.url,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=110,
            check=False,
        )
        requests = answers_in(model)

    assert done.returncode == 0, done.stderr.decode()[-2000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["result"] for event in results if event["type"] == "result"] == ["Done."]
    assert "true" in json.dumps(requests[-1]["body"]["messages"][-1])
    assert b"2 requests, 0 failed" in done.stderr or b"3 requests, 0 failed" in done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_recall_inside_the_turn_is_hidden_from_the_agent_and_extends_the_last_request(
    name: str, tmp_path: Path
) -> None:
    work = work_in(tmp_path / "work")
    recall = {"name": "context_recall", "input": {"handle": "pf-aaaaaaaaaa"}}
    shell = {"name": "$shell", "input": {"command": "sed -n 1,60p code.py"}}
    turns = [
        {"text": "Look.", "thinking": "Where?", "tool_call": recall},
        {"text": "Read.", "tool_call": shell},
        {"text": "Both.", "tool_calls": [shell, recall]},
        {"text": "All is read."},
    ]
    with kit("scripted_model").ScriptedModel(turns) as model:
        with proxied(model, Lossless(), tmp_path, recall_rounds=3) as (proxy, url):
            said = drive(name, url, work, tmp_path / "state")
        requests = answers_in(model)

    assert "All is read." in said
    assert "context_recall" not in said
    assert len(requests) == len(turns)
    assert all(map(pairs_are_whole, requests))
    assert "pf-aaaaaaaaaa" in json.dumps(requests[-1]["body"])
    assert all(extends(now, before) for before, now in pairwise(requests))
    assert (proxy.totals.faults, proxy.totals.work.recalls) == (0, 2)


def extends(now: Any, before: Any) -> bool:
    """Whether a request begins with all messages of the one before it."""
    listed = [one["body"].get("messages") or one["body"]["input"] for one in (before, now)]
    old, new = ([plain(message) for message in messages] for messages in listed)
    return new[: len(old)] == old


def plain(message: Any) -> Any:
    """A message without its cache marks, as the provider's cache takes it."""
    if isinstance(message, dict):
        kept = {key: plain(value) for key, value in message.items() if key != "cache_control"}
        if isinstance(kept.get("content"), str):
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    return [plain(one) for one in message] if isinstance(message, list) else message
