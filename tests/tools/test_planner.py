"""What is run early after a turn, and why the rest is not."""

from dataclasses import replace
from typing import Any

import pytest

from pagefold.settings.tools import FollowUpLink, PrefetchSettings
from pagefold.tools.call_memo import CallMemo, note
from pagefold.tools.fail_fast import AGAIN_SECONDS, FailFast
from pagefold.tools.model import CostModel, SideEffectClass, ToolValueModel, ValueClass
from pagefold.tools.planner import AnsweredCall, Planner, score_of, tokens_of
from pagefold.tools.prefetch import WriteEpochs
from pagefold.tools.registry import ToolRegistry

READ = ToolValueModel(
    value_class=ValueClass.SUPPORTING,
    side_effect_class=SideEffectClass.READ_ONLY,
    open_world=False,
    watch=("n",),
    cost_model=CostModel(typical_kb=4.0),
)


def registry(*links: FollowUpLink, **models: ToolValueModel) -> ToolRegistry:
    return ToolRegistry({"list": ToolValueModel(follow_up=links), "get": READ, "see": READ, **models}, learned=False)


def link(tool: str = "get", probability: float = 0.5, **more: Any) -> FollowUpLink:
    return FollowUpLink(tool, probability, "n", "n", **more)


def numbers(*values: int) -> AnsweredCall:
    return AnsweredCall("list", {}, [{"n": value} for value in values])


def called(plan: Any) -> list[tuple[str, int]]:
    return [(one.tool, one.arguments["n"]) for one in plan]


def test_the_answers_entries_are_run_in_their_order_and_every_call_is_charged() -> None:
    plan = Planner(registry(link())).plan([numbers(1, 2, 3, 4)])

    assert called(plan) == [("get", 1), ("get", 2), ("get", 3)]
    assert [one.tokens for one in plan] == [1024] * 3
    two = PrefetchSettings(budget_tokens=3 * 1024 - 1)
    assert called(Planner(registry(link()), two).plan([numbers(1, 2, 3)])) == [("get", 1), ("get", 2)]


def test_after_an_entry_of_a_list_come_the_next_ones() -> None:
    planner = Planner(registry(link(limit=1)), PrefetchSettings(parallel=1))
    planner.plan([numbers(5, 6, 7)])

    assert called(planner.plan([AnsweredCall("get", {"n": 5}, "five")])) == [("get", 6)]
    assert called(planner.plan([AnsweredCall("get", {"n": 7}, "seven")])) == []


def test_what_is_likelier_goes_first() -> None:
    plan = Planner(registry(link("get", 0.4), link("see", 0.9)), PrefetchSettings(parallel=1)).plan([numbers(1)])

    assert called(plan) == [("see", 1)]


@pytest.mark.parametrize(
    ("link_to", "models", "limits"),
    [
        (link(probability=0.2), {}, PrefetchSettings()),
        (FollowUpLink("get", 0.9), {}, PrefetchSettings()),
        (link("Bash"), {}, PrefetchSettings()),
        (link("new"), {}, PrefetchSettings()),
        (link(), {"get": replace(READ, speculate=False)}, PrefetchSettings()),
        (link(), {}, PrefetchSettings(budget_tokens=1000)),
        (link(), {"get": replace(READ, cost_model=CostModel(dollars=0.5))}, PrefetchSettings()),
        (link(), {"get": replace(READ, open_world=True)}, PrefetchSettings()),
    ],
    ids=["unlikely", "no projection", "never", "unknown", "switched off", "over the budget", "dollars", "network"],
)
def test_what_is_unlikely_unsafe_or_too_expensive_is_left_out(
    link_to: FollowUpLink, models: dict[str, ToolValueModel], limits: PrefetchSettings
) -> None:
    assert Planner(registry(link_to, **models), limits).plan([numbers(1)]) == []


def test_a_host_is_asked_by_so_many_at_once() -> None:
    remote = replace(READ, open_world=True, rate_limit_host="h")
    planner = Planner(registry(link(), get=remote), PrefetchSettings(per_host=4, hosts=("h",)))

    plan = planner.plan([numbers(1, 2, 3)], busy_hosts={"h": 3})

    assert called(plan) == [("get", 1)]


def test_what_is_at_hand_is_not_run_again() -> None:
    plan = Planner(registry(link())).plan([numbers(1, 2)], has=lambda tool, text: text == '{"n":1}')

    assert called(plan) == [("get", 2)]


def test_a_shipped_link_has_to_be_likelier_than_a_fitted_one() -> None:
    hits = AnsweredCall("Grep", {"pattern": "x"}, "/a.py:1:x")

    planned = Planner(ToolRegistry(), PrefetchSettings(min_probability=0.3), min_prior=0.3).plan([hits])

    assert Planner(ToolRegistry()).plan([hits]) == []
    assert [(one.tool, one.arguments) for one in planned] == [("Read", {"file_path": "/a.py"})]


def test_what_is_for_the_record_costs_nothing() -> None:
    free = replace(READ, value_class=ValueClass.AUDIT_ONLY, cost_model=CostModel(typical_kb=1e6))
    plan = Planner(registry(link(), get=free), PrefetchSettings(budget_tokens=0)).plan([numbers(1)])

    assert (called(plan), plan[0].tokens) == ([("get", 1)], 0)


def test_a_failed_call_leads_nowhere() -> None:
    assert Planner(registry(link())).plan([AnsweredCall("list", {}, [{"n": 1}], failed=True)]) == []


def test_the_window_is_the_turn() -> None:
    planner = Planner(registry(link()))
    planner.plan([numbers(1)])

    assert called(planner.plan([numbers(2)])) == [("get", 2)]


def test_worth_rises_with_probability_class_and_latency_and_falls_with_length() -> None:
    base = score_of(READ, 0.5)

    assert score_of(READ, 0.6) > base
    assert score_of(replace(READ, value_class=ValueClass.CRITICAL), 0.5) > base
    assert score_of(replace(READ, value_class=ValueClass.OPTIONAL), 0.5) < base
    assert score_of(replace(READ, cost_model=CostModel(4.0, latency_ms_p50=900)), 0.5) > base
    assert score_of(replace(READ, cost_model=CostModel(8.0)), 0.5) < base


def test_an_answer_is_charged_one_token_at_least() -> None:
    assert (tokens_of(CostModel(0.0)), tokens_of(CostModel(2.5))) == (1, 640)


# ---- fail fast -----------------------------------------------------------------------------------------------------


def streak(*queries: str, length: int = 2) -> tuple[FailFast, WriteEpochs]:
    epochs = WriteEpochs(ToolRegistry())
    guard = FailFast(ToolRegistry(), epochs)
    for query in queries:
        guard.answered("ToolSearch", {"q": query}, length, 0.0)
    return guard, epochs


def test_after_two_empty_answers_the_same_query_is_refused_with_words() -> None:
    guard, _ = streak("a", "a")
    refusal = guard.refusal("ToolSearch", {"q": "a"}, 10.0)

    assert refusal is not None
    assert "answered nothing 2 times" in refusal
    assert "in 50 s" in refusal


@pytest.mark.parametrize("way", ["another query", "a write", "time", "one answer", "an answer that says something"])
def test_a_refused_tool_gets_another_chance(way: str) -> None:
    guard, epochs = streak("a") if way == "one answer" else streak("a", "a")
    query, now = "a", 0.0
    if way == "another query":
        query = "b"
    elif way == "a write":
        epochs.called("Bash")
    elif way == "time":
        now = AGAIN_SECONDS
    elif way == "an answer that says something":
        guard.answered("ToolSearch", {"q": "c"}, 100, 0.0)

    assert guard.refusal("ToolSearch", {"q": query}, now) is None


def test_tools_without_a_bound_are_never_refused() -> None:
    guard = FailFast(ToolRegistry(), WriteEpochs(ToolRegistry()))
    for _ in range(9):
        guard.answered("Grep", {}, 0, 0.0)
    assert guard.refusal("Grep", {}, 0.0) is None


# ---- repeats -------------------------------------------------------------------------------------------------------


def repeats(**changes: Any) -> tuple[CallMemo[str], WriteEpochs]:
    model = ToolValueModel(side_effect_class=SideEffectClass.PURE, open_world=False, memoise=True)
    table = ToolRegistry({"get": replace(model, **changes)})
    epochs = WriteEpochs(table)
    memory: CallMemo[str] = CallMemo(table, epochs)
    memory.remember("get", {"n": 1}, "one", 0.0, failed=False, witness="w")
    return memory, epochs


def test_a_repeat_is_answered_as_often_as_it_is_asked_and_the_reply_says_so() -> None:
    memory, _ = repeats()

    assert [memory.recall("get", {"n": 1}, 1.0, "w") for _ in range(2)] == ["one", "one"]
    assert "answered from memory" in note("get")


@pytest.mark.parametrize(
    "changes",
    [
        {"memoise": False},
        {"side_effect_class": SideEffectClass.READ_ONLY},
        {"side_effect_class": SideEffectClass.INDETERMINATE},
    ],
)
def test_only_pure_tools_that_were_switched_on_are_remembered(changes: dict[str, Any]) -> None:
    assert repeats(**changes)[0].recall("get", {"n": 1}, 1.0, "w") is None


def test_a_repeat_after_a_write_or_a_change_is_run() -> None:
    memory, epochs = repeats()
    assert memory.recall("get", {"n": 1}, 1.0, "other") is None
    epochs.called("Bash")
    assert memory.recall("get", {"n": 1}, 1.0, "w") is None


def test_a_remembered_answer_grows_old_by_its_model() -> None:
    memory, _ = repeats(cost_model=CostModel(freshness_ttl_s=5))
    assert memory.recall("get", {"n": 1}, 6.0, "w") is None


def test_errors_are_not_remembered_and_forget_what_was() -> None:
    memory, _ = repeats()
    memory.remember("get", {"n": 1}, "broken", 1.0, failed=True)
    assert memory.recall("get", {"n": 1}, 1.0, "w") is None


def test_a_server_that_calls_a_tool_not_idempotent_is_believed() -> None:
    memory, _ = repeats()
    assert memory.allows("get", {"idempotentHint": True})
    assert not memory.allows("get", {"idempotentHint": False})


def test_shipped_tools_are_not_memoised() -> None:
    known_tools = ToolRegistry()
    memory: CallMemo[str] = CallMemo(known_tools, WriteEpochs(known_tools))
    assert not any(memory.allows(match.pattern) for match, _ in known_tools.entries())
