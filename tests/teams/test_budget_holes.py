"""What a team's member may try in order to use the server's key for more than its budget, or for other teams' things.

A provider's key opens more than its models: files, batches and stored answers of everybody who uses the key. And an
answer whose usage is never heard would cost nothing.
"""

import gzip
import json
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pagefold.access.team import TeamUse
from pagefold.model_proxy.server_key import goes_with
from tests.security.attack import calling, provider, request_of
from tests.teams.server import PATIENCE, TeamServer, settings_for, team_server
from tests.teams.stand_in import Scripted, events, stand_in

WORDS = "forty words or so " * 10
CHAT = {"model": "gpt-5", "stream": True, "messages": [{"role": "user", "content": WORDS}]}
CHUNK = {"object": "chat.completion.chunk", "model": "gpt-5", "choices": [{"index": 0, "delta": {"content": "word "}}]}
END = {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-5",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "done"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500},
}
STREAM = "text/event-stream"


def used(server: TeamServer, team: str, requests: int = 1) -> TeamUse:
    """What a team is charged, once so many requests were counted."""
    until = time.monotonic() + PATIENCE
    while True:
        server.get("/pagefold/status", server.tokens[team])  # has all counted
        day: TeamUse = server.front.gate.spent(team).day  # type: ignore[attr-defined]
        if day.requests >= requests:
            return day
        assert time.monotonic() < until, day
        time.sleep(0.05)


def connected(server: TeamServer) -> socket.socket:
    place = urlsplit(server.url)
    assert place.hostname
    assert place.port
    return socket.create_connection((place.hostname, place.port), timeout=PATIENCE)


def head(server: TeamServer, path: str, token: str, body: bytes, *lines: str) -> bytes:
    """The head of a request, with no header that is not named here."""
    said = (
        f"Host: {urlsplit(server.url).netloc}",
        f"x-pagefold-token: {token}",
        f"Content-Length: {len(body)}",
        *lines,
    )
    return "\r\n".join((f"POST {path} HTTP/1.1", *said, "", "")).encode()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/files"),
        ("GET", "/v1/files/file-1/content"),
        ("DELETE", "/v1/files/file-1"),
        ("GET", "/v1/messages/batches"),
        ("POST", "/v1/messages/batches"),
        ("GET", "/v1/chat/completions"),
        ("GET", "/v1/responses/resp_1"),
        ("POST", "/v1/images/generations"),
        ("POST", "/v1//messages"),
        ("POST", "/v1/./messages"),
        ("POST", "/v1/x/../messages"),
        ("POST", "/v1/%6dessages"),
        ("POST", "/v1/messages/"),
        ("POST", "/v1/messages;x=1"),
    ],
)
def test_the_servers_key_goes_with_requests_to_models_alone(method: str, path: str, tmp_path: Path) -> None:
    with stand_in(Scripted()) as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        token = server.add("red")
        for shown in ({"x-pagefold-token": token}, {"authorization": f"Bearer {token}"}):
            status, text, _ = server.ask(method, path, b"{}" if method == "POST" else b"", shown)
            assert (status, "goes with requests to models alone" in text) == (403, True)
        assert model.asked == []
        own = {"x-pagefold-token": token, "authorization": "Bearer sk-own"}
        assert server.ask(method, path, b"", own)[0] == 200
    assert "sk-server" not in str(model.asked)


def test_a_long_query_changes_nothing_about_what_is_read_and_charged(tmp_path: Path) -> None:
    scripted = Scripted((json.dumps(ANSWER).encode(),))
    with stand_in(scripted) as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        token = server.add("red")
        path = "/v1/chat/completions?" + "&".join(f"key{number}=%2Fv1%2Ffiles" for number in range(1000))
        assert server.post({**CHAT, "stream": False}, path, x_pagefold_token=token)[0] == 200
        assert used(server, "red").tokens == 1500
    assert model.asked[0][1] == path


@pytest.mark.parametrize(
    ("method", "path", "goes"),
    [
        ("POST", "/v1/messages/count_tokens", True),
        ("GET", "/v1/models", True),
        ("GET", "/v1/models/gpt-5", True),
        ("POST", "/v1/embeddings", True),
        ("POST", "/v1beta/models/gemini-3-pro:generateContent", True),
        ("POST", "/v1beta/models/gemini-3-pro:countTokens", True),
        ("POST", "/v1beta/models/..%2ffiles:generateContent", False),
        ("POST", "/v1beta/models/tunedModels%2Fabc:generateContent", False),
        ("POST", "/v1beta/models/files%23:generateContent", False),
        ("POST", "/v1beta/models/claude%40now:generateContent", True),
        ("POST", "/openai/deployments/a%3fb/embeddings", False),
        ("POST", "/model/arn%3Aaws%3Abedrock%3Aus%3A1%3Aprofile%2Fanthropic.claude/invoke", True),
        ("POST", "/model/arn%3Aaws%2F..%2Fclaude/invoke", False),
        ("GET", "/v1/models/x%252f..%252ffiles", False),
        ("GET", "/v1/models/files%2ffile-1", False),
        ("GET", "/v1/models/..;", False),
        ("GET", "/v1/models/..", False),
        ("GET", "/v1/models/a%00", False),
        ("POST", "/v1beta/models/m:batchGenerateContent", False),
        ("DELETE", "/v1/models/tuned", False),
        ("GET", "/v1/responses", False),
    ],
)
def test_what_costs_little_and_shows_nothing_of_anybody_gets_the_key_too(method: str, path: str, goes: bool) -> None:
    assert goes_with(method, path) is goes


@pytest.mark.parametrize("spelled", ["?key={}", "?a={}", "/{}", "?a=%70{}"])
def test_a_token_in_an_address_goes_nowhere(spelled: str, tmp_path: Path) -> None:
    with stand_in(Scripted()) as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        token = server.add("red")
        said = token.removeprefix("p") if "%70" in spelled else token
        assert server.post(CHAT, "/v1/messages" + spelled.format(said), x_pagefold_token=token)[0] == 400
    assert model.asked == []


def test_a_browsers_cookie_reaches_no_provider(tmp_path: Path) -> None:
    with stand_in(Scripted()) as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        token = server.add("red")
        server.post(CHAT, "/v1/messages", x_pagefold_token=token, cookie="pagefold_team=abc; other=1")
    assert "cookie" not in model.asked[0][2]


def test_a_stream_without_usage_is_charged_by_what_passed(tmp_path: Path) -> None:
    scripted = Scripted((*events(*[CHUNK] * 200, END), b"data: [DONE]\n\n"), STREAM)
    with stand_in(scripted) as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        token = server.add("red")
        assert server.post(CHAT, "/v1/chat/completions", x_pagefold_token=token)[0] == 200
        day = used(server, "red")
        assert 40 <= day.prompt <= 100
        assert 200 <= day.output <= 400
        assert day.microusd > 0
        server.add("red", tokens_day=100)
        assert server.post(CHAT, "/v1/chat/completions", x_pagefold_token=token)[0] == 429


RESPONSES_BEGIN = {"type": "response.created", "response": {"model": "gpt-5"}}
MESSAGE_BEGIN = {
    "type": "message_start",
    "message": {"model": "claude-sonnet-4-5", "usage": {"input_tokens": 1000, "output_tokens": 1}},
}
MESSAGE_DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}}


@pytest.mark.parametrize(
    ("path", "first", "piece", "prompt"),
    [
        ("/v1/messages", MESSAGE_BEGIN, MESSAGE_DELTA, (1000, 1000)),
        ("/v1/chat/completions", CHUNK, CHUNK, (40, 100)),
        ("/v1/responses", RESPONSES_BEGIN, {"type": "response.output_text.delta", "delta": "word "}, (40, 100)),
    ],
)
def test_who_hangs_up_before_the_usage_comes_pays_for_what_it_had(
    path: str, first: Any, piece: Any, prompt: tuple[int, int], tmp_path: Path
) -> None:
    scripted = Scripted((*events(first, *[piece] * 200), b": the usage would come now\n\n"), STREAM, waits=True)
    body = {"input": WORDS, "model": "gpt-5", "stream": True} if path.endswith("responses") else CHAT
    with stand_in(scripted) as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        data = json.dumps(body).encode()
        with connected(server) as connection:
            connection.sendall(head(server, path, server.add("red"), data) + data)
            came = b""
            while came.count(b"data: ") < 201:
                came += connection.recv(65536)
        day = used(server, "red")
    assert prompt[0] <= day.prompt <= prompt[1]
    assert 200 <= day.output <= 500
    assert day.microusd > 0


def asked_in(server: TeamServer, token: str, *headers: str) -> None:
    """Asks with these headers alone, and hears the whole answer."""
    body = json.dumps({**CHAT, "stream": False}).encode()
    with connected(server) as connection:
        connection.sendall(head(server, "/v1/chat/completions", token, body, "Connection: close", *headers) + body)
        while connection.recv(65536):
            pass


def test_an_answer_is_asked_for_in_an_encoding_that_can_be_read(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(ANSWER).encode())
    scripted = Scripted((packed,), headers={"content-encoding": "gzip"})
    with stand_in(scripted) as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        token = server.add("red")
        for number, accepted in enumerate(("br", "br, gzip;q=0.5, *", "zstd, gzip")):
            asked_in(server, token, f"accept-encoding: {accepted}")
            assert used(server, "red", number + 1).tokens == 1500 * (number + 1)
    assert [asked[2].get("accept-encoding") for asked in model.asked] == ["identity", "gzip;q=0.5", "zstd, gzip"]


def test_an_answer_in_an_encoding_that_is_not_read_is_charged_by_its_size(tmp_path: Path) -> None:
    scripted = Scripted((b"\x1b" * 4000,), headers={"content-encoding": "br"})
    with stand_in(scripted) as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        asked_in(server, server.add("red"))
        day = used(server, "red")
    assert 40 <= day.prompt <= 100
    assert day.output == 1000


@pytest.mark.parametrize("body", [b'{"model": "gpt-5", "messages": [', b'{"messages": 1}', b"\xff\xfe"])
def test_a_request_that_cannot_be_read_is_charged_by_its_answer(body: bytes, tmp_path: Path) -> None:
    scripted = Scripted((json.dumps(ANSWER).encode(),))
    with stand_in(scripted) as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        token = server.add("red")
        assert server.ask("POST", "/v1/chat/completions", body, {"x-pagefold-token": token})[0] == 200
        day = used(server, "red")
    assert (day.prompt, day.output) == (1000, 500)
    assert day.microusd > 0


def test_a_turn_in_which_the_proxy_answered_a_recall_costs_all_its_requests(tmp_path: Path) -> None:
    with provider() as model, team_server(settings_for(tmp_path, model.url, key="sk-server")) as server:
        token = server.add("red")
        model.answers = [calling("context_recall", handle="pf-aaaaaaaaaa")]
        assert server.post(request_of("fine"), x_pagefold_token=token)[0] == 200
        day = used(server, "red")
    assert len(model.bodies) == 2
    assert (day.prompt, day.output) == (2, 2)
    assert day.microusd > 0
