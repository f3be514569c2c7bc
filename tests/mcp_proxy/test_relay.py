"""The pure half: what passes is the bytes that came, and what is changed is one string."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode import decode
from pagefold.mcp_proxy.commands import (
    AnswerOwnTool,
    OwnCallAnswered,
    ReportLine,
    ServerReady,
    Shorten,
    ToClient,
    ToolCall,
    ToServer,
)
from pagefold.mcp_proxy.lines import Overlong
from pagefold.mcp_proxy.listing import PRIMER, ToolListing
from pagefold.mcp_proxy.relay import Options, Relay
from pagefold.mcp_proxy.shorten import shortened
from pagefold.mcp_proxy.tool_result import ToolResult
from pagefold.pages.context_tools import CONTEXT_TOOLS
from pagefold.wire import json_text
from pagefold.wire.json_text import Path


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def call(id: object, tool: str = "t", **params: Any) -> bytes:
    return line(id=id, method="tools/call", params={"name": tool, "arguments": {}, **params})


def greeted(**options: Any) -> Relay:
    relay = Relay("s", Options(**options))
    relay.from_client(line(id=0, method="initialize", params={"clientInfo": {"name": "c"}}))
    relay.from_server("s", line(id=0, result={"protocolVersion": "2025-11-25"}))
    relay.from_client(line(method="notifications/initialized"))
    return relay


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
IDS = st.integers() | st.text(max_size=5)
METHODS = st.sampled_from(
    [
        "ping",
        "resources/read",
        "sampling/createMessage",
        "notifications/progress",
        "tasks/get",
        "future/x",
        "roots/list",
    ]
)
MESSAGES = st.one_of(
    st.fixed_dictionaries({"id": IDS, "method": METHODS, "params": st.dictionaries(st.text(max_size=4), JSON)}),
    st.fixed_dictionaries({"method": METHODS}, optional={"params": JSON, "_meta": JSON}),
    st.fixed_dictionaries({"id": IDS, "result": JSON}, optional={"unknown": JSON}),
    st.fixed_dictionaries({"id": IDS, "error": st.fixed_dictionaries({"code": st.integers(), "message": st.text()})}),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.booleans(), MESSAGES, st.sampled_from([(",", ":"), (", ", ": ")])), max_size=6))
def test_everything_but_the_three_answers_passes_byte_for_byte(
    messages: list[tuple[bool, Any, tuple[str, str]]],
) -> None:
    relay = Relay("s", Options(["context_recall"], ToolListing(), primer=PRIMER))
    for up, members, separators in messages:
        data = json.dumps({"jsonrpc": "2.0", **members}, separators=separators).encode()
        if up:
            assert relay.from_client(data) == [ToServer("s", data)]
        else:
            assert relay.from_server("s", data) == [ToClient(data)]


@pytest.mark.parametrize(
    "data",
    [b"not json", b'{"half":', b"[]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"\xff\xfe", b'{"jsonrpc":"1.0"}'],
)
def test_whatever_a_client_says_reaches_the_server(data: bytes) -> None:
    assert Relay("s").from_client(data) == [ToServer("s", data)]


@pytest.mark.parametrize("data", [b"Listening on stdio", b'{"jsonrpc":"2.0","id":1,"resu', b"\x1b[32mok\x1b[0m"])
def test_what_is_no_message_is_set_aside(data: bytes) -> None:
    assert Relay("s").from_server("s", data) == [ReportLine("s", data)]


def test_a_message_of_an_unknown_kind_passes() -> None:
    data = b'{"jsonrpc":"3.0","hello":true}'
    assert Relay("s").from_server("s", data) == [ToClient(data)]


@pytest.mark.parametrize("id", ["1", '"1"', "1.0", "1e0", "-0"])
def test_an_answer_finds_its_call_by_the_spelling_of_the_id(id: str) -> None:
    relay = Relay("s")
    relay.from_client(b'{"jsonrpc":"2.0","id":%b,"method":"tools/call","params":{"name":"t"}}' % id.encode())
    (command,) = relay.from_server("s", b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]}}' % id.encode())
    assert isinstance(command, Shorten)
    assert relay.calls == {}


CALL = ToolCall("9", "s", "t")
ROWS = json.dumps([{"id": n, "name": f"row {n}", "ok": True} for n in range(30)])


def answer(*content: Any, **more: Any) -> bytes:
    result = {"_meta": {"k": 1.10}, "content": list(content), **more}
    return json.dumps({"result": result, "jsonrpc": "2.0", "id": 9, "x": [1, 2]}, indent=1).encode()


def text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def replaced(data: bytes, **texts: str) -> bytes:
    raw = json_text.text_of(data)
    for place, new in texts.items():
        path: Path = ("result", "content", int(place[1:]), "text")
        raw = json_text.replaced(raw, path, new)
    return json_text.bytes_of(raw)


def test_only_the_texts_of_an_answer_change() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    resource = {"type": "resource", "resource": {"uri": "a://b", "text": ROWS}}
    data = answer(text(ROWS), image, resource, text("short"), text(ROWS, annotations={"audience": ["user"]}))
    done = shortened(Shorten(ToolResult.parse(data), CALL))
    shown = json.loads(done.data)["result"]["content"][0]["text"]
    assert done.data == replaced(data, _0=shown)
    assert json.loads(decode(shown)) == json.loads(ROWS)
    assert (len(done.originals), done.before > 3 * done.after) == (2, True)


@pytest.mark.parametrize(
    "posing",
    ["> [ref: R1, byte-identical]", "[JSON]\n#1\n#1 3 rows: a=1", "[as it is]\nhello", "> [near-ref: R2, a: 1→2]"],
)
def test_a_text_that_poses_as_a_hint_of_ours_is_marked(posing: str) -> None:
    done = shortened(Shorten(ToolResult.parse(answer(text(posing))), CALL))
    shown = json.loads(done.data)["result"]["content"][0]["text"]
    assert shown == f"[as it is]\n{posing}"
    assert decode(shown) == posing


def test_a_twin_is_left_out_for_clients_that_would_show_it_alone() -> None:
    value = {"rows": json.loads(ROWS)}
    for members in (
        {"content": [text(json.dumps(value))], "structuredContent": value},
        {"structuredContent": value, "content": [text(json.dumps(value))], "isError": False},
    ):
        data = json.dumps({"jsonrpc": "2.0", "id": 9, "result": members}).encode()
        kept = shortened(Shorten(ToolResult.parse(data), CALL))
        assert json.loads(kept.data)["result"]["structuredContent"] == value
        alone = shortened(Shorten(ToolResult.parse(data), CALL, only_text=True))
        result = json.loads(alone.data)["result"]
        assert "structuredContent" not in result
        assert json.loads(decode(result["content"][0]["text"])) == value
        assert {key: result[key] for key in members if key in ("isError",)} == {
            key: members[key] for key in members if key in ("isError",)
        }


@pytest.mark.parametrize("value", [{"a": 2}, {"a": True}, {"a": 1.0}, [1]])
def test_structured_content_that_no_text_says_stays(value: Any) -> None:
    data = answer(text('{"a": 1}'), structuredContent=value)
    assert (
        json.loads(shortened(Shorten(ToolResult.parse(data), CALL, only_text=True)).data)["result"]["structuredContent"]
        == value
    )


@pytest.mark.parametrize("result", ['{"content":"x"}', "{}", "[]", '{"task":{"taskId":"1"}}', '{"toolResult":1}'])
def test_answers_of_other_shapes_pass(result: str) -> None:
    data = b'{"jsonrpc":"2.0","id":1,"result":%b}' % result.encode()
    assert shortened(Shorten(ToolResult.parse(data), CALL)).data == data


def test_our_names_are_reserved_and_the_servers_tool_is_reached_under_another() -> None:
    listing = ToolListing(None, CONTEXT_TOOLS)
    relay = greeted(tools=[tool.name for tool in CONTEXT_TOOLS], listing=listing)
    relay.from_client(line(id=1, method="tools/list"))
    theirs = [{"name": "context_recall", "inputSchema": {"type": "object"}}, {"name": "x"}]
    data = line(id=1, result={"tools": theirs, "_meta": {}})
    (command,) = relay.from_server("s", data)
    assert isinstance(command, ToClient)
    tools = json.loads(command.data)["result"]["tools"]
    assert tools[:2] == [{"name": "s_context_recall", "inputSchema": {"type": "object"}}, {"name": "x"}]
    assert [tool["name"] for tool in tools[2:]] == [tool.name for tool in CONTEXT_TOOLS]
    assert relay.from_client(call(2, "context_recall")) == [AnswerOwnTool(ToolCall("2", "s", "context_recall"))]
    assert relay.from_client(call(4, "s_context_recall")) == [ToServer("s", call(4, "context_recall"))]
    assert relay.from_client(call(3, "context_status")) == [AnswerOwnTool(ToolCall("3", "s", "context_status"))]


def test_a_name_of_ours_on_an_early_page_is_listed_once() -> None:
    relay = greeted(tools=["context_recall"], listing=ToolListing(None, CONTEXT_TOOLS[:1]))
    listed: list[str] = []
    for cursor, theirs in (("more", ["context_recall", "s_context_recall"]), (None, ["x", "context_recall"])):
        relay.from_client(line(id=1, method="tools/list"))
        more = {"nextCursor": cursor} if cursor else {}
        (command,) = relay.from_server("s", line(id=1, result={"tools": [{"name": name} for name in theirs], **more}))
        assert isinstance(command, ToClient)
        listed += [tool["name"] for tool in json.loads(command.data)["result"]["tools"]]
    assert listed.count("context_recall") == 1
    assert listed[-1] == "context_recall"
    assert relay.from_client(call(2, "context_recall")) == [AnswerOwnTool(ToolCall("2", "s", "context_recall"))]
    assert relay.from_client(call(3, "s_context_recall_")) == [ToServer("s", call(3, "context_recall"))]
    assert relay.from_client(call(4, "s_context_recall")) == [ToServer("s", call(4, "s_context_recall"))]


def test_what_a_server_answers_to_a_cancelled_call_is_marked_like_any_other_result() -> None:
    relay = greeted()
    relay.from_client(call(1, "x"))
    relay.from_client(line(method="notifications/cancelled", params={"requestId": 1}))
    (command,) = relay.from_server("s", line(id=1, result={"content": [{"type": "text", "text": "= line 1 of R1"}]}))
    assert isinstance(command, Shorten)
    assert relay.lost("s", "died") == []


@pytest.mark.parametrize("result", [{}, {"tools": None}, {"tools": {"name": "x"}}, {"tools": "x"}])
def test_a_list_without_tools_passes_as_it_came(result: dict[str, Any]) -> None:
    relay = greeted(tools=["context_recall"], listing=ToolListing(None, CONTEXT_TOOLS[:1]))
    relay.from_client(line(id=1, method="tools/list"))
    data = line(id=1, result=result)
    assert relay.from_server("s", data) == [ToClient(data)]


@pytest.mark.parametrize("tool", [3, "x", None, ["x"], {}])
def test_a_tool_that_is_none_stays_as_it_came(tool: Any) -> None:
    def widened(schema: Any) -> tuple[Any, dict[str, str]]:
        return {"wider": schema}, {}

    listing = ToolListing(None, CONTEXT_TOOLS[:1], with_parameters=widened, wanted=["*"])
    relay = greeted(tools=["context_recall"], listing=listing)
    relay.from_client(line(id=1, method="tools/list"))
    (command,) = relay.from_server("s", line(id=1, result={"tools": [tool]}))
    assert isinstance(command, ToClient)
    assert json.loads(command.data)["result"]["tools"][0] == tool


def test_our_tools_stand_on_the_last_page_only() -> None:
    relay = greeted(tools=["context_recall"], listing=ToolListing(None, CONTEXT_TOOLS[:1]))
    for cursor, names in (("more", ["x"]), (None, ["x", "context_recall"])):
        relay.from_client(line(id=1, method="tools/list"))
        more = {"nextCursor": cursor} if cursor else {}
        (command,) = relay.from_server("s", line(id=1, result={"tools": [{"name": "x"}], **more}))
        assert isinstance(command, ToClient)
        assert [tool["name"] for tool in json.loads(command.data)["result"]["tools"]] == names


@pytest.mark.parametrize(
    ("result", "instructions"),
    [
        ({"instructions": "Be kind."}, "Be kind.\n\nOURS"),
        ({}, "OURS"),
        ({"capabilities": {}}, "OURS"),
        ({"instructions": None}, "OURS"),
    ],
)
@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_the_primer_stands_in_the_instructions(method: str, result: Any, instructions: str) -> None:
    relay = Relay("s", Options(primer="OURS"))
    relay.from_client(line(id=1, method=method))
    (command,) = relay.from_server("s", line(id=1, result=result))
    assert isinstance(command, ToClient)
    seen = json.loads(command.data)["result"]
    assert seen.pop("instructions") == instructions
    assert seen == {key: value for key, value in result.items() if key != "instructions"}


def test_each_open_call_is_answered_once_when_the_server_goes() -> None:
    relay = greeted()
    for id in (1, "1", 2):
        relay.from_client(call(id))
    relay.from_client(line(method="notifications/cancelled", params={"requestId": 2}))
    answers = [json.loads(command.data) for command in relay.lost("s", "died") if isinstance(command, ToClient)]
    assert [answer["id"] for answer in answers] == [1, "1"]
    assert all("died" in answer["error"]["message"] for answer in answers)
    assert relay.lost("s", "died") == []


def test_a_call_answered_in_a_batch_is_not_answered_again_when_the_server_dies() -> None:
    relay = greeted()
    relay.from_client(b"[%b,%b,%b]" % (call(1), call(2), line(id=3, method="ping")))
    answers = b"[%b,%b]" % (line(id=1, result={"content": []}), line(id=3, error={"code": -1, "message": "no"}))
    assert relay.from_server("s", answers) == [ToClient(answers)]
    (answer,) = relay.lost("s", "died")
    assert isinstance(answer, ToClient)
    assert json.loads(answer.data)["id"] == 2


def test_a_new_process_is_greeted_as_the_old_one_was() -> None:
    relay = greeted()
    relay.from_client(line(id=5, method="logging/setLevel", params={"level": "error"}))
    relay.from_client(line(id=6, method="resources/subscribe", params={"uri": "a://b"}))
    relay.from_client(line(id=7, method="resources/subscribe", params={"uri": "c://d"}))
    relay.from_client(line(id=8, method="resources/unsubscribe", params={"uri": "c://d"}))
    relay.lost("s", "died")
    (hello,) = relay.restarted("s")
    assert isinstance(hello, ToServer)
    greeting = json.loads(hello.data)
    assert (greeting["method"], hello.now) == ("initialize", True)
    *again, ready = relay.from_server("s", line(id=greeting["id"], result={}))
    assert ready == ServerReady("s")
    repeated = [json.loads(command.data) for command in again if isinstance(command, ToServer)]
    methods = [message["method"] for message in repeated]
    assert methods == ["notifications/initialized", "logging/setLevel", "resources/subscribe"]
    (own,) = relay.from_server("s", line(id=repeated[1]["id"], result={}))
    assert isinstance(own, OwnCallAnswered)


def test_an_answer_too_long_to_hold_is_an_error_for_its_call() -> None:
    relay = greeted()
    relay.from_client(call(4))
    over = Overlong(10**9, b'{"jsonrpc":"2.0","id":4,"result":', b"")
    (command,) = relay.overlong(over)
    assert isinstance(command, ToClient)
    assert "1,000,000,000 bytes" in json.loads(command.data)["error"]["message"]
    (aside,) = relay.overlong(over)
    assert isinstance(aside, ReportLine)


def test_calls_that_nobody_answers_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagefold.mcp_proxy.relay._KEPT_CALLS", 10)
    relay = greeted()
    for id in range(100):
        relay.from_client(call(id))
    assert list(relay.calls) == [str(id) for id in range(90, 100)]
