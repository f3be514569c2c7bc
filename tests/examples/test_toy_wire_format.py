"""The toy wire format of examples/, through the real model proxy: read, derived, folded, counted and refused."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from pagefold import Context
from pagefold.derive.pairing import broken
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.economic import Economic
from pagefold.encode.choose import decode
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.wire import apis
from pagefold.wire.api import Api
from pagefold.wire.message import Usage
from tests.model_proxy.conversation import FILE
from tests.model_proxy.upstream import STREAM_HEAD, answers, ask, chunk, upstream, whole

TOY: Api = runpy.run_path(str(Path(__file__).parents[2] / "examples/toy_wire_format.py"))["TOY"]
ANSWER = json.dumps(
    {
        "engine": "toy-1",
        "turn": {"by": "engine", "say": "Done."},
        "why": "done",
        "spent": {"read": 50, "cached": 40, "wrote": 2},
    }
).encode()
USAGE = Usage(fresh=10, cache_read=40, output=2)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(apis.APIS, TOY.path, TOY)
    monkeypatch.setitem(apis.APIS_BY_NAME, TOY.name, TOY)


def request(turns: int, *, live: bool = False) -> bytes:
    history: list[dict[str, Any]] = [{"by": "human", "say": "Find out why the totals are negative."}]
    for number in range(turns):
        call = {"key": f"k{number}", "action": "read", "with": {"path": f"part_{number}.py"}}
        history.append({"by": "engine", "say": f"Looking at part {number}.", "do": [call]})
        history.append({"by": "action", "key": f"k{number}", "gave": FILE.replace("function", f"f{number}")})
    rest = {"engine": "toy-1", "live": live, "preamble": "Be careful.", "actions": [{"action": "read"}]}
    return json.dumps({**rest, "turns": history}).encode()


def passed(data: bytes, policy: Any, answer: bytes) -> tuple[Proxy, bytes, bytes]:
    """The proxy, what reached the upstream for a request, and what the client got."""
    with upstream(answers(answer)) as model:
        proxy = Proxy(Upstreams({"anthropic": "http://127.0.0.1:9", "toy": model.url}), Conversations(policy))
        with running(proxy) as url:
            _, _, got = ask(url, path="/toy/chat", body=data)
    return proxy, model.received[0].body, got


def test_a_result_arrives_in_a_form_that_can_be_undone_and_everything_else_as_it_was() -> None:
    data = request(1)
    proxy, sent, got = passed(data, policy_named("lossless"), whole(ANSWER))

    before, after = json.loads(data), json.loads(sent)
    gave = after["turns"][2]["gave"]
    assert len(gave) < len(FILE)
    assert decode(gave) == before["turns"][2]["gave"]
    after["turns"][2]["gave"] = before["turns"][2]["gave"]
    assert (after, got) == (before, ANSWER)
    assert (proxy.totals.usage, proxy.totals.unread, proxy.totals.failed) == (USAGE, {}, 0)
    assert set(proxy.totals.by_model) == {"toy-1"}


def test_a_stream_is_passed_on_and_counted() -> None:
    end = {"why": "done", "engine": "toy-1", "spent": {"read": 50, "cached": 40, "wrote": 2}}
    events = [f"data: {json.dumps(value)}\n\n".encode() for value in ({"say": "Do"}, {"say": "ne."}, end)]
    streamed = STREAM_HEAD + b"".join(map(chunk, events)) + b"0\r\n\r\n"
    proxy, _, got = passed(request(0, live=True), policy_named("lossless"), streamed)

    assert got == b"".join(events)
    assert (proxy.totals.usage, proxy.totals.streamed, proxy.totals.failed) == (USAGE, 1, 0)
    reader = TOY.stream()
    reader.feed(b"".join(events))
    assert reader.response().message.text == "Done."


def test_a_fold_is_written_in_its_own_words_and_keeps_calls_and_results_together() -> None:
    data = request(40)
    proxy, sent, _ = passed(data, Economic(window=9_000), whole(ANSWER))

    turns = json.loads(sent)["turns"]
    assert len(sent) < len(data) / 2
    assert (proxy.totals.faults, proxy.totals.work.changed) == (0, 1)
    assert {turn["by"] for turn in turns} == {"human", "engine", "action"}
    assert any("context_recall" in turn.get("say", "") for turn in turns)
    assert broken([TOY.parse_message(json.dumps(turn)) for turn in turns]) == ""


def test_a_call_without_a_result_gets_one_in_its_own_words() -> None:
    value = json.loads(request(3))
    del value["turns"][2]
    _, sent, _ = passed(json.dumps(value).encode(), Economic(window=9_000), whole(ANSWER))

    result = json.loads(sent)["turns"][2]
    assert (result["by"], result["key"]) == ("action", "k0")
    assert "unavailable" in result["gave"]


def test_a_context_takes_it_and_folds_it_in_its_own_words() -> None:
    context = Context(9_000)
    for message in json.loads(request(40))["turns"]:
        if message["by"] == "engine":
            turns = context.request()
        context.add(message)

    assert context.report().folds > 0
    assert {turn["by"] for turn in turns} == {"human", "engine", "action"}
    assert any("context_recall" in turn.get("say", "") for turn in turns)


def test_errors_are_read_and_spelled_as_the_api_does() -> None:
    wrong = json.dumps({"wrong": {"kind": "overloaded", "words": "later"}}).encode()
    proxy, _, got = passed(request(1), None, whole(wrong, status=b"503 Later"))
    assert (got, proxy.totals.errors) == (wrong, {"overloaded": 1})

    with running(Proxy(Upstreams({"anthropic": "http://127.0.0.1:9"}))) as url:
        status, _, body = ask(url, path="/toy/chat", body=request(1))
    assert (status, json.loads(body)["wrong"]["kind"]) == (404, "not_found_error")
