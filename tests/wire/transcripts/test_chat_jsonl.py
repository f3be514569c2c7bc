"""Chat JSONL: sessions a line, every message as it was written."""

import json

import pytest

from pagefold.errors import WireError
from pagefold.wire.transcripts import Format, detect, parse_line, unanswered

CALL = {"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}


def line(*messages: object, **more: object) -> str:
    return json.dumps({"id": "s", "messages": messages, **more})


def test_a_message_keeps_its_exact_text() -> None:
    odd = '{"id": "s", "messages": [ {"role" : "user", "content":"\\u00e9 \\ud800", "n": 1.10, "n": 1E+2} ]}'

    (message,) = parse_line(odd, name="x").messages

    assert message.raw == '{"role" : "user", "content":"\\u00e9 \\ud800", "n": 1.10, "n": 1E+2}'
    assert message.text == "é \ud800"


def test_a_session_without_an_id_is_named_after_its_place() -> None:
    assert parse_line('{"messages": []}', name="file:3").id == "file:3"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"id": 1}', 'no "messages" list'),
        ('{"messages": {}}', 'no "messages" list'),
        (
            line({"role": "critic", "content": "no"}),
            'message 0: role "critic": expected one of system,',
        ),
        (line("hi"), "message 0:"),
        (line({"role": "user", "content": "a"}, times=[1, 2]), '"times" has one number a message: expected 1'),
        (line({"role": "user", "content": "a"}, times=["x"]), '"times" has one number a message'),
        ('{"messages": [{"role": "us', "line 1, column"),
        ("[" * 10_000, "line 1, column 1: expected '{'"),
        ('{"messages": ' + "[" * 10_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_no_session_is_refused_with_the_place_and_the_reason(text: str, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        parse_line(text, name="x")

    assert reason in str(caught.value)


def test_a_call_that_nobody_answered_is_told_but_an_open_end_is_not() -> None:
    user, calling = {"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}

    assert list(unanswered(parse_line(line(user, calling, user), name="x"))) == ["call c of Read has no result"]
    assert list(unanswered(parse_line(line(user, calling), name="x"))) == []


def test_the_format_is_recognised_by_one_session() -> None:
    assert detect({"id": "s", "messages": []}) is Format.CHAT
    assert detect({"role": "user"}) is None
    assert detect([1]) is None
