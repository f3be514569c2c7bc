"""The summariser against a model over HTTP: what it writes is used; late, failed, empty answers cost only the try."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import pytest

from pagefold.adapters.summariser import Api, Endpoint, Summariser
from pagefold.derive.policies.reset import Reset
from pagefold.derive.policy import NOTHING, Notes
from pagefold.model_proxy.scripted import ScriptedModel, ScriptedTurn
from pagefold.model_proxy.server import running
from tests.derive.loops import SUMMARY, WINDOW, folded, text

Messages = MutableMapping[str, Any]


class ChatModel:
    """A model behind OpenAI's API that always says the same, after a while."""

    def __init__(self, said: str, *, status: int = 200, seconds: float = 0.0) -> None:
        self.said, self.status, self.seconds = said, status, seconds
        self.requests: list[Any] = []
        self.headers: dict[bytes, bytes] = {}

    async def __call__(
        self, scope: Messages, receive: Callable[[], Awaitable[Messages]], send: Callable[[Messages], Awaitable[None]]
    ) -> None:
        if scope["type"] == "lifespan":
            await ScriptedModel([])(scope, receive, send)
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        assert scope["path"] == "/v1/chat/completions"
        self.requests.append(json.loads(body))
        self.headers = dict(scope["headers"])
        await asyncio.sleep(self.seconds)
        choice = {"index": 0, "message": {"role": "assistant", "content": self.said}, "finish_reason": "stop"}
        answer = json.dumps({"model": "m", "choices": [choice]}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def asked(endpoint: Endpoint) -> tuple[Notes, Summariser]:
    async def ask() -> tuple[Notes, Summariser]:
        async with Summariser(endpoint) as summariser:
            return await summariser.notes(folded(Reset(WINDOW))[1], tokens=800), summariser

    return asyncio.run(ask())


def test_a_model_behind_the_messages_api_writes_the_summary_that_stands_then() -> None:
    model = ScriptedModel([ScriptedTurn(SUMMARY)])
    with running(model) as url:
        notes, summariser = asked(Endpoint(url, "claude-x", key="k"))
    policy = Reset(WINDOW)
    state, _ = folded(policy)

    assert SUMMARY.strip() in text(policy.request(state, notes)[1].append)
    assert not summariser.failed
    sent = json.loads(model.requests[0])
    assert (sent["model"], sent["max_tokens"]) == ("claude-x", 800)
    assert "row_0_1 = amount" in sent["messages"][0]["content"]


def test_a_model_behind_the_chat_api_is_asked_with_its_key() -> None:
    model = ChatModel(SUMMARY)
    with running(model) as url:
        notes, _ = asked(Endpoint(url, "gpt-x", Api.OPENAI, key="secret"))

    assert [said for _, said in notes.summaries] == [SUMMARY.strip()]
    assert model.headers[b"authorization"] == b"Bearer secret"


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (ChatModel(""), "empty"),
        (ChatModel("Fine."), "useless"),
        (ChatModel(SUMMARY, status=500), "WireError"),
        (ChatModel(SUMMARY, seconds=5), "late"),
    ],
    ids=["empty", "useless", "failed", "late"],
)
def test_what_goes_wrong_is_counted_and_the_digest_stands(model: ChatModel, reason: str) -> None:
    with running(model) as url:
        notes, summariser = asked(Endpoint(url, "m", Api.OPENAI, timeout_seconds=0.3))

    assert notes == NOTHING
    assert dict(summariser.failed) == {reason: 1}


def test_nobody_there_is_no_more_than_a_failed_try() -> None:
    notes, summariser = asked(Endpoint("http://127.0.0.1:9", "m"))

    assert notes == NOTHING
    assert summariser.failed.total() == 1


def test_what_was_summarised_once_is_not_asked_for_again() -> None:
    model = ScriptedModel([ScriptedTurn(SUMMARY)])
    derived = folded(Reset(WINDOW))[1]

    async def twice(url: str) -> tuple[Notes, Notes]:
        async with Summariser(Endpoint(url, "m")) as summariser:
            return await summariser.notes(derived, tokens=800), await summariser.notes(derived, tokens=800)

    with running(model) as url:
        first, second = asyncio.run(twice(url))

    assert first == second
    assert len(model.requests) == 1
