"""File views in the ledger: what a digest shows of a file is not sent again when the file is read again."""

from typing import Any

import pytest

from pagefold.derive.entry import Entry, Standings, arrive
from pagefold.derive.policies.economic import Economic
from pagefold.derive.values import SHIPPED
from pagefold.derive.working_set.digest import Material, WorkingSet, working_set
from pagefold.derive.working_set.names import Names
from pagefold.derive.working_set.reading import reading_of
from pagefold.encode.choose import decode
from pagefold.wire.message import Role
from tests.pages.files.sessions import agent, call, cat_n, conversation, result, user

A = "/srv/mill/a.py"
LINES = [f"    total_{at} = amount_of_row({at}, clerk_{at % 7}, mill_{at * 31})" for at in range(1, 41)]
READ = [call("a", "Read", {"file_path": A}), result("a", cat_n(LINES))]


def folded(*values: dict[str, Any]) -> WorkingSet:
    """The digest of a session in which the file was read and then these things happened."""
    messages = conversation(user("Mend the mill."), *READ, *values)
    entries = [Entry(message, message, 99, place) for place, message in enumerate(messages)]
    material = Material(entries, len(entries), len(entries), reading_of(entries))
    return working_set(material, Names({}, SHIPPED, 0.0, 10), 8_000)


def read_again(made: WorkingSet, lines: list[str]) -> str:
    """A later result that shows these lines of the file, as it is sent."""
    asked, read = conversation(*READ[:1], result("a", cat_n(lines)))
    before = arrive(Standings(made.ledger), asked).standings
    shown = arrive(before, read).message.text
    assert decode(shown, before.ledger) == cat_n(lines)
    return shown


def test_a_read_of_lines_that_a_view_shows_refers_to_the_view_by_its_title() -> None:
    made = folded()
    (view,) = [part for part in made.parts if part.title.startswith(f"file {A}, as it is now: lines 1-40")]
    shown = read_again(made, LINES)

    assert [line.rpartition("\t")[2] for line in view.lines if line] == LINES
    assert f"file {A}" in shown
    assert not any(line in shown for line in LINES)


def test_a_line_that_changed_since_is_sent() -> None:
    changed = [*LINES[:20], "    total_21 = mended(21)", *LINES[21:]]
    shown = read_again(folded(), changed)

    assert "    total_21 = mended(21)" in shown


def test_an_edit_before_the_fold_is_in_the_view_and_so_in_the_ledger() -> None:
    edit = {"file_path": A, "old_string": LINES[20], "new_string": "    total_21 = mended(21)"}
    made = folded(call("e", "Edit", edit), result("e", "The file has been updated."))

    assert "    total_21 = mended(21)" in made.ledger.held(["    total_21 = mended(21)", LINES[20]])
    assert not made.ledger.held([LINES[20]])


@pytest.mark.parametrize("command", ["git stash", "git checkout main"])
def test_lines_in_doubt_are_sent_again(command: str) -> None:
    made = folded(call("d", "Bash", {"command": command}), result("d", "Saved"))

    assert any("which may have changed it" in part.doubt for part in made.parts)
    assert len(made.ledger) == 0
    assert all(line in read_again(made, LINES) for line in LINES)


def test_after_a_fold_results_may_refer_to_the_view() -> None:
    values = [user("Mend the mill."), *READ]
    for at in range(6):
        output = "\n".join(f"order_{at}_{row} of clerk_{row * 7 + at}" for row in range(110))
        values += [call(f"b{at}", "Bash", {"command": f"list orders {at}"}), result(f"b{at}", output)]
    messages = conversation(*values, call("z", "Read", {"file_path": A}), result("z", cat_n(LINES)), agent("Seen."))
    policy, state, sent = Economic(window=8_000), Economic(window=8_000).begin(), list[str]()
    for message in messages:
        if message.role is Role.ASSISTANT:
            state, derived = policy.request(state)
            sent[derived.keep :] = [one.text for one in derived.append]
        state = policy.step(state, message)

    assert any(f"file {A}, as it is now" in text for text in sent)
    assert state.standings.ledger.labelled(f"file {A}") is not None
    assert decode(sent[-1], state.standings.ledger) == cat_n(LINES)
