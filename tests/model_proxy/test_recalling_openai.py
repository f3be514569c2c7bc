"""Recall inside the turn over both APIs of OpenAI: the client sees one answer, the next request extends the last."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.pages.page import handle_of
from pagefold.wire import openai_chat, sse
from pagefold.wire.message import BlockKind
from tests.model_proxy.upstream import ask, upstream, whole
from tests.scripted_model import ScriptedCall, ScriptedTurn

PAGE = "\n".join(f"{number}\tthe secret of line {number} is kept" for number in range(1, 40))
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
apis = pytest.mark.parametrize("path", [CHAT, RESPONSES], ids=["chat", "responses"])
streamed = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@dataclass
class Scripted:
    """A model that plays one turn after another over both APIs, and remembers what it was asked."""

    turns: Sequence[ScriptedTurn]
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        request = json.loads(body)
        self.requests.append(request)
        at = len(self.requests) - 1
        turn = self.turns[at] if at < len(self.turns) else ScriptedTurn("End.")
        if turn.fail:
            status, kind, pieces = (
                turn.fail[0],
                "application/json",
                [b'{"error":{"type":"server_error","message":"no"}}'],
            )
        else:
            made = self._chat(turn, at, request) if scope["path"] == CHAT else self._responses(turn, at, request)
            status, kind = 200, "text/event-stream" if request.get("stream") else "application/json"
            pieces = list(made)
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    def _chat(self, turn: ScriptedTurn, at: int, request: dict[str, Any]) -> Iterator[bytes]:
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}}
        calls = [
            {
                "id": f"call_{at}_{n}",
                "type": "function",
                "function": {"name": c.name, "arguments": json.dumps(c.arguments)},
            }
            for n, c in enumerate(turn.calls)
        ]
        head = {"id": f"chatcmpl-{at}", "created": 7 + at, "model": "gpt-5"}
        stop = "tool_calls" if calls else "stop"
        message = {"role": "assistant", "content": turn.text or None, **({"tool_calls": calls} if calls else {})}
        if not request.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": stop}
            yield json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
            return
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": turn.text[at : at + 4]} for at in range(0, len(turn.text), 4)]
        for n, call in enumerate(calls):
            asked: Any = call["function"]
            deltas.append({"tool_calls": [{**call, "index": n, "function": {**asked, "arguments": ""}}]})
            deltas += [
                {"tool_calls": [{"index": n, "function": {"arguments": asked["arguments"][at : at + 5]}}]}
                for at in range(0, len(asked["arguments"]), 5)
            ]
        chunk = {**head, "object": "chat.completion.chunk"}
        for delta in deltas:
            yield data({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield data({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
        yield data({**chunk, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    def _responses(self, turn: ScriptedTurn, at: int, request: dict[str, Any]) -> Iterator[bytes]:
        items: list[dict[str, Any]] = []
        if turn.thinking:
            items.append({"type": "reasoning", "id": f"rs_{at}", "summary": [], "encrypted_content": turn.thinking})
        if turn.text:
            content = [{"type": "output_text", "text": turn.text, "annotations": []}]
            items.append({"type": "message", "id": f"msg_{at}", "role": "assistant", "content": content})
        items += [
            {"type": "function_call", "id": f"fc_{at}_{n}", "call_id": f"call_{at}_{n}", "name": call.name}
            | {"arguments": json.dumps(call.arguments)}
            for n, call in enumerate(turn.calls)
        ]
        usage = {"input_tokens": 10, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 8}}
        response = {"id": f"resp_{at}", "object": "response", "model": "gpt-5", "status": "in_progress", "output": []}
        whole = {**response, "status": "completed", "output": items, "usage": usage}
        if not request.get("stream"):
            yield json.dumps(whole).encode()
            return
        events: list[dict[str, Any]] = [{"type": "response.created", "response": response}]
        for n, item in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": n, "item": item})
            if item["type"] == "message":
                events += [
                    {"type": "response.output_text.delta", "output_index": n, "content_index": 0, "item_id": item["id"]}
                    | {"delta": turn.text[at : at + 4]}
                    for at in range(0, len(turn.text), 4)
                ]
            events.append({"type": "response.output_item.done", "output_index": n, "item": item})
        events.append({"type": "response.completed", "response": whole})
        for number, event in enumerate(events):
            yield f"event: {event['type']}\n".encode() + data({**event, "sequence_number": number})


def data(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


@dataclass(frozen=True)
class Reply:
    """An answer as a client's library makes it of what came, and what came."""

    text: str
    calls: list[str]
    back: list[Any]
    usage: Any
    seen: bytes


@contextmanager
def between(model: Scripted, library: Library, rounds: int = 3) -> Iterator[tuple[Proxy, str]]:
    conversations = Conversations(policy_named("lossless"), store=library.store, recall_rounds=rounds)
    with running(model) as upstream:
        proxy = Proxy(
            Upstreams({"anthropic": "", "openai": upstream}),
            conversations,
            put=library.put_held,
            answers=RecallAnswers(library),
        )
        with running(proxy) as url:
            yield proxy, url


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    one = Library(open_store(tmp_path / "store.sqlite3"))
    yield one
    one.close()


def say(url: str, path: str, history: list[Any], stream: bool, **more: Any) -> Reply:
    answer = answered(url, path, history, stream, **more)
    return read_chat(answer, stream) if path == CHAT else read_responses(answer, stream)


def answered(url: str, path: str, history: list[Any], stream: bool, **more: Any) -> bytes:
    tool: dict[str, Any] = {"name": "Bash", "parameters": {"type": "object"}}
    body = {"model": "gpt-5", "stream": stream, **more}
    if path == CHAT:
        body |= {"messages": history, "tools": [{"type": "function", "function": tool}]}
    else:
        body |= {"input": history, "store": False, "tools": [{"type": "function", **tool}]}
    status, _, answer = ask(url, path=path, body=json.dumps(body).encode())
    assert status == 200, answer
    return answer


def read_chat(answer: bytes, stream: bool) -> Reply:
    if stream:
        reader = openai_chat.ChatStream()
        events = reader.feed(answer)
        chunks = [json.loads(event.data) for event in events if event.data != "[DONE]"]
        assert events[-1].data == "[DONE]"
        assert len({(chunk["id"], chunk["created"]) for chunk in chunks}) == 1
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        assert sum("role" in delta for delta in deltas) == 1
        indices = [call["index"] for delta in deltas for call in delta.get("tool_calls", ()) if "id" in call]
        assert indices == list(range(len(indices)))
        response, usage = reader.response(), reader.usage
    else:
        response, usage = openai_chat.parse_response(answer), json.loads(answer)["usage"]
    message = json.loads(response.message.raw)
    assert response.stop == ("tool_calls" if message.get("tool_calls") else "stop")
    calls = [block.call_id for block in response.message.blocks if block.kind is BlockKind.CALL]
    return Reply(message["content"], calls, [message], usage, answer)


def read_responses(answer: bytes, stream: bool) -> Reply:
    if stream:
        events = [json.loads(event.data) for event in sse.EventSplitter().feed(answer)]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert [event["type"] for event in events].count("response.created") == 1
        places = [event["output_index"] for event in events if event["type"] == "response.output_item.added"]
        response = events[-1]["response"]
        assert places == list(range(len(response["output"])))
        assert events[-1]["type"] == "response.completed"
    else:
        response = json.loads(answer)
    items = response["output"]
    texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    return Reply("\n\n".join(texts), calls, items, response["usage"], answer)


def results(path: str, reply: Reply) -> list[Any]:
    if path == CHAT:
        return [{"role": "tool", "tool_call_id": call, "content": "ok"} for call in reply.calls]
    return [{"type": "function_call_output", "call_id": call, "output": "ok"} for call in reply.calls]


def messages_of(request: dict[str, Any]) -> list[Any]:
    listed: list[Any] = request["messages"] if "messages" in request else request["input"]
    return listed


def extends(model: Scripted) -> bool:
    before, now = model.requests[-2:]
    repeated = messages_of(now)[: len(messages_of(before))] == messages_of(before)
    return repeated and bool(now["tools"] == before["tools"])


def valid(model: Scripted) -> bool:
    """Whether in every request each call has one result, and each reasoning stands before what it led to."""
    for request in model.requests:
        messages = messages_of(request)
        calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
        calls += [item["call_id"] for item in messages if item.get("type") == "function_call"]
        answers = [message["tool_call_id"] for message in messages if message.get("role") == "tool"]
        answers += [item["call_id"] for item in messages if item.get("type") == "function_call_output"]
        kinds = [item.get("type") for item in messages]
        alone = any(kind == "reasoning" and after is None for kind, after in pairwise(kinds))
        if sorted(calls) != sorted(answers) or kinds[-1] == "reasoning" or alone:
            return False
    return True


@apis
@streamed
def test_a_recall_is_hidden_and_the_next_request_extends_the_last(library: Library, path: str, stream: bool) -> None:
    handle = handle_of(library.put(PAGE.encode()))
    recall = [ScriptedCall("context_recall", {"handle": handle})]
    model = Scripted(
        [
            ScriptedTurn("Let me look.", "sealed", recall),
            ScriptedTurn("It is kept.", "sealed too"),
            ScriptedTurn("You are welcome."),
        ]
    )
    with between(model, library) as (proxy, url):
        history: list[Any] = [{"role": "user", "content": "What is in the page?"}]
        reply = say(url, path, history, stream)

        assert (reply.text, reply.calls) == ("Let me look.\n\nIt is kept.", [])
        assert (b"context_recall" in reply.seen, b"secret" in reply.seen) == (False, False)
        assert "the secret of line 39" in json.dumps(model.requests[1])
        assert extends(model)

        history += [*reply.back, {"role": "user", "content": "Thanks."}]
        assert say(url, path, history, stream).text == "You are welcome."
        assert extends(model)
        assert valid(model)
        assert (proxy.totals.work.recalls, proxy.totals.faults) == (1, 0)

    # Another instance on the same store knows what was really said.
    with between(model, library) as (proxy, url):
        say(url, path, history, stream)
    assert model.requests[-1] == model.requests[-2]


@apis
@streamed
def test_calls_of_the_clients_and_ours_both_get_their_results(library: Library, path: str, stream: bool) -> None:
    handle = handle_of(library.put(PAGE.encode()))
    calls = [
        ScriptedCall("Bash", {"command": "ls"}),
        ScriptedCall("context_recall", {"handle": handle}),
        ScriptedCall("Bash", {"command": "pwd"}),
    ]
    model = Scripted([ScriptedTurn("All at once.", "sealed", calls), ScriptedTurn("Done."), ScriptedTurn("Bye.")])
    with between(model, library) as (proxy, url):
        history: list[Any] = [{"role": "user", "content": "Go."}]
        reply = say(url, path, history, stream)
        assert (reply.calls, b"context_recall" in reply.seen) == (["call_0_0", "call_0_2"], False)

        history += [*reply.back, *results(path, reply)]
        reply = say(url, path, history, stream)
        assert reply.text == "Done."
        assert extends(model)
        assert valid(model)
        assert "the secret of line 39" in json.dumps(model.requests[-1])

        say(url, path, [*history, *reply.back, {"role": "user", "content": "Thanks."}], stream)
        assert extends(model)
        assert proxy.totals.faults == 0


@apis
@streamed
def test_a_model_that_never_stops_is_stopped_and_what_it_said_is_sent_back(
    library: Library, path: str, stream: bool
) -> None:
    turns = [
        ScriptedTurn(f"Again {n}." if n < 2 else "", "sealed", [ScriptedCall("context_recall", {"handle": "pf-none"})])
        for n in range(3)
    ]
    model = Scripted([*turns, ScriptedTurn("Well.")])
    with between(model, library, rounds=2) as (_, url):
        history: list[Any] = [{"role": "user", "content": "Go."}]
        reply = say(url, path, history, stream)
        assert (reply.text, reply.calls, len(model.requests)) == ("Again 0.\n\nAgain 1.", [], 3)

        say(url, path, [*history, *reply.back, {"role": "user", "content": "And?"}], stream)
        assert extends(model)
        assert valid(model)


@apis
@streamed
def test_usage_is_summed_over_the_turn(library: Library, path: str, stream: bool) -> None:
    model = Scripted(
        [ScriptedTurn("Look.", "", [ScriptedCall("context_search", {"query": "secret"})]), ScriptedTurn("Found.")]
    )
    with between(model, library) as (proxy, url):
        reply = say(url, path, [{"role": "user", "content": "Go."}], stream)

    usage = proxy.totals.usage
    assert (usage.fresh, usage.cache_read, usage.output) == (4, 16, 4)
    named = "prompt_tokens" if path == CHAT else "input_tokens"
    assert (reply.usage[named], reply.usage[f"{named}_details"]["cached_tokens"]) == (20, 16)


@apis
@streamed
def test_without_a_recall_the_client_gets_the_providers_bytes(library: Library, path: str, stream: bool) -> None:
    model = Scripted([ScriptedTurn("Yes.", "sealed", [ScriptedCall("Bash", {"command": "ls"})])] * 2)
    with between(model, library) as (_, url):
        reply = say(url, path, [{"role": "user", "content": "Go."}], stream)
    request = model.requests[0]
    made = model._chat(model.turns[0], 0, request) if path == CHAT else model._responses(model.turns[0], 0, request)
    assert reply.seen == b"".join(made)


FILTER, SAYS, STOPS, COSTS = (
    b'data: {"id":"c","choices":[],"prompt_filter_results":[]}\n\n',
    b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Yes."}}]}\n\n',
    b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}\n\n',
)
COMMENT, DONE = b": still there\n\n", b"data: [DONE]\n\n"
ENDS = b'event: response.completed\ndata: {"type":"response.completed","response":{"output":[],"usage":null}}\n\n'


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (CHAT, [FILTER, SAYS, STOPS, COSTS, DONE]),
        (CHAT, [SAYS, STOPS]),
        (CHAT, [SAYS, STOPS, COMMENT, COSTS, DONE[:-1]]),
        (CHAT, [SAYS]),
        (RESPONSES, [ENDS, DONE]),
        (RESPONSES, [COMMENT, ENDS[:-1]]),
        (RESPONSES, [COMMENT, ENDS[:-9]]),
    ],
    ids=["filters", "no DONE", "a comment", "broken off", "DONE", "not terminated", "cut in mid-event"],
)
def test_however_a_stream_is_spelled_it_comes_back_like_that(library: Library, path: str, said: list[bytes]) -> None:
    conversations = Conversations(policy_named("lossless"), store=library.store, recall_rounds=3)
    answer = whole(b"".join(said), b"content-type: text/event-stream")
    with upstream(lambda connection: connection.sendall(answer)) as model:
        proxy = Proxy(
            Upstreams({"anthropic": "", "openai": model.url}),
            conversations,
            put=library.put_held,
            answers=RecallAnswers(library),
        )
        with running(proxy) as url:
            seen = answered(url, path, [{"role": "user", "content": "Go."}], stream=True)

    assert (seen, proxy.totals.faults) == (b"".join(said), 0)


CALL = {"name": "context_recall", "arguments": '{"handle": "pf'}
CUT: dict[str, dict[str, Any]] = {
    CHAT: {
        "choices": [
            {"message": {"content": "Look.", "tool_calls": [{"id": "c", "function": CALL}]}, "finish_reason": "length"}
        ]
    },
    RESPONSES: {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "Look."}]},
            {"type": "function_call", "call_id": "c", "status": "incomplete", **CALL},
        ],
    },
}


@apis
@streamed
def test_a_call_that_was_cut_short_is_not_answered(library: Library, path: str, stream: bool) -> None:
    value = CUT[path]
    if stream and path == CHAT:
        (choice,) = value["choices"]
        calls = [{"index": 0, **choice["message"]["tool_calls"][0]}]
        said = data({"choices": [{"delta": {"content": "Look.", "tool_calls": calls}}]})
        said += data({"choices": [{"delta": {}, "finish_reason": "length"}]}) + DONE
    elif stream:
        said = data({"type": "response.incomplete", "response": value})
    else:
        said = json.dumps(value).encode()
    conversations = Conversations(policy_named("lossless"), store=library.store, recall_rounds=3)
    answer = whole(said, b"content-type: text/event-stream" if stream else b"content-type: application/json")
    with upstream(lambda connection: connection.sendall(answer)) as model:
        proxy = Proxy(
            Upstreams({"anthropic": "", "openai": model.url}),
            conversations,
            put=library.put_held,
            answers=RecallAnswers(library),
        )
        with running(proxy) as url:
            seen = answered(url, path, [{"role": "user", "content": "Go."}], stream)

    assert (len(model.received), proxy.totals.faults) == (1, 0)
    assert [word in seen for word in (b"Look.", b"context_recall")] == [True, False]
    assert b'"length"' in seen or b"max_output_tokens" in seen


@apis
def test_with_the_store_gone_the_conversation_goes_on_with_one_move(
    library: Library, path: str, tmp_path: Path
) -> None:
    model = Scripted(
        [
            ScriptedTurn("Look.", "", [ScriptedCall("context_recall", {"handle": "pf-none"})]),
            *[ScriptedTurn("Yes.")] * 4,
        ]
    )
    history: list[Any] = [{"role": "user", "content": "Go."}]
    with between(model, library) as (_, url):
        history += [*say(url, path, history, stream=True).back, {"role": "user", "content": "And?"}]
    empty = Library(open_store(tmp_path / "empty.sqlite3"))
    try:
        with between(model, empty) as (proxy, url):
            reply = say(url, path, history, stream=True)
            assert not extends(model)
            say(url, path, [*history, *reply.back, {"role": "user", "content": "And?"}], stream=True)
            assert extends(model)
            assert valid(model)
            assert proxy.totals.faults == 0
    finally:
        empty.close()


@apis
@streamed
def test_reasoning_that_led_to_a_hidden_call_alone_is_not_sent_once_the_store_is_gone(
    library: Library, path: str, stream: bool, tmp_path: Path
) -> None:
    recall = [ScriptedCall("context_recall", {"handle": "pf-none"})]
    model = Scripted(
        [ScriptedTurn("Look.", "sealed", recall), ScriptedTurn("", "sealed too", recall), *[ScriptedTurn("Yes.")] * 3]
    )
    history: list[Any] = [{"role": "user", "content": "Go."}]
    with between(model, library, rounds=1) as (_, url):
        history += [*say(url, path, history, stream).back, {"role": "user", "content": "And?"}]
    empty = Library(open_store(tmp_path / "empty.sqlite3"))
    try:
        with between(model, empty) as (proxy, url):
            reply = say(url, path, history, stream)
            say(url, path, [*history, *reply.back, {"role": "user", "content": "And?"}], stream)
            assert extends(model)
            assert valid(model)
            assert proxy.totals.faults == 0
    finally:
        empty.close()
    sealed = [item["encrypted_content"] for item in messages_of(model.requests[-1]) if "encrypted_content" in item]
    assert sealed == ([] if path == CHAT else ["sealed"])


@apis
def test_an_error_in_a_later_round_is_told_as_the_provider_tells_it(library: Library, path: str) -> None:
    model = Scripted(
        [ScriptedTurn("Look.", "", [ScriptedCall("context_recall", {"handle": "pf-none"})]), ScriptedTurn(fail=[500])]
    )
    with between(model, library) as (_, url):
        tools = [{"type": "function", "name": "x", "function": {"name": "x"}}]
        listed = {"messages" if path == CHAT else "input": [{"role": "user", "content": "Go."}]}
        body = json.dumps({"model": "m", "stream": True, "tools": tools, **listed})
        status, _, answer = ask(url, path=path, body=body.encode())

    assert status == 200
    last = sse.EventSplitter().feed(answer)[-1]
    assert (last.name, "server_error" in last.data) == ("" if path == CHAT else "error", True)


def test_several_answers_at_once_are_left_alone(library: Library) -> None:
    model = Scripted([ScriptedTurn("Yes.")])
    with between(model, library) as (_, url):
        say(url, CHAT, [{"role": "user", "content": "Go."}], stream=False, n=2)

    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["Bash"]
