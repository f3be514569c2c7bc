"""Relevance: what a message is about, as files, tools and errors, and how much of that it shares with a task.

Files are read in arguments and results too, and a word is a file only if it looks like one: a known ending, or a path
of several parts. Errors count where they are the same, not by their number.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from pagefold.wire.message import BlockKind, Message

_FILE = re.compile(
    r"(?<![\w/.:-])(?:~|\.{1,2})?/?(?:[\w@+.-]+/)*[\w@+.-]+\."
    r"(?:rs|tsx?|jsx?|py|go|md|json|toml|ya?ml|html|css|c|cc|cpp|h|hpp|java|rb|sh|sql|txt|cfg|ini|proto|kt|swift)\b"
)
_FOLDER = re.compile(r"(?<![\w:/])(?:~|\.{1,2})?/(?:[\w@+.-]+/)+[\w@+.-]+")
_ERROR = re.compile(
    r"\b[A-Z]\w*(?:Error|Exception)\b|\berror\[\w+\]|\bpanicked at [^\n]{0,60}|(?:error|fatal|FAIL(?:ED)?): [^\n]{1,60}"
)
_LONGEST = 20_000  # characters of one block that are read: what comes later tells little more of what it is about
_FILES, _TOOLS, _ERRORS, _DISTANCE = 4.0, 2.5, 3.0, 0.05


@dataclass(frozen=True, slots=True)
class Bearing:
    files: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    errors: frozenset[str] = frozenset()

    def joined(self, other: "Bearing") -> "Bearing":
        return Bearing(self.files | other.files, self.tools | other.tools, self.errors | other.errors)


NO_BEARING = Bearing()


def bearing_of(message: Message) -> Bearing:
    found = NO_BEARING
    for block in message.blocks:
        if block.kind not in (BlockKind.TEXT, BlockKind.CALL, BlockKind.RESULT):
            continue
        files, errors = _read(block.text[:_LONGEST])
        tools = frozenset((block.name,)) if block.kind is BlockKind.CALL else frozenset[str]()
        found = found.joined(Bearing(files, tools, errors if block.kind is BlockKind.RESULT else frozenset()))
    return found


def relevance(bearing: Bearing, task: Bearing, distance: int) -> float:
    """How much it has to do with the task; `distance` is how many messages ago it was."""
    return (
        _FILES * len(bearing.files & task.files)
        + _TOOLS * bool(bearing.tools & task.tools)
        + _ERRORS * len(bearing.errors & task.errors)
        - _DISTANCE * distance
    )


@lru_cache(maxsize=4096)
def _read(text: str) -> tuple[frozenset[str], frozenset[str]]:
    files = {name.rpartition("/")[2] for pattern in (_FILE, _FOLDER) for name in pattern.findall(text)}
    return frozenset(files), frozenset(_ERROR.findall(text))
