"""Recorded sessions cost what their own model costs, in one unit, so that they add up."""

from dataclasses import replace
from pathlib import Path

import pytest

from pagefold.adapters.model_prices import ModelPrices
from pagefold.analysis import session_report as reporting
from pagefold.analysis.engine import SessionResult
from pagefold.analysis.replay_job import ReplayJob, replay_session
from pagefold.analysis.report import SavingsReport
from pagefold.analysis.report.figures import figures_of, to_dict
from pagefold.analysis.report.markdown import markdown
from pagefold.analysis.session_report import ReportOptions
from pagefold.derive.cost import ASSUMED, Rates
from pagefold.derive.learned import Folds, Learned
from pagefold.settings.sections import PriceTable
from pagefold.wire.message import Usage
from pagefold.wire.transcripts import Session
from tests.analysis.logs import session

KNOWN = ModelPrices()
JOB = ReplayJob(ASSUMED, "o200k", 200_000, by_model=True)
EARLY = Learned(folds=Folds(miss=300, least=4_000, cold=2_000, rent=0.2))
MODELS = ("claude-opus-5", "claude-haiku-5-5", "gpt-5.6-sol", "nobody-knows-it", "")


def of_model(model: str, *usage: Usage) -> Session:
    return replace(session("one", turns=20), model=model, usage={3 + 2 * at: used for at, used in enumerate(usage)})


@pytest.mark.parametrize("model", MODELS)
def test_a_session_costs_what_its_model_costs(model: str) -> None:
    figures = replay_session(of_model(model), JOB, policy="identity").figures
    prices = KNOWN.prices(model)
    alone = replay_session(of_model(""), replace(JOB, prices=replace(prices, source="")), policy="identity").figures

    assert JOB.prices.usd(figures.cost) == pytest.approx(prices.usd(alone.cost))
    assert figures.cost > 0


def test_prices_that_were_chosen_count_for_every_model() -> None:
    costs = {
        replay_session(of_model(model), replace(JOB, by_model=False), policy="identity").figures.cost
        for model in MODELS
    }

    assert len(costs) == 1


def test_your_own_numbers_count_for_the_model_they_are_of() -> None:
    own = (PriceTable(name="nobody-knows-it", fresh=50, read=5, write=62.5, output=250),)
    mine = replay_session(of_model("nobody-knows-it"), replace(JOB, own=own), policy="identity").figures

    plain = replay_session(of_model(""), JOB, policy="identity").figures
    assert mine.cost == pytest.approx(10 * plain.cost)


def test_one_hour_writes_in_the_log_are_priced_as_such() -> None:
    hour = Usage(cache_write=1_000, cache_write_long=900, output=10)
    minutes = Usage(cache_write=1_000, output=10)

    assert JOB.of(of_model("claude-opus-5", hour)).prices.life == 3600
    assert JOB.of(of_model("claude-opus-5", minutes)).prices.life == 300
    logged = replay_session(of_model("claude-opus-5", hour), JOB, policy="identity").figures
    assert logged.logged_prompt_usd == pytest.approx((900 * 10 + 100 * 6.25) / 1e6)
    assert logged.logged_output_usd == pytest.approx(10 * 25 / 1e6)


def test_every_token_of_the_bill_is_somebodys_where_longer_prompts_are_dearer() -> None:
    tiered = replace(ASSUMED, tiers=(Rates(9_000, 25.0, 2.5, 31.25, 125.0, 50.0),))
    job = ReplayJob(tiered, "o200k", 200_000, learned=EARLY)

    found = reporting.session_report(session("long", turns=30), job, options=ReportOptions())

    assert sum(share.cost for share in found.tools.values()) == pytest.approx(found.figures["identity"].cost)
    assert sum(share.after for share in found.tools.values()) == pytest.approx(found.figures["economic"].cost)
    assert "(before all messages)" not in found.tools


def test_the_report_says_whose_prices_count_and_what_was_used_of_five_hour_windows() -> None:
    report, options = SavingsReport(JOB, ReportOptions()), ReportOptions()
    for number, model in enumerate(("claude-opus-5", "gpt-5.6-sol", "gpt-5.6-sol")):
        used = Usage(fresh=1_000, cache_read=50_000, output=1_000)
        recorded = replace(of_model(model, used), id=str(number), windows=0.1 if number else 0.0)
        found = reporting.session_report(recorded, JOB, options=options)
        report.add(SessionResult(Path(__file__), recorded.id, "made-up", found))

    notes = "\n".join(report.notes())
    assert "GPT-5.6 Sol" in notes
    assert "2 sessions" in notes
    shown = [figure for figure in figures_of(report) if "five-hour" in figure.words]
    assert [0 < float(figure.value.removesuffix(" %")) < 20 for figure in shown] == [True]
    assert "20.0 % of a five-hour window was used, by all that the account did" in shown[0].how
    assert "of a five-hour window would have been free" in markdown(report)
    assert to_dict(report)["bill"]["five_hour_windows"] == pytest.approx(0.2)


def test_what_the_proxy_was_told_of_windows_counts_for_clients_that_log_none() -> None:
    used = Usage(fresh=1_000, cache_read=50_000, output=1_000)
    options = ReportOptions(used={"mine": (0.2, 0.03)})
    both = [replace(of_model("claude-opus-5", used), id=name) for name in ("mine", "another")]
    bills = [reporting.session_report(one, JOB, options=options).bill for one in both]

    assert [(bill.windows, bill.weeks) for bill in bills] == [(0.2, 0.03), (0.0, 0.0)]
    assert [bill.metered_usd > 0 for bill in bills] == [True, False]
    alone = bills[0].freed(0.2, "lossless")
    assert alone == pytest.approx(0.2 * bills[0].share_saved("lossless"))
    bills[1].add(bills[0])
    assert bills[1].freed(0.2, "lossless") == alone  # what nothing is known of changes nothing


def test_where_nobody_logged_windows_the_report_says_only_how_much_less_is_used() -> None:
    recorded = replace(session("s", turns=9), usage={1: Usage(0, 0, 20_000, 5)})
    report = SavingsReport(JOB, ReportOptions())
    report.add(
        SessionResult(Path("logs"), "s", "test", reporting.session_report(recorded, JOB, options=ReportOptions()))
    )

    assert [figure.words for figure in figures_of(report) if "limit" in figure.words or "window" in figure.words] == [
        "less of a plan's limits for the same work, if it meters as prices do"
    ]
