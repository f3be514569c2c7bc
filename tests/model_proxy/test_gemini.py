"""Gemini's generateContent through the proxy to the referee: folded, recalled inside a turn, streamed in every way."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policy import Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.referee import Referee
from pagefold.provider.reply import RequestRecord
from pagefold.provider.server import ProviderApp
from pagefold.wire import gemini, sse
from tests.model_proxy.conversation import FILE
from tests.model_proxy.upstream import ask

SIGNS, PLAIN = "gemini-3.8-flash", "gemini-2.5-flash"
TOOLS = [{"functionDeclarations": [{"name": "read_file", "description": "Reads.", "parameters": {"type": "object"}}]}]
METHODS = ("streamGenerateContent?alt=sse", "streamGenerateContent", "generateContent")


@dataclass
class GeminiProvider:
    answers: Any
    records: list[RequestRecord] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    url: str = ""

    @property
    def refused(self) -> list[str]:
        return [record.reason for record in self.records if record.rule]


@contextmanager
def proxied(folder: Path, policy: Policy, answers: Any, rounds: int = 2) -> Iterator[tuple[GeminiProvider, Proxy, str]]:
    made = GeminiProvider(answers)

    def seen(record: RequestRecord, body: bytes) -> None:
        made.records.append(record)
        made.bodies.append(json.loads(body))

    app = ProviderApp(Referee(answers=answers), clock=lambda: float(len(made.records)), seen=seen)
    with closing(open_store(folder / "store.sqlite3")) as store, running(app) as made.url:
        library = Library(store)
        keeper = PageKeeper(library)
        conversations = Conversations(policy, store=store, recall_rounds=rounds)
        proxy = Proxy(
            Upstreams({"gemini": made.url}),
            conversations,
            put=keeper,
            write_back=keeper.write_back,
            answers=RecallAnswers(library, alone=True),
        )
        with running(proxy) as url:
            yield made, proxy, url


def reads_a_file(number: int, request: Mapping[str, Any]) -> Answer:
    return Answer(f"Next I read {number}.", [AnswerCall("read_file", {"path": f"{number}.py"})])


@dataclass
class GeminiAgent:
    """Keeps every answer exactly as it came, and has a file for each call. `with_ids`: responses name their call."""

    method: str = METHODS[0]
    model: str = SIGNS
    size: int = 1
    with_ids: bool = True
    members: Mapping[str, Any] = field(default_factory=lambda: {"tools": TOOLS})
    contents: list[dict[str, Any]] = field(
        default_factory=lambda: [{"role": "user", "parts": [{"text": "Read everything."}]}]
    )
    used: list[dict[str, Any]] = field(default_factory=list)

    def turn(self, url: str, **headers: str) -> tuple[int, dict[str, str]]:
        system = {"systemInstruction": {"parts": [{"text": "You are an agent."}]}}  # refused beside cached content
        rest = {**({} if "cachedContent" in self.members else system), **self.members}
        body = json.dumps({"contents": self.contents, **rest}).encode()
        path = f"/v1beta/models/{self.model}:{self.method}"
        status, found, answer = ask(url, path=path, body=body, content_type="application/json", **headers)
        if status == 200:
            content = self._content(answer)
            self.contents.append(content)
            parts = []
            for part in content["parts"]:
                if call := part.get("functionCall"):
                    text = "\n".join([FILE.replace("function", f"function_{len(self.contents)}")] * self.size)
                    own = {"id": call["id"]} if self.with_ids and "id" in call else {}
                    parts.append({"functionResponse": {**own, "name": call["name"], "response": {"output": text}}})
            self.contents += [{"role": "user", "parts": parts}] if parts else []
        return status, dict(found)

    def _content(self, answer: bytes) -> dict[str, Any]:
        if not self.method.startswith("stream"):
            whole = json.loads(answer)
            self.used.append(whole["usageMetadata"])
            content: dict[str, Any] = whole["candidates"][0]["content"]
            return content
        reader = gemini.GeminiStream()
        if self.method.endswith("alt=sse"):
            reader.feed(answer)
            reader.finish()
        else:
            for chunk in json.loads(answer):
                reader.take_chunk(chunk)
        assert reader.ended
        self.used.append(reader.usage)
        return dict(json.loads(reader.response().message.raw))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", [SIGNS, PLAIN])
@pytest.mark.parametrize("with_ids", [True, False], ids=["ids", "no ids"])
def test_a_conversation_past_its_window_is_folded_and_never_refused(
    tmp_path: Path, method: str, model: str, with_ids: bool
) -> None:
    agent = GeminiAgent(method, model, size=6, with_ids=with_ids)
    with proxied(tmp_path, Economic(window=12_000), reads_a_file) as (provider, proxy, url):
        for _ in range(12):
            status, _ = agent.turn(url, x_pagefold_window="12000")
            assert status == 200, provider.refused
        totals = proxy.totals

    assert provider.refused == []
    assert totals.work.folds > 1
    assert max(record.tokens for record in provider.records) < 12_000
    by_model = totals.by_model[model]
    assert by_model.usage.prompt == sum(used["promptTokenCount"] for used in agent.used)
    # What stands in a folded request of its last turns is what came, signatures and all.
    kept = [part for content in provider.bodies[-1]["contents"] for part in content["parts"] if "functionCall" in part]
    said = [part for content in agent.contents for part in content["parts"] if "functionCall" in part]
    assert kept
    assert kept == said[:-1][-len(kept) :]


@pytest.mark.parametrize("method", METHODS)
def test_lossless_extends_what_was_sent_and_the_cache_is_read(tmp_path: Path, method: str) -> None:
    agent = GeminiAgent(method, size=2)
    with proxied(tmp_path, Lossless(), reads_a_file) as (provider, proxy, url):
        for _ in range(8):
            assert agent.turn(url)[0] == 200
        assert proxy.totals.work.changed
    assert provider.refused == []
    for before, after in zip(provider.bodies, provider.bodies[1:], strict=False):
        assert after["contents"][: len(before["contents"])] == before["contents"]
    charges = [record.charge for record in provider.records]
    assert charges[-1] is not None
    assert charges[-1].read > charges[-1].fresh


def test_a_recall_is_answered_inside_the_turn_and_the_client_sees_one_answer(tmp_path: Path) -> None:
    """The model recalls the first handle that it is shown, beside a call of the client's own or alone."""

    def recalls(number: int, request: Mapping[str, Any]) -> Answer:
        shown = json.dumps(request["contents"])
        handles = [word.strip('().,"\\') for word in shown.split() if word.startswith(("pf-", "(pf-"))]
        recalled = shown.count('"context_recall"')
        if handles and recalled < 2:
            mixed = [AnswerCall("read_file", {"path": f"{number}.py"})] if recalled else []
            return Answer("I look again.", [AnswerCall("context_recall", {"handle": handles[0]}), *mixed])
        return reads_a_file(number, request)

    for method in (METHODS[0], METHODS[2]):
        for model in (SIGNS, PLAIN):
            agent = GeminiAgent(method, model, size=6)
            folder = tmp_path / method[:6] / model
            folder.mkdir(parents=True)
            with proxied(folder, Economic(window=12_000), recalls) as (provider, proxy, url):
                for _ in range(10):
                    assert agent.turn(url, x_pagefold_window="12000")[0] == 200, provider.refused
                recalls_done = proxy.totals.work.recalls
            assert provider.refused == []
            assert recalls_done >= 2
            assert "context_recall" not in json.dumps(agent.contents)
            names = [tool["name"] for tool in provider.bodies[0]["tools"][0]["functionDeclarations"]]
            assert names == ["read_file", "context_recall", "context_search"]
            # What the provider was told of its own recalls stands in later requests as it was said.
            recalled = [body for body in provider.bodies if "context_recall" in json.dumps(body["contents"])]
            assert len(recalled) > 2


def test_a_stream_is_passed_byte_for_byte_where_nothing_is_hidden(tmp_path: Path) -> None:
    agent = GeminiAgent()
    body = json.dumps({"contents": agent.contents, "tools": TOOLS}).encode()
    path = f"/v1beta/models/{SIGNS}:{METHODS[0]}"
    with proxied(tmp_path, Lossless(), lambda number, request: Answer("é" * 900), rounds=0) as (provider, _, url):
        direct, through = ask(provider.url, path=path, body=body)[2], ask(url, path=path, body=body)[2]
    assert [event.data.replace("r000002", "r000001") for event in _events(through)][:-2] == [
        event.data for event in _events(direct)
    ][:-2]
    assert through.count(b"\r\n\r\n") == direct.count(b"\r\n\r\n")


def _events(data: bytes) -> list[sse.StreamEvent]:
    return sse.EventSplitter().feed(data)


def test_contents_behind_cached_content_are_folded_and_what_is_cached_stays_named(tmp_path: Path) -> None:
    with proxied(tmp_path, Economic(window=12_000), reads_a_file) as (provider, proxy, url):
        rules = {"role": "user", "parts": [{"text": "These are the rules."}]}
        made = json.dumps({"model": f"models/{SIGNS}", "tools": TOOLS, "contents": [rules]}).encode()
        status, _, answer = ask(url, path="/v1beta/cachedContents", body=made)
        assert status == 200
        agent = GeminiAgent(size=6, members={"cachedContent": json.loads(answer)["name"]})
        for _ in range(8):
            assert agent.turn(url, x_pagefold_window="12000")[0] == 200, provider.refused
        assert proxy.totals.work.folds >= 1
    assert provider.refused == []
    assert all(body["cachedContent"] == agent.members["cachedContent"] for body in provider.bodies[1:])


def test_a_request_that_is_too_long_for_the_provider_is_sent_again_smaller(tmp_path: Path) -> None:
    agent = GeminiAgent(size=6)
    made = GeminiProvider(reads_a_file)
    seen: Any = lambda record, body: made.records.append(record)  # noqa: E731
    with running(ProviderApp(Referee(answers=reads_a_file, window=9_000), seen=seen)) as upstream:
        proxy = Proxy(Upstreams({"gemini": upstream}), Conversations(Economic(window=200_000)))
        with running(proxy) as url:
            for _ in range(6):
                assert agent.turn(url)[0] == 200
            work = proxy.totals.work
    assert work.shrunk >= 1
    assert {record.rule for record in made.records} == {"", "gemini_too_long"}


def test_pairs_that_a_client_broke_are_mended(tmp_path: Path) -> None:
    """A call that nobody answered gets a placeholder, as often as the history is sent."""
    agent = GeminiAgent()
    with proxied(tmp_path, Economic(window=50_000), reads_a_file) as (provider, _, url):
        agent.turn(url)
        agent.contents[-1] = {"role": "user", "parts": [{"text": "Never mind. Go on."}]}
        for _ in range(3):
            assert agent.turn(url)[0] == 200, provider.refused
    assert provider.refused == []


@pytest.mark.parametrize("path", ["/v1beta/models", "/v1beta/files", f"/v1beta/models/{SIGNS}:countTokens"])
def test_other_paths_of_the_provider_pass(tmp_path: Path, path: str) -> None:
    with proxied(tmp_path, Lossless(), reads_a_file) as (_, proxy, url):
        assert ask(url, "GET", path, None)[0] == 200
        assert proxy.totals.requests == 1
