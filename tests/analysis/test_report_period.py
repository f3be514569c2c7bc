"""Reports of the last days: what was answered before them is not on the bill, whatever log holds it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from pagefold.analysis import session_report as reporting
from pagefold.analysis.engine import Engine, run_on_sessions
from pagefold.analysis.report import SavingsReport
from pagefold.analysis.report.figures import notes_of
from pagefold.analysis.report.html_page import page
from pagefold.analysis.report.markdown import markdown
from pagefold.analysis.session_report import ReportOptions
from tests.analysis.logs import claude_code, talk, written
from tests.analysis.test_report import JOB

TENTH = datetime(2026, 11, 10, tzinfo=UTC).timestamp()


def report_of(paths: Sequence[Path], since: float = 0.0) -> SavingsReport:
    report = SavingsReport(JOB, ReportOptions(since=since))
    for one in run_on_sessions(paths, partial(reporting.session_report, options=report.options), JOB, Engine(jobs=1)):
        report.add(one)
    return report


def test_only_the_sessions_of_a_period_are_counted_and_the_page_names_its_days(tmp_path: Path) -> None:
    days = {"old": "2026-11-09", "new": "2026-11-10", "newest": "2026-11-12"}
    paths = [written(tmp_path / f"{name}.jsonl", *claude_code(name, range(6), day)) for name, day in days.items()]
    alone = report_of(paths[1:])

    report = report_of(paths, TENTH)

    assert report.sessions == 2
    assert report.bill == alone.bill
    assert report.tools == alone.tools
    assert (report.period, report_of(paths).period) == (
        "10 November 2026 to 12 November 2026",
        "9 November 2026 to 12 November 2026",
    )
    for told in (page(report), markdown(report)):
        assert report.period in told
    assert "Only answers since 10 November 2026 count." in notes_of(report)


def test_of_a_session_that_went_on_into_the_period_only_its_later_answers_are_counted(tmp_path: Path) -> None:
    before, after = claude_code("s", range(6), "2026-11-09"), claude_code("s", range(6, 10), "2026-11-10")
    for row in after:
        if usage := row["message"].get("usage"):
            usage["cache_read_input_tokens"] += 5_000
    path = written(tmp_path / "s.jsonl", *before, *after)
    earlier = written(tmp_path / "earlier.jsonl", *before)

    report, whole, first = report_of([path], TENTH), report_of([path]), report_of([earlier])

    assert report.bill.requests == 4
    assert report.bill.happened.both == pytest.approx(whole.bill.happened.both - first.bill.happened.both)
    assert report.period == "10 November 2026"


def test_an_answer_of_the_period_counts_once_also_where_an_older_session_has_it_too(tmp_path: Path) -> None:
    rows = claude_code("s", range(6), "2026-11-09")
    fork = [*rows, *claude_code("fork", range(6, 9), "2026-11-10")]
    paths = [written(tmp_path / "a.jsonl", *rows), written(tmp_path / "b.jsonl", *fork)]

    assert report_of(paths, TENTH).bill.requests == report_of(paths[::-1], TENTH).bill.requests == 3


def test_what_tells_no_time_is_left_out_and_said(tmp_path: Path) -> None:
    paths = [written(tmp_path / "logs.jsonl", talk("undated")), written(tmp_path / "new.jsonl", *claude_code("s", [1]))]

    report = report_of(paths, TENTH - 20 * 86_400)

    assert report.sessions == 1
    assert any("1 session left out, whose logs tell no time" in note for note in notes_of(report))


def test_nothing_in_the_period_says_so(tmp_path: Path) -> None:
    path = written(tmp_path / "s.jsonl", *claude_code("s", range(3), "2026-11-09"))

    for told in (page(report_of([path], TENTH)), markdown(report_of([path], TENTH))):
        assert "No session in these recordings went on since 10 November 2026." in told
