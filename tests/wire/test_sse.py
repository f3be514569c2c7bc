"""Where the network cuts makes no difference: same events, same bytes, same answer, in every format."""

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.errors import WireError
from pagefold.wire import anthropic, gemini, openai_chat, openai_responses, sse
from pagefold.wire.message import Response


def every_split(data: bytes) -> list[list[bytes]]:
    """The same bytes as they may arrive: whole, one by one, in two."""
    in_two = [[data[:at], data[at:]] for at in range(1, len(data))]
    return [[data], [bytes([byte]) for byte in data], *in_two]


def events_of(parts: Sequence[bytes]) -> list[sse.StreamEvent]:
    reader = sse.EventSplitter()
    return [event for part in parts for event in reader.feed(part)] + reader.finish()


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    bounds = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]


def by_the_standard(text: str) -> list[tuple[str, str]]:
    """Name and data of every event that says something, read line by line as the standard puts it."""
    found, name, data = [], "", list[str]()
    for line in [*re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")), ""]:
        if not line:
            if name or any(data) or len(data) > 1:
                found.append((name, "\n".join(data)))
            name, data = "", []
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return found


STREAM = st.lists(st.sampled_from(["\r", "\n", "\r\n", "a", ":", "data: é", "data:b", "event: c", "data"]), max_size=14)


@settings(deadline=None, max_examples=500)
@given(STREAM, st.booleans(), st.lists(st.integers(0, 60), max_size=6))
def test_events_do_not_depend_on_the_cuts_and_hold_every_byte(pieces: list[str], mark: bool, places: list[int]) -> None:
    text = ("\ufeff" if mark else "") + "".join(pieces)
    data = text.encode()

    whole = events_of([data])

    assert events_of(cut(data, places)) == whole
    assert events_of([bytes([byte]) for byte in data]) == whole
    assert b"".join(event.raw for event in whole) == data
    assert [(event.name, event.data) for event in whole if event.name or event.data] == by_the_standard(text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_event_is_there_as_soon_as_no_further_byte_can_belong_to_it(end: str) -> None:
    reader = sse.EventSplitter()
    first, second = f"data: a{end}{end}".encode(), f"data: b{end}{end}".encode()

    assert [event.data for event in reader.feed(first + second[:1])] == ["a"]
    assert [event.data for event in reader.feed(second[1:])] == ([] if end == "\r" else ["b"])
    assert [event.data for event in reader.finish()] == (["b"] if end == "\r" else [])


@pytest.mark.parametrize(
    ("raw", "name", "data"),
    [
        (b"data: a\n\n", "", "a"),
        (b"event: x\r\ndata: a\r\n\r\n", "x", "a"),
        (b"data:a\rdata: b\rdata:  c\r\r", "", "a\nb\n c"),
        (b": comment\n\n", "", ""),
        (b": comment\ndata: a\n: another\ndata: b\n\n", "", "a\nb"),
        (b"id: 7\nretry: 10\nunknown: x\ndata: a\n\n", "", "a"),
        (b"data\ndata\n\n", "", "\n"),
        (b"\xef\xbb\xbfdata: a\n\n", "", "a"),
        (b"data: a: b\n\n", "", "a: b"),
        (b"data: \xff\xc3\n\n", "", "\udcff\udcc3"),
        (b"data: a", "", "a"),
        (b"event: x\ndata: a\n", "x", "a"),
    ],
)
def test_an_event_is_its_name_and_its_data_and_keeps_its_bytes(raw: bytes, name: str, data: str) -> None:
    for parts in every_split(raw):
        assert events_of(parts) == [sse.StreamEvent(name, data, raw)]


def test_an_empty_stream_has_no_event() -> None:
    assert events_of([]) == events_of([b"", b""]) == []


def test_a_reader_that_is_finished_begins_anew() -> None:
    reader = sse.EventSplitter()

    assert reader.feed(b"data: a\n") == []
    assert [event.data for event in reader.finish()] == ["a"]
    assert reader.finish() == []
    assert [event.data for event in reader.feed(b"\ndata: b\n\n")] == ["b"]


@settings(deadline=None)
@given(st.text("ab:é", max_size=5), st.text("ab: é\n\udcff", max_size=9))
def test_a_written_event_reads_the_same(name: str, data: str) -> None:
    (event,) = events_of([sse.render_event(name, data)])

    assert (event.name, event.data) == (name, data)


def test_an_event_is_written_with_no_more_than_it_says() -> None:
    assert sse.render_event("", "a") == b"data: a\n\n"
    assert sse.render_event("x", "a\r\nb\udcff") == b"event: x\ndata: a\ndata: b\xff\n\n"


@pytest.mark.parametrize("data", ["[1]", "4", '"x"', "null", "{", "{}{}", "plain words"])
def test_an_event_without_an_object_is_refused(data: str) -> None:
    with pytest.raises(WireError):
        sse.object_of("x", data)


# --- every format, at every cut ---------------------------------------------------------------------------------------

TOOL_INPUT = '{"path": "straße.py", "n": 2}'
USED = {"input_tokens": 9, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 3}


def typed(*values: dict[str, Any], name: Callable[[dict[str, Any]], str] = lambda value: str(value["type"])) -> bytes:
    return b"".join(sse.render_event(name(value), json.dumps(value, ensure_ascii=False)) for value in values)


def block_events(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


ANTHROPIC = (
    typed(
        {"type": "message_start", "message": {"model": "claude", "content": [], "usage": USED | {"output_tokens": 1}}},
        *block_events(
            0,
            {"type": "thinking", "thinking": ""},
            {"type": "thinking_delta", "thinking": "Hm, "},
            {"type": "thinking_delta", "thinking": "größer 😀"},
            {"type": "signature_delta", "signature": "Eq=="},
        ),
    )
    + b": keep-alive\n\n"
    + typed(
        {"type": "ping"},
        *block_events(1, {"type": "text", "text": ""}, *({"type": "text_delta", "text": t} for t in ("I ", "will é."))),
        *block_events(
            2,
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
            *({"type": "input_json_delta", "partial_json": piece} for piece in ("", TOOL_INPUT[:9], TOOL_INPUT[9:])),
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 55}},
        {"type": "message_stop"},
    )
)


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"model": "gpt", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def piece(index: int, **call: Any) -> dict[str, Any]:
    return chunk({"tool_calls": [{"index": index, **call}]})


CHAT = (
    typed(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "I will "}),
        chunk({"content": "größer 😀."}),
        piece(0, id="call_1", type="function", function={"name": "read", "arguments": ""}),
        piece(0, function={"arguments": TOOL_INPUT[:9]}),
        piece(1, id="call_2", type="function", function={"name": "list", "arguments": "{"}),
        piece(0, function={"arguments": TOOL_INPUT[9:]}),
        piece(1, function={"arguments": "}"}),
        chunk({}, "tool_calls"),
        {
            "model": "gpt",
            "choices": [],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 55,
                "prompt_tokens_details": {"cached_tokens": 90},
            },
        },
        name=lambda _: "",
    )
    + b": keep-alive\n\n"
    + b"data: [DONE]\n\n"
)

OUTPUT: list[dict[str, Any]] = [
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Hm, größer 😀"}],
        "encrypted_content": "gAA=",
    },
    {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "I will é."}]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": TOOL_INPUT},
]
WHOLE: dict[str, Any] = {
    "id": "resp_1",
    "model": "gpt",
    "status": "completed",
    "output": OUTPUT,
    "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 90}, "output_tokens": 55},
}


def item_event(step: str, index: int, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{step}", "output_index": index, **more}


RESPONSES_OPEN = (
    typed(
        {"type": "response.created", "response": WHOLE | {"status": "in_progress", "output": [], "usage": None}},
        item_event("output_item.added", 0, item=OUTPUT[0] | {"summary": []}),
        item_event("reasoning_summary_text.delta", 0, summary_index=0, delta="Hm, "),
        item_event("reasoning_summary_text.delta", 0, summary_index=0, delta="größer 😀"),
        item_event("output_item.done", 0, item=OUTPUT[0]),
        item_event("output_item.added", 1, item=OUTPUT[1] | {"content": []}),
        item_event("content_part.added", 1, content_index=0, part={"type": "output_text", "text": ""}),
        item_event("output_text.delta", 1, content_index=0, delta="I will "),
        item_event("output_text.delta", 1, content_index=0, delta="é."),
    )
    + b": keep-alive\n\n"
    + typed(
        item_event("output_item.added", 2, item=OUTPUT[2] | {"arguments": ""}),
        item_event("function_call_arguments.delta", 2, delta=TOOL_INPUT[:9]),
        item_event("function_call_arguments.delta", 2, delta=TOOL_INPUT[9:]),
    )
)
RESPONSES = RESPONSES_OPEN + typed({"type": "response.completed", "response": WHOLE})


def parts(*given: dict[str, Any], **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(given)}, "index": 0, **more}
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 100}, "modelVersion": "gemini-3.8-flash"}


GEMINI_CALL = {"functionCall": {"id": "c1", "name": "read", "args": {"path": "größer 😀"}}, "thoughtSignature": "Eo8="}
GEMINI = b"".join(
    sse.render_event("", json.dumps(value, ensure_ascii=False))
    for value in (
        parts({"text": "Hm, ", "thought": True}),
        parts({"text": "größer 😀", "thought": True}),
        parts({"text": "I will "}),
        parts({"text": "é."}),
        parts(GEMINI_CALL),
        parts({"from_next_year": 7}, finishReason="STOP")
        | {"usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 90, "candidatesTokenCount": 55}},
    )
)

STREAMS: dict[str, tuple[type[sse.StreamedAnswer], bytes]]
STREAMS = {
    "gemini": (gemini.GeminiStream, GEMINI),
    "anthropic": (anthropic.MessagesStream, ANTHROPIC),
    "openai_chat": (openai_chat.ChatStream, CHAT),
    "openai_responses": (openai_responses.ResponsesStream, RESPONSES),
    "openai_responses cut off": (openai_responses.ResponsesStream, RESPONSES_OPEN),
}
every_stream = pytest.mark.parametrize("name", STREAMS)


def followed(name: str, parts: Sequence[bytes]) -> tuple[list[sse.StreamEvent], Response, bool, str]:
    reader = STREAMS[name][0]()
    events = [event for part in parts for event in reader.feed(part)] + reader.finish()
    return events, reader.response(), reader.ended, reader.error


@every_stream
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])
def test_an_answer_does_not_depend_on_the_cuts(name: str, end: bytes) -> None:
    data = STREAMS[name][1].replace(b"\n", end)

    whole = followed(name, [data])

    assert b"".join(event.raw for event in whole[0]) == data
    assert whole[1].message.blocks[-1].text
    for parts in every_split(data):
        assert followed(name, parts) == whole


FAILED = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error"}}\n\n'


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai_chat", "openai_responses"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CR LF", "CR"])
@pytest.mark.parametrize("spelled", [bytes, lambda data: re.sub(rb"event: .*\n", b"", data)], ids=["named", "unnamed"])
@pytest.mark.parametrize("failed", [b"", FAILED], ids=["whole", "failed"])
def test_the_gist_of_an_answer_is_how_it_ended_and_what_it_cost_wherever_it_is_cut(
    name: str, end: bytes, spelled: Callable[[bytes], bytes], failed: bytes
) -> None:
    reader_type, data = STREAMS[name]
    if failed:  # in the place of the last event
        data = data[: data.rindex(b"\n\n", 0, -2) + 2] + failed
    data = spelled(data).replace(b"\n", end)
    _, answer, ended, error = followed(name, [data])

    for parts in every_split(data)[:: 1 if end == b"\n" else 7]:
        reader = reader_type(gist=True)
        for part in parts:
            reader.feed(part)
        reader.finish()
        told = reader.response()
        if ended or name not in ("openai_responses", "gemini"):  # their last event tells all
            assert (told.usage, told.stop, told.model) == (answer.usage, answer.stop, answer.model)
        assert (reader.ended, bool(reader.error)) == (ended, bool(error)) == (not failed, bool(failed))


@every_stream
def test_an_answer_does_not_depend_on_the_line_ends_or_on_the_last_blank_line(name: str) -> None:
    data = STREAMS[name][1]
    _, *expected = followed(name, [data])

    for spelled in (data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + data, data[:-2]):
        assert list(followed(name, [spelled])[1:]) == expected


@every_stream
def test_asking_for_the_answer_early_does_not_change_it(name: str) -> None:
    reader = STREAMS[name][0]()
    data = STREAMS[name][1]

    for at in range(len(data)):
        reader.feed(data[at : at + 1])
        reader.response()
    reader.finish()

    assert reader.response() == reader.response() == followed(name, [data])[1]


@every_stream
def test_an_answer_that_breaks_off_is_there_as_far_as_it_came(name: str) -> None:
    reader_type, data = STREAMS[name]
    last = data.rindex(b"\n\n", 0, len(data) // 2) + 2
    reader = reader_type()

    reader.feed(data[:last])

    assert not reader.ended
    assert reader.response().message.text
    assert reader.response().message.text in followed(name, [data])[1].message.text


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai_chat", "openai_responses"])
@pytest.mark.parametrize("data", [b"data: {\n\n", b"data: [1]\n\n", b"data: words\n\n"])
def test_an_event_that_is_no_object_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(WireError):
        followed(name, [data])


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai_chat", "openai_responses"])
def test_an_event_that_was_cut_off_is_refused_when_the_stream_ends(name: str) -> None:
    data = STREAMS[name][1]
    reader = STREAMS[name][0]()

    reader.feed(data[: data.index(b"}")])
    with pytest.raises(WireError):
        reader.finish()


WRONG = [
    None,
    7,
    "x",
    [],
    {},
    [7],
    {"type": 7},
    {"type": "input_json_delta", "partial_json": 7},
    {"type": "citations_delta"},
    {"type": "text", "text": 7, "citations": 7, "content": 7, "arguments": 7},
    {"output": [7, {"type": "message", "content": 7}, {"type": "function_call"}, {"type": ["reasoning"]}]},
    [{"content": {"parts": [7, {"text": 7}, {"functionCall": 7}, {"functionCall": {"args": 7, "name": 7}}]}}],
    [{"content": 7, "finishReason": 7}],
    [{"index": "x", "delta": {"content": 7, "tool_calls": 7, "function_call": 7}}],
    [{"delta": {"tool_calls": [7, {}, {"index": "x", "function": 7}, {"custom": {"input": 7}, "type": 7}]}}],
]
FIELDS = [
    "candidates",
    "usageMetadata",
    "message",
    "content_block",
    "delta",
    "usage",
    "choices",
    "response",
    "item",
    "index",
    "output_index",
    "model",
]
TYPES = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
    "response.created",
    "response.completed",
    "response.output_item.added",
    "response.output_text.delta",
    "response.function_call_arguments.delta",
    "from_next_year",
]


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai_chat", "openai_responses"])
@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(WRONG)))))
def test_events_with_fields_of_the_wrong_type_never_break_the_reader(
    name: str, values: list[tuple[str, dict[str, Any]]]
) -> None:
    data = typed(*({"type": kind} | fields for kind, fields in values))

    events, response, _, _ = followed(name, [data])

    assert b"".join(event.raw for event in events) == data
    assert isinstance(response.message.text, str)
