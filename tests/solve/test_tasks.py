"""Every task checks its own checker: the plan passes, nothing done fails, a plan with a step left out fails."""

import pytest

from pagefold.solve.experiment import most_turns
from pagefold.solve.kinds import KINDS, tasks
from pagefold.solve.loop import run
from pagefold.solve.project import DOMAINS
from pagefold.solve.simulated import SimulatedAgent
from pagefold.solve.task import Ask, Say, Task
from pagefold.tokens import counter
from tests.solve.direct import Direct

SIZE = 1_500


def solved(task: Task, asks: tuple[Ask, ...]) -> bool:
    outcome = run(task, "a-model", Direct(SimulatedAgent(asks)), most_turns=most_turns(task))
    assert outcome.solved or outcome.reason == "the check failed"
    return outcome.solved


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_plan_passes_and_nothing_else(kind: str, domain: str) -> None:
    task = tasks(SIZE, 1, [kind], [domain])[0]
    assert solved(task, task.asks)
    assert not solved(task, task.wrong)
    assert not solved(task, tuple(Ask(ask.text, (Say("Done."),)) for ask in task.asks))


def test_there_are_fifty_and_a_seed_makes_others() -> None:
    first, second = tasks(SIZE, 1), tasks(SIZE, 2)
    assert len(first) == 50
    assert len({task.name for task in first}) == 50
    assert all(a.files != b.files for a, b in zip(first, second, strict=True))
    assert tasks(SIZE, 1) == first


def test_the_size_is_what_has_to_be_read() -> None:
    for size in (12_000, 32_000):
        task = tasks(size, 1, ["several-edits"], ["shop"])[0]
        assert sum(map(counter("claude-5").count, task.files.values())) > size
