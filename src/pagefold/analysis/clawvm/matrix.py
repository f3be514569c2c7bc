"""Runs the whole matrix: families, budgets, seeds and policies, with and without the paper's handicap, and ablations.

Thrash depends on whether repeated calls are answered from a memory of calls. So the policies without faults are also
run with the memory that typed pages have, and typed pages without it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pagefold.analysis.clawvm.policies import ABLATIONS, POLICIES, PolicyFlags
from pagefold.analysis.clawvm.simulate import simulate
from pagefold.analysis.clawvm.workloads import BUDGETS, FAMILIES, SEEDS, Workload
from pagefold.pages.faults import FaultKind

ABLATION_BUDGET = 180
HANDICAPPED = "multi-session"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One workload under one policy and budget; `strict_faults` also count every request without a pinned page."""

    policy: str
    family: str
    seed: int
    budget: int
    faults: int
    by_kind: dict[str, int]
    hits: int
    recalls: int
    alerts: int
    insufficient: int
    thrash: float
    strict_thrash: float
    strict_faults: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over rows: faults, thrash as the paper has it, and thrash with every recall a fault."""

    policy: str
    rows: int
    faults: float
    strict_faults: float
    thrash: float
    strict_thrash: float
    recalls: float
    by_kind: dict[str, int]


def row(workload: Workload, policy: PolicyFlags, budget: int, *, handicap: bool = False) -> MatrixRow:
    scaled = handicap and workload.family == HANDICAPPED
    tokens = int(budget * policy.handicap) if scaled else budget
    outcome = simulate(workload, policy, tokens)
    # For a policy that pins, the strict count is the same.
    strict = outcome if policy.pins else simulate(workload, policy, tokens, strict=True)
    seen = outcome.observer
    return MatrixRow(
        policy=policy.name,
        family=workload.family,
        seed=workload.seed,
        budget=budget,
        faults=seen.faults,
        by_kind={kind.value: seen.counts[kind] for kind in FaultKind if kind.controllable and seen.counts[kind]},
        hits=seen.hits,
        recalls=seen.recalls,
        alerts=seen.alerts,
        insufficient=outcome.short,
        thrash=seen.thrash,
        strict_thrash=seen.strict_thrash,
        strict_faults=strict.observer.faults,
    )


def _rows(policies: Iterable[PolicyFlags], seeds: Sequence[int], budgets: Sequence[int]) -> list[MatrixRow]:
    workloads = [family(seed) for family in FAMILIES.values() for seed in seeds]
    return [row(workload, policy, budget) for policy in policies for budget in budgets for workload in workloads]


def matrix(*, seeds: Sequence[int] = SEEDS, budgets: Sequence[int] = BUDGETS) -> list[MatrixRow]:
    """Runs all policies, each with the whole budget."""
    return _rows(POLICIES, seeds, budgets)


def handicapped(rows: Sequence[MatrixRow]) -> list[MatrixRow]:
    """Returns the same rows with the paper's smaller budgets for its baselines in the multi-session family."""
    policies = {policy.name: policy for policy in POLICIES if policy.handicap < 1}
    return [
        row(FAMILIES[one.family](one.seed), policies[one.policy], one.budget, handicap=True)
        if one.policy in policies and one.family == HANDICAPPED
        else one
        for one in rows
    ]


def by_memory(*, seeds: Sequence[int] = SEEDS, budgets: Sequence[int] = BUDGETS) -> list[MatrixRow]:
    """Runs the policies without faults, each without a memory of calls and with it."""
    faultless = [policy for policy in POLICIES if policy.pins]
    each = [
        replace(policy, memory=memory, name=f"{policy.name}, {'with' if memory else 'without'} memory")
        for policy in faultless
        for memory in (False, True)
    ]
    return _rows(each, seeds, budgets)


def ablations(*, budget: int = ABLATION_BUDGET, seeds: Sequence[int] = SEEDS) -> dict[str, list[MatrixRow]]:
    """Returns, for every part that is taken away, the rows of all families and seeds at one budget."""
    return {part: _rows([policy], seeds, [budget]) for part, policy in ABLATIONS.items()}


def summaries(rows: Iterable[MatrixRow]) -> list[Summary]:
    by_policy: dict[str, list[MatrixRow]] = {}
    for one in rows:
        by_policy.setdefault(one.policy, []).append(one)
    return [_summary(policy, of_policy) for policy, of_policy in by_policy.items()]


def _summary(policy: str, rows: Sequence[MatrixRow]) -> Summary:
    kinds: Counter[str] = Counter()
    for one in rows:
        kinds.update(one.by_kind)
    names = ("faults", "strict_faults", "thrash", "strict_thrash", "recalls")
    means = {name: float(sum(getattr(one, name) for one in rows)) / len(rows) for name in names}
    return Summary(policy, len(rows), by_kind=dict(kinds), **means)


def by_budget(rows: Iterable[MatrixRow]) -> dict[str, list[tuple[int, float]]]:
    """Returns, for every policy, the mean faults of a workload at each budget."""
    faults_of: dict[str, dict[int, list[int]]] = {}
    for one in rows:
        faults_of.setdefault(one.policy, {}).setdefault(one.budget, []).append(one.faults)
    return {
        policy: [(budget, sum(faults) / len(faults)) for budget, faults in sorted(budgets.items())]
        for policy, budgets in faults_of.items()
    }
