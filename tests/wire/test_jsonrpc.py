"""JSON-RPC messages keep their text and the spelling of their ids."""

from typing import Any

import pytest

from pagefold.errors import WireError
from pagefold.wire import jsonrpc
from pagefold.wire.jsonrpc import Batch, Call, Failure, Notification, Reply

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
            lambda raw: Failure("1", raw),
        ),
        ('{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}', lambda raw: Failure("null", raw)),
        ('{"jsonrpc":"2.0","error":{"message":"x"}}', lambda raw: Failure("", raw)),
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
