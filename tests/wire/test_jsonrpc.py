"""Lines out of bytes at every cut, and JSON-RPC messages that keep their text and the spelling of their ids."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.errors import WireError
from pagefold.wire import jsonrpc
from pagefold.wire.jsonrpc import Batch, Call, Failure, LineReader, Notification, Reply
from pagefold.wire.message import Block, BlockKind


def every_split(data: bytes) -> list[list[bytes]]:
    """The same bytes as they may arrive: whole, one by one, in two."""
    in_two = [[data[:at], data[at:]] for at in range(1, len(data))]
    return [[data], [bytes([byte]) for byte in data], *in_two]


def lines_of(parts: Sequence[bytes], limit_bytes: int = 1000) -> tuple[list[bytes], str]:
    """The lines, and the error they ended in."""
    reader = LineReader(limit_bytes)
    found: list[bytes] = []
    try:
        for part in parts:
            found += reader.feed(part)
        found += reader.finish()
    except WireError as error:
        return found, str(error)
    return found, ""


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b'{"a":1}\n', [b'{"a":1}']),
        (b'{"a":1}\r\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'\n \r\n\t\n{"a":1}\n\n', [b'{"a":1}']),
        (b'{"a":1}\n{"b":', [b'{"a":1}', b'{"b":']),
        ('{"a":"é\u2028😀"}\n'.encode(), ['{"a":"é\u2028😀"}'.encode()]),
        (b"\xff\xfe\n\x0b\x0c\x85\n", [b"\xff\xfe", b"\x0b\x0c\x85"]),
        (b" {} \r\r\n", [b" {} \r"]),
    ],
)
def test_lines_do_not_depend_on_the_cuts(data: bytes, lines: list[bytes]) -> None:
    for parts in every_split(data):
        assert lines_of(parts) == (lines, "")


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b"bb", b" "]), max_size=20),
    st.lists(st.integers(0, 30), max_size=5),
    st.integers(1, 6),
)
def test_lines_and_the_line_that_is_too_long_do_not_depend_on_the_cuts(
    pieces: list[bytes], places: list[int], limit_bytes: int
) -> None:
    data = b"".join(pieces)
    bounds = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    ends = data.split(b"\n")
    short = next((index for index, line in enumerate(ends) if len(line) > limit_bytes), len(ends))

    found, error = lines_of([data], limit_bytes)

    assert lines_of([data[start:end] for start, end in pairwise(bounds)], limit_bytes) == (found, error)
    assert lines_of([bytes([byte]) for byte in data], limit_bytes) == (found, error)
    assert found == [line.removesuffix(b"\r") for line in ends[:short] if line.strip(b" \r")]
    assert bool(error) is (short < len(ends))


def test_a_line_of_just_the_limit_is_read_and_one_byte_more_is_refused_with_the_size() -> None:
    assert lines_of([b"a" * 1500 + b"\n"], 1500) == ([b"a" * 1500], "")
    assert lines_of([b"a" * 1501 + b"\n"], 1500) == ([], "a line is longer than 1,500 bytes")
    assert lines_of([b"ok\n", b"a" * 1501], 1500) == ([b"ok"], "a line is longer than 1,500 bytes")


def test_a_reader_that_is_finished_begins_anew() -> None:
    reader = LineReader()

    assert reader.feed(b"first") == []
    assert reader.finish() == [b"first"]
    assert reader.finish() == []
    assert reader.feed(b"\nsecond\n") == [b"second"]


def test_a_reader_that_met_a_line_too_long_keeps_nothing_of_it_and_refuses_what_follows() -> None:
    reader = LineReader(3)

    assert reader.feed(b"ok\nlong") == [b"ok"]
    for more in (b"", b"er\n", b"ok\n"):
        with pytest.raises(WireError):
            reader.feed(more)
    with pytest.raises(WireError):
        reader.finish()
    assert len(reader._rest) == 0


CALL = '{"jsonrpc":"2.0", "id":%s,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1.10}},"odd":-0}'


@pytest.mark.parametrize(
    "spelled", ["1", "1.0", "1e0", '"1"', '"\\u0031"', "null", "-0", "9" * 30, "9" * 5000, '"é/\\/"', '""']
)
def test_an_id_keeps_its_spelling(spelled: str) -> None:
    call, reply = (CALL % spelled).encode(), f'{{"jsonrpc":"2.0","result":{{}},"id": {spelled} }}'.encode()

    assert jsonrpc.parse(call) == Call(spelled, "tools/call", CALL % spelled)
    assert jsonrpc.parse(reply) == Reply(spelled, reply.decode())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"method":"ping","jsonrpc":"2.0","id":"a"}', lambda raw: Call('"a"', "ping", raw)),
        (
            '{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":7}}',
            lambda raw: Notification("notifications/progress", raw),
        ),
        ('{"jsonrpc":"2.0","id":1,"result":null}', lambda raw: Reply("1", raw)),
        ('{"jsonrpc":"2.0","id":1,"result":{},"error":null}', lambda raw: Reply("1", raw)),
        (
            '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method","data":[1.10]}}',
            lambda raw: Failure("1", -32601, "no such method", raw),
        ),
        ('{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}', lambda raw: Failure("null", -32700, "", raw)),
        ('{"jsonrpc":"2.0","error":{"message":"x"}}', lambda raw: Failure("", 0, "x", raw)),
        ('{"jsonrpc":"2.0","id":1,"id":2,"result":{}}', lambda raw: Reply("2", raw)),
        ('{"jsonrpc":"2.0","id":1,"result":{"text":"\udcff \\ud800"}}', lambda raw: Reply("1", raw)),
    ],
)
def test_a_message_is_a_call_a_notification_a_reply_or_a_failure(text: str, message: Any) -> None:
    data = text.encode("utf-8", "surrogateescape")

    assert jsonrpc.parse(data) == message(text)
    assert jsonrpc.parse(b" \t" + data + b"\r\n") == message(text)


def test_a_byte_order_mark_is_kept() -> None:
    text = '\ufeff{"jsonrpc":"2.0","method":"ping"}'

    assert jsonrpc.parse(text.encode()) == Notification("ping", text)


def test_a_batch_is_its_messages_in_order_each_with_its_own_text() -> None:
    first, second = '{"jsonrpc":"2.0","id":1.0,"method":"ping"}', '{ "jsonrpc":"2.0","id":2,"result":{} }'
    text = f"[ {first} ,\n{second}]"

    assert jsonrpc.parse(text.encode()) == Batch((Call("1.0", "ping", first), Reply("2", second)), text)
    assert jsonrpc.parse(f"\ufeff {text}\n".encode()) == Batch(
        (Call("1.0", "ping", first), Reply("2", second)), f"\ufeff {text}"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Server listening on stdio",
        b'"jsonrpc"',
        b"4",
        b"null",
        b"{}",
        b'{"level":"info","method":"GET","msg":"started"}',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        b'{"jsonrpc":"2.0","id":1,"error":"words"}',
        b'{"jsonrpc":"2.0","id":[1],"method":"ping"}',
        b'{"jsonrpc":"2.0","id":{"a":1},"result":{}}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b'{"jsonrpc":"2.0","method":"ping"} {}',
        b'{"jsonrpc":"2.0","method":"ping"',
        b"[]",
        b"[1]",
        b'[{"jsonrpc":"2.0","method":"ping"},[]]',
        b'[{"jsonrpc":"2.0","method":"ping"}] x',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
    ids=lambda data: repr(data[:40]),
)
def test_a_line_that_is_no_message_is_refused_in_one_sentence(data: bytes) -> None:
    with pytest.raises(WireError, match=r"\A[^\n]{10,160}\Z"):
        jsonrpc.parse(data)


def reply(**result: Any) -> Reply:
    return Reply("7", json.dumps({"jsonrpc": "2.0", "id": 7, "result": result}))


@pytest.mark.parametrize(
    ("result", "blocks"),
    [
        (
            {"content": [{"type": "text", "text": "a", "_meta": {}}, {"type": "text", "text": ""}]},
            [
                Block(BlockKind.RESULT, "a", ("result", "content", 0, "text"), "7"),
                Block(BlockKind.RESULT, "", ("result", "content", 1, "text"), "7"),
            ],
        ),
        (
            {"content": [{"type": "text", "text": "no"}], "isError": True, "structuredContent": {"text": "no"}},
            [Block(BlockKind.RESULT, "no", ("result", "content", 0, "text"), "7", failed=True)],
        ),
        (
            {
                "content": [
                    {"type": "image", "data": "iVBO", "mimeType": "image/png"},
                    {"type": "audio", "data": "UklG", "mimeType": "audio/wav"},
                    {"type": "resource_link", "uri": "file:///a", "name": "a"},
                    {"type": "resource", "resource": {"uri": "file:///a", "text": "words"}},
                    {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}},
                    {"type": "from_next_year"},
                    {"type": "text"},
                    {"text": "untyped"},
                    7,
                ]
            },
            [
                Block(BlockKind.MEDIA, "", (), "7"),
                Block(BlockKind.MEDIA, "", (), "7"),
                Block(BlockKind.MEDIA, "", (), "7"),
                Block(BlockKind.RESULT, "words", ("result", "content", 3, "resource", "text"), "7"),
                Block(BlockKind.MEDIA, "", (), "7"),
                Block(BlockKind.OTHER, '{"type":"from_next_year"}', (), "7"),
                Block(BlockKind.OTHER, '{"type":"text"}', (), "7"),
                Block(BlockKind.OTHER, '{"text":"untyped"}', (), "7"),
                Block(BlockKind.OTHER, "7", (), "7"),
            ],
        ),
        ({"content": []}, [Block(BlockKind.RESULT, "", (), "7")]),
        ({"tools": []}, []),
        ({"content": "words"}, []),
    ],
)
def test_each_part_of_a_tool_result_is_a_block(result: dict[str, Any], blocks: list[Block]) -> None:
    assert list(jsonrpc.content_blocks(reply(**result))) == blocks


def test_changing_one_text_changes_exactly_that_string() -> None:
    raw = (
        '{ "jsonrpc":"2.0","id":1.0,"result":{"content":[{"type":"text","text":"\\u00e9"},'
        '{"type":"resource","resource":{"uri":"a","text":"words","n":1.10}}],"_meta":{"a":1,"a":2}} }'
    )
    message = jsonrpc.parse(raw.encode())
    assert isinstance(message, Reply)

    for block in jsonrpc.content_blocks(message):
        old = '"\\u00e9"' if block.text == "é" else '"words"'
        assert jsonrpc.with_text(message, block.path, "new") == Reply("1.0", raw.replace(old, '"new"'))
    with pytest.raises(WireError):
        jsonrpc.with_text(message, ("result", "content", 9, "text"), "new")
    with pytest.raises(WireError):
        jsonrpc.with_text(message, ("result", "content"), "new")
