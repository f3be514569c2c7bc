"""What may be run early, and what becomes of its answer."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import prefetch as bench
from pagefold.tools.model import FRESH_SECONDS, CostModel, SideEffectClass, ToolValueModel
from pagefold.tools.prefetch import NEVER, PrefetchedAnswers, WriteEpochs, canonical, may_dispatch
from pagefold.tools.registry import ToolRegistry

PURE, READ = SideEffectClass.PURE, SideEffectClass.READ_ONLY
LOCAL = ToolValueModel(side_effect_class=PURE, open_world=False, watch=("path",))
REMOTE = ToolValueModel(side_effect_class=READ, open_world=True, rate_limit_host="good.example")
A = {"path": "/a"}


def verdict(tool: str = "mcp__s__get", arguments: Any = None, *, name: str = "", **more: Any) -> Any:
    model = more.pop("model", LOCAL)
    registry = ToolRegistry({name or tool: model})
    return may_dispatch(tool, registry.find(tool), A if arguments is None else arguments, **more)


# ---- every way round the decision that we could think of -----------------------------------------------------------


def test_a_known_read_on_this_machine_may_be_run_early() -> None:
    assert verdict()
    assert verdict("mcp__s__get", name="mcp__s__*")


@pytest.mark.parametrize("effect", [effect for effect in SideEffectClass if effect not in (PURE, READ)])
@pytest.mark.parametrize("annotations", [{}, {"readOnlyHint": True}, {"readOnlyHint": True, "idempotentHint": True}])
def test_no_switch_and_no_annotation_makes_a_writing_tool_safe(effect: Any, annotations: Any) -> None:
    model = replace(LOCAL, side_effect_class=effect, speculate=True)

    assert not model.is_speculatable()
    assert not verdict(model=model, annotations=annotations)


@pytest.mark.parametrize(
    "tool", ["Bash", "bash", "BASH", " Bash ", "mcp__s__Bash", "s-Write", "s.Edit", "Agent", "x/Edit"]
)
def test_the_six_names_stay_shut_whatever_the_user_says(tool: str) -> None:
    assert not verdict(tool, model=replace(LOCAL, speculate=True), annotations={"readOnlyHint": True})
    assert tool.strip().casefold().removeprefix("mcp__s__").removeprefix("s-").split(".")[-1].split("/")[-1] in NEVER


@pytest.mark.parametrize("pattern", ["*", "**", "?*", "*?", "[!-]*"])
def test_an_entry_for_every_tool_opens_none(pattern: str) -> None:
    assert not verdict(name=pattern)


def test_a_tool_that_nobody_knows_is_not_run_even_if_its_server_vouches_for_it() -> None:
    assert not may_dispatch("new", ToolRegistry().find("new"), A, annotations={"readOnlyHint": True})


@pytest.mark.parametrize(
    "tool",
    ["mcp__s__write_file", "mcp__s__createIssue", "mcp__s__API-delete-a-block", "mcp__s__run", "mcp__s__set.value"],
)
def test_a_glob_does_not_vouch_for_a_name_that_writes(tool: str) -> None:
    assert not verdict(tool, name="mcp__s__*")
    assert verdict(tool)


@pytest.mark.parametrize(
    "annotations",
    [{"readOnlyHint": False}, {"readOnlyHint": None}, {"readOnlyHint": "true"}, {"readOnlyHint": 1},
     {"destructiveHint": True}, {"destructiveHint": "false"}, {"readOnlyHint": True, "destructiveHint": True}],
)  # fmt: skip
def test_a_server_can_always_object(annotations: dict[str, Any]) -> None:
    assert not verdict(annotations=annotations)


def test_a_tool_that_was_switched_off_is_off() -> None:
    assert not verdict(model=replace(LOCAL, speculate=False))


@pytest.mark.parametrize(
    "arguments",
    ["text", ["/a"], {"path": float("nan")}, {"path": {1, 2}}, {"path": "x" * 20_000}, {1: object()}],
)
def test_arguments_have_to_be_a_json_object(arguments: Any) -> None:
    assert not verdict(arguments=arguments)


@pytest.mark.parametrize(
    "path", ["//host/share", "\\\\host\\share", "/dev/random", "/proc/self/environ", "NUL", "com1"]
)
def test_devices_and_shares_are_left_alone(path: str) -> None:
    assert not verdict(arguments={"path": path})
    assert not verdict(arguments={"path": "/a", "more": [{"deep": path}]})


def test_what_nothing_can_be_watched_of_is_not_kept() -> None:
    assert not verdict(model=replace(LOCAL, watch=()))
    assert verdict(model=replace(LOCAL, watch=(), cost_model=CostModel(freshness_ttl_s=5)))


@pytest.mark.parametrize(
    ("arguments", "hosts", "allowed"),
    [
        ({}, (), False),
        ({}, ("good.example",), True),
        ({}, ("GOOD.example",), True),
        ({}, ("example",), False),
        ({"url": "https://bad.example/"}, ("good.example",), False),
        ({"url": "https://good.example@bad.example/"}, ("good.example",), False),
        ({"url": "https://good.example/", "then": ["https://bad.example/"]}, ("good.example",), False),
        ({"https://bad.example/": 1}, ("good.example",), False),
        ({"url": "file:///etc/passwd"}, (), False),
    ],
)
def test_the_network_only_to_hosts_that_were_named(arguments: Any, hosts: tuple[str, ...], allowed: bool) -> None:
    assert bool(verdict(arguments=arguments, model=REMOTE, allowed_hosts=hosts)) is allowed


@pytest.mark.parametrize(
    ("model", "annotations"),
    [
        (replace(LOCAL, open_world=None), {}),
        (replace(LOCAL, open_world=None), {"openWorldHint": False}),
        (LOCAL, {"openWorldHint": True}),
        (LOCAL, {"openWorldHint": "no"}),
    ],
)
def test_a_reach_that_nobody_stated_counts_as_the_network(model: ToolValueModel, annotations: dict[str, Any]) -> None:
    assert not verdict(model=model, annotations=annotations)


def test_a_local_tool_with_an_address_is_a_network_tool() -> None:
    assert not verdict(arguments={"path": "http://x.example/"})


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**64))
def test_no_configuration_annotation_or_answer_gets_an_unsafe_call_planned(seed: int) -> None:
    assert bench.unsafe(Random(seed)) is None


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**64))
def test_no_order_of_reads_and_writes_gets_an_old_answer_served(seed: int) -> None:
    assert bench.stale(Random(seed)) is None


# ---- canonical arguments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "alike"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": 2, "x": 1}}, True),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": None}, {}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
    ],
)
def test_equal_arguments_have_one_text(left: Any, right: Any, alike: bool) -> None:
    assert (canonical(left) == canonical(right)) is alike


# ---- epochs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("writer", "reader", "touched"),
    [
        ("Edit", "Read", True),
        ("Edit", "mcp__filesystem__read_file", True),
        ("mcp__filesystem__write_file", "Read", True),
        ("mcp__filesystem__write_file", "filesystem-read_file", True),
        ("Bash", "mcp__notion__API-post-search", True),
        ("unheard_of", "Read", True),
        ("mcp__emails__send_email", "Read", False),
        ("mcp__emails__send_email", "mcp__emails__search_emails", True),
        ("emails-send_email", "mcp__emails__search_emails", True),
        ("Edit", "mcp__notion__API-post-search", False),
        ("Read", "Read", False),
        ("Grep", "Read", False),
        ("TodoWrite", "Read", True),
    ],
)
def test_a_call_makes_old_what_it_may_have_touched(writer: str, reader: str, touched: bool) -> None:
    epochs = WriteEpochs(ToolRegistry())
    before = epochs.of(reader)

    epochs.called(writer)

    assert (epochs.of(reader) != before) is touched


def test_a_writing_tool_that_says_what_it_touches_touches_that() -> None:
    external = SideEffectClass.MUTATES_EXTERNAL
    registry = ToolRegistry(
        {
            "put": ToolValueModel(side_effect_class=external, invalidates=("mcp__a__*",)),
            "post": ToolValueModel(side_effect_class=external),
            "mcp__a__get": REMOTE,
            "mcp__b__get": REMOTE,
        }
    )
    epochs = WriteEpochs(registry)
    a, b = epochs.of("mcp__a__get"), epochs.of("mcp__b__get")
    epochs.called("put")
    assert (epochs.of("mcp__a__get") == a, epochs.of("mcp__b__get") == b) == (False, True)
    epochs.called("post")
    assert epochs.of("mcp__b__get") != b


# ---- answers that wait ---------------------------------------------------------------------------------------------


def book(model: ToolValueModel = LOCAL) -> tuple[PrefetchedAnswers[str], WriteEpochs]:
    registry = ToolRegistry({"mcp__s__get": model})
    epochs = WriteEpochs(registry)
    return PrefetchedAnswers(epochs), epochs


def waiting(answers: PrefetchedAnswers[str], body: str = "text", now: float = 0.0, **more: Any) -> None:
    ticket = answers.begin("mcp__s__get", A, now)
    assert ticket is not None
    answers.settle(ticket, body, **{"failed": False, **more})


def test_an_answer_is_given_once() -> None:
    answers, _ = book()
    waiting(answers)

    assert answers.take("mcp__s__get", {"path": "/b"}, 0.0) is None
    assert answers.take("mcp__s__put", A, 0.0) is None
    assert answers.take("mcp__s__get", A, 0.0) == "text"
    assert answers.take("mcp__s__get", A, 0.0) is None


def test_an_error_is_never_served() -> None:
    answers, _ = book()
    waiting(answers, failed=True)

    assert answers.take("mcp__s__get", A, 0.0) is None


@pytest.mark.parametrize("when", ["while it ran", "while it waited"])
def test_a_write_in_between_makes_it_old(when: str) -> None:
    answers, epochs = book()
    ticket = answers.begin("mcp__s__get", A, 0.0)
    assert ticket is not None
    if when == "while it ran":
        epochs.called("Bash")
    answers.settle(ticket, "text", failed=False)
    if when == "while it waited":
        epochs.called("Bash")

    assert answers.take("mcp__s__get", A, 0.0) is None


def test_an_answer_whose_files_changed_is_not_served() -> None:
    answers, _ = book()
    ticket = answers.begin("mcp__s__get", A, 0.0, witness="before")
    assert ticket is not None
    assert answers.settle(ticket, "text", failed=False, witness="before")
    assert answers.take("mcp__s__get", A, 0.0, witness="after") is None


def test_an_answer_from_elsewhere_grows_old() -> None:
    answers, _ = book(REMOTE)
    waiting(answers)
    assert answers.take("mcp__s__get", A, FRESH_SECONDS + 1) is None

    timed, _ = book(replace(REMOTE, cost_model=CostModel(freshness_ttl_s=5)))
    waiting(timed)
    waiting_still = timed.holds("mcp__s__get", canonical(A) or "", 5.0)
    timed.sweep(6.0)
    assert (waiting_still, timed.take("mcp__s__get", A, 5.0)) == (True, None)


def test_what_runs_or_waits_is_not_asked_for_twice() -> None:
    answers, epochs = book()
    first = answers.begin("mcp__s__get", A, 0.0)
    assert first is not None
    assert answers.begin("mcp__s__get", A, 0.0) is None
    assert answers.running("mcp__s__get", A) is first
    answers.settle(first, "old", failed=False)
    assert answers.begin("mcp__s__get", A, 0.0) is None
    epochs.called("Bash")
    assert answers.begin("mcp__s__get", A, 0.0) is not None


def test_a_late_answer_of_an_older_epoch_does_not_take_the_place_of_a_newer_one() -> None:
    answers, epochs = book()
    old = answers.begin("mcp__s__get", A, 0.0)
    epochs.called("Bash")
    new = answers.begin("mcp__s__get", A, 0.0)
    assert old is not None
    assert new is not None
    answers.settle(new, "new", failed=False)
    answers.settle(old, "old", failed=False)
    assert answers.take("mcp__s__get", A, 0.0) == "new"


def test_only_so_many_answers_wait() -> None:
    answers, _ = book()
    for number in range(100):
        ticket = answers.begin("mcp__s__get", {"path": f"/{number}"}, 0.0)
        assert ticket is not None
        answers.settle(ticket, str(number), failed=False)

    given = [answers.take("mcp__s__get", {"path": f"/{number}"}, 0.0) for number in range(100)]
    assert given == [None] * 36 + [str(number) for number in range(36, 100)]
