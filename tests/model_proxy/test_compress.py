"""The endpoint that gateways ask: as many messages back, shorter, and nothing lost."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

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
