"""What the blocks of a Messages body say, and what a stream of one adds up to."""

import json
from typing import Any

import pytest

from pagefold.errors import WireError
from pagefold.wire import anthropic, json_text, sse
from pagefold.wire.apis import MESSAGES
from pagefold.wire.message import Block, BlockKind, Message, Role, Usage

UNKNOWN: dict[str, Any] = {"type": "from_next_year", "text": "x"}
SEARCH: dict[str, Any] = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
FOUND: dict[str, Any] = {
    "type": "web_search_tool_result",
    "tool_use_id": "s1",
    "content": [{"encrypted_content": "E="}],
}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://a.example/a.png"}}


def said(content: Any) -> tuple[Block, ...]:
    value = {"role": "user", "content": content}
    return anthropic.parse_message(value, json_text.dumps(value)).blocks


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        ("words", [Block(BlockKind.TEXT, "words", ("content",))]),
        ("", [Block(BlockKind.TEXT, "", ("content",))]),
        (None, []),
        ([], []),
        ([{"type": "text", "text": "words"}], [Block(BlockKind.TEXT, "words", ("content", 0, "text"))]),
        (
            [{"type": "thinking", "thinking": "hm", "signature": "E="}],
            [Block(BlockKind.THINKING, "hm", ("content", 0, "thinking"))],
        ),
        (
            [{"type": "redacted_thinking", "data": "E="}],
            [Block(BlockKind.OTHER, '{"type":"redacted_thinking","data":"E="}')],
        ),
        ([IMAGE, {"type": "document"}], [Block(BlockKind.MEDIA, ""), Block(BlockKind.MEDIA, "")]),
        (
            [SEARCH, FOUND, UNKNOWN],
            [Block(BlockKind.OTHER, json_text.dumps(block)) for block in (SEARCH, FOUND, UNKNOWN)],
        ),
        (
            [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "é"}}],
            [Block(BlockKind.CALL, '{"path":"é"}', (), "t1", "Read")],
        ),
        (
            [{"type": "tool_use", "id": None, "input": {}}],
            [Block(BlockKind.CALL, "{}", ())],
        ),
        (
            [{"type": "tool_result", "tool_use_id": "t1", "content": "out", "is_error": True}],
            [Block(BlockKind.RESULT, "out", ("content", 0, "content"), "t1", failed=True)],
        ),
        (
            [
                UNKNOWN,
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [{"type": "text", "text": "a"}, IMAGE, UNKNOWN, {"type": "text", "text": "b"}],
                },
            ],
            [
                Block(BlockKind.OTHER, json_text.dumps(UNKNOWN)),
                Block(BlockKind.RESULT, "a", ("content", 1, "content", 0, "text"), "t1"),
                Block(BlockKind.MEDIA, "", (), "t1"),
                Block(BlockKind.OTHER, json_text.dumps(UNKNOWN), (), "t1"),
                Block(BlockKind.RESULT, "b", ("content", 1, "content", 3, "text"), "t1"),
            ],
        ),
        ([{"type": "tool_result", "tool_use_id": "t1"}], [Block(BlockKind.RESULT, "", (), "t1")]),
        (
            [{"type": "tool_result", "tool_use_id": "t1", "content": [IMAGE]}],
            [Block(BlockKind.RESULT, "", (), "t1"), Block(BlockKind.MEDIA, "", (), "t1")],
        ),
        (
            [7, "x", {"type": "text", "text": 7}, {"type": ["text"]}],
            [
                Block(BlockKind.OTHER, "7"),
                Block(BlockKind.OTHER, '"x"'),
                Block(BlockKind.OTHER, '{"type":"text","text":7}'),
                Block(BlockKind.OTHER, '{"type":["text"]}'),
            ],
        ),
    ],
)
def test_each_block_says_what_a_model_reads_and_where_it_lies(content: Any, blocks: list[Block]) -> None:
    assert list(said(content)) == blocks


@pytest.mark.parametrize(
    ("system", "blocks"),
    [
        (b'"Be brief."', (Block(BlockKind.TEXT, "Be brief.", ()),)),
        (b'[ {"type":"text","text":"Be brief."} ]', (Block(BlockKind.TEXT, "Be brief.", (0, "text")),)),
    ],
)
def test_the_system_prompt_is_the_head(system: bytes, blocks: tuple[Block, ...]) -> None:
    request = anthropic.parse_request(b'{"system": %s, "messages": []}' % system)

    assert request.head == (Message(Role.SYSTEM, blocks, system.decode()),)


def test_a_request_without_a_system_prompt_has_no_head_and_no_tools() -> None:
    request = anthropic.parse_request(b'{"messages": [], "stream": "yes", "tools": null}')

    assert (request.head, request.tools, request.stream, request.model) == ((), (), False, "")


def test_a_whole_answer_is_one_assistant_message() -> None:
    body = (
        b'{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Hi."}],'
        b'"stop_reason":"end_turn","usage":{"input_tokens":1,"cache_read_input_tokens":20,'
        b'"cache_creation_input_tokens":300,"output_tokens":4000,"service_tier":"standard"}}'
    )

    response = anthropic.parse_response(body)

    assert response.message == Message(
        Role.ASSISTANT, (Block(BlockKind.TEXT, "Hi.", ("content", 0, "text")),), body.decode()
    )
    assert (response.stop, response.model) == ("end_turn", "claude")
    assert response.usage == Usage(fresh=1, cache_read=20, cache_write=300, output=4000)


def test_an_answer_that_says_little_is_read_as_far_as_it_goes() -> None:
    response = anthropic.parse_response(b'{"content": []}')

    assert (response.message.blocks, response.stop, response.usage, response.model) == ((), "", None, "")


@pytest.mark.parametrize("value", [None, 7, "x", []])
def test_usage_that_is_no_object_is_no_usage(value: Any) -> None:
    assert anthropic.parse_usage(value) is None


def test_usage_counts_only_numbers() -> None:
    value = {"input_tokens": None, "cache_read_input_tokens": "7", "output_tokens": True}

    assert anthropic.parse_usage(value) == Usage()


def stream(*values: dict[str, Any]) -> anthropic.MessagesStream:
    reader = anthropic.MessagesStream()
    reader.feed(b"".join(sse.render_event(value["type"], json.dumps(value)) for value in values))
    return reader


def begun(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": more}


def test_a_stream_adds_up_to_its_blocks_with_signature_citations_and_input() -> None:
    reader = stream(
        {"type": "message_start", "message": {"model": "claude", "usage": {"input_tokens": 5, "output_tokens": 1}}},
        begun(0, type="thinking", thinking=""),
        delta(0, type="thinking_delta", thinking="h"),
        delta(0, type="thinking_delta", thinking="m"),
        delta(0, type="signature_delta", signature="E="),
        begun(1, type="redacted_thinking", data="R="),
        begun(2, type="text", text="Se"),
        delta(2, type="text_delta", text="e."),
        delta(2, type="citations_delta", citation={"cited_text": "a"}),
        delta(2, type="citations_delta", citation={"cited_text": "b"}),
        begun(4, type="tool_use", id="t2", name="List", input={}),
        delta(4, type="input_json_delta", partial_json=""),
        begun(3, type="tool_use", id="t1", name="Read", input={}),
        delta(3, type="input_json_delta", partial_json='{"pa'),
        delta(3, type="input_json_delta", partial_json='th": "a"}'),
        delta(3, type="from_next_year", text="x"),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9, "x": None}},
        {"type": "message_delta", "delta": {"stop_reason": None}},
    )
    ended_before = reader.ended
    reader.feed(sse.render_event("message_stop", '{"type":"message_stop"}'))

    response = reader.response()

    assert (ended_before, reader.ended) == (False, True)
    assert reader.error == ""
    assert json.loads(response.message.raw) == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "E="},
            {"type": "redacted_thinking", "data": "R="},
            {"type": "text", "text": "See.", "citations": [{"cited_text": "a"}, {"cited_text": "b"}]},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "t2", "name": "List", "input": {}},
        ],
    }
    assert response.message == anthropic.parse_message(json.loads(response.message.raw), response.message.raw)
    assert (response.stop, response.model, response.usage) == ("tool_use", "claude", Usage(fresh=5, output=9))


def test_input_that_was_cut_off_stays_text() -> None:
    reader = stream(
        begun(0, type="tool_use", id="t1", name="Read", input={}),
        delta(0, type="input_json_delta", partial_json='{"pa'),
    )

    assert reader.response().message.text == 'Read "{\\"pa"'
    reader.feed(sse.render_event("", json.dumps(delta(0, type="input_json_delta", partial_json='th":1}'))))
    assert reader.response().message.text == 'Read {"path":1}'


def test_a_stream_that_has_said_nothing_is_an_empty_answer() -> None:
    response = anthropic.MessagesStream().response()

    assert (response.message.blocks, response.stop, response.usage, response.model) == ((), "", None, "")


def test_a_stream_that_fails_says_why() -> None:
    reader = stream({"type": "error", "error": {"type": "overloaded_error"}})

    assert json.loads(reader.error)["error"] == {"type": "overloaded_error"}
    assert not reader.ended


def test_a_message_with_an_unknown_role_is_refused_and_the_known_ones_named() -> None:
    with pytest.raises(WireError, match='role "critic": expected one of system, developer, user, assistant, tool'):
        anthropic.parse_message({"role": "critic", "content": "x"}, "")


@pytest.mark.parametrize(
    ("thread", "continued"),
    [
        ({"type": "continue", "previous_message_id": "msg_1"}, "msg_1"),
        ({"type": "create"}, ""),
        (None, ""),
        ("odd", ""),
    ],
)
def test_a_request_that_continues_a_thread_of_the_provider_is_known(thread: object, continued: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "new"}], "thread": thread}

    assert MESSAGES.continues(anthropic.parse_request(json.dumps(body).encode())) == continued
