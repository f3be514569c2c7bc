"""Follow-ups out of sessions, and the rehearsal that judges them."""

from typing import Any

import pytest

from bench import prefetch as bench
from pagefold.settings.tools import FollowUpLink
from pagefold.tools.follow_up_fit import ToolLink, calls_ahead, discover, fit_follow_ups, with_follow_ups
from pagefold.tools.model import SideEffectClass, ToolValueModel
from pagefold.tools.planner import AnsweredCall
from pagefold.tools.prefetch_replay import replay_prefetch, turns_of
from pagefold.tools.registry import ToolRegistry
from pagefold.wire.transcripts import Session
from tests.shared import needs_traces

READ = ToolValueModel(side_effect_class=SideEffectClass.PURE, open_world=False, watch=("n",))
REGISTRY = ToolRegistry({"list": READ, "get": READ, "sum": READ}, learned=False)


def session(*values: int, used: int = 1, write: bool = False) -> list[list[AnsweredCall]]:
    """A list of numbers, then reads of the first of them, with a write before those if so wished."""
    listed = AnsweredCall("list", {"repo": "r"}, {"items": [{"n": value} for value in values]})
    reads = [[AnsweredCall("get", {"repo": "r", "n": value}, f"<{value}>")] for value in values[:used]]
    return [[listed], *([[AnsweredCall("Bash", {}, "")]] if write else []), *reads]


LINK = FollowUpLink("get", projection="n", projection_arg="n", keep=("repo",))


def test_a_link_is_found_with_what_is_kept_and_what_is_projected() -> None:
    assert ToolLink("list", LINK) in discover([session(4, 5), session(7)], REGISTRY)


def test_a_link_that_was_seen_once_is_none() -> None:
    assert discover([session(4)], REGISTRY) == []


def test_nothing_leads_over_a_write() -> None:
    assert discover([session(4, write=True), session(5, write=True)], REGISTRY) == []
    assert calls_ahead(session(4, write=True), 0, "get", REGISTRY) == set()
    assert calls_ahead(session(4), 0, "get", REGISTRY) == {'{"n":4,"repo":"r"}'}


def test_tools_that_may_not_be_run_early_are_not_learned() -> None:
    unknown = ToolRegistry({"list": READ}, learned=False)
    assert discover([session(4), session(5)], unknown) == []


def test_a_probability_is_the_share_that_was_used_with_doubts() -> None:
    (fitted,) = fit_follow_ups(
        [session(n, n + 1, used=1) for n in range(10, 40, 3)], REGISTRY, edges=[ToolLink("list", LINK)]
    )

    assert (fitted.used, fitted.tries, fitted.sessions) == (10, 10, 10)
    assert (fitted.link.probability, fitted.link.limit) == (round(10 / 12, 2), 1)


def test_a_link_that_pays_only_for_short_answers_is_bounded() -> None:
    short = [session(n, used=1) for n in range(3)]
    long = [session(*range(100, 130), used=0) for _ in range(9)]
    (fitted,) = fit_follow_ups([*short, *long], REGISTRY, edges=[ToolLink("list", LINK)])

    assert fitted.link.most == 1


def test_a_link_that_does_not_pay_or_that_few_sessions_show_is_left_out() -> None:
    assert fit_follow_ups([session(n, used=0) for n in range(9)], REGISTRY, edges=[ToolLink("list", LINK)]) == []
    assert fit_follow_ups([session(1), session(2)], REGISTRY) == []


def test_fitted_links_make_entries_for_the_users_layer() -> None:
    sessions = [session(n, n + 1, used=2) for n in range(10, 40, 3)]
    models = with_follow_ups(REGISTRY, fit_follow_ups(sessions, REGISTRY))

    done = replay_prefetch(sessions, ToolRegistry({"list": READ, "get": READ, **models}, learned=False))

    assert models["list"].side_effect_class is SideEffectClass.PURE
    assert (done.dispatched, done.used, done.wasted) == (20, 20, 0)
    assert (done.planned, done.top_1, done.top_3) == (10, 10, 10)


def test_a_rehearsal_serves_nothing_over_a_write() -> None:
    models = {"list": ToolValueModel(follow_up=(LINK,), side_effect_class=SideEffectClass.PURE), "get": READ}
    done = replay_prefetch([session(4, write=True)], ToolRegistry(models, learned=False))

    assert (done.dispatched, done.used) == (1, 0)


def test_a_rehearsal_compares_repeats_within_an_epoch() -> None:
    call = AnsweredCall("get", {"n": 1}, "same")
    done = replay_prefetch(
        [[[call], [call], [AnsweredCall("Bash", {}, "")], [call._replace(result="other")]]], REGISTRY
    )

    assert (done.repeats, done.repeats_alike) == (1, 1)


def test_halves_keep_a_name_together() -> None:
    found = list(bench.halves([1, 2, 3, 4], ["a", "b", "a", "b"]))
    assert found == [([1, 3], [2, 4]), ([2, 4], [1, 3])]


def test_a_session_without_calls_has_no_turns() -> None:
    assert turns_of(Session("i", "s", ())) == []


@needs_traces
def test_prefetch_fitted_on_half_of_the_recorded_sessions_pays_on_the_other() -> None:
    both: Any = bench.added(bench.fitted("mcp-servers", "task", network=False))

    assert 1000 * both.dispatched / both.calls >= 20
    assert both.used / both.dispatched >= 0.4


@needs_traces
@pytest.mark.parametrize("family", ["mcp-servers", "coding-claude-code"])
def test_no_recorded_repeat_within_an_epoch_was_answered_differently(family: str) -> None:
    done = replay_prefetch(bench.turns(family), ToolRegistry())

    assert done.repeats > 0
    assert done.repeats_alike == done.repeats
