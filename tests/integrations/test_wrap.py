"""Clients of the providers' SDKs, wrapped, in a tool loop past the window: the provider accepts every request."""

import json
from typing import Any

import pytest

import pagefold
from pagefold.errors import ConfigError
from pagefold.integrations.call import ModelCalls
from tests.integrations import loops
from tests.integrations.kit import GPT, LAST, READING, TASK, WINDOW, needs, provider, read_part

RECALLING = {"tool_call": {"name": "context_recall", "input": {"handle": "pf-aaaaaaaaaa"}}}
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def client_of(package: str, name: str, url: str) -> Any:
    module = pytest.importorskip(package)
    address = url if package == "anthropic" else f"{url}/v1"
    return getattr(module, name)(base_url=address, api_key="sk-scripted", max_retries=0)


@needs("anthropic", "openai")
@STREAMED
@pytest.mark.parametrize(
    ("package", "name", "loop"),
    [
        ("anthropic", "Anthropic", loops.messages_loop),
        ("openai", "OpenAI", loops.chat_loop),
        ("openai", "OpenAI", loops.responses_loop),
    ],
    ids=["messages", "chat", "responses"],
)
def test_a_loop_past_the_window_ends_as_without_it(package: str, name: str, loop: Any, *, stream: bool) -> None:
    with provider() as judged, pagefold.wrap(client_of(package, name, judged.url), window=WINDOW) as client:
        assert loop(client, stream=stream) == LAST
    judged.ended_well()


@needs("anthropic", "openai")
@STREAMED
@pytest.mark.parametrize(
    ("package", "name", "loop"),
    [
        ("anthropic", "AsyncAnthropic", loops.messages_loop_async),
        ("openai", "AsyncOpenAI", loops.chat_loop_async),
    ],
    ids=["messages", "chat"],
)
def test_an_asynchronous_loop_ends_so_too(package: str, name: str, loop: Any, *, stream: bool) -> None:
    with provider() as judged:
        client = pagefold.wrap(client_of(package, name, judged.url), window=WINDOW)
        assert loops.run_async(loop, client, stream=stream) == LAST
    judged.ended_well()


@needs("anthropic", "openai")
@STREAMED
@pytest.mark.parametrize(
    ("package", "name", "loop"),
    [("anthropic", "Anthropic", loops.messages_loop), ("openai", "OpenAI", loops.chat_loop)],
    ids=["messages", "chat"],
)
def test_the_models_recalls_are_answered_inside_its_turn(package: str, name: str, loop: Any, *, stream: bool) -> None:
    """The loop knows no tool but its own, and would fail at the call of another."""
    turns = [*READING[:8], RECALLING, *READING[8:12], {"text": LAST}]
    with provider(turns) as judged, pagefold.wrap(client_of(package, name, judged.url), window=WINDOW) as client:
        assert loop(client, stream=stream) == LAST
    judged.ended_well(len(turns))
    recalled = [body for body in judged.bodies if "no page pf-aaaaaaaaaa" in json.dumps(body)]
    assert recalled


@needs("anthropic")
def test_a_fault_of_pagefold_sends_the_clients_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = ModelCalls(window=WINDOW)

    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(calls.conversations, "history", breaks)
    with provider(READING[:2]) as judged:
        client = pagefold.wrap(client_of("anthropic", "Anthropic", judged.url), calls=calls)
        assert loops.messages_loop(client, stream=False) == "End of script."
    assert [record.rule for record in judged.records] == ["", "", ""]
    assert [str(fault) for fault in calls.faults] == ["broken"] * 3


@needs("anthropic")
def test_without_it_the_loop_breaks_at_the_window() -> None:
    anthropic: Any = pytest.importorskip("anthropic")
    with provider() as judged, client_of("anthropic", "Anthropic", judged.url) as client:
        with pytest.raises(anthropic.BadRequestError):
            loops.messages_loop(client, stream=False)
        assert judged.records[-1].rule == "too_long"


@pytest.mark.parametrize("package", ["httpx", "httpx2"])
def test_any_client_of_httpx_is_derived_for(package: str) -> None:
    """A program that speaks the API by itself: the httpx client is what it has."""
    httpx: Any = pytest.importorskip(package, reason=f"no {package} here: run `make integrations`")
    with provider() as judged, pagefold.wrap(httpx.Client(base_url=judged.url), window=WINDOW) as client:
        assert client.get("/v1/models").json()["object"] == "list", "other paths pass"
        messages: list[Any] = [{"role": "user", "content": TASK}]
        for _ in range(loops.ROUNDS):
            asked = {"model": GPT, "messages": messages, "tools": loops.CHAT_TOOLS}
            said = client.post("/v1/chat/completions", json=asked).json()["choices"][0]["message"]
            messages.append(said)
            if not said.get("tool_calls"):
                break
            for call in said["tool_calls"]:
                text = read_part(json.loads(call["function"]["arguments"])["number"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        assert said["content"] == LAST
    judged.ended_well()


def test_what_is_no_client_is_named() -> None:
    with pytest.raises(ConfigError, match=r"wrap: expected a client of .* got builtins.int"):
        pagefold.wrap(3)
