"""Who broke the provider's cache, when and at what cost: by what the provider said and what it billed."""

from dataclasses import replace
from pathlib import Path

import pytest

from pagefold.analysis.cache_losses import IDLE, by_reason, cache_losses_of, who_and_what
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

    losses = by_reason(cache_losses_of(recorded, prices))["tools_changed"]

    assert (losses.times, losses.sessions, losses.tokens) == (1, 1, paid)
    assert losses.cost == pytest.approx(cost)


WARM = Usage(10, 20_000, 4_000, 40)  # 24,000 tokens are in the cache after it


@pytest.mark.parametrize(
    ("usage", "pause", "told", "reason", "tokens"),
    [
        (Usage(10, 24_000, 900, 40), 60.0, "", "", 0),
        (Usage(10, 23_000, 1_900, 40), 60.0, "", "", 0),  # providers round down
        (Usage(10, 0, 25_000, 40), 60.0, "", "unknown", 24_000),
        (Usage(10, 9_000, 16_000, 40), 60.0, "", "unknown", 15_000),
        (Usage(10, 0, 25_000, 40), 301.0, "", IDLE, 24_000),
        (Usage(10, 0, 25_000, 40), 301.0, "previous_message_not_found", IDLE, 24_000),
        (Usage(10, 0, 25_000, 40), 60.0, "previous_message_not_found", "previous_message_not_found", 24_000),
        (Usage(10, 0, 25_000, 40), 301.0, "tools_changed", "tools_changed", 25_000),
        (Usage(10, 5_000, 6_000, 40), 60.0, "", "shorter", 6_010),
        (Usage(10, 5_000, 14_000, 40, 5_000), 60.0, "", "cleared", 14_010),
    ],
)
def test_a_loss_shows_in_the_usage_where_nobody_says_why(
    usage: Usage, pause: float, told: str, reason: str, tokens: int
) -> None:
    talk = session("s", turns=3)
    times = tuple(at * pause for at in range(len(talk.messages)))
    misses = {3: CacheMiss(told, 25_000)} if told else {}
    recorded = replace(talk, usage={1: WARM, 3: usage}, times=times, began=1_000.0, cache_misses=misses)

    found = cache_losses_of(recorded, PRICES)

    assert [(one.reason, one.tokens, one.when) for one in found] == [(reason, tokens, 1_000 + 3 * pause)][
        : bool(reason)
    ]


def test_where_all_of_a_prompt_is_cached_unasked_and_no_write_is_told_that_is_what_a_loss_is_held_against() -> None:
    unasked = replace(PRICES, write=10.0)
    usage = {1: Usage(24_000, 0, 0, 40), 3: Usage(25_000, 0, 0, 40)}

    assert [one.tokens for one in cache_losses_of(replace(session("s"), usage=usage), unasked)] == [24_000]
    assert not cache_losses_of(replace(session("s"), usage=usage), PRICES)  # nothing was marked to be cached


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
    assert report.to_dict()["cache_losses"]["tools_changed"]["usd"] == round(400 * 11.5 / 1e6, 4)
    assert [one["reason"] for one in report.to_dict()["dearest_cache_losses"]] == ["of_tomorrow<"] * 2 + [
        "tools_changed"
    ] * 4
    assert f"| {' | '.join(who_and_what('tools_changed'))} | 4 | 2 | 400 |" in markdown(report)
    assert "not recorded" in markdown(report)
    assert "of_tomorrow&lt;" in page(report)


def test_a_report_without_any_says_nothing_of_it() -> None:
    job = ReplayJob(PRICES, "o200k", 200_000)
    report = SavingsReport(job)
    report.add(
        SessionResult(Path("logs"), "c", "test", session_report(session("c", turns=5), job, options=ReportOptions()))
    )

    assert "cache" in page(report)
    assert "Who broke" not in page(report) + markdown(report)
