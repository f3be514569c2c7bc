"""The bill of a session: what the provider reported, and what a policy would have made of it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.analysis import session_report as reporting
from pagefold.analysis.replay import RequestSize, SessionReplay
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.report.figures import saved_share
from pagefold.analysis.request_usage import Happened, happened, predicted
from pagefold.analysis.session_bill import Bill
from pagefold.analysis.session_report import ReportOptions, SessionReport
from pagefold.derive.cost import ASSUMED
from pagefold.derive.learned import Folds, Learned
from pagefold.wire.message import Usage
from pagefold.wire.transcripts import Session
from tests.analysis.logs import session

EARLY = Learned(folds=Folds(miss=300, least=4_000, cold=2_000, rent=0.2))
JOB = ReplayJob(ASSUMED, "o200k", 200_000, learned=EARLY)
COUNTS = st.integers(0, 200_000)


def billed(recorded: Session, head: int, *, policy: str = "identity", times: float = 1.0) -> Session:
    """The session with the usage that a provider reports which counts so many times as many tokens, has a head of this
    size before the messages, and reads all that stands as it stood."""
    usage, before = dict[int, Usage](), 0
    for size in SessionReplay(recorded, replace(JOB, overhead=head).terms(policy)).whole().sizes:
        prompt = round(head + times * size.prompt)
        read = round(head + times * size.kept) if before else 0
        usage[size.turn] = Usage(0, read, prompt - read, 50)
        before = prompt
    return replace(recorded, usage=usage)


def report(recorded: Session, **behind: str) -> SessionReport:
    return reporting.session_report(recorded, JOB, options=ReportOptions(behind=behind))


def test_the_head_is_what_the_first_usage_holds_beyond_the_messages_and_is_part_of_the_bill() -> None:
    plain, headed = (report(billed(session("s", turns=20), head)) for head in (0, 60_000))

    assert headed.figures["identity"].peak == plain.figures["identity"].peak + 60_000
    assert headed.bill.happened.prompt == pytest.approx(plain.bill.happened.prompt + headed.bill.head_usd, rel=0.001)
    # The same tokens are saved of a larger bill.
    for policy in ("lossless", "economic"):
        assert 0 < headed.bill.share_saved(policy) < plain.bill.share_saved(policy) / 1.5


def test_what_was_paid_is_the_usage_at_list_prices_whatever_the_messages_count() -> None:
    recorded = billed(session("s", turns=9), 3_000)
    odd = replace(recorded, usage={turn: Usage(7, 0, 1_000, 10, 0, 1_000) for turn in recorded.usage})

    paid = report(odd).bill.happened

    assert paid.prompt == pytest.approx(len(odd.usage) * (7 * 5 + 1_000 * 10) / 1e6)
    assert paid.output == pytest.approx(len(odd.usage) * 10 * 25 / 1e6)


def test_answers_that_a_session_does_not_keep_are_paid_under_every_policy() -> None:
    recorded = billed(session("s", turns=9), 3_000)
    before, after = (report(replace(recorded, aside=aside)).bill for aside in ((), (Usage(output=1_000),)))

    assert after.happened.output == pytest.approx(before.happened.output + 0.025)
    assert after.policies["economic"].output == pytest.approx(before.policies["economic"].output + 0.025)


@pytest.mark.parametrize("times", [0.8, 1.0, 1.5])
def test_a_provider_that_counts_otherwise_is_understood_from_the_first_half(times: float) -> None:
    bill = report(billed(session("s", turns=20), 20_000, times=times)).bill

    assert bill.predicted == pytest.approx(bill.logged, rel=0.01)
    assert bill.uncertainty < 0.03


@pytest.mark.parametrize("times", [0.8, 1.0, 1.5])
@pytest.mark.parametrize("more", [0, 40, 250])
def test_what_every_request_adds_is_not_taken_for_the_way_in_which_messages_count(times: float, more: int) -> None:
    """Thinking, and what stands around an answer, are in the usage and in no log."""
    recorded, steps = session("s", turns=16), [200, 3_000, 90, 1_200, 5_000, 40, 2_200, 700] * 2
    prompts = [sum(steps[:turn]) for turn in range(1, 17)]
    sizes = [
        RequestSize(turn, prompt, prompt - step) for turn, (prompt, step) in enumerate(zip(prompts, steps, strict=True))
    ]
    usage = {at: Usage(0, 0, round(9_000 + times * one + more * at), 50) for at, one in enumerate(prompts)}
    recorded = replace(recorded, usage=usage)

    was = happened(recorded, sizes, ASSUMED)

    assert was.factor == pytest.approx(times, rel=0.001)
    for said, size in zip(predicted(recorded, was, ASSUMED), sizes, strict=True):
        assert said.prompt == pytest.approx(usage[size.turn].prompt, abs=2 + 0.002 * size.prompt)


def test_what_is_estimated_shows_an_interval_however_small_it_is() -> None:
    bill = report(billed(session("s", turns=20), 20_000)).bill

    assert bill.uncertainty < 0.001
    assert saved_share(bill, "lossless").endswith(" ± 0.1 %")


def test_a_model_that_is_off_says_so_in_its_interval() -> None:
    recorded = billed(session("s", turns=20), 20_000)
    late = {turn: Usage(0, 0, used.prompt * 2, 50) for turn, used in recorded.usage.items() if turn > 20}
    bill = report(replace(recorded, usage={**recorded.usage, **late})).bill

    assert bill.predicted < bill.logged / 2
    assert bill.uncertainty > 0.5


@pytest.mark.parametrize("policy", ["lossless", "economic"])
def test_a_session_behind_pagefold_is_told_what_it_saved_and_what_is_left(policy: str) -> None:
    recorded = session("s", turns=20)
    without = report(billed(recorded, 20_000)).bill
    behind = report(billed(recorded, 20_000, policy=policy), s=policy).bill

    assert behind.behind == 1
    assert behind.plain.both == pytest.approx(without.happened.both, rel=0.01)
    assert behind.happened.both == pytest.approx(without.policies[policy].both, rel=0.01)
    assert behind.saved == pytest.approx(without.happened.both - without.policies[policy].both, rel=0.02)
    assert behind.policies[policy].both == pytest.approx(behind.happened.both)
    assert behind.extra_turns[policy] == 0  # what was missed then is in what happened


def test_a_history_that_no_window_takes_was_compacted() -> None:
    job = replace(JOB, window=20_000)
    bill = reporting.session_report(session("s", turns=30), job, options=ReportOptions()).bill

    assert (bill.compacted, bill.logged_requests) == (1, 0)
    assert bill.happened.both < bill.uncompacted.both
    # Lossless does not fit either, and saves nothing.
    assert bill.share_saved("lossless") == pytest.approx(0.0)


SIZES = st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=6)


@given(SIZES, st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=6, max_size=6), st.floats(0.5, 2.5))
def test_what_was_sent_costs_what_was_reported(
    sizes: list[tuple[int, int]], used: list[tuple[int, int, int]], factor: float
) -> None:
    sent = [RequestSize(turn, max(size), min(size)) for turn, size in enumerate(sizes)]
    usage = [Usage(*one, 5) for one in used[: len(sent)]]
    was = Happened(sent, usage, [True] * len(sent), factor)

    for before, after in zip(usage, was.under(sent), strict=True):
        assert (after.prompt, after.output) == (before.prompt, before.output)
        assert after.cache_read <= before.cache_read + 1


@given(st.integers(0, 50_000), st.integers(0, 50_000), st.integers(0, 50_000), COUNTS)
def test_less_is_never_dearer_and_nothing_is_read_behind_a_break(gone: int, kept: int, new: int, read: int) -> None:
    was = RequestSize(3, kept + new, kept)
    less = RequestSize(3, max(0, kept + new - gone), max(0, kept - gone))
    reported = Usage(0, min(read, kept + new), kept + new - min(read, kept + new), 5)

    (after,) = Happened([was], [reported], [True]).under([less])

    assert after.prompt == less.prompt
    assert after.cache_read <= reported.cache_read
    assert ASSUMED.bill(after) <= ASSUMED.bill(reported) + 1e-9


def test_after_a_pause_longer_than_the_cache_lives_everything_is_written() -> None:
    recorded = session("s", turns=3, times=[0, 1, 2, 3, 4, 900, 901, 902])
    sizes = SessionReplay(recorded, JOB.terms("identity")).whole().sizes
    was = happened(recorded, sizes, ASSUMED, 1_000)

    assert [usage.cache_read > 0 for usage in was.usage] == [False, True, False, True]
    assert predicted(recorded, was, ASSUMED) == list(was.usage)


def test_bills_add_up() -> None:
    bills = [report(billed(session(name, turns=9), 9_000)).bill for name in "abc"]
    whole = Bill()
    for bill in bills:
        whole.add(bill)

    assert whole.sessions == 3
    assert whole.happened.both == pytest.approx(sum(bill.happened.both for bill in bills))
    assert whole.with_misses("economic").both == pytest.approx(sum(b.with_misses("economic").both for b in bills))
