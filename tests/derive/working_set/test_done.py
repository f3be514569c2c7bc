"""What was done: which calls have a line, and what is said of the others."""

import pytest

from pagefold.derive.entry import Entry
from pagefold.derive.values import SHIPPED
from pagefold.derive.working_set.digest import Material, working_set
from pagefold.derive.working_set.names import Names
from pagefold.derive.working_set.reading import reading_of
from tests.pages.files.sessions import agent, call, conversation, result, user

REFUSED = "The user doesn't want to proceed with this tool use."
LOOK: tuple[str, str] = ("ls src | head -{}", "a.py")


def done(*told: tuple[str, str], budget: int) -> list[str]:
    """The title and the lines of the part that says what was done."""
    steps = [user("Mend the mill.")]
    for at, (script, printed) in enumerate(told):
        steps += [call(f"c{at}", "Bash", {"command": script}), result(f"c{at}", printed)]
    messages = conversation(*steps, agent("Done."), user("Go on."))
    entries = [Entry(message, message, len(message.text) // 4, place) for place, message in enumerate(messages)]
    material = Material(entries, len(entries), len(entries), reading_of(entries))
    parts = working_set(material, Names({}, SHIPPED, 0.0, 10), budget).parts
    return next(
        ([part.title, *(line or "" for line in part.lines)] for part in parts if part.title.startswith("what was")), []
    )


@pytest.mark.parametrize("budget", range(600, 4_000, 200))
@pytest.mark.parametrize("failed", [("Exit code 2\nmake: *** no wheel", "FAILED"), (REFUSED, "REFUSED")])
def test_no_failure_has_a_line_whose_success_has_none(budget: int, failed: tuple[str, str]) -> None:
    printed, how = failed
    others = [(f"touch {'part' * 20}_{at}", "") for at in range(20)]
    lines = done(*others, ("make all", printed), *others, ("make all", "made"), *others, budget=budget)

    made = [line for line in lines if line.startswith("Bash make all")]
    assert made in ([], ["Bash make all: ok"]) or (how in made[0] and made[1:] == ["Bash make all: ok"])
    if how == "REFUSED":
        assert len(made) == 2, "what a user refused always stands"


def test_what_has_no_line_is_counted_among_the_others_by_how_it_ended() -> None:
    others = [(f"touch {'part' * 20}_{at}", "") for at in range(30)]
    mended = [("make all", "Exit code 2\nmake: *** no wheel"), ("make all", "made")]

    _, *lines = done(("make it", "Exit code 2\nno wheel"), *mended, *others, budget=900)

    well = sum(1 for line in lines if line.endswith(": ok"))
    assert f"left out among these, all of which went well: Bash x {31 - well}" in lines
    assert "left out among these, which did not all go well: Bash x 1" in lines
    assert any(line.startswith("Bash make it: FAILED") for line in lines), "nothing has mended it"


def test_the_title_says_that_reads_have_no_line() -> None:
    plain = "what was done, in order, with its outcome:"
    assert done(("make all", "made"), budget=4_000)[0] == plain
    assert done(("cat a.py", "x = 1\n"), ("make all", "made"), budget=4_000)[0] == (
        "what was done, in order, with its outcome, without what only showed files:"
    )
