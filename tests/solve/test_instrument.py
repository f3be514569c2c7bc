"""The instrument is proved: planted faults are found, and the same arm twice is not."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pagefold.solve.arms import Arm
from pagefold.solve.experiment import MODEL, Job, Kept, estimated_usd, results_of, simulate
from pagefold.solve.faults import FAULTS
from pagefold.solve.kinds import KINDS
from pagefold.solve.page import Experiment
from pagefold.solve.verdict import Finding, Result, compared, pairs_needed, sentence

# Kinds of tasks that a fault can hurt.
HURT = {
    "lost edit texts": ("several-edits", "failing-tests"),
    "stale lines": ("change-of-mind",),
    "refused edits shown as made": ("refused-edit", "locked-file"),
    "lost antecedents": ("pick-from-list",),
    "dangling references": ("early-fact", "several-edits"),
}


def runs(kinds: tuple[str, ...], *, fault: str = "") -> list[Result]:
    return [simulate(Job(kind, "shop", seed, 2_000, Arm(), fault)) for kind in kinds for seed in (1, 2, 3)]


def test_lost_edit_texts_are_the_bodies_of_functions_alone() -> None:
    read = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": "     1\tdef f():\n     2\t    return 1\n     3\t- told",
    }
    messages: list[dict[str, Any]] = [{"role": "user", "content": [read]}]
    messages += [{"role": "user", "content": "go on"}] * 4
    (block,) = FAULTS["lost edit texts"](messages)[0]["content"]
    assert block["content"] == "     1\tdef f():\n     3\t- told"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    before, after = runs(HURT[fault]), runs(HURT[fault], fault=fault)
    findings = {found.measure: found for found in compared([*before, *after], "as it is", f"as it is with {fault}")}
    worse = {name for name, found in findings.items() if found.finding is Finding.WORSE}
    hurt = sum(run.solved for run in before) - sum(run.solved for run in after)
    assert hurt > 0 or worse & {"files read again", "turns"}


def test_the_same_arm_twice_is_not_called_worse() -> None:
    """The agent errs in both, each time elsewhere."""
    jobs = [Job(kind, "shop", 1, 1_500, Arm(), slips=0.05, again=again) for kind in KINDS for again in (0, 1)]
    made = [simulate(job) for job in jobs]
    differences = compared(made, "as it is", "as it is #1")
    assert any(first.turns != second.turns for first, second in zip(made[::2], made[1::2], strict=True))
    assert Finding.WORSE not in {found.finding for found in differences}


def result(arm: str, seed: int, *, solved: bool = True, usd: float = 1.0) -> Result:
    return Result("t", "k", seed, 1, arm, solved, 10, usd)


def test_too_few_pairs_are_not_compared() -> None:
    assert compared([result("a", 1), result("b", 2)], "a", "b") == []
    assert "too few" in sentence([], "b", "a")


def test_what_is_the_same_is_no_worse_and_what_is_dearer_is_worse() -> None:
    pairs = [result(arm, seed, usd=1.0 if arm == "a" else 1.2 + seed / 1000) for seed in range(200) for arm in "ab"]
    found = {difference.measure: difference.finding for difference in compared(pairs, "a", "b")}
    assert found["cost"] is Finding.WORSE
    assert found["solved"] is found["turns"] is Finding.NO_WORSE


def test_ten_pairs_that_agree_cannot_tell_about_solving() -> None:
    pairs = [result(arm, seed) for seed in range(10) for arm in "ab"]
    assert compared(pairs, "a", "b")[0].finding is Finding.UNCLEAR
    assert pairs_needed(0.1) > 300


def test_the_estimate_is_what_the_simulated_agent_pays() -> None:
    jobs = [Job(kind, "shop", 1, 1_500, Arm()) for kind in ("several-edits", "early-fact")]
    paid = sum(simulate(job).usd for job in jobs)
    assert estimated_usd(jobs, MODEL) == pytest.approx(paid)
    assert estimated_usd([*jobs, *jobs], MODEL) == pytest.approx(2 * paid)
    assert estimated_usd(jobs, "claude-haiku-4-5") < paid / 2


def test_a_run_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    jobs = [Job("early-fact", "shop", seed, 1_500, Arm()) for seed in (1, 2)]
    made: list[Job] = []

    def work(left: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        for job in left:
            made.append(job)
            yield job, simulate(job)

    (first,) = results_of(jobs[:1], Kept(path), work)
    with path.open("a") as file:
        file.write('{"key": "cut o')
    assert next(results_of(jobs, Kept(path), work)) == first
    assert len(list(results_of(jobs, Kept(path), work))) == 2
    assert sorted(job.seed for job in made) == [1, 2]


@pytest.mark.parametrize(("seeds", "pairs"), [((), 0), ((1, 2), 0), ((1, 1), 1), ((1, 1, 2, 3), 1), ((2, 1, 1, 2), 2)])
def test_only_what_both_arms_have_run_counts_as_a_pair(seeds: tuple[int, ...], pairs: int) -> None:
    arms = ("as it is", "economic")
    results = [result(arms[at % 2], seed) for at, seed in enumerate(seeds)]
    assert Experiment("m", results, 4, "").notes()[-1].startswith(f"{pairs} pair")
