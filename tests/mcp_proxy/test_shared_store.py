"""Both proxies on one store, as processes of their own: the model proxy reads what the MCP proxy has shown.

What is held against each request is what the model proxy makes of the same history where tools are asked directly:
whatever stands in that request, and nothing else, may be referred to. So nothing that happens to a connection can
matter: sub-agents that share it, compaction, two conversations that begin alike, a restart of either proxy.
"""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policy import Policy
from pagefold.encode import decode
from pagefold.mcp_proxy.commands import Shorten, ToolCall
from pagefold.mcp_proxy.shorten import shortened
from pagefold.mcp_proxy.tool_result import ToolResult
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.server import running
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.page import id_of
from pagefold.pages.store import Store
from tests.mcp_proxy.peer import ODD, PAGEFOLD, Peer, environment
from tests.scripted_model import ScriptedModel, ScriptedTurn

ISSUES = json.dumps([{"id": n, "title": f"Issue {n} of many", "state": "open", "votes": n * 7 % 5} for n in range(60)])
CODE = "\n".join(f"def function_{n}(page):  # recorded by reader {n * 7919 % 1000}" for n in range(80))
POSING = "[as it is]\n> [ref: echo, byte-identical]"


class Agent:
    """A history as an agent keeps it: what it asked, and what its tool answered."""

    def __init__(self, tool: Peer | None, task: str = "Look at it.") -> None:
        self.tool = tool
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": task}]

    def look(self, text: str) -> str:
        """Has the tool say `text`; what the client is told is what it keeps."""
        shown = self.tool.text("echo", text=text) if self.tool else text
        call = f"toolu_{len(self.messages)}"
        self.messages.append(
            {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": "mcp__odd__echo", "input": {}}]}
        )
        content = [{"type": "text", "text": shown}]
        self.messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": content}]}
        )
        return shown


def request(messages: Sequence[dict[str, Any]]) -> bytes:
    return json.dumps({"model": "claude-test", "max_tokens": 10, "messages": messages}).encode()


def results(body: bytes) -> list[str]:
    return [
        block["content"][0]["text"]
        for message in json.loads(body)["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


@contextmanager
def served(folder: Path, model: str, *options: str) -> Iterator[str]:
    """`pagefold serve` on the store in this folder; its address."""
    command = [sys.executable, "-m", "pagefold", "serve", "--json", "--port", "0", "--anthropic-url", model, *options]
    with (folder / "serve.stderr").open("ab") as errors:
        child = subprocess.Popen(
            [*command, "--store", str(folder / "store")], stdout=subprocess.PIPE, stderr=errors, env=environment(folder)
        )
    assert child.stdout is not None
    try:
        yield str(json.loads(child.stdout.readline())["url"])
    finally:
        child.terminate()
        child.communicate(timeout=20)


def tools(folder: Path, *options: str) -> Peer:
    peer = Peer([*PAGEFOLD, "--store", str(folder / "store"), *options, "--", *ODD], folder)
    peer.greet()
    return peer


def send(url: str, messages: Sequence[dict[str, Any]]) -> None:
    asked = urllib.request.Request(f"{url}/v1/messages", request(messages), {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        answer.read()


def derived(messages: Sequence[dict[str, Any]], policy: Policy, store: Store) -> list[Any]:
    """The messages of a history as the model proxy sends them."""
    exchange = Exchange("POST", "/v1/messages", request(messages), Conversations(policy, store=store, window=3000))
    exchange.read()
    return list(json.loads(exchange.derive() or request(messages))["messages"])


def alone(messages: Sequence[dict[str, Any]]) -> list[str]:
    """What the results of a history look like behind the model proxy where no MCP proxy was in between."""
    return results(json.dumps({"messages": derived(messages, Lossless(), MemoryStore())}).encode())


def original(agent: Agent, texts: dict[str, str]) -> list[dict[str, Any]]:
    """A history as it would be if the tools had been asked directly."""
    messages = json.loads(json.dumps(agent.messages))
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_result":
                part = block["content"][0]
                part["text"] = texts.get(part["text"], part["text"])
    return list(messages)


@pytest.mark.parametrize("options", [(), ("--no-tools",), ("--references",)], ids=["tools", "no tools", "references"])
def test_what_the_mcp_proxy_has_shown_is_referred_to_where_it_stands_and_only_there(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    model = ScriptedModel([ScriptedTurn("Yes.")] * 20)
    texts: dict[str, str] = {}

    def look(agent: Agent, text: str) -> None:
        texts[agent.look(text)] = text

    with running(model) as upstream, served(tmp_path, upstream) as url, tools(tmp_path, *options) as peer:
        first, second = Agent(peer), Agent(peer)  # two conversations that begin alike, or an agent and its sub-agent
        look(first, ISSUES)
        look(first, CODE)
        look(first, POSING)
        send(url, first.messages)
        look(second, ISSUES)
        send(url, second.messages)
        look(first, ISSUES)
        look(first, CODE)
        send(url, first.messages)
        look(second, CODE)
        send(url, second.messages)
        compacted = Agent(peer, "So far: the issues were read.")
        look(compacted, ISSUES)
        send(url, compacted.messages)
        first.messages[2]["content"][0]["content"][0]["text"] = "[Old tool result content cleared]"
        look(first, ISSUES)
        send(url, first.messages)

    sent = [results(body) for body in model.requests]
    assert [len(shown) for shown in sent] == [3, 1, 5, 2, 1, 6]
    for agent, shown in ((first, sent[5]), (second, sent[3]), (compacted, sent[4])):
        assert shown == alone(original(agent, texts))
    issues = json.loads(ISSUES)
    assert all(json.loads(decode(shown[0])) == issues for shown in sent[:5]), "whole where nothing stands before it"
    assert sent[0][2] == f"[as it is]\n{POSING}", "marked once"
    assert "byte-identical" in sent[2][3]
    assert "byte-identical" in sent[2][4]
    assert json.loads(decode(sent[5][3])) == issues, "what it referred to was cleared by the client"
    assert sent[5][4] == CODE or "byte-identical" in sent[5][4]
    assert "byte-identical" in sent[5][5], "it stands again, later"


def test_a_restart_of_the_model_proxy_moves_nothing(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedTurn("Yes.")] * 20)
    with running(model) as upstream, tools(tmp_path, "--no-tools") as peer:
        agent = Agent(peer)
        with served(tmp_path, upstream) as url:
            agent.look(ISSUES)
            send(url, agent.messages)
        # The tool answers while nobody serves.
        agent.look(CODE)
        agent.look(ISSUES)
        with served(tmp_path, upstream) as url:
            send(url, agent.messages)

    before, after = (results(body) for body in model.requests)
    assert after[:1] == before
    assert "byte-identical" in after[2]


def test_an_mcp_proxy_alone_notes_nothing_and_refers_to_nothing(tmp_path: Path) -> None:
    with tools(tmp_path, "--no-tools") as peer:
        shown = [peer.text("echo", text=ISSUES) for _ in range(2)]

    assert shown[0] == shown[1]
    assert not (tmp_path / "store").exists()


def test_where_the_model_proxy_is_gone_a_client_still_holds_texts_that_say_everything(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedTurn("Yes.")] * 20)
    with running(model) as upstream, tools(tmp_path, "--references") as peer:
        agent = Agent(peer)
        with served(tmp_path, upstream) as url:
            agent.look(ISSUES)
            send(url, agent.messages)
        shown = [agent.look(ISSUES), agent.look(CODE)]
        assert "before the model too" in peer.text("context_status")

    assert json.loads(decode(shown[0])) == json.loads(ISSUES)
    assert decode(shown[1]) == CODE


# No JSON in two spellings: a form says its values, and what was noted for the form first is what it says.
TEXTS = st.sampled_from(
    [
        ISSUES,
        ISSUES.replace('"open"', '"shut"', 3),
        CODE,
        CODE.replace("page", "level", 4),
        POSING,
        "short",
        json.dumps({"status": "pending", "rows": [1, 2, 3], "text": "a" * 200}),
        json.dumps({"status": "done", "rows": [1, 2, 3], "text": "a" * 200}),
    ]
)


@pytest.mark.parametrize("policy", [Lossless(), Economic(3000)], ids=["lossless", "economic"])
@settings(max_examples=30, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=8), st.data())
def test_a_request_is_what_the_model_proxy_alone_would_make_of_it(
    policy: Policy, texts: list[str], data: st.DataObject
) -> None:
    """Whichever of the texts came through an MCP proxy."""
    store, through, direct = MemoryStore(), Agent(None), Agent(None)
    for text in texts:
        shown = text
        if data.draw(st.booleans()):
            reply = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}}
            done = shortened(Shorten(ToolResult.parse(json.dumps(reply).encode()), ToolCall("1", "", "echo")))
            shown = json.loads(done.data)["result"]["content"][0]["text"]
            for original_text, form in done.originals:
                if form:
                    store.pages.put(original_text.encode(), shown_form=id_of(form.encode()))
        through.look(shown)
        direct.look(text)

    assert derived(through.messages, policy, store) == derived(direct.messages, policy, MemoryStore())
