"""A text as a tree of blocks, each at one of a few levels: whole, shortened, its sign alone, or gone.

What went wrong comes first: errors, failures and fatal lines are chosen before anything else gets a token, and ordinary
lines share what they leave. The solver then picks a level for each block, the most value within the budget.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import fsum

from pagefold.encode.shape import TextShape, shape_of
from pagefold.encode.trim.blocks import TrimBlock, blocks_of
from pagefold.encode.trim.gaps import filled, with_gaps
from pagefold.encode.trim.landmarks import NUMBER, Landmark, landmarks
from pagefold.encode.trim.piece_values import piece_values
from pagefold.encode.trim.strategy import ItemFacts, item_values
from pagefold.encode.trim.units import Unit, units_of
from pagefold.knapsack import Choice, Group, solve

_SHARES = (0.15, 0.3, 0.5, 0.75, 1.0)  # of a block's units, the densest first
_MARK = {TextShape.NUMBERED: 2}
_MARK_TOKENS = 6
_COMMENT = re.compile(r"\s*(?:#(?!include)|//|/\*|\* |--|\"\"\")")
_SIGN_VALUE = 0.5  # of showing what a block is, beside the facts in its sign
_WORK = 60_000


@dataclass(frozen=True, slots=True)
class TrimSelection:
    """What is shown of a text at some budget: the body, and the ranges of the text that stand in it whole.

    `gap` is how far the choice may be from the best one; `missing` is what the body itself does not say is missing.
    """

    body: str
    ranges: tuple[tuple[int, int], ...]
    gap: float = 0.0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextTree:
    """Built once for a text, asked for as many budgets as it takes."""

    shape: TextShape
    units: tuple[Unit, ...]
    costs: tuple[int, ...]
    values: tuple[float, ...]
    alarms: tuple[int, ...]
    blocks: tuple[TrimBlock, ...]
    groups: tuple[Group, ...]
    levels: tuple[tuple[tuple[int, ...], ...], ...]  # the units that each choice of each block shows

    @classmethod
    def of(cls, text: str, keywords: Collection[str], strategy: str, count: Callable[[str], int]) -> "TextTree":
        shape, units = shape_of(text), units_of(text)
        blocks = blocks_of(units, shape)
        bare = [NUMBER.sub("", unit.text, count=1) if shape is TextShape.NUMBERED else unit.text for unit in units]
        values = piece_values(bare, keywords, _comments(bare, shape))
        weights = item_values(strategy, [ItemFacts(path=block.path) for block in blocks])
        if shape is TextShape.DIFF and strategy == "default":
            weights = item_values("size_proportional", [ItemFacts(path=block.path) for block in blocks])
        for block, weight in zip(blocks, weights, strict=True):
            values[block.start : block.end] = [weight * value for value in values[block.start : block.end]]
        marks = landmarks([unit.text for unit in units], shape)
        alarms = tuple(index for index, mark in enumerate(marks) if mark is Landmark.ALARM)
        costs = tuple(count(unit.text) + 1 for unit in units)
        levels = _Levels(costs, values, frozenset(alarms), _MARK.get(shape, _MARK_TOKENS))
        offered = [levels.of(block) for block in blocks]
        groups = tuple(
            Group(tuple(choice for choice, _ in offer), block.parent)
            for offer, block in zip(offered, blocks, strict=True)
        )
        chosen = tuple(tuple(indices for _, indices in offer) for offer in offered)
        return cls(shape, tuple(units), costs, tuple(values), alarms, tuple(blocks), groups, chosen)

    @property
    def tokens(self) -> int:
        return sum(self.costs)

    def pick(self, budget: int) -> TrimSelection:
        """The best part within a budget, by this tree's estimates of cost."""
        mark = _MARK.get(self.shape, _MARK_TOKENS)
        first = [Group((Choice(self.costs[index] + mark, self.values[index] + 1),)) for index in self.alarms]
        urgent = solve(first, max(0, budget), work=_WORK)
        kept = {index for index, pick in zip(self.alarms, urgent.picks, strict=True) if pick is not None}
        gap = urgent.gap
        if len(kept) == len(self.alarms):
            rest = solve(self.groups, max(0, budget - urgent.cost), work=_WORK)
            gap = max(gap, rest.gap)
            for levels, pick in zip(self.levels, rest.picks, strict=True):
                if pick is not None:
                    kept.update(levels[pick])
        kept = filled(self.units, kept, self.shape)
        return TrimSelection(with_gaps(self.units, kept, self.shape), _ranges(self.units, kept), gap)

    def described(self, start: int, end: int) -> str:
        """What lies between two places of the text, in a few words: its lines, and the first names in it."""
        return described(self.units, self.blocks, start, end)


def described(units: Sequence[Unit], blocks: Sequence[TrimBlock], start: int, end: int) -> str:
    inside = [unit for unit in units if unit.end > start and unit.start < end]
    if not inside:
        return "nothing"
    first, last = inside[0].line + 1, inside[-1].line + 1
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    signs = [
        units[index].text.strip() for block in blocks for index in block.signs if start <= units[index].start < end
    ]
    if not signs:
        return lines
    more = f" and {len(signs) - 1} more" if len(signs) > 1 else ""
    return f"{lines}: {signs[0][:60]}{more}"


@dataclass(frozen=True, slots=True)
class _Levels:
    """The levels of blocks, once all alarms are shown."""

    costs: Sequence[int]
    values: Sequence[float]
    kept: Collection[int]
    mark: int

    def of(self, block: TrimBlock) -> list[tuple[Choice, tuple[int, ...]]]:
        """From the sign alone to the whole block; what is kept already costs nothing."""
        signs = [index for index in block.signs if index not in self.kept]
        inside = range(block.start, block.end)
        others = [index for index in inside if index not in self.kept and index not in block.signs]
        others.sort(key=lambda index: (-self._density(index, block), index))
        bonus = _SIGN_VALUE if block.signs else 0.0
        found: list[tuple[Choice, tuple[int, ...]]] = []
        if block.signs:
            found.append(self._level(signs, bonus))
        for share in _SHARES:
            chosen = others[: round(share * len(others))]
            if chosen and (not found or len(chosen) + len(signs) > len(found[-1][1])):
                found.append(self._level([*signs, *chosen], bonus))
        # A block that is shown already, or that has nothing of its own, must not stand in the way of what is within it.
        return found or [(Choice(0, 0.0), ())]

    def _density(self, index: int, block: TrimBlock) -> float:
        """Value for a token, its neighbours' too: a line is read with what stands around it."""
        near = range(max(block.start, index - 1), min(block.end, index + 2))
        return sum((1 + (at == index)) * self.values[at] / self.costs[at] for at in near) / (1 + len(near))

    def _level(self, indices: Sequence[int], bonus: float) -> tuple[Choice, tuple[int, ...]]:
        chosen = tuple(sorted(indices))
        runs = sum(1 for at, index in enumerate(chosen) if not at or chosen[at - 1] + 1 != index)
        cost = sum(self.costs[index] for index in chosen) + self.mark * runs
        return Choice(cost, bonus + fsum(self.values[index] for index in chosen)), chosen


def _comments(bare: Sequence[str], shape: TextShape) -> frozenset[int]:
    """Lines of source that only speak of others."""
    if shape not in (TextShape.NUMBERED, TextShape.SOURCE):
        return frozenset()
    return frozenset(index for index, text in enumerate(bare) if _COMMENT.match(text))


def _ranges(units: Sequence[Unit], kept: Collection[int]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for index in sorted(kept):
        start, end = units[index].start, units[index].end
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return tuple(found)
