"""OpenCode's exported sessions."""

import json
from typing import Any

from pagefold.wire.message import Usage
from pagefold.wire.transcripts import Format, Problem, Session, detect, read_document


def part(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def tool(call_id: str, status: str = "completed", **more: Any) -> dict[str, Any]:
    return part("tool", tool="bash", callID=call_id, state={"status": status, "input": {"command": "ls"}, **more})


def user(words: str) -> dict[str, Any]:
    return {"info": {"role": "user", "time": {"created": 1000}}, "parts": [part("text", text=words)]}


def assistant(*parts: dict[str, Any], **info: Any) -> dict[str, Any]:
    about = {"id": "m1", "role": "assistant", "modelID": "x", "time": {"created": 3000}}
    return {"info": about | info, "parts": list(parts)}


def read(*messages: dict[str, Any]) -> list[Session | Problem]:
    document = json.dumps({"info": {"id": "ses_1"}, "messages": messages}, indent=2)
    return list(read_document(Format.OPENCODE, document, name="session"))


TOKENS = {"input": 5, "output": 2, "cache": {"read": 70, "write": 9}}


def test_every_step_is_an_answer_and_a_tool_part_is_a_call_with_its_result() -> None:
    (session,) = read(
        user("list it"),
        assistant(
            part("step-start"),
            part("reasoning", text="hm"),
            part("text", text="listing"),
            tool("c1", output="a.txt"),
            tool("c2", "error", error="no"),
            part("step-finish", tokens=TOKENS),
            part("step-start"),
            part("text", text="one file"),
            part("step-finish", tokens=TOKENS),
        ),
    )

    assert isinstance(session, Session)
    assert [(message.role, message.text) for message in session.messages] == [
        ("user", "list it"),
        ("assistant", 'listing\nbash {"command":"ls"}\nbash {"command":"ls"}'),
        ("tool", "a.txt"),
        ("tool", "no"),
        ("assistant", "one file"),
    ]
    assert session.usage == dict.fromkeys((1, 4), Usage(5, 70, 9, 2))
    assert (session.id, session.source, session.model, session.times[-1]) == ("ses_1", "opencode", "x", 2.0)


def test_a_summary_begins_a_new_history() -> None:
    found = read(
        user("first"),
        assistant(part("step-start"), part("text", text="one")),
        assistant(part("text", text="what happened so far"), id="m2", summary=True),
        user("go on"),
        assistant(part("step-start"), part("text", text="two"), id="m3"),
    )

    sessions = [item for item in found if isinstance(item, Session)]
    assert [(s.id, [m.text for m in s.messages]) for s in sessions] == [
        ("ses_1", ["first", "one"]),
        ("ses_1#2", ["what happened so far", "go on", "two"]),
    ]


def test_a_call_that_is_still_running_has_no_result_yet() -> None:
    (session,) = read(user("x"), assistant(part("step-start"), tool("c1", "running")))

    assert isinstance(session, Session)
    assert [message.role for message in session.messages] == ["user", "assistant"]


def test_a_document_that_is_no_session_is_told() -> None:
    found = list(read_document(Format.OPENCODE, '{"info": {}, "messages": [1]}', name="x"))

    assert found == [Problem(1, 'message 0: expected "info" and "parts"')]


def test_the_format_is_recognised_by_the_document() -> None:
    assert detect({"info": {"id": "ses_1"}, "messages": []}) is Format.OPENCODE
