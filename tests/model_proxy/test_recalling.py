"""Recall inside the turn, over real transports: the client sees one answer, and the next request extends the last."""

import gzip
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policy import Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.totals import Totals
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.pages.page import handle_of
from pagefold.wire import anthropic
from pagefold.wire.message import Usage
from tests.model_proxy.conversation import FILE, Paging
from tests.model_proxy.upstream import ANSWER, EVENTS, HangUp, Upstream, ask, upstream, whole
from tests.scripted_model import ScriptedCall, ScriptedModel, ScriptedTurn

PAGE = "\n".join(f"{number}\tthe secret of line {number} is kept" for number in range(1, 40))
TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    one = Library(open_store(tmp_path / "store.sqlite3"))
    yield one
    one.close()


@contextmanager
def between(model: ScriptedModel, library: Library, rounds: int = 3) -> Iterator[tuple[Proxy, str]]:
    conversations = Conversations(policy_named("lossless"), store=library.store, recall_rounds=rounds)
    with running(model) as upstream:
        proxy = Proxy(
            Upstreams({"anthropic": upstream}), conversations, put=library.put_held, answers=RecallAnswers(library)
        )
        with running(proxy) as url:
            yield proxy, url


def say(url: str, messages: list[Any], stream: bool) -> tuple[dict[str, Any], bytes]:
    """The answer as a client's library makes it of what came, and what came."""
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "stream": stream, "tools": TOOLS, "messages": messages}
    status, _, answer = ask(url, body=json.dumps(body).encode())
    assert status == 200, answer
    if not stream:
        return json.loads(answer), answer
    reader = anthropic.MessagesStream()
    events = reader.feed(answer)
    starts = [json.loads(event.data)["index"] for event in events if event.name == "content_block_start"]
    assert starts == list(range(len(starts)))
    assert [event.name for event in events].count("message_start") == 1
    assert [event.name for event in events][-2:] == ["message_delta", "message_stop"]
    response = reader.response()
    message = json.loads(response.message.raw)
    return {**message, "stop_reason": response.stop, "usage": reader.usage}, answer


def extends(model: ScriptedModel) -> bool:
    """Whether the newest request repeats the one before it, tools and messages."""
    before, now = (json.loads(body) for body in model.requests[-2:])
    repeated: bool = now["messages"][: len(before["messages"])] == before["messages"]
    return repeated and bool(now["tools"] == before["tools"])


def valid(model: ScriptedModel) -> bool:
    """Whether in every request each call is answered in the next message, and by nothing else."""
    for body in model.requests:
        messages = json.loads(body)["messages"]
        for one, other in pairwise(messages):
            calls = [block["id"] for block in one["content"] if isinstance(block, dict) and block["type"] == "tool_use"]
            answers = [
                block["tool_use_id"]
                for block in other["content"]
                if isinstance(block, dict) and block["type"] == "tool_result"
            ]
            if sorted(calls) != sorted(answers):
                return False
    return True


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_page_the_model_recalls_is_fetched_without_the_client_noticing(library: Library, stream: bool) -> None:
    handle = handle_of(library.put(PAGE.encode()))
    model = ScriptedModel(
        [
            ScriptedTurn("Let me look.", "Where was it?", [ScriptedCall("context_recall", {"handle": handle})]),
            ScriptedTurn("It is kept.", "Aha."),
            ScriptedTurn("You are welcome."),
        ]
    )
    with between(model, library) as (proxy, url):
        history: list[Any] = [{"role": "user", "content": "What is in the page?"}]
        answer, seen = say(url, history, stream)

        assert [block["type"] for block in answer["content"]] == ["thinking", "text", "thinking", "text"]
        assert [block["text"] for block in answer["content"] if "text" in block] == ["Let me look.", "It is kept."]
        assert (answer["stop_reason"], b"context_recall" in seen, b"secret" in seen) == ("end_turn", False, False)
        assert len(model.requests) == 2
        assert b"the secret of line 39" in model.requests[1]
        assert extends(model)

        history += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": "Thanks."}]
        assert say(url, history, stream)[0]["content"][0]["text"] == "You are welcome."
        assert extends(model)
        assert valid(model)
        assert (proxy.totals.work.recalls, proxy.totals.faults) == (1, 0)

    # Another instance on the same store knows what was really said.
    with between(model, library) as (proxy, url):
        say(url, history, stream)
    assert model.requests[-1] == model.requests[-2]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_calls_of_the_clients_and_ours_in_one_turn_both_get_their_results(library: Library, stream: bool) -> None:
    handle = handle_of(library.put(PAGE.encode()))
    calls = [
        ScriptedCall("Bash", {"command": "ls"}),
        ScriptedCall("context_recall", {"handle": handle}),
        ScriptedCall("Bash", {"command": "pwd"}),
    ]
    model = ScriptedModel([ScriptedTurn("All at once.", "Hm.", calls), ScriptedTurn("Done."), ScriptedTurn("Bye.")])
    with between(model, library) as (proxy, url):
        history: list[Any] = [{"role": "user", "content": "Go."}]
        answer, seen = say(url, history, stream)

        assert [block.get("name") for block in answer["content"]] == [None, None, "Bash", "Bash"]
        assert (answer["stop_reason"], b"context_recall" in seen) == ("tool_use", False)

        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
            for block in answer["content"]
            if block["type"] == "tool_use"
        ]
        history += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": results}]
        answer, _ = say(url, history, stream)
        assert answer["content"] == [{"type": "text", "text": "Done."}]
        assert extends(model)
        assert valid(model)
        assert b"the secret of line 39" in model.requests[-1]

        history += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": "Thanks."}]
        say(url, history, stream)
        assert extends(model)
        assert proxy.totals.faults == 0


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_model_that_never_stops_recalling_is_stopped(library: Library, stream: bool) -> None:
    model = ScriptedModel(
        [ScriptedTurn(f"Again {n}.", "", [ScriptedCall("context_recall", {"handle": "pf-none"})]) for n in range(9)]
    )
    with between(model, library, rounds=2) as (_, url):
        answer, _ = say(url, [{"role": "user", "content": "Go."}], stream)

    assert [block["text"] for block in answer["content"]] == ["Again 0.", "Again 1.", "Again 2."]
    assert (answer["stop_reason"], len(model.requests)) == ("end_turn", 3)
    assert b"is not a page handle" in model.requests[-1]


def test_usage_is_summed_over_the_turn(library: Library) -> None:
    usage = [Usage(10, 100, 5, 7), Usage(1, 110, 2, 3)]
    calls = [ScriptedCall("context_search", {"query": "secret"})]
    model = ScriptedModel([ScriptedTurn("Look.", "", calls, usage[0]), ScriptedTurn("Found.", usage=usage[1])])
    with between(model, library) as (proxy, url):
        answer, _ = say(url, [{"role": "user", "content": "Go."}], stream=True)

    assert answer["usage"]["input_tokens"] == 11
    assert proxy.totals.usage == Usage(11, 210, 7, 10)


def test_with_the_store_gone_the_conversation_goes_on_with_one_move(library: Library, tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            ScriptedTurn("Look.", "", [ScriptedCall("context_recall", {"handle": "pf-none"})]),
            *[ScriptedTurn("Yes.")] * 4,
        ]
    )
    history: list[Any] = [{"role": "user", "content": "Go."}]
    with between(model, library) as (_, url):
        answer, _ = say(url, history, stream=True)
    history += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": "And?"}]
    empty = Library(open_store(tmp_path / "empty.sqlite3"))
    try:
        with between(model, empty) as (proxy, url):
            answer, _ = say(url, history, stream=True)
            assert not extends(model)
            history += [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": "And?"}]
            say(url, history, stream=True)
            assert extends(model)
            assert valid(model)
            assert proxy.totals.faults == 0
    finally:
        empty.close()


def test_an_error_in_a_later_round_is_told_as_the_provider_tells_it(library: Library) -> None:
    model = ScriptedModel(
        [
            ScriptedTurn("Look.", "", [ScriptedCall("context_recall", {"handle": "pf-none"})]),
            ScriptedTurn("No.", fail=[529]),
        ]
    )
    body = {
        "model": "m",
        "max_tokens": 9,
        "stream": True,
        "tools": TOOLS,
        "messages": [{"role": "user", "content": "x"}],
    }
    with between(model, library) as (_, url):
        status, _, answer = ask(url, body=json.dumps(body).encode())

    assert status == 200
    assert b"event: error\ndata: " in answer
    assert b"overloaded_error" in answer


QUESTION = {"model": "m", "max_tokens": 9, "tools": TOOLS, "messages": [{"role": "user", "content": "x"}]}
JSON, SSE = b"content-type: application/json", b"content-type: text/event-stream"
STREAM = b"".join(EVENTS)


def asked(
    library: Library,
    answer: Callable[[socket.socket], None],
    stream: bool,
    answers: Callable[..., str] | None = None,
    policy: Policy | None = None,
) -> tuple[int, bytes, Upstream, Totals]:
    """What one question comes to, upstream an answer in raw bytes."""
    conversations = Conversations(policy or policy_named("lossless"), store=library.store, recall_rounds=3)
    with upstream(answer) as model:
        proxy = Proxy(
            Upstreams({"anthropic": model.url}),
            conversations,
            put=PageKeeper(library),
            answers=answers or RecallAnswers(library),
            report=lambda line: None,
        )
        with running(proxy) as url:
            status, _, said = ask(url, body=json.dumps(QUESTION | {"stream": stream}).encode(), accept_encoding="gzip")
    return status, said, model, proxy.totals


@pytest.mark.parametrize(
    ("stream", "headers", "said"),
    [
        (False, [JSON], ANSWER),
        (False, [b"content-type: text/plain"], b"not JSON"),
        (False, [JSON], b"[1]"),
        (False, [JSON, b"content-encoding: gzip"], gzip.compress(ANSWER)),
        (True, [SSE], STREAM),
        (True, [SSE, b"content-encoding: gzip"], gzip.compress(STREAM)),
        (True, [JSON], ANSWER),
        (True, [SSE], STREAM + b"data: [DONE]\n\n"),
        (True, [SSE], EVENTS[0] + b"event: news\ndata: {not JSON\n\n" + STREAM),
        (True, [SSE], STREAM.removesuffix(b"\n")),
        (True, [SSE], STREAM[:-9]),
    ],
    ids=[
        "whole",
        "not JSON",
        "no object",
        "encoded all the same",
        "stream",
        "stream encoded all the same",
        "no stream",
        "more behind its end",
        "an event that is none",
        "not terminated",
        "broken off",
    ],
)
def test_without_a_recall_the_client_gets_the_providers_bytes(
    library: Library, stream: bool, headers: list[bytes], said: bytes
) -> None:
    status, shown, model, totals = asked(library, lambda one: one.sendall(whole(said, *headers)), stream)

    assert (status, shown) == (200, said)
    assert [value for name, value in model.received[0].headers if name == b"accept-encoding"] == [b"identity"]
    assert totals.faults == 0


def recalling(stream: bool) -> bytes:
    """An answer that asks for a page."""
    script = ScriptedModel([ScriptedTurn("Look.", "", [ScriptedCall("context_recall", {"handle": "pf-none"})])])
    _, kind, pieces = script.answer("POST", "/v1/messages", json.dumps(QUESTION | {"stream": stream}).encode())
    return whole(b"".join(pieces), b"content-type: " + kind)


def in_turn(*replies: bytes) -> Callable[[socket.socket], None]:
    left = list(replies)

    def answer(connection: socket.socket) -> None:
        if not left:
            raise HangUp
        connection.sendall(left.pop(0))

    return answer


def test_an_upstream_that_hangs_up_in_a_later_round_is_told_as_one_clear_error(library: Library) -> None:
    status, said, _, totals = asked(library, in_turn(recalling(stream=False)), stream=False)

    assert (status, json.loads(said)["error"]["type"]) == (502, "api_error")
    assert (totals.faults, totals.failed) == (0, 1)


def test_a_stream_that_breaks_off_in_a_later_round_has_no_end_for_the_client_either(library: Library) -> None:
    replies = recalling(stream=True), whole(EVENTS[0], SSE)
    status, said, _, totals = asked(library, in_turn(*replies), stream=True)

    assert (status, b"Look." in said, b"message_stop" in said) == (200, True, False)
    assert totals.failed == 1


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_fault_in_a_recall_leaves_the_client_with_an_answer_that_ends(library: Library, stream: bool) -> None:
    def failing(tool: str, arguments: Mapping[str, Any]) -> str:
        raise KeyError(tool)

    status, said, _, totals = asked(library, in_turn(recalling(stream)), stream, failing)

    assert (status, totals.faults) == (200, 1)
    assert b"Look." in said
    assert said.endswith(EVENTS[-1]) if stream else json.loads(said)


def test_a_page_is_in_the_store_before_a_later_round_leaves(library: Library) -> None:
    at_hand: list[bool] = []
    reply = in_turn(recalling(stream=False), whole(ANSWER, JSON))

    def answer(connection: socket.socket) -> None:
        at_hand.append(library.status().pages > 0)
        reply(connection)

    asked(library, answer, False, lambda tool, arguments, history, work: FILE, Paging(window=0))

    assert at_hand == [False, True]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_call_that_was_cut_short_is_not_answered(library: Library, stream: bool) -> None:
    whole_call = recalling(stream)
    cut = whole_call.replace(b'"stop_reason":"tool_use"', b'"stop_reason":"max_tokens"').replace(b'\\"}', b"")
    _, _, length_and_body = cut.partition(b"content-length: ")
    said = length_and_body.partition(b"\r\n\r\n")[2]
    kind = SSE if stream else JSON
    status, shown, model, totals = asked(library, in_turn(whole(said, kind), whole(ANSWER, JSON)), stream)

    assert (status, len(model.received), totals.faults) == (200, 1, 0)
    assert [word in shown for word in (b"Look.", b'"max_tokens"', b"context_recall")] == [True, True, False]


def test_context_tools_that_the_client_offers_itself_are_its_own_to_answer(library: Library) -> None:
    own = {"name": "context_recall", "input_schema": {"type": "object"}}
    model = ScriptedModel([ScriptedTurn("Look.", "", [ScriptedCall("context_recall", {"handle": "pf-none"})])])
    with between(model, library) as (_, url):
        body = json.dumps({**QUESTION, "stream": False, "tools": [*TOOLS, own]}).encode()
        _, _, said = ask(url, body=body)

    assert model.requests == [body]
    assert [block.get("name") for block in json.loads(said)["content"]] == [None, "context_recall"]


def test_nothing_is_offered_unless_it_is_asked_for(library: Library) -> None:
    model = ScriptedModel([ScriptedTurn("Yes.")])
    with between(model, library, rounds=0) as (_, url):
        say(url, [{"role": "user", "content": "Go."}], stream=True)

    assert b"context_recall" not in model.requests[0]


def worked(turns: int, command: str) -> list[Any]:
    """A history in which the first of many commands failed."""
    messages: list[Any] = [{"role": "user", "content": "Mend the mill."}]
    for turn in range(turns):
        call = {"type": "tool_use", "id": f"t{turn}", "name": "Bash", "input": {"command": f"{command} {turn}"}}
        text = "\n".join(f"row_{turn}_{row} of clerk_{row * turn}" for row in range(90))
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": text, "is_error": turn == 0}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return messages


def test_a_conversation_finds_and_recalls_what_it_folded_in_its_place_and_nothing_of_others(library: Library) -> None:
    def told(turn: ScriptedTurn, messages: list[Any]) -> str:
        """What the model is told when it calls a context tool in this turn."""
        model = ScriptedModel([turn, ScriptedTurn("Seen.")], counting=True)
        conversations = Conversations(Economic(), store=library.store, window=10_000, recall_rounds=3)
        with running(model) as where:
            upstreams, keeper = Upstreams({"anthropic": where}), PageKeeper(library)
            proxy = Proxy(upstreams, conversations, put=keeper, answers=RecallAnswers(library))
            with running(proxy) as url:
                say(url, messages, stream=False)
        result = json.loads(model.requests[-1])["messages"][-1]["content"][0]["content"]
        return result if isinstance(result, str) else str(result[0]["text"])

    search = ScriptedTurn("Look.", "", [ScriptedCall("context_search", {"query": "Bash failed", "limit": 1})])
    mine = told(search, worked(14, "make mine"))
    theirs = told(search, worked(14, "make theirs"))
    assert "Bash make mine 0: FAILED" in mine
    assert "Bash make theirs 0: FAILED" in theirs

    handle = mine[mine.index("pf-") :][:13]
    recall = ScriptedTurn("Look.", "", [ScriptedCall("context_recall", {"handle": handle})])
    again = told(recall, worked(14, "make mine"))
    assert (
        "[message 3 of this conversation, a call and its result; it was done for message 1, user: Mend the mill.]\n"
        in again
    )
    assert "\n[after it: pf-" in again
    assert "\n[the call] Bash\n    command: make mine 0\n" in again
    elsewhere = told(recall, worked(14, "make theirs"))
    assert "[the call] Bash\n    command: make mine 0\n" in elsewhere
    assert "of this conversation" not in elsewhere
