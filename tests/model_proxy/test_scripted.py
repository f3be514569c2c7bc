"""The scripted model: what it streams is what it says whole, and a request alone decides which turn it plays."""

import json
from typing import Any

import pytest

from pagefold.wire import anthropic
from pagefold.wire.message import BlockKind, Response, Usage
from tests.scripted_model import ASIDE, LAST, ScriptedCall, ScriptedModel, ScriptedTurn

SCRIPT = [
    ScriptedTurn(
        "I look.",
        thinking="Let me see. " * 9,
        calls=[ScriptedCall("Bash", {"command": "ls " + "x" * 99}), ScriptedCall("Read")],
    ),
    ScriptedTurn("Two files.", usage=Usage(fresh=1, cache_read=2, cache_write=3, output=4)),
]


def request(answers: int = 0, **more: Any) -> bytes:
    turns = [{"role": "user", "content": "Hi"}]
    for number in range(answers):
        turns += [{"role": "assistant", "content": f"{number}"}, {"role": "user", "content": "Go on"}]
    return json.dumps({"model": "claude-x", "tools": [{"name": "Bash"}], "messages": turns, **more}).encode()


def whole(model: ScriptedModel, body: bytes) -> Response:
    status, kind, pieces = model.answer("POST", "/v1/messages", body)
    assert (status, kind) == (200, b"application/json")
    return anthropic.parse_response(b"".join(pieces))


def streamed(model: ScriptedModel, body: bytes) -> Response:
    status, kind, pieces = model.answer("POST", "/v1/messages", body)
    assert (status, kind) == (200, b"text/event-stream; charset=utf-8")
    reader = anthropic.MessagesStream()
    for piece in pieces:
        assert len(reader.feed(piece)) == 1
    assert reader.ended
    return reader.response()


@pytest.mark.parametrize("answers", [0, 1, 2])
def test_a_turn_is_the_same_streamed_and_whole(answers: int) -> None:
    model = ScriptedModel(SCRIPT)
    one, other = whole(model, request(answers)), streamed(model, request(answers, stream=True))

    assert (one.message.blocks, one.stop, one.model) == (other.message.blocks, other.stop, other.model)
    if answers == 1:
        assert one.usage == other.usage == SCRIPT[1].usage


def test_the_answers_in_a_request_decide_the_turn() -> None:
    model = ScriptedModel(SCRIPT)
    said = [whole(model, request(answers)).message for answers in (1, 0, 1, 2, 5)]

    assert [message.blocks[-1].kind for message in said[:2]] == [BlockKind.TEXT, BlockKind.CALL]
    assert said[0].text == said[2].text == "Two files."
    assert said[3].text == said[4].text == LAST.text


def test_every_reply_has_an_id_of_its_own() -> None:
    model = ScriptedModel(SCRIPT)
    found = [json.loads(model.answer("POST", "/v1/messages", request())[2][0]) for _ in range(3)]

    assert len({message["id"] for message in found}) == 3
    assert len({block["id"] for block in found[0]["content"] if block["type"] == "tool_use"}) == 2


def test_a_side_question_is_answered_without_a_call() -> None:
    assert whole(ScriptedModel(SCRIPT), request(tools=[])).message.text == ASIDE.text


def test_a_turn_can_fail_first() -> None:
    model = ScriptedModel([ScriptedTurn("At last.", fail=[529, 500])])
    found = [model.answer("POST", "/v1/messages", request()) for _ in range(3)]

    assert [status for status, _, _ in found] == [529, 500, 200]
    assert json.loads(found[0][2][0])["error"]["type"] == "overloaded_error"


def test_it_remembers_what_it_was_asked_and_answers_what_agents_ask_besides() -> None:
    model = ScriptedModel(SCRIPT)
    model.answer("POST", "/v1/messages", b"no json")
    model.answer("POST", "/v1/messages", request())

    assert model.requests == [b"no json", request()]
    assert model.answer("POST", "/v1/messages", b"no json")[0] == 400
    assert model.answer("POST", "/v1/messages/count_tokens", bytes(40))[2] == [b'{"input_tokens":10}']
    assert model.answer("HEAD", "/", b"")[0] == 200
    assert model.answer("POST", "/v1/other", b"")[0] == 404
