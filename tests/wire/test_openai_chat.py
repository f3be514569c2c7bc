"""What the blocks of a chat message say, and how other messages are said in chat form."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.errors import WireError
from pagefold.wire import json_text, openai_chat, sse
from pagefold.wire.message import Block, BlockKind, Message, Role, Usage

UNKNOWN: dict[str, Any] = {"type": "from_next_year", "data": "x"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}
READ = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"n": 1.10}'}}
PATCH = {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
READ_BLOCK = Block(BlockKind.CALL, '{"n": 1.10}', ("tool_calls", 0, "function", "arguments"), "c1", "read")
PATCH_BLOCK = Block(BlockKind.CALL, "*** Begin", ("tool_calls", 1, "custom", "input"), "c2", "patch")


def parsed(**fields: Any) -> Message:
    return openai_chat.parse_message(fields, json_text.dumps(fields))


@pytest.mark.parametrize(
    ("fields", "blocks"),
    [
        ({"content": "words"}, [Block(BlockKind.TEXT, "words", ("content",))]),
        ({"content": ""}, [Block(BlockKind.TEXT, "", ("content",))]),
        ({"content": None}, []),
        ({}, []),
        (
            {"content": [{"type": "text", "text": "a"}, IMAGE, UNKNOWN, "b", 7]},
            [
                Block(BlockKind.TEXT, "a", ("content", 0, "text")),
                Block(BlockKind.MEDIA, ""),
                Block(BlockKind.OTHER, json_text.dumps(UNKNOWN)),
                Block(BlockKind.TEXT, "b", ("content", 3)),
                Block(BlockKind.OTHER, "7"),
            ],
        ),
        (
            {"content": [{"type": "refusal", "refusal": "no"}, {"type": "text", "text": None}]},
            [
                Block(BlockKind.TEXT, "no", ("content", 0, "refusal")),
                Block(BlockKind.OTHER, '{"type":"text","text":null}'),
            ],
        ),
        (
            {"content": [{"type": "input_audio"}, {"type": "file"}, {"type": "refusal"}]},
            [Block(BlockKind.MEDIA, ""), Block(BlockKind.MEDIA, ""), Block(BlockKind.OTHER, '{"type":"refusal"}')],
        ),
        ({"content": None, "refusal": "no"}, [Block(BlockKind.TEXT, "no", ("refusal",))]),
        ({"content": "", "refusal": None, "tool_calls": None}, [Block(BlockKind.TEXT, "", ("content",))]),
        (
            {"content": "two", "tool_calls": [READ, PATCH]},
            [Block(BlockKind.TEXT, "two", ("content",)), READ_BLOCK, PATCH_BLOCK],
        ),
        (
            {"function_call": {"name": "old", "arguments": "{}"}},
            [Block(BlockKind.CALL, "{}", ("function_call", "arguments"), "", "old")],
        ),
        (
            {
                "tool_calls": [
                    {"id": 7, "function": {"name": "x", "arguments": {"a": 1}}},
                    {"function": {}},
                    {"id": "c"},
                    7,
                ]
            },
            [
                Block(BlockKind.CALL, '{"a":1}', (), "7", "x"),
                Block(BlockKind.CALL, "", (), "", ""),
                Block(BlockKind.OTHER, '{"id":"c"}'),
                Block(BlockKind.OTHER, "7"),
            ],
        ),
    ],
)
def test_each_block_says_what_a_model_reads_and_where_it_lies(fields: dict[str, Any], blocks: list[Block]) -> None:
    message = parsed(role="assistant", **fields)

    assert message.role is Role.ASSISTANT
    assert list(message.blocks) == blocks


@pytest.mark.parametrize(
    ("fields", "blocks"),
    [
        ({"content": "out"}, [Block(BlockKind.RESULT, "out", ("content",), "c1", "read")]),
        ({"content": ""}, [Block(BlockKind.RESULT, "", ("content",), "c1", "read")]),
        ({"content": None}, [Block(BlockKind.RESULT, "", (), "c1", "read")]),
        (
            {"content": [{"type": "text", "text": "a"}, UNKNOWN]},
            [
                Block(BlockKind.RESULT, "a", ("content", 0, "text"), "c1", "read"),
                Block(BlockKind.OTHER, json_text.dumps(UNKNOWN), (), "c1", "read"),
            ],
        ),
    ],
)
def test_a_tool_message_is_a_result(fields: dict[str, Any], blocks: list[Block]) -> None:
    message = parsed(role="tool", tool_call_id="c1", name="read", **fields)

    assert message.role is Role.TOOL
    assert list(message.blocks) == blocks


def test_a_result_from_before_calls_had_ids_is_a_result() -> None:
    message = parsed(role="function", name="old", content="out")

    assert message == Message(Role.TOOL, (Block(BlockKind.RESULT, "out", ("content",), "", "old"),), message.raw)


def scored(message: dict[str, Any]) -> str:
    """The text a policy is scored by: content, then the name and arguments of each call, a line each."""
    content = message.get("content")
    parts = [content] if isinstance(content, str) else [part["text"] for part in content or []]
    calls = [call["function"] for call in message.get("tool_calls") or []]
    return "\n".join([*parts, *(f"{call['name']} {call['arguments']}" for call in calls)])


CALLS = st.builds(
    lambda name, arguments: {"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}},
    st.text(max_size=3),
    st.text(max_size=5),
)
PARTS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, st.text(min_size=1, max_size=4)), max_size=3)
CONTENTS = st.none() | st.text(max_size=6) | PARTS


@settings(deadline=None)
@given(CONTENTS, st.none() | st.lists(CALLS, max_size=3))
def test_the_text_of_a_message_is_what_a_policy_is_scored_by(content: Any, calls: Any) -> None:
    fields = {"role": "assistant", "content": content, "tool_calls": calls}

    assert parsed(**fields).text == scored(fields)


def test_a_system_message_stands_in_the_list_and_not_in_the_head() -> None:
    request = openai_chat.parse_request(b'{"messages": [{"role":"system","content":"Be brief."}], "stream": true}')

    assert request.head == ()
    assert request.messages[0].role is Role.SYSTEM
    assert request.stream


def test_a_whole_answer_is_its_first_choice_as_it_arrived() -> None:
    message = b'{"role":"assistant", "content":null,"tool_calls":[ %s ],"refusal":null}' % json.dumps(READ).encode()
    body = (
        b'{"model":"gpt","choices":[{"finish_reason":"tool_calls","message": %s },{"index":1,"message":{}}],'
        b'"usage":{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":64}}}' % message
    )

    response = openai_chat.parse_response(body)

    assert response.message == Message(Role.ASSISTANT, (READ_BLOCK,), message.decode())
    assert (response.stop, response.model) == ("tool_calls", "gpt")
    assert response.usage == Usage(fresh=36, cache_read=64, output=5)


def test_an_answer_that_names_no_role_is_the_assistants() -> None:
    response = openai_chat.parse_response(b'{"choices":[{"message":{"content":"Hi."}}]}')

    assert (response.message.role, response.message.text) == (Role.ASSISTANT, "Hi.")
    assert (response.stop, response.usage, response.model) == ("", None, "")


@pytest.mark.parametrize("body", [b"{}", b'{"choices":[]}', b'{"choices":[{"message":"words"}]}', b'{"choices":"x"}'])
def test_an_answer_without_a_choice_is_refused_and_the_reason_named(body: bytes) -> None:
    with pytest.raises(WireError, match="has a list of choices, each with a message"):
        openai_chat.parse_response(body)


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        (None, None),
        ([], None),
        ({}, Usage()),
        ({"prompt_tokens": 7, "prompt_tokens_details": None}, Usage(fresh=7)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 9}}, Usage(fresh=0, cache_read=9)),
    ],
)
def test_cached_tokens_are_read_from_the_cache_and_the_rest_is_fresh(value: Any, usage: Usage | None) -> None:
    assert openai_chat.parse_usage(value) == usage


# --- rendering --------------------------------------------------------------------------------------------------------

WORDS, MORE = Block(BlockKind.TEXT, "words"), Block(BlockKind.TEXT, "more \ud800")
CALL = Block(BlockKind.CALL, '{"n":1.10}', (), "c1", "read")
RESULT = Block(BlockKind.RESULT, "out", (), "c1", "read", failed=True)


@pytest.mark.parametrize(
    ("role", "blocks", "value"),
    [
        (Role.USER, [WORDS], {"role": "user", "content": "words"}),
        (Role.USER, [], {"role": "user", "content": ""}),
        (Role.ASSISTANT, [Block(BlockKind.THINKING, "hm")], {"role": "assistant", "content": ""}),
        (Role.USER, [WORDS, Block(BlockKind.MEDIA, "")], {"role": "user", "content": "words"}),
        (
            Role.USER,
            [WORDS, MORE],
            {"role": "user", "content": [{"type": "text", "text": "words"}, {"type": "text", "text": "more \ud800"}]},
        ),
        (Role.USER, [Block(BlockKind.OTHER, '{"type":"x"}')], {"role": "user", "content": '{"type":"x"}'}),
        (
            Role.ASSISTANT,
            [CALL],
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"n":1.10}'}}
                ],
            },
        ),
        (
            Role.ASSISTANT,
            [WORDS, Block(BlockKind.CALL, "*** Begin", (), "c2", "patch"), Block(BlockKind.CALL, "", (), "c3", "ls")],
            {
                "role": "assistant",
                "content": "words",
                "tool_calls": [
                    {
                        "id": "c2",
                        "type": "function",
                        "function": {"name": "patch", "arguments": '{"input":"*** Begin"}'},
                    },
                    {"id": "c3", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
                ],
            },
        ),
        (Role.USER, [RESULT], {"role": "tool", "tool_call_id": "c1", "name": "read", "content": "out"}),
        (
            Role.TOOL,
            [Block(BlockKind.RESULT, "a", (), "c1"), Block(BlockKind.MEDIA, "", (), "c1")],
            {"role": "tool", "tool_call_id": "c1", "content": "a"},
        ),
        (
            Role.TOOL,
            [Block(BlockKind.RESULT, "a", (), "c1"), Block(BlockKind.RESULT, "b", (), "c1")],
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
        ),
    ],
)
def test_blocks_of_any_format_are_said_as_one_chat_message(role: Role, blocks: list[Block], value: Any) -> None:
    message = openai_chat.render_message(role, blocks)

    assert json.loads(message.raw) == value
    assert message == openai_chat.parse_message(value, message.raw)
    assert json_text.bytes_of(message.raw)


def test_two_results_are_never_one_chat_message() -> None:
    with pytest.raises(AssertionError, match="one call"):
        openai_chat.render_message(Role.USER, [RESULT, Block(BlockKind.RESULT, "b", (), "c2")])


@settings(deadline=None)
@given(CONTENTS, st.lists(CALLS, max_size=3))
def test_a_chat_message_said_again_says_the_same(content: Any, calls: list[dict[str, Any]]) -> None:
    for call in calls:
        call["function"]["arguments"] = json.dumps({"a": call["function"]["arguments"]})
    message = parsed(role="assistant", content=content, tool_calls=calls)

    again = openai_chat.render_message(message.role, message.blocks)

    assert again.text == message.text
    assert openai_chat.render_message(again.role, again.blocks) == again


# --- streams ----------------------------------------------------------------------------------------------------------


def stream(*values: Any) -> openai_chat.ChatStream:
    reader = openai_chat.ChatStream()
    reader.feed(b"".join(sse.render_event("", json.dumps(value)) for value in values))
    return reader


def chunk(*deltas: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choices = [{"index": index, "delta": delta, "finish_reason": finish} for index, delta in enumerate(deltas)]
    return {"object": "chat.completion.chunk", "model": "gpt", "choices": choices}


def test_a_stream_adds_up_to_words_and_calls_of_its_first_choice() -> None:
    reader = stream(
        chunk({"role": "assistant", "content": None}),
        chunk({"reasoning_content": "h"}),
        chunk({"reasoning_content": "m", "role": "assistant"}),
        chunk({"content": "I "}, {"content": "Another choice."}),
        chunk({"content": "will."}),
        chunk({"tool_calls": [{"index": 1, "id": "c2", "type": "custom", "custom": {"name": "patch", "input": "*"}}]}),
        chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"n":'}}]}),
        chunk(
            {"tool_calls": [{"index": 1, "custom": {"input": "**"}}, {"index": 0, "function": {"arguments": " 1.10}"}}]}
        ),
        chunk({}, finish="tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
        chunk({}) | {"usage": None},
    )
    ended_before = reader.ended
    reader.feed(b"data: [DONE]\n\n")

    response = reader.response()

    assert (ended_before, reader.ended) == (False, True)
    assert reader.error == ""
    assert json.loads(response.message.raw) == {
        "role": "assistant",
        "content": "I will.",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"n": 1.10}'}},
            {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "***"}},
        ],
    }
    assert response.message.text == 'I will.\nread {"n": 1.10}\npatch ***'
    assert (response.stop, response.model) == ("tool_calls", "gpt")
    assert response.usage == Usage(fresh=7, output=2)


def test_a_custom_call_may_begin_with_its_type_alone() -> None:
    reader = stream(
        chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "custom"}]}),
        chunk({"tool_calls": [{"index": 0, "custom": {"name": "patch", "input": "***"}}]}),
    )

    assert reader.response().message.text == "patch ***"


def test_a_stream_of_one_legacy_call_adds_up_to_it() -> None:
    reader = stream(
        chunk({"role": "assistant", "function_call": {"name": "old", "arguments": "{"}}),
        chunk({"function_call": {"arguments": "}"}}, finish="function_call"),
    )

    assert json.loads(reader.response().message.raw) == {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "old", "arguments": "{}"},
    }


def test_a_stream_of_a_refusal_says_it() -> None:
    reader = stream(chunk({"refusal": "I would "}), chunk({"refusal": "rather not."}))

    assert reader.response().message.text == "I would rather not."


def test_a_stream_that_fails_says_why() -> None:
    reader = stream({"error": {"message": "overloaded"}})

    assert json.loads(reader.error) == {"error": {"message": "overloaded"}}
    assert not reader.ended


def test_a_message_with_an_unknown_role_is_refused() -> None:
    with pytest.raises(WireError, match='role "critic"'):
        parsed(role="critic", content="x")
