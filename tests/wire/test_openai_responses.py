"""What each item of a Responses request says, and what a stream of items adds up to."""

import json
from typing import Any

import pytest

from pagefold.errors import WireError
from pagefold.wire import json_text, openai_responses, sse
from pagefold.wire.message import Block, BlockKind, Message, Role, Usage


def parsed(item: Any) -> Message:
    return openai_responses.parse_item(item, json_text.dumps(item))


def other(item: Any) -> Block:
    return Block(BlockKind.OTHER, json_text.dumps(item))


IMAGE = {"type": "input_image", "image_url": "https://a.example/a.png"}
SEARCH: dict[str, Any] = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}}
COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAA="}
MCP_CALL = {"type": "mcp_call", "id": "mcp_1", "name": "list", "arguments": "{}", "output": "words"}
APPROVAL = {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}
COMPACT = {"type": "compaction_trigger"}
ADDED_TOOLS = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]}
UNKNOWN: dict[str, Any] = {"type": "from_next_year", "text": "x"}


@pytest.mark.parametrize(
    ("item", "role", "blocks"),
    [
        ({"role": "user", "content": "words"}, Role.USER, [Block(BlockKind.TEXT, "words", ("content",))]),
        ({"type": "message", "role": "system", "content": ""}, Role.SYSTEM, [Block(BlockKind.TEXT, "", ("content",))]),
        (
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "a"}, IMAGE, UNKNOWN]},
            Role.DEVELOPER,
            [Block(BlockKind.TEXT, "a", ("content", 0, "text")), Block(BlockKind.MEDIA, ""), other(UNKNOWN)],
        ),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [
                    {"type": "output_text", "text": "a", "annotations": []},
                    {"type": "refusal", "refusal": "no"},
                    {"type": "output_text", "text": 7},
                ],
            },
            Role.ASSISTANT,
            [
                Block(BlockKind.TEXT, "a", ("content", 0, "text")),
                Block(BlockKind.TEXT, "no", ("content", 1, "refusal")),
                other({"type": "output_text", "text": 7}),
            ],
        ),
        (
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
                "content": [{"type": "reasoning_text", "text": "c"}],
                "encrypted_content": "gAA=",
            },
            Role.ASSISTANT,
            [
                Block(BlockKind.THINKING, "a", ("summary", 0, "text")),
                Block(BlockKind.THINKING, "b", ("summary", 1, "text")),
                Block(BlockKind.THINKING, "c", ("content", 0, "text")),
            ],
        ),
        (
            {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAA="},
            Role.ASSISTANT,
            [Block(BlockKind.THINKING, "")],
        ),
        (
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"n": 1.10}'},
            Role.ASSISTANT,
            [Block(BlockKind.CALL, '{"n": 1.10}', ("arguments",), "c1", "read")],
        ),
        (
            {"type": "function_call", "call_id": "c1", "namespace": "mcp__files", "name": "read", "arguments": "{}"},
            Role.ASSISTANT,
            [Block(BlockKind.CALL, "{}", ("arguments",), "c1", "mcp__files__read")],
        ),
        (
            {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"},
            Role.ASSISTANT,
            [Block(BlockKind.CALL, "*** Begin", ("input",), "c1", "apply_patch")],
        ),
        (
            {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls"]}},
            Role.ASSISTANT,
            [Block(BlockKind.CALL, '{"type":"exec","command":["ls"]}', (), "c1", "local_shell")],
        ),
        (
            {"type": "apply_patch_call", "call_id": "c1", "operation": {"type": "delete_file", "path": "a"}},
            Role.ASSISTANT,
            [Block(BlockKind.CALL, '{"type":"delete_file","path":"a"}', (), "c1", "apply_patch")],
        ),
        (
            {"type": "function_call_output", "id": "fco_1", "call_id": "c1", "output": "out"},
            Role.TOOL,
            [Block(BlockKind.RESULT, "out", ("output",), "c1")],
        ),
        (
            {"type": "function_call_output", "call_id": "c1", "output": ""},
            Role.TOOL,
            [Block(BlockKind.RESULT, "", ("output",), "c1")],
        ),
        (
            {
                "type": "custom_tool_call_output",
                "call_id": "c1",
                "output": [{"type": "input_text", "text": "a"}, IMAGE, {"type": "input_text", "text": "b"}],
            },
            Role.TOOL,
            [
                Block(BlockKind.RESULT, "a", ("output", 0, "text"), "c1"),
                Block(BlockKind.MEDIA, "", (), "c1"),
                Block(BlockKind.RESULT, "b", ("output", 2, "text"), "c1"),
            ],
        ),
        (
            {"type": "computer_call_output", "call_id": "c1", "output": {"type": "computer_screenshot"}},
            Role.TOOL,
            [Block(BlockKind.RESULT, "", (), "c1"), Block(BlockKind.MEDIA, "", (), "c1")],
        ),
        (
            {"type": "local_shell_call_output", "id": "c1", "output": "out"},
            Role.TOOL,
            [Block(BlockKind.RESULT, "out", ("output",), "c1")],
        ),
        (
            {"type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "no such file"},
            Role.TOOL,
            [Block(BlockKind.RESULT, "no such file", ("output",), "c1", failed=True)],
        ),
        (
            {"type": "tool_search_output", "call_id": "c1", "tools": []},
            Role.TOOL,
            [
                Block(BlockKind.RESULT, "", (), "c1"),
                Block(BlockKind.OTHER, '{"type":"tool_search_output","call_id":"c1","tools":[]}', (), "c1"),
            ],
        ),
        (
            {"type": "image_generation_call", "id": "ig_1", "result": "iVBO"},
            Role.ASSISTANT,
            [Block(BlockKind.MEDIA, "")],
        ),
        *((item, Role.ASSISTANT, [other(item)]) for item in (SEARCH, COMPACTION, MCP_CALL, UNKNOWN, {"id": "rs_1"})),
        *(
            (item, Role.ASSISTANT, [other(item)])
            for item in ({"type": "from_next_year", "call_id": "c1"}, {"type": "from_next_year_output"})
        ),
        *((item, Role.USER, [other(item)]) for item in (APPROVAL, COMPACT, UNKNOWN | {"role": "user"})),
        (ADDED_TOOLS, Role.DEVELOPER, [other(ADDED_TOOLS)]),
        *(
            ({"role": "user", "content": [{"type": kind}]}, Role.USER, [Block(BlockKind.MEDIA, "")])
            for kind in ("input_image", "input_file", "input_audio")
        ),
        ({"role": "user", "content": [{"type": "refusal"}, 7]}, Role.USER, [other({"type": "refusal"}), other(7)]),
        ({"role": "user", "content": None}, Role.USER, []),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            Role.USER,
            [Block(BlockKind.TEXT, "a", ("content", 0, "text"))],
        ),
    ],
)
def test_each_item_is_one_message(item: dict[str, Any], role: Role, blocks: list[Block]) -> None:
    message = parsed(item)

    assert message.role is role
    assert list(message.blocks) == blocks


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"type": "computer_call", "call_id": "c1", "actions": [{"type": "wait"}]}, 'computer [{"type":"wait"}]'),
        ({"type": "tool_search_call", "call_id": "c1", "arguments": {"q": "a"}}, 'tool_search {"q":"a"}'),
        ({"type": "from_next_year_call", "call_id": "c1"}, "from_next_year "),
    ],
)
def test_a_call_of_any_kind_is_a_call_when_it_has_an_id_to_answer(item: dict[str, Any], text: str) -> None:
    (block,) = parsed(item).blocks

    assert (block.kind, block.call_id, block.path) == (BlockKind.CALL, "c1", ())
    assert parsed(item).text == text


@pytest.mark.parametrize("item", ["words", 7, None, [], {"role": "critic"}, {"type": "message"}])
def test_an_item_that_is_none_is_refused(item: Any) -> None:
    with pytest.raises(WireError):
        parsed(item)


def test_instructions_are_the_head() -> None:
    request = openai_responses.parse_request(b'{"instructions": "Be \\u00e9." , "input": []}')

    assert request.head == (Message(Role.SYSTEM, (Block(BlockKind.TEXT, "Be é.", ()),), '"Be \\u00e9."'),)


@pytest.mark.parametrize("body", [b'{"input": []}', b'{"input": [], "instructions": null}'])
def test_without_instructions_there_is_no_head(body: bytes) -> None:
    assert openai_responses.parse_request(body).head == ()


STRING = b'\xef\xbb\xbf{ "model":"gpt", "instructions":"Be brief.","input" :  "W\\u00f6rds \xff\\ud800" ,"n": 1.10 }\n'


def test_an_input_that_is_a_string_is_one_message_and_stays_a_string() -> None:
    request = openai_responses.parse_request(STRING)

    assert [(message.role, message.text) for message in request.messages] == [(Role.USER, "Wörds \udcff\ud800")]
    assert request.head[0].text == "Be brief."
    assert request.model == "gpt"
    assert request.render(request.messages) == STRING


def test_an_input_that_is_a_string_becomes_the_list_it_stands_for_when_it_changes() -> None:
    request = openai_responses.parse_request(STRING)
    (message,) = request.messages
    text = json_text.text_of(request.body)
    start, end = json_text.places_in_bytes(text, json_text.find(text, ("input",)))

    changed = request.render([message.with_text(0, "new")])
    longer = request.render([message, message])

    for rendered in (changed, longer):
        assert rendered.startswith(request.body[:start])
        assert rendered.endswith(request.body[end:])
    assert json_text.parse(json_text.text_of(changed))["input"] == [{"role": "user", "content": "new"}]
    assert openai_responses.parse_request(longer).messages == (message, message)
    assert json_text.parse(json_text.text_of(request.render([])))["input"] == []


@pytest.mark.parametrize(
    ("fields", "continued"),
    [
        ("", ""),
        (',"previous_response_id":null', ""),
        (',"previous_response_id":"resp_1"', "resp_1"),
        (',"conversation":"conv_1"', "conv_1"),
        (',"conversation":{"id":"conv_1"}', "conv_1"),
        (',"conversation":null,"previous_response_id":"resp_1"', "resp_1"),
    ],
)
def test_a_request_says_what_it_goes_on_from(fields: str, continued: str) -> None:
    request = openai_responses.parse_request(f'{{"input":[]{fields}}}'.encode())

    assert openai_responses.continues(request) == continued


OUTPUT: list[dict[str, Any]] = [
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "gAA=",
    },
    {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "I will."}]},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": '{"n": 1.10}'},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "patch", "input": "***"},
]
BLOCKS = (
    Block(BlockKind.THINKING, "hm", (0, "summary", 0, "text")),
    Block(BlockKind.TEXT, "I will.", (1, "content", 0, "text")),
    Block(BlockKind.CALL, '{"n": 1.10}', (2, "arguments"), "c1", "read"),
    Block(BlockKind.CALL, "***", (3, "input"), "c2", "patch"),
)
WHOLE: dict[str, Any] = {
    "id": "resp_1",
    "model": "gpt",
    "status": "completed",
    "output": OUTPUT,
    "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 5},
}


def test_a_whole_answer_is_one_message_of_all_its_items_as_they_arrived() -> None:
    listed = json.dumps(OUTPUT, indent=1)
    body = json.dumps(WHOLE).replace(json.dumps(OUTPUT), listed).encode()

    response = openai_responses.parse_response(body)

    assert response.message == Message(Role.ASSISTANT, BLOCKS, listed)
    assert (response.stop, response.model) == ("completed", "gpt")
    assert response.usage == Usage(fresh=36, cache_read=64, output=5)
    assert response.message.with_text(1, "No.").raw == listed.replace('"I will."', '"No."')


def test_an_answer_that_stopped_early_says_why() -> None:
    body = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}

    assert openai_responses.parse_response(json.dumps(body).encode()).stop == "max_output_tokens"


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        (None, None),
        ([], None),
        ({}, Usage()),
        ({"input_tokens": 7, "input_tokens_details": None}, Usage(fresh=7)),
        ({"input_tokens": 7, "input_tokens_details": {"cached_tokens": 9}}, Usage(fresh=0, cache_read=9)),
    ],
)
def test_cached_tokens_are_read_from_the_cache_and_the_rest_is_fresh(value: Any, usage: Usage | None) -> None:
    assert openai_responses.parse_usage(value) == usage


# --- streams ----------------------------------------------------------------------------------------------------------


def stream(*values: dict[str, Any]) -> openai_responses.ResponsesStream:
    reader = openai_responses.ResponsesStream()
    reader.feed(b"".join(sse.render_event(value["type"], json.dumps(value)) for value in values))
    return reader


def event(step: str, index: int, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{step}", "output_index": index, **more}


CREATED = {"type": "response.created", "response": {"model": "gpt", "status": "in_progress", "output": []}}
PIECES = [
    CREATED,
    event("output_item.added", 0, item=OUTPUT[0] | {"summary": []}),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="h"),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="m"),
    event("output_item.added", 1, item=OUTPUT[1] | {"content": []}),
    event("output_text.delta", 1, content_index=0, delta="I "),
    event("output_text.delta", 1, content_index=0, delta="will."),
    event("output_item.added", 3, item=OUTPUT[3] | {"input": ""}),
    event("output_item.added", 2, item=OUTPUT[2] | {"arguments": ""}),
    event("custom_tool_call_input.delta", 3, delta="**"),
    event("function_call_arguments.delta", 2, delta='{"n":'),
    event("function_call_arguments.delta", 2, delta=" 1.10}"),
    event("custom_tool_call_input.delta", 3, delta="*"),
]


def test_a_stream_that_breaks_off_is_the_items_and_pieces_so_far() -> None:
    reader = stream(*PIECES)

    response = reader.response()

    assert not reader.ended
    assert json.loads(response.message.raw) == OUTPUT
    assert response.message.blocks == BLOCKS
    assert (response.stop, response.model, response.usage) == ("in_progress", "gpt", None)


def test_an_item_that_is_done_takes_the_place_of_its_pieces() -> None:
    done = OUTPUT[2] | {"arguments": "{}", "status": "completed"}
    reader = stream(*PIECES, event("output_item.done", 2, item=done))

    assert json.loads(reader.response().message.raw) == [*OUTPUT[:2], done, OUTPUT[3]]


def test_the_last_event_carries_the_whole_answer_as_it_arrived() -> None:
    final = WHOLE | {"output": [OUTPUT[1] | {"content": [{"type": "output_text", "text": "The last word."}]}]}
    listed = json.dumps(final["output"], indent=1).replace("\n", " ")
    data = json.dumps({"type": "response.completed", "response": final}).replace(json.dumps(final["output"]), listed)
    reader = stream(*PIECES)

    reader.feed(sse.render_event("response.completed", data))

    response = reader.response()
    assert reader.ended
    assert response.message.raw == listed
    assert response.message.text == "The last word."
    assert (response.stop, response.model) == ("completed", "gpt")
    assert response.usage == Usage(fresh=36, cache_read=64, output=5)


def test_where_the_last_event_leaves_the_output_out_the_items_so_far_are_the_answer() -> None:
    reader = stream(*PIECES, {"type": "response.completed", "response": WHOLE | {"output": []}})

    response = reader.response()

    assert reader.ended
    assert response.message.blocks == BLOCKS
    assert response.usage == Usage(fresh=36, cache_read=64, output=5)


def test_pieces_fill_a_part_that_was_there_empty() -> None:
    hollow = OUTPUT[1] | {"content": [{"type": "output_text", "text": ""}]}
    reader = stream(*PIECES[:4], event("output_item.added", 1, item=hollow), *PIECES[5:])

    assert json.loads(reader.response().message.raw) == OUTPUT


def test_each_summary_of_one_item_is_a_part_of_its_own() -> None:
    reader = stream(
        event("output_item.added", 0, item={"type": "reasoning", "summary": []}),
        *(event("reasoning_summary_text.delta", 0, summary_index=at, delta=text) for at, text in enumerate("abb")),
        event("reasoning_summary_text.delta", 0, summary_index=1, delta="c"),
    )

    assert reader.response().message.text == "a\nbc\nb"


def test_pieces_of_an_item_that_nobody_announced_are_kept() -> None:
    reader = stream(event("output_text.delta", 0, delta="a"), event("function_call_arguments.delta", 1, delta="{}"))

    assert json.loads(reader.response().message.raw) == [
        {"content": [{"type": "output_text", "text": "a"}]},
        {"arguments": "{}"},
    ]


@pytest.mark.parametrize(("name", "fields"), [("", {"type": "error"}), ("error", {})])
def test_an_event_is_known_by_its_type_or_else_by_its_name(name: str, fields: dict[str, Any]) -> None:
    reader = openai_responses.ResponsesStream()

    reader.feed(sse.render_event(name, json.dumps(fields)))

    assert reader.error == json.dumps(fields)


def test_only_the_last_event_overrules_the_items_so_far() -> None:
    early = {"type": "response.in_progress", "response": WHOLE | {"output": OUTPUT[:1]}}
    reader = stream(*PIECES, early)

    assert reader.response().message.blocks == BLOCKS


def test_a_stream_that_has_ended_stays_ended() -> None:
    reader = stream({"type": "response.completed", "response": WHOLE}, {"type": "from_next_year"})

    assert reader.ended
    assert reader.response().message.blocks == BLOCKS


@pytest.mark.parametrize(
    ("step", "item", "name"),
    [
        ("mcp_call_arguments.delta", {"type": "mcp_call", "id": "mcp_1"}, "arguments"),
        ("code_interpreter_call_code.delta", {"type": "code_interpreter_call", "id": "ci_1"}, "code"),
    ],
)
def test_what_server_tools_are_asked_comes_in_pieces_too(step: str, item: dict[str, Any], name: str) -> None:
    reader = stream(event("output_item.added", 0, item=item), event(step, 0, delta="a"), event(step, 0, delta="b"))

    assert json.loads(reader.response().message.raw) == [item | {name: "ab"}]


def test_refusals_and_open_reasoning_come_in_pieces_too() -> None:
    reader = stream(
        event("output_item.added", 0, item={"type": "reasoning"}),
        event("reasoning_text.delta", 0, content_index=0, delta="hm"),
        event("output_item.added", 1, item={"type": "message", "role": "assistant", "content": []}),
        event("refusal.delta", 1, content_index=0, delta="I would "),
        event("refusal.delta", 1, content_index=0, delta="rather not."),
        event("output_text.delta", 1, content_index=1, delta="Sorry."),
    )

    assert reader.response().message.blocks == (
        Block(BlockKind.THINKING, "hm", (0, "content", 0, "text")),
        Block(BlockKind.TEXT, "I would rather not.", (1, "content", 0, "refusal")),
        Block(BlockKind.TEXT, "Sorry.", (1, "content", 1, "text")),
    )


@pytest.mark.parametrize(
    ("last", "stop", "ended", "failed"),
    [
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}},
            "max_output_tokens",
            True,
            False,
        ),
        ({"type": "response.failed", "response": {"status": "failed", "error": {"code": "x"}}}, "failed", True, True),
        ({"type": "error", "code": "x", "message": "no"}, "in_progress", False, True),
    ],
)
def test_a_stream_that_does_not_complete_says_why(last: dict[str, Any], stop: str, ended: bool, failed: bool) -> None:
    reader = stream(*PIECES, last)

    assert reader.response().stop == stop
    assert reader.response().message.blocks == BLOCKS
    assert reader.ended is ended
    assert reader.error == (json.dumps(last) if failed else "")
