"""Requests signed for AWS behind the proxy: signed again after they were derived, or refused in a sentence."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.derive.policies import policy_named
from pagefold.model_proxy.aws_signing import AwsSigning
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.wire.aws_signature import AwsCredentials, SignedRequest, SigningScope, problem_with, scope_of, signed
from tests.model_proxy.upstream import ANSWER, PATIENCE, Received, Upstream, answers, ask, connected, upstream, whole

KEY = AwsCredentials("AKIDEXAMPLE", "secret of the user", "session")
SCOPE = SigningScope("", "eu-west-1", "bedrock")
PATH = "/model/eu.anthropic.claude-opus-5-v1%3A0/invoke"
ROWS = json.dumps([{"id": at, "name": f"row {at}", "state": "open"} for at in range(50)], indent=1)
BODY = json.dumps(
    {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 500,
        "messages": [
            {"role": "user", "content": "List the rows."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "rows", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": ROWS}]},
        ],
    }
).encode()


@contextmanager
def bedrock(signing: AwsSigning) -> Iterator[tuple[str, Upstream]]:
    with upstream(answers(whole(ANSWER))) as model:
        conversations = Conversations(policy_named("lossless"))
        with running(Proxy(Upstreams({"bedrock": model.url}), conversations, signing=signing)) as url:
            yield url, model


def signed_for(url: str, key: AwsCredentials = KEY, body: bytes = BODY, path: str = PATH) -> dict[str, str]:
    one = SignedRequest("POST", path, "", [("content-type", "application/json")], body)
    return dict(signed(one, urlsplit(url).netloc, key, SCOPE, datetime.now(tz=UTC)))


def asked(
    url: str, key: AwsCredentials = KEY, body: bytes = BODY, path: str = PATH, sent: bytes = b"", **more: str
) -> tuple[int, str]:
    """Asks with a signature as an SDK makes it; status and answer."""
    headers = signed_for(url, key, body, path) | more
    spelled: dict[str, Any] = {name.replace("-", "_"): value for name, value in headers.items()}
    status, _, answer = ask(url, body=sent or body, path=path, **spelled)
    return status, answer.decode()


def arrived(received: Received) -> SignedRequest:
    method, path, _ = received.line.decode().split(" ")
    headers = [(name.decode(), value.decode()) for name, value in received.headers]
    return SignedRequest(method, path, "", headers, received.body)


def test_a_derived_request_is_signed_again_for_where_it_goes() -> None:
    with bedrock(AwsSigning(KEY)) as (url, model):
        assert asked(url) == (200, ANSWER.decode())
    (received,) = model.received
    assert len(received.body) < len(BODY)
    assert problem_with(arrived(received), KEY, datetime.now(tz=UTC)) == ""
    assert dict(received.headers)[b"host"].decode() == urlsplit(model.url).netloc
    assert [value for name, value in received.headers if name == b"x-amz-security-token"] == [b"session"]


def test_a_body_of_megabytes_is_signed_as_it_is_sent() -> None:
    long = json.dumps({"any": "x" * (2 << 20)}).encode()
    with bedrock(AwsSigning(KEY)) as (url, model):
        assert asked(url, path="/model/amazon.nova/invoke", body=long)[0] == 200
    (received,) = model.received
    assert received.body == long
    assert problem_with(arrived(received), KEY, datetime.now(tz=UTC)) == ""


def test_what_was_signed_before_midnight_is_signed_again_for_the_day_on_which_it_is_sent() -> None:
    tomorrow = datetime.now(tz=UTC) + timedelta(days=1)
    moments = iter([datetime.now(tz=UTC), tomorrow, tomorrow])
    with bedrock(AwsSigning(KEY, clock=lambda: next(moments))) as (url, model):
        assert asked(url)[0] == 200
    received = arrived(model.received[0])
    assert problem_with(received, KEY, tomorrow) == ""
    assert scope_of(received.headers) == SCOPE._replace(day=f"{tomorrow:%Y%m%d}")


def test_a_client_that_leaves_ends_what_was_signed_again(capfd: pytest.CaptureFixture[str]) -> None:
    came, noticed = threading.Event(), threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        came.set()
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""
        noticed.set()

    with upstream(answer) as model, running(Proxy(Upstreams({"bedrock": model.url}), signing=AwsSigning(KEY))) as url:
        headers = signed_for(url)
        with connected(url) as connection:
            connection.request("POST", PATH, BODY, headers)
            assert came.wait(PATIENCE)
        assert noticed.wait(PATIENCE)
    assert capfd.readouterr().err == ""


def test_what_is_not_read_is_signed_again_too() -> None:
    with bedrock(AwsSigning(KEY)) as (url, model):
        assert asked(url, path="/model/amazon.nova/converse", body=b'{"any": "body"}')[0] == 200
    (received,) = model.received
    assert received.body == b'{"any": "body"}'
    assert problem_with(arrived(received), KEY, datetime.now(tz=UTC)) == ""


@pytest.mark.parametrize(
    ("more", "key", "sentence"),
    [
        ({}, AwsCredentials("AKIDOTHER", KEY.secret), "signed with another access key than pagefold's"),
        ({}, AwsCredentials(KEY.key_id, "a guess"), "its signature does not fit"),
        ({"sent": b"{}"}, KEY, "not of its host and its body"),
        ({"authorization": "AWS4-ECDSA-P256-SHA256 Credential=a"}, KEY, "none of AWS4-HMAC-SHA256"),
    ],
)
def test_only_what_was_signed_with_the_same_key_for_this_body_is_signed_again(
    more: dict[str, Any], key: AwsCredentials, sentence: str
) -> None:
    with bedrock(AwsSigning(KEY)) as (url, model):
        status, answer = asked(url, key, **more)
    assert (status, model.received) == (400, [])
    said = json.loads(answer)
    assert sentence in said["error"]["message"]
    assert said["message"] == said["error"]["message"], "where AWS's own SDKs look for it"


def test_nobody_gets_a_signature_on_another_path_or_by_a_mark_of_their_own() -> None:
    with upstream(answers(whole(ANSWER))) as model:
        addresses = {"anthropic": model.url, "bedrock": model.url}
        with running(Proxy(Upstreams(addresses), signing=AwsSigning(KEY))) as url:
            for guess in ("AWS4-HMAC-SHA256 20261118 eu-west-1 bedrock", f"AWS4-HMAC-SHA256 {'0' * 64} a b c"):
                assert ask(url, path="/v1/messages", authorization=guess)[0] == 200
                assert ask(url, path=PATH, authorization=guess)[0] == 400
            assert ask(url, path=PATH, authorization="Bearer key")[0] == 200
    assert len(model.received) == 3
    assert [dict(one.headers).get(b"x-amz-date") for one in model.received] == [None] * 3


def test_a_long_body_is_refused_and_not_half_signed() -> None:
    with bedrock(AwsSigning(KEY, most=1000)) as (url, model):
        status, answer = asked(url)
    assert (status, model.received) == (400, [])
    assert "too long" in json.loads(answer)["error"]["message"]


@pytest.mark.parametrize(("missed", "sentence"), [(False, "`sign = true`"), (True, "needs AWS_ACCESS_KEY_ID")])
def test_without_a_key_a_sentence_says_what_to_do(missed: bool, sentence: str) -> None:
    with bedrock(AwsSigning(asked=missed)) as (url, model):
        status, answer = asked(url)
    assert (status, model.received) == (400, [])
    assert sentence in json.loads(answer)["error"]["message"]


def test_a_client_that_leaves_while_it_sends_what_it_signed_is_counted_and_no_fault() -> None:
    done = threading.Event()

    class Told(Proxy):
        async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
            try:
                await super().__call__(scope, receive, send)
            finally:
                done.set() if scope["type"] == "http" else None

    lines = (f"POST {PATH} HTTP/1.1", "Host: localhost", "Content-Length: 99", "Authorization: AWS4-HMAC-SHA256 x")
    proxy = Told(Upstreams({"bedrock": "http://127.0.0.1:9"}), signing=AwsSigning(KEY))
    with running(proxy) as url:
        with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=PATIENCE) as connection:
            connection.sendall("\r\n".join((*lines, "", "half a body")).encode())
        assert done.wait(PATIENCE)
    assert (proxy.totals.faults, proxy.totals.requests, proxy.totals.abandoned) == (0, 1, 1)
