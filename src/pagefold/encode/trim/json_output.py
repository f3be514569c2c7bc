"""One choice of levels of a JSON tree: as JSON, as the ranges that stand in it whole, and as what it leaves out."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagefold.encode.trim.json_scan import Node
from pagefold.knapsack import Choice

_INDEX = re.compile(r"\[\d+\]")


@dataclass(slots=True)
class JsonEntry:
    """A node that the solver decides on: its choices, and the text that each of them shows."""

    node: Node
    parent: int | None
    path: str
    choices: list[Choice] = field(default_factory=list)
    texts: list[str | None] = field(default_factory=list)  # None: open, its children say more
    full: int = -1  # the choice that shows it whole


def counted(node: Node) -> str:
    what = "keys" if node.kind == "{" else "entries"
    return f"… {len(node.children)} {what}{'' if node.whole else ', broken off'}"


class JsonSelection:
    """One choice of levels, as text, as ranges of what was given, and as what is missing from it."""

    def __init__(self, text: str, entries: Sequence[JsonEntry], picks: Sequence[int | None]) -> None:
        self.text, self.entries, self.picks = text, entries, picks
        self.children: dict[int, list[int]] = {}
        for index, entry in enumerate(entries):
            if entry.parent is not None:
                self.children.setdefault(entry.parent, []).append(index)

    def body(self) -> str:
        parts: list[str] = []
        self._write(0, parts)
        return "".join(parts)

    def _write(self, index: int, parts: list[str]) -> None:
        entry, pick = self.entries[index], self.picks[index]
        assert pick is not None
        said = entry.texts[pick]
        if said is not None:
            parts.append(said)
            return
        shown = [child for child in self.children.get(index, ()) if self.picks[child] is not None]
        if not shown and index:
            parts.append(json.dumps(counted(entry.node), ensure_ascii=False))
        elif entry.node.kind == "{":
            parts.append("{")
            for at, child in enumerate(shown):
                node = self.entries[child].node
                parts.append(f"{',' if at else ''}{_key(self.text, node)}:")
                self._write(child, parts)
            parts.append("}")
        else:
            self._write_list(index, shown, parts)

    def _write_list(self, index: int, shown: Sequence[int], parts: list[str]) -> None:
        chosen, gone, fresh = set(shown), 0, True
        parts.append("[")
        for child in [*self.children.get(index, ()), None]:
            if child is not None and child not in chosen:
                gone += 1
                continue
            if gone:
                parts.append(f'{"" if fresh else ","}"… {gone} more"')
                gone, fresh = 0, False
            if child is not None:
                parts.append("" if fresh else ",")
                fresh = False
                self._write(child, parts)
        if not self.entries[index].node.whole:
            parts.append(f'{"" if fresh else ","}"… broken off here"')
        parts.append("]")

    def _standing(self) -> list[bool]:
        """Whether each entry stands in the body: picked, and all above it open."""
        standing: list[bool] = []
        for entry, pick in zip(self.entries, self.picks, strict=True):
            above = entry.parent is None or standing[entry.parent]
            standing.append(above and pick is not None)
        return standing

    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The ranges that are shown whole. Marks between two neighbours that both are belong to them."""
        found: list[tuple[int, int]] = []
        joined = False
        standing = self._standing()
        for index, entry in enumerate(self.entries):
            if entry.full < 0:
                continue
            whole = standing[index] and self.picks[index] == entry.full
            if whole and joined:
                found[-1] = (found[-1][0], entry.node.end)
            elif whole:
                found.append((entry.node.begin, entry.node.end))
            joined = whole
        return tuple(found)

    def missing(self) -> tuple[str, ...]:
        """Members that are left out or shortened, by their path, the most frequent first."""
        gone: Counter[str] = Counter()
        standing = self._standing()
        for index, entry in enumerate(self.entries):
            above = entry.parent is None or standing[entry.parent]
            if above and not standing[index] and entry.node.key is not None:
                gone[_INDEX.sub("[*]", entry.path)] += 1
        return tuple(f"{path}{f' ({times})' if times > 1 else ''}" for path, times in gone.most_common())


def _key(text: str, node: Node) -> str:
    return text[node.begin : node.start].rstrip().removesuffix(":").rstrip()
