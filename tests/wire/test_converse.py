"""What the parts of a Converse message say, how it is written anew, and what is read of answers."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.wire import converse, json_text
from pagefold.wire.apis import CHAT, CONVERSE, GENERATE, MESSAGES, RESPONSES, api_of, without_reasoning
from pagefold.wire.aws_frames import FrameReader
from pagefold.wire.message import Block, BlockKind, Message, Role, Usage
from tests.wire.aws_framing import frame

POINT = {"cachePoint": {"type": "default"}}
LONG = {"cachePoint": {"type": "default", "ttl": "1h"}}
GUARDED = ("content", 0, "guardContent", "text", "text")
SIGNED = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "Eo8="}}}


def parsed(*parts: Any, role: str = "user", place: int = 3) -> Message:
    value = {"role": role, "content": list(parts)}
    return converse.parse_message(value, json_text.dumps(value), place)


def use(call_id: str = "t1") -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": "read", "input": {"n": 1}}}


def result(*content: Any, call_id: str = "t1", **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "content": list(content), **more}}


@pytest.mark.parametrize(
    ("part", "blocks"),
    [
        ({"text": "words"}, [Block(BlockKind.TEXT, "words", ("content", 0, "text"))]),
        ({"image": {}}, [Block(BlockKind.MEDIA, "")]),
        (POINT, []),
        ({"guardContent": {"text": {"text": "words"}}}, [Block(BlockKind.TEXT, "words", GUARDED)]),
        ({"guardContent": {"image": {"format": "png"}}}, [Block(BlockKind.MEDIA, "")]),
        (
            {"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": [{}]}},
            [
                Block(BlockKind.TEXT, "a", ("content", 0, "citationsContent", "content", 0, "text")),
                Block(BlockKind.TEXT, "b", ("content", 0, "citationsContent", "content", 1, "text")),
            ],
        ),
        (7, [Block(BlockKind.OTHER, "7")]),
        (use(), [Block(BlockKind.CALL, '{"n":1}', (), "t1", "read")]),
        (
            SIGNED,
            [Block(BlockKind.THINKING, "hm", ("content", 0, "reasoningContent", "reasoningText", "text"))],
        ),
        (
            result({"text": "a"}, {"json": {"n": 1}}, status="error"),
            [
                Block(BlockKind.RESULT, "a", ("content", 0, "toolResult", "content", 0, "text"), "t1", "", failed=True),
                Block(
                    BlockKind.RESULT,
                    '{"n":1}',
                    ("content", 0, "toolResult", "content", 1),
                    "t1",
                    failed=True,
                    within=("text",),
                ),
            ],
        ),
    ],
)
def test_each_block_says_what_a_model_reads_and_where_it_lies(part: Any, blocks: list[Block]) -> None:
    assert list(parsed(part).blocks) == blocks


def test_a_message_is_known_for_converse_and_others_for_theirs() -> None:
    for part in ({"text": "a"}, use(), result({"text": "a"}), SIGNED, POINT):
        assert api_of({"role": "user", "content": [part]}) is CONVERSE
        assert api_of({"role": "user", "content": [{"fromNextYear": 1}, part]}) is CONVERSE
    assert api_of({"role": "user", "content": [{"type": "text", "text": "a"}]}) is CHAT
    assert api_of({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}) is MESSAGES
    assert api_of({"type": "function_call_output", "call_id": "t", "output": "a"}) is RESPONSES
    assert api_of({"role": "user", "parts": [{"text": "a"}]}) is GENERATE
    assert api_of({"role": "user", "content": "a"}) is CHAT


def test_neighbours_of_one_side_are_written_as_one_and_keep_their_bytes() -> None:
    first = converse.parse_message({"role": "user", "content": []}, '{"content": [ {"text":"1"} ],"role":"user"}', 0)
    answer = parsed({"text": "3"}, role="assistant", place=7)
    written = CONVERSE.spelled([first, CONVERSE.user_text("2"), parsed(), answer, parsed({"text": "4"})])

    assert [one.raw for one in written] == [
        '{"content": [{"text":"1"},{"text":"2"}],"role":"user"}',
        answer.raw,
        parsed({"text": "4"}).raw,
    ]
    assert [one.place for one in written] == [0, 7, 3]


@pytest.mark.parametrize("raw", ['{"role":"user"}', '{"role":"user","content":"a"}', '{"role":"user","content":null}'])
def test_a_message_without_a_list_of_parts_stays_as_it_came(raw: str) -> None:
    odd = converse.parse_message(json.loads(raw), raw, 0)
    more = parsed({"text": "b"})
    assert CONVERSE.spelled([odd, more]) == [odd, more]


def test_a_policys_words_are_spelled_as_parts() -> None:
    digest = Message(Role.USER, (Block(BlockKind.TEXT, "folded"),), '{"role":"user","content":"folded"}')
    written = CONVERSE.spelled([parsed({"text": "a"}, role="assistant"), digest])
    assert json.loads(written[1].raw) == {"role": "user", "content": [{"text": "folded"}]}


def test_results_can_be_dropped_renamed_and_parted() -> None:
    message = parsed(result({"text": "a"}), {"text": "and"}, result({"text": "b"}, call_id="t2"))

    kept = CONVERSE.calls.with_results(message, {1: "t9"})
    assert kept is not None
    assert [(block.call_id, block.text) for block in kept.blocks] == [("", "and"), ("t9", "b")]
    assert CONVERSE.calls.with_results(parsed(result({"text": "a"})), {}) is None
    assert CONVERSE.calls.with_results(parsed(result({"text": "a"}), POINT), {}) is None
    results, words = CONVERSE.calls.parted(message)
    assert ([block.call_id for block in results.blocks], words.text) == (["t1", "t2"], "and")
    failed = CONVERSE.calls.result("t1", "gone", parsed(use(), role="assistant"))
    assert [(block.call_id, block.text, block.failed) for block in failed.blocks] == [("t1", "gone", True)]
    assert list(CONVERSE.calls.call_id_paths(json.loads(parsed({"text": "a"}, use()).raw))) == [
        ("content", 1, "toolUse", "toolUseId")
    ]


def test_a_cache_mark_is_a_part_that_can_be_read_put_and_left_out() -> None:
    marks = CONVERSE.marks
    assert marks is not None
    marked, plain = parsed({"text": "a"}, LONG), parsed({"text": "a"})

    assert json.loads(marks.of(marked)) == LONG["cachePoint"]
    assert (marks.of(plain), CONVERSE.plain(marked)) == ("", plain)
    assert marks.put(plain, json.dumps(LONG["cachePoint"])) == marked
    assert marks.put(parsed(), "{}") is None
    for body, long in (
        ({"messages": [json.loads(marked.raw)]}, True),
        ({"messages": [json.loads(plain.raw)], "system": [{"text": "s"}, LONG]}, True),
        ({"messages": [json.loads(parsed({"text": "a"}, POINT).raw)], "system": [{"text": "s"}, LONG]}, False),
    ):
        assert marks.asks_long(converse.parse_request(json.dumps(body).encode())) is long


def test_reasoning_is_known_by_its_signature_and_can_be_left_out() -> None:
    reasoning = CONVERSE.reasoning
    assert reasoning is not None
    hidden = {"reasoningContent": {"redactedContent": "Em8="}}
    message = parsed(SIGNED, hidden, {"text": "So."}, use(), role="assistant")

    assert reasoning.keys(message) == ("Eo8=", "Em8=")
    assert reasoning.without(message) == parsed({"text": "So."}, use(), role="assistant")
    assert reasoning.without(parsed(SIGNED, role="assistant")).text == "[thinking left out]"
    assert reasoning.without(parsed(SIGNED, POINT, role="assistant")).text == "[thinking left out]"
    assert reasoning.keys(parsed(SIGNED)) == ()
    request = converse.parse_request(b'{"messages":[]}')
    assert reasoning.is_bound(request)
    by_hand = b'{"messages":[],"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":5}}}'
    assert not reasoning.is_bound(converse.parse_request(by_hand))


def test_an_item_of_another_api_with_such_a_part_is_left_as_it_is() -> None:
    item = {"type": "reasoning", "id": "rs", "content": [SIGNED, {"text": "So."}]}
    body = json.dumps({"model": "gpt-x", "input": [{"role": "user", "content": "Go."}, item]})
    message = RESPONSES.parse_request(body.encode()).messages[1]

    assert without_reasoning(message) == message


def test_an_answer_is_read_with_its_usage() -> None:
    used = {"inputTokens": 43, "cacheReadInputTokens": 60, "cacheWriteInputTokens": 9, "outputTokens": 12}
    used["cacheDetails"] = [{"ttl": "1h", "inputTokens": 4}, {"ttl": "5m", "inputTokens": 5}]  # type: ignore[assignment]
    body = {"output": {"message": {"role": "assistant", "content": [{"text": "Hi"}, use()]}}, "stopReason": "tool_use"}
    found = CONVERSE.parse_response(json.dumps({**body, "usage": used}).encode())

    assert found.usage == Usage(43, 60, 9, 12, cache_write_long=4)
    assert (found.stop, found.message.text) == ("tool_use", 'Hi\nread {"n":1}')


def test_an_error_of_aws_is_read() -> None:
    for api in (CONVERSE, MESSAGES):
        assert api.is_too_long(400, b'{"message":"Input is too long for requested model."}')
        assert api.is_too_long(400, b'{"message":"prompt is too long: 9 tokens > 8 maximum","__type":"x"}')
        assert not api.is_too_long(400, b'{"message":"The text field in the ContentBlock object is blank."}')


EVENTS: list[tuple[str, dict[str, Any]]] = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "h"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "m"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "Eo8="}}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "H\ud800"}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "é\n\nlo"}}),
    ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "read"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"n"'}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": ":1}"}}}),
    ("contentBlockStop", {"contentBlockIndex": 2}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": {"inputTokens": 5, "outputTokens": 2}, "metrics": {"latencyMs": 1}}),
]
STREAM = b"".join(frame(json.dumps({**event, "p": "abc"}).encode(), kind) for kind, event in EVENTS)


@given(st.lists(st.integers(0, len(STREAM)), max_size=8), st.booleans())
def test_a_stream_reads_the_same_wherever_it_is_cut(places: list[int], gist: bool) -> None:
    frames, stream, bounds = FrameReader(), converse.ConverseStream(gist=gist), [0, *sorted(places), len(STREAM)]
    for start, end in pairwise(bounds):
        stream.feed(frames.feed(STREAM[start:end]))
    answer = stream.response()

    assert (stream.ended, answer.stop, answer.usage, stream.reasoning_keys) == (
        True,
        "tool_use",
        Usage(5, 0, 0, 2),
        ["Eo8="],
    )
    if not gist:
        content = [SIGNED, {"text": "H\ud800é\n\nlo"}, use()]
        assert json.loads(answer.message.raw) == {"role": "assistant", "content": content}


def test_an_exception_in_a_stream_is_its_error() -> None:
    stream = converse.ConverseStream(gist=True)
    stream.feed(FrameReader().feed(frame(b'{"message":"Too many requests"}', "throttlingException")))
    assert (stream.ended, "Too many requests" in stream.error) == (False, True)


def test_events_and_parts_of_a_stream_that_nobody_knows_yet_are_passed_over() -> None:
    told = [
        ("fromNextYear", {"level": 3}),
        ("contentBlockStart", {"contentBlockIndex": 0, "start": {"image": {"format": "png"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"image": {"source": {"bytes": "iVBO"}}}}),
        ("messageStop", {"stopReason": "end_turn"}),
        ("metadata", {}),
    ]
    stream, frames = converse.ConverseStream(), FrameReader()
    stream.feed(frames.feed(b"".join(frame(json.dumps(event).encode(), kind) for kind, event in told)))

    assert (stream.ended, stream.error) == (True, "")
    assert json.loads(stream.response().message.raw)["content"] == [{"image": {"format": "png"}}]
