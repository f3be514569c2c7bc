"""Runs tasks in arms, in an order that favours none, and keeps every result in a file so that a run can go on."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from pagefold.errors import ConfigError
from pagefold.solve.arms import Arm, InProcess
from pagefold.solve.faults import FAULTS
from pagefold.solve.kinds import KINDS, tasks
from pagefold.solve.loop import Outcome, run
from pagefold.solve.simulated import SimulatedAgent
from pagefold.solve.task import Task
from pagefold.solve.verdict import Result
from pagefold.tokens import counter_for

MODEL = "claude-opus-5-5"
_TYPICAL, _SAMPLE = ("several-edits", "early-fact"), 2_000
TURNS, TURNS_MORE = 1.5, 8  # of a plan's steps, and turns: who needs more has not solved the task


@dataclass(frozen=True, slots=True)
class Job:
    """One run to make. `fault` is planted between the provider and the agent; `slips` is how often the agent errs."""

    kind: str
    domain: str
    seed: int
    size: int
    arm: Arm
    fault: str = ""
    slips: float = 0.0
    again: int = 0  # the same once more, with other slips
    model: str = ""  # who is asked; "" is the simulated agent

    @property
    def name(self) -> str:
        more = [f" with {self.fault}"] if self.fault else []
        more += [f" #{self.again}"] if self.again else []
        return self.arm.name + "".join(more)

    @property
    def key(self) -> str:
        asked = f"/{self.model}" if self.model else ""
        return f"{self.kind}/{self.domain}/{self.seed}/{self.size}/{self.name}/{self.slips}{asked}"

    def task(self) -> Task:
        return tasks(self.size, self.seed, [self.kind], [self.domain])[0]


Keep: TypeAlias = Callable[[Job, Result, Outcome], None]
"""Gets a run that is over, with its conversation."""


def simulate(
    job: Job,
    *,
    prices_of: str = "",
    keep: Keep = lambda job, result, outcome: None,
    through: Callable[..., InProcess] = InProcess,
) -> Result:
    """Makes one run with the simulated agent, billed as `prices_of` is, and gives its conversation to `keep`. What
    `through` makes of the arm takes the requests."""
    task = job.task()
    dice = random.Random(f"{job.key}")  # noqa: S311
    agent = SimulatedAgent(task.asks, FAULTS[job.fault] if job.fault else None, dice if job.slips else None, job.slips)
    send = through(job.arm, agent, prices_of=prices_of)
    outcome = run(task, MODEL, send, most_turns=most_turns(task))
    result = Result(
        task.name,
        task.kind,
        job.seed,
        job.size,
        job.name,
        outcome.solved,
        outcome.turns,
        send.referee.totals.usd,
        agent.looked_again,
        agent.failed_edits,
        send.largest,
        send.folds,
        outcome.reason,
    )
    keep(job, result, outcome)
    return result


def estimated_usd(jobs: Sequence[Job], prices_of: str) -> float:
    """What these runs cost if the model goes about them as the simulated agent does: two tasks of every size and arm
    are simulated, and stand for the others. Tokens are those of its own tokenizer, as far as that is known."""
    text = "\n".join(tasks(_SAMPLE, 1, _TYPICAL[:1], ["shop"])[0].files.values())
    tokens = counter_for(prices_of).count(text) / counter_for(MODEL).count(text)
    usd: dict[tuple[int, str], float] = {}
    for job in jobs:
        if (alike := (job.size, job.name)) not in usd:
            tried = [replace(job, kind=kind, model="") for kind in _TYPICAL]
            usd[alike] = fmean(simulate(one, prices_of=prices_of).usd for one in tried)
    return tokens * sum(usd[job.size, job.name] for job in jobs)


def most_turns(task: Task) -> int:
    return int(TURNS * task.steps) + TURNS_MORE


@dataclass(slots=True)
class Kept:
    """Results by their job, in a file of JSON lines that is written as they come."""

    path: Path | None = None
    known: dict[str, Result] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is None or not self.path.exists():
            return
        lines = self.path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            try:
                value = json.loads(line)
                key = value.pop("key")
                self.known[key] = Result(**value)
            except (ValueError, TypeError, KeyError) as error:
                if number == len(lines):  # the run was cut off while it wrote this line
                    self.path.write_text("".join(f"{whole}\n" for whole in lines[:-1]), encoding="utf-8")
                    return
                raise ConfigError(f"{self.path}, line {number}: expected a result of `lab solve` ({error})") from error

    def add(self, key: str, result: Result) -> None:
        self.known[key] = result
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, **asdict(result)}) + "\n")


def shuffled(jobs: Sequence[Job], seed: int = 0) -> list[Job]:
    mixed = list(jobs)
    random.Random(seed).shuffle(mixed)  # noqa: S311
    return mixed


def results_of(
    jobs: Sequence[Job], kept: Kept, work: Callable[[Sequence[Job]], Iterator[tuple[Job, Result]]]
) -> Iterator[Result]:
    """The results of all jobs: those that are kept, then the others as `work` makes them."""
    left = [job for job in shuffled(jobs) if job.key not in kept.known]
    yield from (kept.known[job.key] for job in jobs if job.key in kept.known)
    for job, result in work(left):
        kept.add(job.key, result)
        yield result


def jobs_for(
    arms: Sequence[Arm],
    sizes: Sequence[int],
    seeds: Sequence[int],
    domains: Sequence[str],
    kinds: Sequence[str] = (),
    model: str = "",
) -> list[Job]:
    """Every task of every seed and size in every arm. An arm without a window of its own keeps the size's."""
    return [
        Job(kind, domain, seed, size, arm.within(size), model=model)
        for kind in kinds or KINDS
        for domain in domains
        for seed in seeds
        for size in sizes
        for arm in arms
    ]
