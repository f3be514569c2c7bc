"""What is fuzzed: a name, a check of one input, and words that inputs of its kind are made of.

A check is a function of nothing but the bytes given: where a stream is cut, or what else is chosen, follows from them.
So an input that fails is kept as a file and fails again. A check raises where the code under it raises anything but
its documented errors, or where bytes are lost.
"""

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """`check` is given an input and dice that are thrown by that input alone. It may return what is worth counting."""

    name: str
    check: Callable[[bytes, random.Random], Sequence[str] | None]
    words: Sequence[bytes]

    def run(self, data: bytes) -> Sequence[str]:
        """Checks one input."""
        return self.check(data, random.Random(zlib.crc32(data))) or ()

    def corpus(self) -> list[tuple[str, bytes]]:
        """The kept inputs by their names: examples, and what once failed."""
        return [(path.name, path.read_bytes()) for path in sorted((CORPUS / self.name).iterdir())]


def cut(data: bytes, dice: random.Random) -> list[bytes]:
    """The same bytes as they may arrive: in up to eight pieces, or one by one where there are few."""
    if len(data) < 400 and dice.random() < 0.2:
        return [data[at : at + 1] for at in range(len(data))]
    bounds = [0, *sorted(dice.randint(0, len(data)) for _ in range(dice.randint(0, 7))), len(data)]
    return [data[start:end] for start, end in pairwise(bounds)]
