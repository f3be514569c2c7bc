"""The endpoint that gateways ask: as many messages back, shorter, and nothing lost."""

import json
import socket
import threading
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import pytest

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.door import Door
from pagefold.encode.choose import decode
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams

ROWS = json.dumps([{"id": n, "name": f"row {n}", "state": "open", "labels": ["a", "b"]} for n in range(60)], indent=1)
REQUEST: dict[str, Any] = {
    "model": "gpt-5",
    "messages": [
        {"role": "user", "content": "List the rows."},
        {"role": "tool", "tool_call_id": "c1", "content": ROWS},
    ],
}


def ask(url: str, body: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(f"{url}/v1/compress", body, {"content-type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_results_come_back_shorter_and_whole() -> None:
    with running(Proxy(Upstreams({}))) as url:
        status, answer = ask(url, json.dumps(REQUEST).encode())
    first, second = answer["messages"]
    assert status == 200
    assert first == REQUEST["messages"][0]
    assert {**second, "content": ""} == {**REQUEST["messages"][1], "content": ""}
    form = second["content"]
    assert json.loads(decode(form.partition("\n")[2] if form.startswith("[R1]") else form)) == json.loads(ROWS)
    assert answer["tokens_saved"] == answer["tokens_before"] - answer["tokens_after"] > 500
    assert answer["compression_ratio"] < 0.5


@pytest.mark.parametrize("body", [b"", b"[]", b'{"messages": 3}', b'{"messages": [4]}'])
def test_what_is_no_request_is_refused_with_a_sentence(body: bytes) -> None:
    with running(Proxy(Upstreams({}))) as url:
        status, answer = ask(url, body)
    assert status == 400
    assert answer["error"]["message"].startswith("/v1/compress: ")


def test_the_token_is_asked_for_as_gateways_send_it() -> None:
    with running(Proxy(Upstreams({}), door=Door(token="secret"))) as url:
        body = json.dumps(REQUEST).encode()
        assert ask(url, body)[0] == 401
        assert ask(url, body, authorization="Bearer wrong")[0] == 401
        assert ask(url, body, authorization="Bearer secret")[0] == 200


def test_a_fault_gives_the_messages_back_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("pagefold.stateless.Deriver.messages", breaks)
    lines: list[str] = []
    with running(Proxy(Upstreams({}), report=lines.append)) as url:
        status, answer = ask(url, json.dumps(REQUEST).encode())
    assert (status, answer["messages"], answer["tokens_saved"]) == (200, REQUEST["messages"], 0)
    assert len(lines) == 1


def test_a_gateway_that_leaves_before_all_is_sent_is_no_fault() -> None:
    done = threading.Event()

    class Told(Proxy):
        async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
            try:
                await super().__call__(scope, receive, send)
            finally:
                done.set() if scope["type"] == "http" else None

    with running(proxy := Told(Upstreams({}))) as url:
        with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=10) as connection:
            connection.sendall(b"POST /v1/compress HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{")
        assert done.wait(10)
    assert proxy.totals.faults == 0
