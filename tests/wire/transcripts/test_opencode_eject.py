"""A copy of an OpenCode session without its thinking: everything else stays, under ids that fit together."""

import json
from typing import Any

import pytest

from pagefold.errors import WireError
from pagefold.wire.transcripts.opencode_eject import without_thinking


def named(kind: str, number: int) -> str:
    return f"{kind}_{number:012x}{'aB3' * 4}{number:02}"


def session(*parts: dict[str, Any]) -> dict[str, Any]:
    about = {"id": named("ses", 1), "title": "Read msg_ and ses_", "parentID": named("ses", 9)}
    message = {"id": named("msg", 2), "sessionID": about["id"], "role": "assistant"}
    own = [
        {"id": named("prt", 3 + at), "messageID": message["id"], "sessionID": about["id"], **part}
        for at, part in enumerate(parts)
    ]
    return {"info": about, "messages": [{"info": message, "parts": own}]}


def test_thinking_goes_and_all_else_stays_in_its_order() -> None:
    thinking = {"type": "reasoning", "text": "", "metadata": {"anthropic": {"signature": "s"}}}
    tool = {"type": "tool", "state": {"output": f"about {named('ses', 1)}", "time": {"start": 1.5}}}
    given = session(thinking, {"type": "text", "text": "I look."}, tool, thinking)

    text, id, left = without_thinking(json.dumps(given))

    made = json.loads(text)
    (message,) = made["messages"]
    assert left == 2
    assert [part["type"] for part in message["parts"]] == ["text", "tool"]
    assert message["parts"][1]["state"] == tool["state"]
    assert made["info"]["title"] == given["info"]["title"]
    assert made["info"]["parentID"] == given["info"]["parentID"]  # another session, which was not copied
    assert {made["info"]["id"], message["info"]["sessionID"], *(part["sessionID"] for part in message["parts"])} == {id}
    assert {part["messageID"] for part in message["parts"]} == {message["info"]["id"]}
    old = [
        given["info"]["id"],
        given["messages"][0]["info"]["id"],
        *(part["id"] for part in given["messages"][0]["parts"]),
    ]
    new = [id, message["info"]["id"], *(part["id"] for part in message["parts"])]
    assert not set(old) & set(new)
    # Its kind and its time, by which OpenCode orders, stay.
    assert {one[:16] for one in new} <= {one[:16] for one in old}
    assert all(len(one) == 30 for one in new)


def test_the_same_session_makes_the_same_copy() -> None:
    text = json.dumps(session({"type": "text", "text": "I look."}))

    assert without_thinking(text) == without_thinking(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not JSON", "line 1"),
        ('{"sessionId": "s"}', "expected what `opencode export` prints"),
        ('{"info": {"id": "short"}, "messages": []}', "'short': expected an id of OpenCode"),
        (json.dumps({"info": {"id": named("ses", 1)}, "messages": [3]}), "a message of OpenCode has parts"),
        (json.dumps({"info": {}, "messages": []}), "expected what `opencode export` prints"),
        (json.dumps({"info": {"id": named("ses", 1)}, "messages": [{"parts": []}]}), "a message of OpenCode has"),
    ],
)
def test_what_is_no_session_of_opencode_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(WireError, match=words):
        without_thinking(text)
