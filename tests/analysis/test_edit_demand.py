"""Edits whose text a fold took away: found by the lines that stand in each request, and priced into the bill."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pagefold.analysis import session_report as reporting
from pagefold.analysis.edit_demand import EditsNeeded, edits_needed
from pagefold.analysis.engine import SessionResult
from pagefold.analysis.report import SavingsReport
from pagefold.analysis.session_report import ReportOptions
from pagefold.derive.policy import Derived
from pagefold.tokens import counter
from pagefold.wire.transcripts import Session, parse_line
from tests.analysis.logs import call, result
from tests.analysis.test_report import JOB

COUNTER = counter("o200k")
READ = "     1\tdef pay(order):\n     2\t    charge(order)\n     3\t    return order"
OLD = "def pay(order):\n    charge(order)"
PATCH = "\n".join(
    (
        *("*** Begin Patch", "*** Update File: a.py", "@@ class Shop"),
        *(" def pay(order):", "-    charge(order)", "+    bill(order)", "*** End Patch"),
    )
)


def session(*messages: dict[str, Any]) -> Session:
    return parse_line(json.dumps({"id": "s", "messages": messages}), name="s")


def edit(old: str, call_id: str = "e") -> dict[str, Any]:
    return call("Edit", call_id, file_path="a.py", old_string=old, new_string="def pay(order):\n    bill(order)")


def folded(recorded: Session, *digest: str, at: int) -> list[Derived]:
    """Requests that hold all that was said, but the last one, which holds these texts alone."""
    turns = [at for at, message in enumerate(recorded.messages) if message.role == "assistant"]
    asked = [Derived(0, recorded.messages[:turn]) for turn in turns]
    said = session(*({"role": "user", "content": text} for text in (*digest, "Go on."))).messages
    asked[at] = Derived(0, said, reason="folded")
    return asked


@pytest.mark.parametrize(
    ("digest", "answer", "gone"),
    [
        (("Nothing of it.",), edit(OLD), 1),
        (("def pay(order):",), edit(OLD), 1),  # a line of it is missing
        (("  def pay(order):\n      charge(order)",), edit(OLD), 0),
        (("a.py:1:def pay(order):\na.py:2:    charge(order)",), edit(OLD), 0),
        (("  1\tdef pay(order):\n…", "  2\t    charge(order)"), edit(OLD), 0),
        ((json.dumps({"text": OLD + "\n    return order"}),), edit(OLD), 1),  # the first line stands behind a key
        ((json.dumps({"text": "x\n" + OLD + "\nx"}),), edit(OLD), 0),
        (("Nothing of it.",), call("apply_patch", "p", input=PATCH), 1),
        (("def pay(order):\n    charge(order)",), call("apply_patch", "p", input=PATCH), 0),
    ],
)
def test_an_edits_text_is_gone_where_a_line_of_it_stands_nowhere(
    digest: Sequence[str], answer: dict[str, Any], gone: int
) -> None:
    recorded = session(
        {"role": "user", "content": "Go."}, call("Read", "r", path="a.py"), result("Read", "r", READ), answer
    )

    first, last = edits_needed(recorded, folded(recorded, *digest, at=1), COUNTER)

    assert first == EditsNeeded()
    assert (last.edits, last.gone) == (1, gone)
    size = COUNTER.count(recorded.messages[2].text)
    assert (last.again, last.written_again > 0) == ((size, True) if gone else (0, False))


def test_what_was_never_shown_is_no_edit_of_a_text_and_what_the_model_wrote_is_shown() -> None:
    written = call("Write", "w", file_path="a.py", content=OLD + "\n")
    recorded = session(
        {"role": "user", "content": "Go."}, edit("import os", "1"), written, edit(OLD, "2"), edit(OLD, "3")
    )
    requests = folded(recorded, "Nothing of it.", at=3)

    assert [(one.edits, one.gone) for one in edits_needed(recorded, requests, COUNTER)] == [
        (0, 0),
        (0, 0),
        (1, 0),
        (1, 1),
    ]


def test_without_an_edit_nothing_is_looked_at() -> None:
    recorded = session({"role": "user", "content": "Go."}, call("Read", "r", path="a.py"), result("Read", "r", READ))

    assert list(edits_needed(recorded, folded(recorded, "", at=0), COUNTER)) == [EditsNeeded()]


def test_what_the_bill_holds_for_an_edit_whose_text_was_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = session(
        {"role": "user", "content": "Go."}, call("Read", "r", path="a.py"), result("Read", "r", READ), edit(OLD)
    )

    def found(gone: int) -> SavingsReport:
        needed = [EditsNeeded(), EditsNeeded(1, gone, 40 * gone, 30 * gone)]
        monkeypatch.setattr(reporting, "edits_needed", lambda *_: iter(needed))
        report = SavingsReport(JOB)
        made = reporting.session_report(recorded, JOB, options=ReportOptions())
        report.add(SessionResult(Path("logs"), "s", "test", made))
        return report

    none, one = found(0).bill, found(1).bill
    assert (one.edits, one.edits_gone["economic"], one.edits_gone["lossless"], one.extra_turns["economic"]) == (
        1,
        1,
        0,
        2,
    )
    assert one.misses["economic"].both > none.misses["economic"].both
    assert one.misses["lossless"] == none.misses["lossless"]
