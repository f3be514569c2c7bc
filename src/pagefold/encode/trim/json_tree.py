"""Selects the most valuable part of JSON within a budget; what is shown is always JSON.

Each value is shown whole, shortened, by its keys, by a count, or not at all. `"… 12 more"` stands for missing entries
of a list, and a value that is only described is a string that begins with `…`. Members that are left out are listed by
their path outside the JSON, once for all records. Errors and failures outweigh everything else together.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Protocol

from pagefold.encode.notation.json_value import compact, parse
from pagefold.encode.trim.json_items import JsonItems, items_of
from pagefold.encode.trim.json_output import JsonEntry, JsonSelection, counted
from pagefold.encode.trim.json_scan import Node
from pagefold.encode.trim.landmarks import is_alarm
from pagefold.encode.trim.piece_values import piece_values
from pagefold.encode.trim.strategy import item_values, thread_values
from pagefold.encode.trim.text_tree import TextTree, TrimSelection
from pagefold.knapsack import Group, GroupChoice, solve

_SMALL = 60  # characters of a container that is shown whole or not at all
_MANY = 8_000  # nodes above which small ones are taken together
_LONG = 160  # characters of a string that may be shortened
_LEVELS = (30, 100, 300, 1_000, 3_000)
_SCALAR = 0.2
_KEYS = 8
_TROUBLE = re.compile(r"err(?:or)?s?$|error|exception|failure|fatal|stderr|traceback|panic", re.IGNORECASE)
_STATE = re.compile(r"level|severity|status|state|phase|reason|conclusion|outcome|result", re.IGNORECASE)
# Of members that say which entry this is, whatever facts they hold: a title more than a number, and that more than a
# state, which is short anyway.
_NAMING: Mapping[str, float] = {
    **dict.fromkeys(("title", "summary", "subject"), 2.5),
    **dict.fromkeys(("name", "key", "number", "iid", "path", "filename"), 1.2),
    **dict.fromkeys(("state", "status", "url", "id"), 0.6),
}
_NOISE = re.compile(r"(?:.+_url|.+Url|node_id|gravatar_id|etag|checksum|sha\d*|.*hash|_links|self)$")
_NOISE_WEIGHT = 0.3
_BAD = re.compile(r'"(?:error|errored|failed|failure|fatal|critical|panic|timed_out|crashloopbackoff)"', re.IGNORECASE)
_NOTHING = ("null", '""', "[]", "{}", "false", '"none"', '"null"', "0")
_WORK = 60_000


class FieldWeights(Protocol):
    """Fields of a tool's results that are worth the same; a protocol, because `tools` defines them."""

    @property
    def fields(self) -> Sequence[str]: ...
    @property
    def estimated_value(self) -> float: ...
    @property
    def default_include(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class JsonTree:
    text: str
    root: Node
    entries: tuple[JsonEntry, ...]
    items: JsonItems | None
    groups: tuple[Group, ...]

    @classmethod
    def of(
        cls,
        text: str,
        root: Node,
        keywords: Collection[str],
        strategy: str,
        field_groups: Mapping[str, FieldWeights],
        count: Callable[[str], int],
    ) -> "JsonTree":
        items = _items(text[root.start : root.end]) if root.whole else None
        entries = _entries(root)
        weights = _Weights(items, strategy, field_groups, keywords)
        leaves = [index for index in range(len(entries)) if _is_leaf(entries, index)]
        pieces = [text[entries[index].node.begin : entries[index].node.end] for index in leaves]
        values = dict(zip(leaves, piece_values(pieces, keywords), strict=True))
        often = Counter(pieces)
        for index, entry in enumerate(entries):
            # What every entry says the same tells none of them apart.
            own = _own_value(entry.node) / often.get(text[entry.node.begin : entry.node.end], 1)
            worth = (values.get(index, 0.0) + own) * weights.of(entry.path, entry.node)
            _offer(text, entry, index in values, worth, keywords, count)
        _raise_alarms(text, entries)
        groups = tuple(Group(tuple(entry.choices), entry.parent) for entry in entries)
        return cls(text, root, tuple(entries), items, groups)

    def pick(self, budget: int) -> TrimSelection:
        solution = solve(self.groups, max(0, budget), work=_WORK)
        picks = list(solution.picks)
        if picks and picks[0] is None:
            picks[0] = len(self.entries[0].choices) - 1
        shown = JsonSelection(self.text, self.entries, picks)
        return TrimSelection(shown.body(), shown.ranges(), solution.gap, shown.missing())

    def described(self, start: int, end: int) -> str:
        """Describes a range of the text in a few words."""
        nodes = [entry for entry in self.entries if entry.node.begin < end and entry.node.end > start and entry.path]
        inside = [entry for entry in nodes if entry.node.begin >= start]
        if self.items is not None and (span := self._span(start, end)) is not None:
            return self.items.summary(*span)
        if not inside:
            return f"the rest of {nodes[-1].path}" if nodes else "the end of the text"
        top = min(entry.path.count(".") + entry.path.count("[") for entry in inside)
        names = [entry.path for entry in inside if entry.path.count(".") + entry.path.count("[") == top]
        return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)})"

    def _span(self, start: int, end: int) -> tuple[int, int] | None:
        """Returns the first and last item that lie in a range, or None where none does."""
        assert self.items is not None
        node = self.root
        for key in self.items.path:
            node = next(child for child in node.children if child.key == key)
        inside = [index for index, child in enumerate(node.children) if child.begin < end and child.end > start]
        return (inside[0], inside[-1]) if inside else None


def _items(text: str) -> JsonItems | None:
    try:
        return items_of(json.loads(text, strict=False))
    except ValueError:  # a number too long for Python is still a value to show
        return None


class _Weights:
    """Weighs fields by the tool's field groups, and items of the list by the strategy."""

    def __init__(
        self, items: JsonItems | None, strategy: str, groups: Mapping[str, FieldWeights], keywords: Collection[str]
    ) -> None:
        self.prefix = "" if items is None else "".join(f".{key}" for key in items.path)
        self.items = [] if items is None else item_values(strategy, items.facts())
        self.comments: dict[int, list[float]] = {}
        if items is not None and strategy == "thread_level":
            for index, value in enumerate(items.values):
                notes = value.get("notes") or value.get("comments") if isinstance(value, dict) else None
                if isinstance(notes, list):
                    self.comments[index] = thread_values(self.items[index], len(notes))
        self.fields = {
            name.lower(): group.estimated_value
            * (1.0 if group.default_include or name.lower() in keywords else _OPTIONAL)
            for group in groups.values()
            for name in group.fields
        }

    def of(self, path: str, node: Node) -> float:
        weight = 1.0
        if self.items and path.startswith(f"{self.prefix}["):
            index, _, rest = path[len(self.prefix) + 1 :].partition("]")
            weight = self.items[int(index)]
            note = _NOTE.match(rest)
            if note is not None and int(index) in self.comments:
                weight = self.comments[int(index)][int(note[1])]
        if self.fields and node.key is not None:
            weight *= self.fields.get(node.key.lower(), _UNLISTED)
        elif node.key is not None and _NOISE.match(node.key):
            weight *= _NOISE_WEIGHT
        return weight


_OPTIONAL = 0.2
_UNLISTED = 0.5
_NOTE = re.compile(r"\.(?:notes|comments)\[(\d+)\]")


def _own_value(node: Node) -> float:
    """Returns what a value is worth whatever facts are in it: more where it names its entry."""
    usual = _SCALAR if node.kind != "{" else 0.0
    return _NAMING.get(node.key.lower(), usual) if node.key is not None else usual


def _entries(root: Node) -> list[JsonEntry]:
    """Returns nodes in the order of the text, parents before children; small ones are not taken apart."""
    small = _SMALL
    while True:
        entries: list[JsonEntry] = []
        _collect(root, None, "", entries, small)
        if len(entries) <= _MANY or small > 4_000:
            return entries
        small *= 2


def _collect(node: Node, parent: int | None, path: str, entries: list[JsonEntry], small: int) -> None:
    index = len(entries)
    entries.append(JsonEntry(node, parent, path))
    if parent is not None and node.whole and node.end - node.start <= small:
        return
    for at, child in enumerate(node.children):
        _collect(child, index, f"{path}.{child.key}" if child.key is not None else f"{path}[{at}]", entries, small)


def _is_leaf(entries: Sequence[JsonEntry], index: int) -> bool:
    return index + 1 == len(entries) or entries[index + 1].parent != index


def _offer(
    text: str, entry: JsonEntry, leaf: bool, value: float, keywords: Collection[str], count: Callable[[str], int]
) -> None:
    """Adds the choices of a node: a leaf whole or shortened; others as a count, by their keys, or open."""
    node = entry.node
    whole = text[node.start : node.end]
    named = count(text[node.begin : node.start]) + 1 if node.key is not None else 1
    if leaf:
        whole = whole if node.kind in ('"', "0") else compact(parse(whole))
        if whole in _NOTHING:
            value *= 0.1
        cost = count(whole) + named
        if node.kind == '"' and len(whole) > _LONG:
            for short, part in _shortened(json.loads(whole, strict=False), cost, keywords, count):
                entry.add(short, GroupChoice(count(short) + named, value * part, False))
        entry.full = len(entry.choices)
        entry.add(whole, GroupChoice(cost, value, False))
        return
    if node.key is not None:  # what a list leaves out it counts itself
        entry.add(json.dumps(counted(node), ensure_ascii=False), GroupChoice(6 + named, 0.02, False))
        if node.kind == "{" and len(node.children) > 2:
            keys = ", ".join(str(child.key) for child in node.children[:_KEYS])
            listed = json.dumps(f"{counted(node)}: {keys}", ensure_ascii=False)
            entry.add(listed, GroupChoice(count(listed) + named, 0.1, False))
    entry.add(None, GroupChoice(2 + named, 0.03, True))


def _shortened(
    string: str, cost: int, keywords: Collection[str], count: Callable[[str], int]
) -> list[tuple[str, float]]:
    """Returns a long string at a few lengths, cut along its structure, each with its share of the string's value."""
    tree = TextTree.of(string, keywords, "default", count)
    total = fsum(tree.values) or 1.0
    versions: list[tuple[str, float]] = []
    for level in _LEVELS:
        if level > 0.7 * cost:
            break
        picked = tree.pick(level)
        inside = fsum(
            value
            for unit, value in zip(tree.units, tree.values, strict=True)
            if any(start <= unit.start < end for start, end in picked.ranges)
        )
        if inside:
            versions.append((json.dumps(picked.body, ensure_ascii=False), inside / total))
    return versions


def _raise_alarms(text: str, entries: Sequence[JsonEntry]) -> None:
    """Makes whatever reports an error outweigh everything else, and after it the name of the entry it is in."""
    total = 1 + fsum(entry.choices[-1].value for entry in entries)
    raised = [index for index, entry in enumerate(entries) if entry.full >= 0 and _alarming(entry.node, text)]
    named = {_name_of(entries, index) for index in raised} - {None, *raised}
    bonuses = dict.fromkeys(filter(None, named), total / 2) | dict.fromkeys(raised, total)
    for index, worth in bonuses.items():
        entry = entries[index]
        entry.choices = [choice._replace(value=choice.value + worth) for choice in entry.choices]


def _name_of(entries: Sequence[JsonEntry], index: int) -> int | None:
    """Returns the member that names the list entry in which a node lies."""
    record: int | None = index
    while record is not None and not entries[record].path.endswith("]"):
        record = entries[record].parent
    if record is None:
        return None
    names: list[tuple[int, int, int]] = []
    for at in range(record + 1, len(entries)):
        path = entries[at].path
        if not path.startswith(entries[record].path):
            break
        node = entries[at].node
        worth = max(_NAMING.get((each.key or "").lower(), 0.0) for each in (node, *node.children))
        if entries[at].full >= 0 and worth > 1:
            names.append((path.count("."), -int(10 * worth), at))
    return min(names)[2] if names else None


def _alarming(node: Node, text: str) -> bool:
    whole = text[node.start : node.end]
    if whole.lower() in _NOTHING:
        return False
    if node.key is not None and _TROUBLE.search(node.key):
        return node.kind != "0" or whole != "true"
    if node.key is not None and _STATE.search(node.key) and _BAD.fullmatch(whole):
        return True
    return node.kind == '"' and len(whole) < 2_000 and is_alarm(whole)
