"""A file that the session worked on and that is shown nowhere is named, with what is the case."""

from collections.abc import Sequence

import pytest

from pagefold.derive.entry import Entry
from pagefold.derive.values import SHIPPED
from pagefold.derive.working_set.digest import Material, WorkingSet, working_set
from pagefold.derive.working_set.names import Names
from pagefold.derive.working_set.not_shown import TITLE
from pagefold.derive.working_set.reading import reading_of
from pagefold.wire.message import Message
from tests.pages.files.sessions import agent, call, cat_n, conversation, result, user

A, B, C = "/srv/mill/a.py", "/srv/mill/b.py", "/srv/mill/c.py"
LINES = [f"    total_{at} = amount_of_the_row_with_number({at}) + what_was_left_over_of({at})" for at in range(1, 60)]
TEXT = "".join(line + "\n" for line in LINES)
Turn = tuple[str, dict[str, object], str]
READ: Turn = ("Read", {"file_path": A}, cat_n(LINES))
WRITTEN: Turn = ("Write", {"file_path": A, "content": TEXT}, "File created successfully")
UNREAD: Turn = ("Edit", {"file_path": B, "old_string": "x = 1", "new_string": "x = 2"}, "The file has been updated.")
NO_ROOM, ROOM = 500, 9_000


def bash(script: str, printed: str = "") -> Turn:
    return "Bash", {"command": script}, printed


def session(turns: Sequence[Turn]) -> list[Message]:
    said = [
        message
        for at, (name, arguments, text) in enumerate(turns)
        for message in (call(f"c{at}", name, arguments), result(f"c{at}", text))
    ]
    return conversation(user("Mend the mill."), *said, agent("It turns."), user("Go on."))


def made(turns: Sequence[Turn], budget: int, tail: int = 0) -> WorkingSet:
    """The digest of a session but for so many messages at its end."""
    messages = session(turns)
    entries = [Entry(message, message, len(message.text) // 4, place) for place, message in enumerate(messages)]
    material = Material(entries, len(entries) - tail, len(entries), reading_of(entries))
    return working_set(material, Names({}, SHIPPED, 0.0, 10), budget)


def told(turns: Sequence[Turn], budget: int, tail: int = 0) -> list[str | None]:
    return [line for part in made(turns, budget, tail).parts if part.title == TITLE for line in part.lines]


NAMED = {
    "an edit of a file that nobody has read": ([UNREAD], ROOM, [f"changed, present text not known: {B}"]),
    "a text that a command replaced": (
        [WRITTEN, bash(f"make rows > {A}")],
        ROOM,
        [f"changed, present text not known since `make rows`: {A}"],
    ),
    "a text in doubt for which there is no room": (
        [WRITTEN, bash("git pull")],
        NO_ROOM,
        [f"changed, then perhaps again by `git pull`: {A}"],
    ),
    "a formatted text for which there is no room": (
        [WRITTEN, bash("black .")],
        NO_ROOM,
        [f"changed, then perhaps again by `black .`: {A}"],
    ),
    "a read file for which there is no room": ([READ], NO_ROOM, [f"read: {A}"]),
    "the newest first": (
        [READ, *(("Read", {"file_path": f"/srv/mill/{at}.py"}, cat_n(LINES)) for at in range(4)), UNREAD],
        NO_ROOM,
        [f"changed, present text not known: {B}", "read: /srv/mill/3.py, /srv/mill/2.py and 3 more"],
    ),
    "more than there is room to name": (
        [("Edit", {**UNREAD[1], "file_path": f"/srv/mill/{at}.py"}, UNREAD[2]) for at in range(4)],
        NO_ROOM,
        ["changed, present text not known: /srv/mill/3.py, /srv/mill/2.py", "changed, not named here: 2 more"],
    ),
}
NOT_NAMED = {
    "a file that has a view": ([WRITTEN], ROOM, 0),
    "a file that stands in the last exchanges": ([READ], NO_ROOM, 4),
    "a file that only a search has found": ([bash("grep -rn total .", "mill/a.py:3:total = 1")], NO_ROOM, 0),
    "a file that was removed": ([UNREAD, bash(f"rm {B}")], ROOM, 0),
}


@pytest.mark.parametrize(("turns", "budget", "expected"), NAMED.values(), ids=NAMED)
def test_a_file_that_is_shown_nowhere_is_named(turns: list[Turn], budget: int, expected: list[str]) -> None:
    assert told(turns, budget) == expected


@pytest.mark.parametrize(("turns", "budget", "tail"), NOT_NAMED.values(), ids=NOT_NAMED)
def test_a_file_that_stands_or_that_nobody_worked_on_is_not_named(turns: list[Turn], budget: int, tail: int) -> None:
    assert told(turns, budget, tail) == []


def test_the_text_of_a_changed_file_that_is_known_is_recalled_by_its_handle() -> None:
    digest = made([WRITTEN], NO_ROOM)
    (page,) = [page for page, key in digest.pages if key == A]

    assert told([WRITTEN], NO_ROOM) == [f'changed: {A} (lines 1-59 by context_recall("{page.handle}"))']
    assert LINES[58] in page.text
