"""Counts what could not be read in recordings, and keeps the first few as examples."""

from dataclasses import dataclass, field

from pagefold.adapters.recordings import LogPath
from pagefold.wire.transcripts import Problem

_EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class FileProblem:
    """Something in a recording that is no session, or a session with something odd in it."""

    path: LogPath
    problem: Problem

    def __str__(self) -> str:
        line = f":{self.problem.line}" if self.problem.line else ""
        return f"{self.path}{line}: {self.problem.what}{'' if self.problem.skipped else ' (kept)'}"


@dataclass(slots=True)
class ProblemCounts:
    """Bounded, however many problems there are."""

    count: int = 0
    skipped: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, file_problem: FileProblem) -> None:
        self.count += 1
        self.skipped += file_problem.problem.skipped
        if len(self.examples) < _EXAMPLES:
            self.examples.append(str(file_problem))

    @property
    def summary(self) -> str:
        return f"{self.skipped:,} skipped, {self.count - self.skipped:,} odd but kept"

    @property
    def lines(self) -> list[str]:
        """The examples, and how many more there are."""
        more = self.count - len(self.examples)
        return [*self.examples, *([f"… and {more:,} more"] if more else [])]
