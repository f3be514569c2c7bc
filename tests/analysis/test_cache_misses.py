"""What broke the provider's cache, how often and at what cost: by what the provider said and what it billed."""

from dataclasses import replace
from pathlib import Path

import pytest

from pagefold.analysis.cache_misses import cache_misses_of, what_changed
from pagefold.analysis.engine import SessionResult
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.report import SavingsReport
from pagefold.analysis.report.html_page import page
from pagefold.analysis.report.markdown import markdown
from pagefold.analysis.session_report import ReportOptions, session_report
from pagefold.derive.cost import Prices, Rates
from pagefold.wire.message import Usage
from pagefold.wire.transcripts.session import CacheMiss
from tests.analysis.logs import session

PRICES = Prices("test", fresh=10.0, read=1.0, write=12.5, output=50.0)
DEARER = replace(PRICES, tiers=(Rates(100_000, 50.0, 5.0, 62.5, 250.0),))


@pytest.mark.parametrize(
    ("prices", "tokens", "usage", "paid", "cost"),
    [
        (PRICES, 20_000, Usage(10, 0, 30_000, 40), 20_000, 20_000 * 1.15),
        # The cache was read all the same: only what was not read was paid.
        (PRICES, 20_000, Usage(10, 29_000, 990, 40), 1_000, 1_000 * 1.15),
        (PRICES, 20_000, None, 20_000, 20_000 * 1.15),
        (PRICES, 0, Usage(10, 0, 30_000, 40), 0, 0.0),
        # In a long prompt every token is dearer.
        (DEARER, 20_000, Usage(10, 0, 130_000, 40), 20_000, 20_000 * 5.75),
    ],
)
def test_a_miss_costs_what_was_written_instead_of_read(
    prices: Prices, tokens: int, usage: Usage | None, paid: int, cost: float
) -> None:
    recorded = replace(
        session("s", turns=3),
        usage={1: usage} if usage else {},
        cache_misses={1: CacheMiss("tools_changed", tokens)},
    )

    misses = cache_misses_of(recorded, prices)["tools_changed"]

    assert (misses.times, misses.sessions, misses.tokens) == (1, 1, paid)
    assert misses.cost == pytest.approx(cost)


def test_the_report_names_the_costliest_reason_first_in_every_form() -> None:
    job = ReplayJob(PRICES, "o200k", 200_000)
    misses = {
        1: CacheMiss("tools_changed", 100),
        3: CacheMiss("tools_changed", 100),
        5: CacheMiss("of_tomorrow<", 5_000),
    }
    report = SavingsReport(job)
    for name in ("a", "b"):
        recorded = replace(session(name, turns=5), cache_misses=misses, usage={})
        made = session_report(recorded, job, options=ReportOptions())
        report.add(SessionResult(Path("logs"), name, "test", made))
    report.add(
        SessionResult(Path("logs"), "c", "test", session_report(session("c", turns=5), job, options=ReportOptions()))
    )

    assert [(reason, one.times, one.sessions, one.tokens) for reason, one in report.cache_broken()] == [
        ("of_tomorrow<", 2, 2, 10_000),
        ("tools_changed", 4, 2, 400),
    ]
    assert report.to_dict()["cache_misses"]["tools_changed"]["usd"] == round(400 * 11.5 / 1e6, 4)
    assert f"| {what_changed('tools_changed')} | 4 | 2 | 400 |" in markdown(report)
    assert "of_tomorrow&lt;" in page(report)


def test_a_report_without_any_says_nothing_of_it() -> None:
    job = ReplayJob(PRICES, "o200k", 200_000)
    report = SavingsReport(job)
    report.add(
        SessionResult(Path("logs"), "c", "test", session_report(session("c", turns=5), job, options=ReportOptions()))
    )

    assert "cache" in page(report)
    assert "What broke" not in page(report) + markdown(report)
