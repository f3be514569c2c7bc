"""Forks in the report: what several logs hold is paid for once, in whichever order they are read."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pagefold.analysis import session_report as reporting
from pagefold.analysis.engine import Engine, run_on_sessions
from pagefold.analysis.report import SavingsReport
from pagefold.analysis.report.figures import notes_of
from tests.analysis.logs import claude_code, codex, written
from tests.analysis.test_report import JOB

ORDERS = [("a", "b", "c"), ("b", "a", "c"), ("c", "b", "a")]


def report_of(paths: Sequence[Path]) -> SavingsReport:
    report = SavingsReport(JOB)
    for one in run_on_sessions(paths, partial(reporting.session_report, options=report.options), JOB, Engine(jobs=1)):
        report.add(one)
    return report


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
@pytest.mark.parametrize("client", [claude_code, codex])
def test_an_answer_that_several_logs_hold_is_paid_for_once(client: Any, order: Sequence[str], tmp_path: Path) -> None:
    shared = list(range(12))
    logs = {"a": [*shared, 12, 13], "b": [*shared, 20, 21, 22], "c": shared}
    paths = {name: written(tmp_path / f"{name}.jsonl", *client(name, answers)) for name, answers in logs.items()}

    report = report_of([paths[name] for name in order])
    each = {name: report_of([path]) for name, path in paths.items()}

    whole = sum(one.bill.happened.both for name, one in each.items() if name != "c")
    assert report.bill.happened.both == pytest.approx(whole - each["c"].bill.happened.both)
    assert report.bill.requests == report.before.requests == 12 + 2 + 3
    assert sum(tool.results for tool in report.before.tools.values()) == 17
    assert sum(share.cost for share in report.tools.values()) == pytest.approx(report.before.cost)
    assert sum(share.results for name, share in report.tools.items() if not name.startswith("(")) == 17
    assert (report.copied.copies, report.copied.forks) == ((0, 2) if order[0] == "c" else (1, 1))
    assert any("counts once" in note for note in notes_of(report))


@pytest.mark.parametrize("client", [claude_code, codex])
def test_what_a_policy_saves_in_a_fork_is_what_it_saves_in_the_requests_of_the_fork(
    client: Any, tmp_path: Path
) -> None:
    shared, own = list(range(12)), [20, 21, 22]
    first = written(tmp_path / "a.jsonl", *client("a", shared))
    fork = written(tmp_path / "b.jsonl", *client("b", [*shared, *own]))

    together, alone, whole = report_of([first, fork]), report_of([first]), report_of([fork])

    for policy in ("lossless", "economic"):
        left = [one.bill.with_misses(policy).both for one in (together, alone, whole)]
        assert left[0] == pytest.approx(left[2], rel=0.02)
        assert left[1] < left[0]


def test_sessions_that_only_begin_alike_are_both_counted(tmp_path: Path) -> None:
    rows = claude_code("a", range(3))
    later = [row | {"sessionId": "b", "timestamp": row["timestamp"].replace("T10", "T11")} for row in rows]

    report = report_of([written(tmp_path / "a.jsonl", *rows), written(tmp_path / "b.jsonl", *later)])

    assert report.bill.requests == 6
    assert not report.copied.forks
