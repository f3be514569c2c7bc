"""What a study that asks a model may spend, and the answers that it keeps so that a run can go on from them.

A line that a killed run left unfinished is passed over. The file holds answers and hashes, never a key.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagefold.errors import ConfigError


@dataclass(slots=True)
class Budget:
    """What a run may still spend. A request is begun only while there is some left of both."""

    tokens: int
    seconds: float
    clock: Callable[[], float] = time.monotonic
    spent: int = 0
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def spend(self, tokens: int) -> None:
        self.spent += tokens

    @property
    def why_ended(self) -> str:
        """Returns what has run out, or "" while nothing has."""
        if self.spent >= self.tokens:
            return f"the budget of {self.tokens:,} tokens is spent"
        return "the time is up" if self.clock() - self._began >= self.seconds else ""


@dataclass(slots=True)
class KeptAnswers:
    """Answers by a hash of what was asked, in memory and, where there is a file, in that."""

    path: Path | None = None
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    _torn: bool = False

    def __post_init__(self) -> None:
        if self.path is None or not self.path.exists():
            return
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--resume {self.path}: cannot be read ({error})") from error
        self._torn = bool(text) and not text.endswith("\n")
        for line in text.split("\n"):
            try:
                kept = json.loads(line)
                self.known[kept["asked"]] = kept
            except (ValueError, KeyError, TypeError):
                continue  # cut off when a run was killed: it is asked again

    def keep(self, asked: str, value: Mapping[str, Any]) -> dict[str, Any]:
        kept = {"asked": asked, **value}
        self.known[asked] = kept
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as file:
                    file.write("\n" * self._torn + json.dumps(kept) + "\n")
                self._torn = False
            except OSError as error:
                raise ConfigError(f"--resume {self.path}: cannot be written ({error.strerror})") from error
        return kept


def asked_key(way: str, model: str, *texts: str) -> str:
    """The hash of what was asked, under which its answer is kept: a way of asking, a model and texts."""
    said = json.dumps([way, model, *texts])
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32]
