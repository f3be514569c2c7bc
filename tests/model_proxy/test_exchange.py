"""What is seen in one exchange, and the counts over many: tables and properties, no sockets."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold import tokens
from pagefold.model_proxy.answer_reader import READ_BYTES
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import CachedPrompt, CostCheck, Ending, Prefix, Seen, Totals
from pagefold.wire.message import Usage

QUESTION = {"role": "user", "content": "What is here?"}
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "a.py\nb.py"}
EVENTS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {"model": "claude-x", "usage": {"input_tokens": 3, "cache_read_input_tokens": 90}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Two files."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
]
STREAM = b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in EVENTS)


def body(*messages: Any, **more: Any) -> bytes:
    return json.dumps({"model": "claude-sonnet-4-5", "messages": messages, **more}).encode()


def seen(
    request: bytes | None,
    answer: bytes = STREAM,
    status: int = 200,
    content_type: str = "text/event-stream; charset=utf-8",
    path: str = "/v1/messages",
    ending: Ending = Ending.WHOLE,
    conversations: Conversations | None = None,
) -> Seen:
    one = Exchange("POST", path, request, conversations or Conversations())
    one.answer_began(status, content_type)
    one.hear(answer)
    return one.finish(ending)


# ---- one exchange


def test_a_streamed_exchange_is_seen_whole() -> None:
    request = body(
        QUESTION,
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [RESULT]},
        system="Be brief.",
        tools=[{"name": "Bash"}],
        stream=True,
    )
    count = tokens.counter_for("claude-sonnet-4-5").count

    one = Exchange("POST", "/v1/messages", request, Conversations())
    one.answer_began(200, "text/event-stream; charset=utf-8")
    for at in range(len(STREAM)):
        one.hear(STREAM[at : at + 1])

    assert one.finish(Ending.WHOLE, bytes_up=len(request), bytes_down=len(STREAM)) == Seen(
        api="messages",
        ending=Ending.WHOLE,
        status=200,
        model="claude-x",
        stream=True,
        messages=3,
        bytes_up=len(request),
        bytes_down=len(STREAM),
        estimated={
            "tools": count('{"name": "Bash"}'),
            "system": tokens.FRAME + count("Be brief."),
            "user": 2 * tokens.FRAME + count("What is here?"),
            "assistant": tokens.FRAME + count('{"command":"ls"}') + count("Bash"),
            "results": count("a.py\nb.py"),
        },
        prefix=Prefix(histories=1),
        reckoned=CostCheck(predicted=57.5, real=12.0, usd=0.000235),
        usage=Usage(fresh=3, cache_read=90, output=7),
        stop="end_turn",
        cached=CachedPrompt(300.0, 4.65e-05, 0.00058125),
    )


def test_a_whole_answer_is_read_the_same() -> None:
    answer = {
        "model": "claude-x",
        "content": [{"type": "text", "text": "Two."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "cache_creation_input_tokens": 6, "output_tokens": 2},
    }

    found = seen(body(QUESTION), json.dumps(answer).encode(), content_type="application/json")

    assert (found.model, found.stop, found.stream) == ("claude-x", "end_turn", False)
    assert found.usage == Usage(fresh=5, cache_write=6, output=2)


@pytest.mark.parametrize(
    ("request_body", "answer", "reason"),
    [
        (b"not json", STREAM, "request not understood"),
        (b'{"messages": [{"role": "nobody"}]}', STREAM, "request not understood"),
        (None, STREAM, "request too large"),
        (body(QUESTION), b'event: x\ndata: "message_start" not json\n\n', "answer not understood"),
    ],
)
def test_what_cannot_be_read_is_said_and_is_no_failure(request_body: bytes | None, answer: bytes, reason: str) -> None:
    found = seen(request_body, answer)

    assert (found.unread, found.failed) == (reason, False)


def test_an_unread_request_still_has_its_usage() -> None:
    assert seen(None).usage == Usage(fresh=3, cache_read=90, output=7)


def test_an_answer_that_is_no_message_is_unread() -> None:
    assert seen(body(QUESTION), b"[]", content_type="application/json").unread == "answer not understood"


def test_an_answer_in_a_foreign_encoding_is_unread() -> None:
    one = Exchange("POST", "/v1/messages", body(QUESTION), Conversations())
    one.answer_began(200, "text/event-stream", legible=False)
    one.hear(b"\x00\x01")

    found = one.finish(Ending.WHOLE)

    assert (one.listening, found.usage) == (False, None)
    assert found.unread == "answer in an encoding that is not read"
    assert found.prefix == Prefix(histories=1)


def test_an_answer_beyond_the_bound_is_let_go() -> None:
    assert seen(body(QUESTION), bytes(READ_BYTES + 1), content_type="application/json").unread == "answer too large"


@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (529, b'{"type":"error","error":{"type":"overloaded_error","message":"secret"}}', "overloaded_error"),
        (429, b'{"type":"error","error":{"type":"Secret words"}}', "status 429"),
        (500, b"<html>", "status 500"),
        (400, b"", "status 400"),
        (400, b'{"error": 1}', "status 400"),
    ],
)
def test_an_error_is_counted_by_its_kind_and_by_nothing_else_it_says(status: int, answer: bytes, kind: str) -> None:
    found = seen(body(QUESTION), answer, status, "application/json")

    assert (found.error, found.failed, found.usage, found.prefix) == (kind, True, None, Prefix())


def test_an_error_inside_a_stream_is_a_failure() -> None:
    broken = STREAM[: STREAM.index(b"event: message_delta")]
    error = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'

    assert seen(body(QUESTION), broken + error).error == "overloaded_error"
    assert seen(body(QUESTION), broken).error == "no end of message"


def test_what_was_heard_before_the_upstream_broke_off_counts() -> None:
    found = seen(body(QUESTION), STREAM[:200], ending=Ending.CUT_OFF)

    assert (found.error, found.failed, found.usage) == ("cut off", True, Usage(fresh=3, cache_read=90))


def test_a_client_that_leaves_when_all_is_said_has_not_left_early() -> None:
    found = seen(body(QUESTION), STREAM, ending=Ending.ABANDONED)

    assert (found.ending, found.failed) == (Ending.WHOLE, False)


def test_a_client_that_leaves_is_no_failure() -> None:
    found = seen(body(QUESTION), STREAM[:200], ending=Ending.ABANDONED)

    assert (found.failed, Totals.of(found).abandoned, Totals.of(found).errors) == (False, 1, {})


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/models", "/v1/embeddings", "/"])
def test_other_requests_are_counted_and_not_read(path: str) -> None:
    assert seen(b"{", STREAM, path=path) == Seen("other", Ending.WHOLE, status=200, stream=True)


# ---- totals

counts = st.integers(0, 10**9)
tables = st.dictionaries(st.sampled_from("abc"), counts)
flat = st.builds(
    Totals,
    requests=counts,
    faults=counts,
    usage=st.builds(Usage, counts, counts, counts, counts),
    estimated=tables,
    prefix=st.builds(Prefix, counts, counts, counts, counts),
    errors=tables,
)
totals = st.builds(replace, flat, by_model=st.dictionaries(st.sampled_from("xy"), flat))


@given(totals, totals, totals)
def test_it_does_not_matter_in_which_order_counts_are_merged(one: Totals, two: Totals, three: Totals) -> None:
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + Totals() == one


def test_totals_add_up_over_models_and_failures() -> None:
    conversations = Conversations()
    good = Totals.of(seen(body(QUESTION), conversations=conversations))
    overloaded = Totals.of(seen(body(QUESTION), b"", 529, "application/json", conversations=conversations))

    total = good + good + overloaded

    assert (total.requests, total.streamed, total.failed, total.messages) == (3, 2, 1, 2)
    assert (total.errors, total.usage) == ({"status 529": 1}, Usage(fresh=6, cache_read=180, output=14))
    assert {name: part.requests for name, part in total.by_model.items()} == {"claude-x": 2}


def test_totals_are_json() -> None:
    read = json.loads(Totals.of(seen(body(QUESTION))).to_json())

    assert read["usage"] == asdict(Usage(fresh=3, cache_read=90, output=7))
    assert read["by_model"]["claude-x"]["prefix"]["histories"] == 1


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_what_the_provider_cleared_is_counted_and_skews_no_estimate(stream: bool) -> None:
    text = "many words that are read " * 2_000
    asked = body({"role": "user", "content": text})
    editing = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 8_000}]}
    usage = {"input_tokens": 2_000, "output_tokens": 5}
    if stream:
        events = [
            {"type": "message_start", "message": {"model": "claude-x", "usage": {**usage, "output_tokens": 1}}},
            {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 5}, "context_management": editing},
            {"type": "message_stop"},
        ]
        answer = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)
    else:
        whole = {"model": "claude-x", "content": [], "usage": usage, "context_management": editing}
        answer = json.dumps(whole).encode()
    conversations = Conversations()
    kind = "text/event-stream" if stream else "application/json"
    found = seen(asked, answer, content_type=kind, conversations=conversations)

    assert found.usage == Usage(fresh=2_000, output=5, cleared=8_000)
    assert 0.8 < conversations.reckoner.calibration.factor("claude-sonnet-4-5") < 1.25
