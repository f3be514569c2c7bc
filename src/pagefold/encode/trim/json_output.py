"""Writes the chosen part of a JSON tree as JSON, and tells which ranges it shows whole and which members it lacks."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagefold.encode.trim.json_scan import Node
from pagefold.knapsack import GroupChoice

_INDEX = re.compile(r"\[\d+\]")


@dataclass(slots=True)
class JsonEntry:
    """A node that the solver decides on: its choices, and the text that each choice shows."""

    node: Node
    parent: int | None
    path: str
    choices: list[GroupChoice] = field(default_factory=list)
    texts: list[str | None] = field(default_factory=list)  # None: open, its children say more
    full: int = -1  # the choice that shows it whole

    def add(self, text: str | None, choice: GroupChoice) -> None:
        self.texts.append(text)
        self.choices.append(choice)


def counted(node: Node) -> str:
    what = "keys" if node.kind == "{" else "entries"
    return f"… {len(node.children)} {what}{'' if node.whole else ', broken off'}"


class JsonSelection:
    """The entries of a tree with one choice picked for each, or None where an entry is left out."""

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
        own = entry.texts[pick]
        if own is not None:
            parts.append(own)
            return
        shown = [child for child in self.children.get(index, ()) if self.picks[child] is not None]
        if not shown and index:
            parts.append(json.dumps(counted(entry.node), ensure_ascii=False))
        elif entry.node.kind == "{":
            parts.append("{")
            for at, child in enumerate(shown):
                node = self.entries[child].node
                key = self.text[node.begin : node.start].rstrip().removesuffix(":").rstrip()
                parts.append(f"{',' if at else ''}{key}:")
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

    def _present(self) -> list[bool]:
        """Tells for each entry whether it is in the body: picked, and everything above it open."""
        present: list[bool] = []
        for entry, pick in zip(self.entries, self.picks, strict=True):
            above = entry.parent is None or present[entry.parent]
            present.append(above and pick is not None)
        return present

    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Returns the ranges that are shown whole; commas and space between two such neighbours belong to them."""
        ranges: list[tuple[int, int]] = []
        joined = False
        present = self._present()
        for index, entry in enumerate(self.entries):
            if entry.full < 0:
                continue
            whole = present[index] and self.picks[index] == entry.full
            if whole and joined:
                ranges[-1] = (ranges[-1][0], entry.node.end)
            elif whole:
                ranges.append((entry.node.begin, entry.node.end))
            joined = whole
        return tuple(ranges)

    def missing(self) -> tuple[str, ...]:
        """Returns the paths of members that are left out, the most frequent first."""
        gone: Counter[str] = Counter()
        present = self._present()
        for index, entry in enumerate(self.entries):
            above = entry.parent is None or present[entry.parent]
            if above and not present[index] and entry.node.key is not None:
                gone[_INDEX.sub("[*]", entry.path)] += 1
        return tuple(f"{path}{f' ({times})' if times > 1 else ''}" for path, times in gone.most_common())
