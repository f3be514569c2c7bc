"""What a task is: files, what the user asks one turn after the other, and how one sees whether it was done.

A task is data: nothing here touches a disk. The plan says how somebody who knows what is wanted would go about it; the
simulated agent follows it, real agents never see it. `wrong` is a plan that looks right and is not: the checker has to
tell the two apart.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from pagefold.frozen import frozen


@frozen
class Look:
    """Read a file."""

    path: str


@frozen
class Run:
    """Run a command in the workspace."""

    command: str


@frozen
class Change:
    """Set a number in a function: what the first group of `pattern` matches becomes `new`, wherever the function says
    it. The function begins with the line `anchor`; its whole text is what is replaced, so whoever makes the change has
    to have it."""

    path: str
    anchor: str
    new: int
    pattern: str = r"part > (\d+):"


@frozen
class Recollect:
    """Write what was read before into the file `path`: what the first group of `pattern` matches last in all that can
    be read. Where it is no longer to be had, `again` says how to get it once more, if there is a way."""

    pattern: str
    path: str
    again: "Look | Run | None" = None


@frozen
class Pick:
    """Make the changes that stand under these numbers in the list that was given in an answer: `1. NAME` lines."""

    numbers: tuple[int, ...]
    changes: Mapping[str, Change]  # by NAME


@frozen
class Retry:
    """Make those of these changes whose file was last told to be left as it was: its edit was refused, or failed."""

    changes: tuple[Change, ...]


@frozen
class Say:
    """End the turn with these words."""

    text: str


Step: TypeAlias = Look | Run | Change | Recollect | Pick | Retry | Say


@frozen
class Ask:
    """One turn of the user. `removed` are files that the user takes away before it, `idle` the seconds since the last
    answer. `plan` is how it is done; its last step is a Say."""

    text: str
    plan: tuple[Step, ...]
    removed: tuple[str, ...] = ()
    idle: float = 0.0


@frozen
class Task:
    """`check` is a program: it runs in the workspace afterwards, with Python, and ends with 0 if the work was done.
    `refuses` are paths whose first edit the user refuses; `locked` those whose first edit fails."""

    name: str
    kind: str
    seed: int
    files: Mapping[str, str] = field(repr=False)
    asks: tuple[Ask, ...] = field(repr=False)
    check: str = field(repr=False)
    wrong: tuple[Ask, ...] = field(repr=False)
    refuses: frozenset[str] = frozenset()
    locked: frozenset[str] = frozenset()

    @property
    def steps(self) -> int:
        """How many steps its plan has, each change of a pick counted."""
        return sum(len(step.numbers) if isinstance(step, Pick) else 1 for ask in self.asks for step in ask.plan)
