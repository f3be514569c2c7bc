"""Lines of a file that were seen at different times, with something in between that may have changed it, are not told
as if they stood next to one another."""

import pytest

from pagefold.derive.entry import Entry
from pagefold.derive.values import SHIPPED
from pagefold.derive.working_set.digest import Material, working_set
from pagefold.derive.working_set.file_views import known_text
from pagefold.derive.working_set.names import Names
from pagefold.derive.working_set.parts import rendered
from pagefold.derive.working_set.reading import reading_of
from pagefold.derive.working_set.record import Record
from tests.pages.files.sessions import Step, agent, call, cat_n, conversation, file_of, model_of, result, user

A = "/srv/mill/a.py"
LINES = [f"    total_{at} = amount_of_row({at})" for at in range(1, 13)]
READ: Step = ("Read", {"file_path": A}, cat_n(LINES))
EDIT: Step = ("Edit", {"file_path": A, "old_string": LINES[5], "new_string": "    total_6 = mended(6)"}, "Updated.")
SED: Step = ("Bash", {"command": f"sed -n '1,4p' {A}"}, "\n".join(LINES[:4]))
OLD, MENDED = [LINES[:5], LINES[6:]], ["    total_6 = mended(6)"]


def bash(script: str) -> Step:
    return "Bash", {"command": script}, ""


def digest(*steps: Step) -> list[str]:
    """The digest of a session, each line of pagefold's own behind `#`."""
    said = [
        message
        for at, (name, arguments, text) in enumerate(steps)
        for message in (call(f"c{at}", name, arguments), result(f"c{at}", text))
    ]
    messages = conversation(user("Mend the mill."), *said, agent("It turns."), user("Go on."))
    entries = [Entry(message, message, len(message.text) // 4, place) for place, message in enumerate(messages)]
    material = Material(entries, len(entries), len(entries), reading_of(entries))
    text = rendered(working_set(material, Names({}, SHIPPED, 0.0, 10), 8_000).parts, Record(0, "pf-a", "pf-b"), 9)
    return text.replace(text[: text.index("]") + 1], "#").split("\n")


def sed(start: int) -> Step:
    return "Bash", {"command": f"sed -n '{start},{start + 1}p' {A}"}, "\n".join(LINES[start - 1 : start + 1])


PULL = "which may have changed it"
SHOWN = {
    "all seen at one time": (
        [READ, bash("git pull")],
        [f"# file {A}, lines, seen at least in part before `git pull`, {PULL}:", *LINES],
    ),
    "an edit after the doubt": (
        [READ, bash("git pull"), EDIT],
        [
            f"# file {A}, changed in this session, lines, seen at least in part before `git pull`, {PULL}:",
            *OLD[0],
            "# file above, seen after `git pull` (message 5):",
            *MENDED,
            "# file above, seen before `git pull` (message 5):",
            *OLD[1],
        ],
    ),
    "an edit between two doubts": (
        [READ, bash("git pull"), EDIT, bash("git merge topic")],
        [
            (
                f"# file {A}, changed in this session, lines, seen at least in part before `git pull`, "
                f"then `git merge topic`, {PULL}:"
            ),
            *OLD[0],
            "# file above, seen after `git pull` (message 5):",
            *MENDED,
            "# file above, seen before `git pull` (message 5):",
            *OLD[1],
        ],
    ),
    "the beginning seen again between two doubts": (
        [READ, bash("git pull"), SED, bash("git merge topic")],
        [
            f"# file {A}, lines, seen at least in part before `git pull`, then `git merge topic`, {PULL}:",
            "# file above, seen after `git pull` (message 5):",
            *LINES[:4],
            "# file above, seen before `git pull` (message 5):",
            *LINES[4:],
        ],
    ),
    "by turns, named once": (
        [READ, bash("git pull"), *(sed(at) for at in (1, 5, 9)), bash("git merge topic")],
        [
            f"# file {A}, lines, seen at least in part before `git pull`, then `git merge topic`, {PULL}:",
            "# file above, seen after `git pull` (message 5):",
            *LINES[:2],
            "# file above, seen before `git pull` (message 5):",
            *LINES[2:4],
            "# file above, seen after message 5:",
            *LINES[4:6],
            "# file above, seen before message 5:",
            *LINES[6:8],
            "# file above, seen after message 5:",
            *LINES[8:10],
            "# file above, seen before message 5:",
            *LINES[10:],
        ],
    ),
    "edits and doubts by turns": (
        [READ, EDIT, bash("git pull"), bash("git merge topic"), bash("git stash pop")],
        [
            (
                f"# file {A}, changed in this session, lines, seen at least in part before `git pull`, then 1 other, "
                f"then `git stash pop`, {PULL}:"
            ),
            *OLD[0],
            *MENDED,
            *OLD[1],
        ],
    ),
}


@pytest.mark.parametrize(("steps", "view"), SHOWN.values(), ids=SHOWN)
def test_a_view_says_where_its_lines_were_seen_at_different_times(steps: list[Step], view: list[str]) -> None:
    lines = digest(*steps)
    begin = lines.index(view[0])

    assert lines[begin : begin + len(view)] == view


def test_what_a_handle_recalls_says_so_too() -> None:
    text = known_text(file_of(model_of(READ, bash("git pull"), EDIT), A))

    heads = [(at, line) for at, line in enumerate(text.split("\n")) if line.startswith("[")]
    assert heads == [
        (0, "[lines as last seen, before `git pull` (message 2), without certain numbers]"),
        (6, "[lines as last seen, after `git pull` (message 2), without certain numbers]"),
        (8, "[lines as last seen, before `git pull` (message 2), without certain numbers]"),
    ]
