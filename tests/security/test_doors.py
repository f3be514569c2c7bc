"""Who may ask: web pages and other hosts are refused on every path, and so is a client without the token.

Findings S2 and S7 of the review: at 2ac9f8b model paths and the status checked neither Host nor Origin, and trailers
of a chunked body became headers of the request to the provider.
"""

import json
from pathlib import Path

import pytest

from pagefold.door import Door
from tests.security.attack import provider, raw, request_of, sent, serving

BODY = json.dumps(request_of("fine")).encode()
PATHS = ["/v1/messages", "/v1/models", "/pagefold/status", "/pagefold/health", "/pagefold/", "/"]


def test_other_hosts_and_origins_are_refused_on_every_path_and_reach_nothing(tmp_path: Path) -> None:
    foreign = (
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8377"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
    )
    with provider() as model, serving(tmp_path, model) as url:
        for path in PATHS:
            for headers in foreign:
                method = "POST" if path == "/v1/messages" else "GET"
                status, body = raw(url, method, path, BODY if method == "POST" else b"", **headers)
                assert status in (400, 403), (path, headers)
                assert b"allow-origin" not in body
        preflight = {"Origin": "http://evil.example", "Access_Control_Request_Method": "POST"}
        assert raw(url, "OPTIONS", "/v1/messages", b"", **preflight)[0] == 403
        assert model.bodies == []
        assert raw(url, "POST", "/v1/messages", BODY)[0] == 200
        assert raw(url, "GET", "/pagefold/status")[0] == 200
        assert raw(url, "GET", "/pagefold/status", Host="localhost", Origin="http://localhost")[0] == 200


def test_every_path_but_health_asks_for_the_token(tmp_path: Path) -> None:
    with provider() as model, serving(tmp_path, model, PAGEFOLD_SERVE_TOKEN="secret") as url:
        for shown in ({}, {"X_Pagefold_Token": "secre"}, {"X_Pagefold_Token": "secret2"}):
            assert raw(url, "POST", "/v1/messages", BODY, **shown)[0] == 401
            assert raw(url, "GET", "/pagefold/status", b"", **shown)[0] == 401
            assert raw(url, "GET", "/pagefold/live.json", b"", **shown)[0] == 401
        assert model.bodies == []
        assert raw(url, "GET", "/pagefold/health")[0] == 200
        assert raw(url, "POST", "/v1/messages", BODY, X_Pagefold_Token="secret")[0] == 200
    assert "x-pagefold-token" not in model.heads[0]


def test_trailers_of_a_body_become_no_headers(tmp_path: Path) -> None:
    with provider() as model, serving(tmp_path, model) as url:
        head = f"POST /v1/messages HTTP/1.1\r\nHost: {url[7:]}\r\nConnection: close\r\n"
        head += "Transfer-Encoding: chunked\r\n\r\n"
        body = b"%x\r\n%b\r\n0\r\nx-api-key: smuggled\r\nx-evil: 1\r\n\r\n" % (len(BODY), BODY)

        assert sent(url, head.encode() + body)[0] == 200

    [headers] = model.heads
    assert "x-evil" not in headers
    assert "x-api-key" not in headers


@pytest.mark.parametrize("origin", [b"http://[", b"http://127.0.0.1:1@evil.example", b"//", b"\xff"])
def test_an_origin_that_cannot_be_read_is_foreign(origin: bytes) -> None:
    assert Door().is_foreign({b"host": b"127.0.0.1:1", b"origin": origin})


def test_an_open_server_takes_any_host_but_no_other_origin() -> None:
    door = Door(local=False, token="t")

    assert not door.is_foreign({b"host": b"proxy.example"})
    assert not door.is_foreign({b"host": b"Proxy.example", b"origin": b"https://proxy.example"})
    assert door.is_foreign({b"host": b"proxy.example", b"origin": b"https://evil.example"})
    assert not door.lets_in({})
    assert door.lets_in({b"x-pagefold-token": b"t"})
