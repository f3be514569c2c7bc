"""Who may ask, which upstream a request goes to, and what is refused."""

import json

import pytest
from yarl import URL

from pagefold.cli.serve_setup import upstreams_of
from pagefold.door import Door
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.settings.sections import Settings, UpstreamTable
from tests.model_proxy.upstream import ANSWER, QUESTION, answers, ask, proxied, say, whole

pytestmark = pytest.mark.usefixtures("policy")


def test_a_token_is_asked_for_and_stripped() -> None:
    with proxied(answers(whole(ANSWER)), door=Door(token="open sesame")) as (_, url, model):
        for path in ("/v1/messages", "/pagefold/status", "/"):
            status, _, body = ask(url, path=path)
            assert (status, json.loads(body)["error"]["type"]) == (401, "authentication_error")
            assert ask(url, path=path, x_pagefold_token="open")[0] == 401
        assert ask(url, "GET", "/pagefold/health", None)[0] == 200
        assert model.received == []

        assert ask(url, x_pagefold_token="open sesame")[0] == 200
        assert ask(url, "GET", "/pagefold/status", None, x_pagefold_token="open sesame")[0] == 200

    assert b"x-pagefold-token" not in dict(model.received[0].headers)


def test_pagefold_answers_for_itself_and_counts_none_of_it() -> None:
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        ask(url)
        assert ask(url, "GET", "/pagefold/health", None)[::2] == (200, b'{"status":"ok"}')
        assert ask(url, "GET", "/pagefold/else", None)[0] == 404
        status = json.loads(ask(url, "GET", "/pagefold/status", None)[2])

    assert (len(model.received), status["requests"], status["by_model"]["m"]["usage"]["fresh"]) == (1, 1, 5)


def test_a_websocket_is_refused_at_once() -> None:
    head = b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        reply = say(url, head + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")

    assert reply.startswith(b"HTTP/1.1 426 ")
    assert b"upgrades to nothing else" in reply
    assert model.received == []


@pytest.mark.parametrize(("body", "status"), [(b"", b"200"), (QUESTION, b"426")])
def test_an_offer_of_another_protocol_is_passed_over_where_nothing_hangs_on_it(body: bytes, status: bytes) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        reply = say(url, head + b"HTTP2-Settings: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    assert reply.startswith(b"HTTP/1.1 " + status)
    assert b"\r\nconnection: close\r\n" in reply
    assert len(model.received) == (status == b"200")


@pytest.mark.parametrize(
    ("target", "arrives"),
    [
        (b"http://evil.invalid/v1/messages?a=b", b"/v1/messages?a=b"),
        (b"//evil.invalid/v1/messages", b"//evil.invalid/v1/messages"),
        (b"/@evil.invalid:80/", b"/@evil.invalid:80/"),
        (b"/\\evil.invalid", b"/\\evil.invalid"),
        (b"/http://evil.invalid/", b"/http://evil.invalid/"),
        (b"/../..", b"/../.."),
        (b"*", b""),
        (b"evil.invalid:80", b""),
        (b"@evil.invalid/", b""),
        (b"/\xff", b""),
    ],
)
def test_whatever_the_target_it_goes_to_the_upstream_or_nowhere(target: bytes, arrives: bytes) -> None:
    with proxied(answers(whole(b"ok"))) as (_, url, model):
        reply = say(url, b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

    assert reply.startswith(b"HTTP/1.1 200" if arrives else b"HTTP/1.1 400")
    assert [received.line.split()[1] for received in model.received] == ([arrives] if arrives else [])


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        (b"/v1/messages", [], "https://a.example/v1/messages"),
        (b"/v1/messages/count_tokens", [], "https://a.example/v1/messages/count_tokens"),
        (b"/v1/complete", [], "https://a.example/v1/complete"),
        (b"/v1/chat/completions", [], "http://o.example:81/base/v1/chat/completions"),
        (b"/v1/responses/r_1", [], "http://o.example:81/base/v1/responses/r_1"),
        (b"/v1/embeddings", [], "http://o.example:81/base/v1/embeddings"),
        (b"/v1/completions", [], "http://o.example:81/base/v1/completions"),
        (b"/v1/models", [(b"anthropic-version", b"2023-06-01")], "https://a.example/v1/models"),
        (b"/v1/models", [], "http://o.example:81/base/v1/models"),
        (b"/v1/responsesx", [], "https://a.example/v1/responsesx"),
        (b"/", [], "https://a.example/"),
    ],
)
def test_each_path_has_its_upstream(path: bytes, headers: list[tuple[bytes, bytes]], expected: str) -> None:
    upstreams = Upstreams({"anthropic": "https://a.example", "openai": "http://o.example:81/base/"})

    assert str(upstreams.target(path, b"", headers)) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"/v1/embeddings", "http://local.example/v1/embeddings"),
        (b"/v1/embeddings/x", "http://local.example/v1/embeddings/x"),
        (b"/v1/chat/completions", "http://o.example/v1/chat/completions"),
        (b"/v1/chat/completions/batch/1", "http://local.example/v1/chat/completions/batch/1"),
        (b"/own", "http://local.example/own"),
        (b"/ownx", "https://a.example/ownx"),
        (b"/nowhere/x", None),
    ],
)
def test_a_table_of_upstreams_may_be_longer_and_take_paths(path: bytes, expected: str | None) -> None:
    table = {"anthropic": "https://a.example", "openai": "http://o.example", "local": "http://local.example"}
    paths = {"/v1/embeddings": "local", "/v1/chat/completions/batch": "local", "/own": "local", "/nowhere": "absent"}

    found = Upstreams(table, paths).target(path, b"", [])

    assert found == (expected and URL(expected))


@pytest.mark.parametrize("address", ["http://o.example/v1", "http://o.example/v1/", "http://o.example"])
def test_an_address_may_be_given_with_the_version_or_without(address: str) -> None:
    upstreams = Upstreams({"anthropic": address, "openai": address})

    for path in (b"/v1/chat/completions", b"/v1/messages"):
        assert str(upstreams.target(path, b"", [])) == "http://o.example" + path.decode()


def test_the_settings_give_a_table_of_upstreams() -> None:
    own = (
        UpstreamTable(name="local", url="http://l.example", paths=("/own",)),
        UpstreamTable(name="openai", paths=("/o",)),
    )

    upstreams = upstreams_of(Settings(upstreams=own))

    assert list(upstreams.addresses) == ["anthropic", "openai", "gemini", "openrouter", "chatgpt", "local"]
    assert str(upstreams.target(b"/own/x", b"", [])) == "http://l.example/own/x"
    assert str(upstreams.target(b"/o", b"", [])) == "https://api.openai.com/o"


@pytest.mark.parametrize(
    ("path", "arrives"),
    [
        (b"/v1/responses", "https://chatgpt.com/backend-api/codex/responses"),
        (b"/v1/responses/compact", "https://chatgpt.com/backend-api/codex/responses/compact"),
        (b"/v1/models", "https://chatgpt.com/backend-api/codex/models"),
        (b"/v1/of/tomorrow", "https://chatgpt.com/backend-api/codex/of/tomorrow"),
    ],
)
def test_a_login_goes_where_its_account_is_taken_and_a_key_does_not(path: bytes, arrives: str) -> None:
    upstreams = upstreams_of(Settings())

    assert str(upstreams.target(path, b"", [(b"chatgpt-account-id", b"a")])) == arrives
    assert upstreams.target(path, b"", [(b"authorization", b"Bearer sk-1")]) != URL(arrives)
    assert Upstreams({"openai": "http://o.example"}).target(path, b"", [(b"chatgpt-account-id", b"a")]) is None


@pytest.mark.parametrize("path", [b"/v1/images/edits", b"/v1/alpha/search", b"/v1/realtime/calls"])
def test_what_codex_asks_besides_does_not_take_its_key_to_another_provider(path: bytes) -> None:
    assert str(upstreams_of(Settings()).target(path, b"", [])) == f"https://api.openai.com{path.decode()}"


@pytest.mark.parametrize(
    ("path", "arrives"),
    [
        (
            b"/v1beta/models/g:generateContent",
            "https://generativelanguage.googleapis.com/v1beta/models/g:generateContent",
        ),
        (b"/v1beta/files", "https://generativelanguage.googleapis.com/v1beta/files"),
        (b"/v1/models/g:generateContent", "https://generativelanguage.googleapis.com/v1/models/g:generateContent"),
        (b"/api/v1/chat/completions", "https://openrouter.ai/api/v1/chat/completions"),
        (b"/api/v1/models", "https://openrouter.ai/api/v1/models"),
        (b"/openai/deployments/d/chat/completions", None),
        (b"/anthropic/v1/messages", None),
        (b"/model/anthropic.claude/invoke", None),
        (b"/v1/projects/p/locations/l/publishers/anthropic/models/c:rawPredict", None),
    ],
)
def test_a_cloud_gets_what_is_its_own_and_without_an_address_nobody_does(path: bytes, arrives: str | None) -> None:
    assert upstreams_of(Settings()).target(path, b"", []) == (arrives and URL(arrives, encoded=True))
    clouds = ("azure", "foundry", "bedrock", "vertex")
    own = tuple(UpstreamTable(name=name, url=f"https://{name}.example/v1") for name in clouds)
    found = upstreams_of(Settings(upstreams=own)).target(path, b"", [])
    assert found is not None
    assert arrives is not None or found.host in [f"{name}.example" for name in clouds]


def test_a_request_signed_for_aws_is_refused_in_a_sentence_and_a_token_passes() -> None:
    with proxied(answers(whole(ANSWER))) as (proxy, url, model):
        proxy.upstreams.addresses["bedrock"] = model.url
        path, signed = "/model/anthropic.claude-opus-5/invoke", "AWS4-HMAC-SHA256 Credential=AKIA/x, Signature=y"
        status, _, body = ask(url, path=path, authorization=signed)
        assert (status, model.received) == (400, [])
        assert "AWS_BEARER_TOKEN_BEDROCK" in json.loads(body)["error"]["message"]
        assert ask(url, path=path, authorization="Bearer key")[0] == 200


def test_without_an_openai_address_its_keys_go_nowhere() -> None:
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        assert ask(url, path="/v1/chat/completions")[0] == 404
        assert ask(url, "GET", "/v1/models", None)[0] == 200

    assert len(model.received) == 1


def test_a_header_that_cannot_be_passed_on_is_refused() -> None:
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        reply = say(url, b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Name: J\xf6rg\r\nConnection: close\r\n\r\n")

    assert reply.startswith(b"HTTP/1.1 400 ")
    assert model.received == []
