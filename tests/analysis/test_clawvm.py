"""The literature's matrix: the same workloads for everybody, no fault for typed pages, the orderings of the paper."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from pagefold import charts
from pagefold.analysis.clawvm import matrix
from pagefold.analysis.clawvm.policies import ABLATIONS, POLICIES, TYPED, PolicyFlags
from pagefold.analysis.clawvm.simulate import simulate
from pagefold.analysis.clawvm.windows import PINNED, window
from pagefold.analysis.clawvm.workloads import BUDGETS, FAMILIES, SEEDS, Need, Workload, WorkTurn
from pagefold.cli import main
from pagefold.pages.faults import FaultKind
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.memory_store import MemoryPages, MemoryStore
from pagefold.pages.page import PageId

ONE = range(1, 2)


@pytest.fixture(scope="module")
def rows() -> list[matrix.MatrixRow]:
    return matrix.matrix(seeds=ONE, budgets=(120, 300))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_workload_is_a_function_of_its_family_and_seed(family: str) -> None:
    one, again, other = (FAMILIES[family](seed) for seed in (7, 7, 8))

    assert one == again
    assert one.turns != other.turns


def test_the_workloads_are_those_that_were_written_before_any_policy_ran_on_them() -> None:
    """docs/clawvm.md quotes this hash: of everything that happens in the workloads, whatever the code is called."""
    rows = [
        [family, seed, [_content(turn) for turn in make(seed).turns]]
        for family, make in FAMILIES.items()
        for seed in SEEDS
    ]

    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    assert digest == "22eb5b0f0424be28623cda18f4d346009103f738b1beace2057c4cb77b4440b6"
    assert digest in (Path(__file__).parents[2] / "docs" / "clawvm.md").read_text(encoding="utf-8")


def _content(turn: WorkTurn) -> list[object]:
    shown = [
        [
            work.page.id,
            {str(level): cost for level, cost in work.costs.items()},
            work.utility,
            work.recompute,
            work.signature,
        ]
        for work in turn.shown
    ]
    needs = [[need.page.page.id, str(need.level), need.same_call] for need in turn.needs]
    repeated, dirtied = ([work.page.id for work in works] for works in (turn.repeated, turn.dirtied))
    return [str(turn.boundary or ""), shown, needs, repeated, dirtied]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_workload_needs_was_shown_and_every_pinned_kind_is_there(family: str) -> None:
    workload = FAMILIES[family](1)
    shown = set()
    for turn in workload.turns:
        shown |= {work.page.id for work in turn.shown}
        used = [*(need.page for need in turn.needs), *turn.repeated, *turn.dirtied]

        assert {work.page.id for work in used} <= shown
    kinds = {work.page.kind for turn in workload.turns for work in turn.shown}
    assert set(PINNED) < kinds


def test_typed_pages_have_no_fault_anywhere_as_the_oracle_has_none(rows: list[matrix.MatrixRow]) -> None:
    faults = {policy: {row.faults for row in rows if row.policy == policy} for policy in ("typed pages", "oracle")}

    assert faults == {"typed pages": {0}, "oracle": {0}}
    assert all(row.strict_faults == 0 for row in rows if row.policy == "typed pages")


def test_the_baselines_are_ordered_as_in_the_paper(rows: list[matrix.MatrixRow]) -> None:
    mean = {one.policy: one.faults for one in matrix.summaries(rows)}

    assert mean["retrieval"] > 3 * mean["retrieval + cache"]
    assert mean["retrieval + cache"] > mean["compaction hybrid"] > mean["lru"] == mean["typed pages"] == 0


def test_the_parts_are_worth_what_the_paper_says_in_its_order() -> None:
    removed = {part: sum(row.faults for row in found) for part, found in matrix.ablations(seeds=ONE).items()}
    ordered = [removed[part] for part in ("pointer resolution", "write-back at compaction", "pinning")]

    assert all(one > other for one, other in pairwise([*ordered, removed["write-back at reset"]]))
    assert ordered[0] > 3 * ordered[1]
    assert removed["write-back at reset"] > removed["scoring"] == removed["pointers"] == removed["memory"] == 0


def test_typed_pages_thrash_less_than_lru_because_calls_made_once_more_are_answered(
    rows: list[matrix.MatrixRow],
) -> None:
    thrash = {one.policy: one.thrash for one in matrix.summaries(rows)}

    assert thrash["typed pages"] == 0 < thrash["lru"]
    assert thrash["lru"] == thrash["oracle"], "as in the paper, where both hold a handle of every result"


def test_with_the_same_memory_nobody_who_is_faultless_thrashes_and_without_it_everybody_does() -> None:
    found = {one.policy: one for one in matrix.summaries(matrix.by_memory(seeds=ONE, budgets=(120, 300)))}

    for name in ("lru", "typed pages", "oracle"):
        assert found[f"{name}, with memory"].thrash == 0 < found[f"{name}, without memory"].thrash
    assert found["typed pages, with memory"].strict_thrash < found["lru, with memory"].strict_thrash


def test_a_call_made_once_more_is_an_alert_at_any_level_and_a_hit_where_it_is_answered() -> None:
    evidence = next(work for work in FAMILIES["tool-loop"](1).turns[0].shown if work.page.kind is PageKind.EVIDENCE)
    turns = (WorkTurn(shown=[evidence]), WorkTurn(repeated=[evidence]))
    lru, pointer_only = POLICIES[3], 4

    def seen(policy: PolicyFlags, budget: int) -> tuple[int, int, int]:
        observer = simulate(Workload("none", 1, turns), policy, budget).observer
        return observer.alerts, observer.faults, observer.hits

    assert seen(lru, 500) == seen(lru, pointer_only) == (1, 0, 0)
    assert seen(replace(lru, memory=True), 500) == seen(replace(lru, memory=True), pointer_only) == (0, 0, 1)
    assert seen(replace(lru, resolves=False), pointer_only) == (0, 1, 0)


def test_counting_recalls_as_faults_typed_pages_thrash_less_than_lru(rows: list[matrix.MatrixRow]) -> None:
    strict = {one.policy: one.strict_thrash for one in matrix.summaries(rows)}

    assert strict["typed pages"] < strict["lru"]


def test_the_handicap_takes_from_the_baselines_in_one_family_and_from_nobody_else(rows: list[matrix.MatrixRow]) -> None:
    scaled = {policy.name for policy in POLICIES if policy.handicap < 1}
    changed = [(one, two) for one, two in zip(rows, matrix.handicapped(rows), strict=True) if one is not two]

    assert {one.policy for one, _ in changed} == scaled == {"retrieval", "retrieval + cache", "compaction hybrid"}
    assert {one.family for one, _ in changed} == {"multi-session"}


@pytest.mark.parametrize("policy", [*POLICIES, *ABLATIONS.values()], ids=lambda policy: policy.name)
@pytest.mark.parametrize("budget", [BUDGETS[0], BUDGETS[-1]])
def test_no_request_is_over_its_budget(policy: PolicyFlags, budget: int) -> None:
    workload = FAMILIES["adversarial"](3)
    fitting = window(policy, budget)
    costs = {work.page.id: work.costs for turn in workload.turns for work in turn.shown}
    for turn in workload.turns:
        levels, _ = fitting.fit(turn.shown, turn.needs, [], [])

        assert sum(costs[page][level] for page, level in levels.items()) <= budget


def test_floors_that_cannot_fit_are_insufficiency_and_no_fault() -> None:
    outcome = simulate(FAMILIES["requirements"](1), TYPED, 20)

    assert outcome.short > 0
    assert outcome.observer.counts[FaultKind.PHYSICAL_INSUFFICIENCY] > 0
    assert outcome.observer.faults == 0


class Forgetful(MemoryPages):
    """A store that finds nothing of what it was given."""

    def find(self, handle: str) -> Sequence[PageId]:
        return []


def test_a_pointer_that_does_not_resolve_is_a_fault() -> None:
    store = MemoryStore()
    store.pages = Forgetful()
    outcome = simulate(FAMILIES["tool-loop"](1), TYPED, 120, store=store)

    assert outcome.observer.counts[FaultKind.REFETCH] > 0


def test_the_paper_counts_a_missing_bootstrap_once_a_boundary_and_strictly_every_request_counts() -> None:
    pinned = [work for work in FAMILIES["requirements"](1).turns[0].shown if work.page.kind in PINNED]
    evidence = next(work for work in FAMILIES["tool-loop"](1).turns[0].shown if work.page.kind is PageKind.EVIDENCE)
    turns = (
        WorkTurn(shown=[*pinned, evidence]),
        *(WorkTurn(needs=[Need(evidence, ResidencyLevel.FULL)]) for _ in range(4)),
    )
    retrieval = POLICIES[1]

    assert simulate(Workload("none", 1, turns), retrieval, 300).observer.faults == 0
    assert simulate(Workload("none", 1, turns), retrieval, 300, strict=True).observer.faults == 5 * len(pinned)


def test_the_picture_has_a_line_and_a_name_for_every_policy_and_needs_nothing_else() -> None:
    drawn = charts.faults_by_budget({"a <b>": [(120, 60.0), (500, 61.0)], "c": [(120, 0.0), (500, 0.0)]})

    assert drawn.count("<polyline") == 2
    assert "a &lt;b&gt;" in drawn
    assert "href" not in drawn


def test_the_command_prints_json_and_writes_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg = tmp_path / "faults.svg"

    assert main(["lab", "clawvm", "--seeds", "1", "--budgets", "180", "--json", "--svg", str(svg)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [one["policy"] for one in answer["summary"]] == [policy.name for policy in POLICIES]
    assert len(answer["rows"]) == len(FAMILIES) * len(POLICIES)
    assert "<polyline" in svg.read_text(encoding="utf-8")


@pytest.mark.parametrize("flags", [["--seeds", "0"], ["--budgets", "0"]])
def test_a_flag_out_of_range_is_named(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "clawvm", *flags]) == 2
    assert f"{flags[0]} 0: expected" in capsys.readouterr().err
