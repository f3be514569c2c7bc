"""Levels after a fold: every message has exactly one, with a reason, and it is how the message really stands."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.derive.policies.economic import Economic
from pagefold.derive.policy import Derived
from pagefold.pages.kinds import ResidencyLevel
from pagefold.wire.message import Message
from tests.derive.loops import run
from tests.pages.files.sessions import agent, call, cat_n, conversation, result, user

FULL, COMPRESSED, STRUCTURED, POINTER = ResidencyLevel
PARTS = {"recalled", "files", "said", "plan", "done", "names"}
WINDOW = 6_000
SMALL = Economic(window=WINDOW)


def lines(name: str, count: int) -> list[str]:
    return [f"    {name}_{at} = amount_of_row({at}, clerk_{at % 7})" for at in range(1, count + 1)]


def exchange(kind: str, at: int, size: int) -> list[dict[str, Any]]:
    """One exchange of this kind, or something that is said."""
    path, id_ = f"/srv/mill/{kind}_{at}.py", f"c{at}"
    match kind:
        case "read":
            return [call(id_, "Read", {"file_path": path}), result(id_, cat_n(lines(f"total_{at}", size)))]
        case "write":
            content = "\n".join(lines(f"sum_{at}", size))
            return [call(id_, "Write", {"file_path": path, "content": content}), result(id_, "ok")]
        case "failed":
            return [call(id_, "Bash", {"command": f"make {at}"}), result(id_, f"Exit code 2\nNo rule for {at}.")]
        case "plan":
            steps = [{"content": f"step {at}", "status": "pending"}]
            return [call(id_, "TodoWrite", {"todos": steps}), result(id_, "ok")]
        case "ask":
            return [user(f"And now number {at}, please."), agent(f"I shall do number {at}. " * size)]
        case _:
            output = "\n".join(f"{kind} {at} {row} order_{at}_{row}" for row in range(size))
            return [call(id_, "Bash", {"command": f"run {at}"}), result(id_, output)]


KINDS = ["read", "write", "failed", "plan", "ask", "other"]
sessions = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 60)), min_size=8, max_size=40)


def folds_of(kinds: list[tuple[str, int]]) -> list[tuple[Derived, tuple[Message, ...], list[Message]]]:
    """Every fold of a session of these exchanges: what was derived, the request, and the history before it."""
    values = [user("Mend the mill."), agent("Yes.")]
    for at, (kind, size) in enumerate(kinds):
        values += exchange(kind, at, size)
    messages = conversation(*values, user("Go on."), agent("Done."))
    told, found, asked = run(SMALL, messages), [], 0
    for place, message in enumerate(messages):
        if message.role == "assistant":
            derived, request = told.derived[asked], told.requests[asked]
            asked += 1
            if derived.reason:
                found.append((derived, request, messages[:place]))
    return found


@given(sessions)
@settings(max_examples=40, deadline=None)
def test_every_message_has_one_level_with_a_reason_and_stands_so(kinds: list[tuple[str, int]]) -> None:
    for derived, request, history in folds_of(kinds):
        raws = {message.raw for message in request}
        digest = next((message.text for message in request if "pagefold wrote this" in message.text), "")
        assert [one.place for one in derived.decisions] == list(range(len(history)))
        for one, message in zip(derived.decisions, history, strict=True):
            assert one.reason
            assert (message.raw in raws) is (one.level is FULL), (one, message)
            parts = set(one.part.split(", ")) if one.part else set()
            assert parts <= PARTS
            assert bool(parts) is (one.level is STRUCTURED)
            if "said" in parts:
                assert message.text.split(". ")[0] in digest
            if one.level in (STRUCTURED, POINTER):
                assert digest


FILLER = [("other", 60)] * 12


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("read", 1, (STRUCTURED, "files")),
        ("write", 1, (STRUCTURED, "files")),
        ("failed", 1, (STRUCTURED, "done")),
        ("plan", 0, (STRUCTURED, "plan")),
        ("ask", 0, (STRUCTURED, "said")),
    ],
)
def test_each_kind_of_message_is_told_by_the_part_that_holds_it(
    kind: str, message: int, expected: tuple[ResidencyLevel, str]
) -> None:
    derived, _, history = folds_of([(kind, 12), *FILLER])[-1]
    sought = conversation(*exchange(kind, 0, 12))[message].raw
    place = next(place for place, other in enumerate(history) if json.loads(other.raw) == json.loads(sought))
    one = derived.decisions[place]
    assert (one.level, one.part.partition(", ")[0]) == expected


def test_what_the_latest_ask_replies_to_is_told_as_such() -> None:
    derived, _, history = folds_of([*FILLER, ("ask", 1), ("other", 50), ("other", 50), ("other", 50), ("other", 50)])[
        -1
    ]
    reasons = {message.text: one.reason for one, message in zip(derived.decisions, history, strict=True)}
    assert reasons["And now number 12, please."] == "the latest ask"
