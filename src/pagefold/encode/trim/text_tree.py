"""Selects the most valuable part of a plain text within a budget.

The text is a tree of blocks, each shown whole, shortened, by its sign alone, or not at all. Errors and failures are
chosen first; the solver then picks a level for each block, the most value within what is left of the budget.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import fsum

from pagefold.encode.page_pieces import line_span
from pagefold.encode.shape import TextShape, shape_of
from pagefold.encode.trim.blocks import TrimBlock, blocks_of
from pagefold.encode.trim.gaps import filled, with_gaps
from pagefold.encode.trim.landmarks import Landmark, bare, landmarks
from pagefold.encode.trim.piece_values import piece_values
from pagefold.encode.trim.strategy import ItemFacts, item_values
from pagefold.encode.trim.units import Unit, units_of
from pagefold.knapsack import Group, GroupChoice, solve

_SHARES = (0.15, 0.3, 0.5, 0.75, 1.0)  # of a block's units, the densest first
_MARK = {TextShape.NUMBERED: 2}
_MARK_TOKENS = 6
_COMMENT = re.compile(r"\s*(?:#(?!include)|//|/\*|\* |--|\"\"\")")
_SIGN_VALUE = 0.5  # of showing what a block is, beside the facts in its sign
_WORK = 60_000


@dataclass(frozen=True, slots=True)
class TrimSelection:
    """What is shown of a text at some budget: the body, and the ranges of the text that it shows whole.

    `gap` is how far the selection may be from the best one; `missing` is what the body itself does not mark as missing.
    """

    body: str
    ranges: tuple[tuple[int, int], ...]
    gap: float = 0.0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextTree:
    """The blocks of a text with their levels. Built once for a text, then asked for any number of budgets."""

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
        texts = [bare(unit.text, shape) for unit in units]
        values = piece_values(texts, keywords, _comments(texts, shape))
        if shape is TextShape.DIFF and strategy == "default":
            strategy = "size_proportional"
        weights = item_values(strategy, [ItemFacts(path=block.path) for block in blocks])
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

    def pick(self, budget: int) -> TrimSelection:
        """Selects the best part within a budget, by this tree's estimates of cost."""
        mark = _MARK.get(self.shape, _MARK_TOKENS)
        first = [Group((GroupChoice(self.costs[index] + mark, self.values[index] + 1),)) for index in self.alarms]
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
        """Describes a range of the text in a few words: its lines, and the first sign in it."""
        inside = [unit for unit in self.units if unit.end > start and unit.start < end]
        if not inside:
            return "nothing"
        lines = line_span(inside[0].line + 1, inside[-1].line + 1)
        named = [self.units[index] for block in self.blocks for index in block.signs]
        signs = [unit.text.strip() for unit in named if start <= unit.start < end]
        if not signs:
            return lines
        more = f" and {len(signs) - 1} more" if len(signs) > 1 else ""
        return f"{lines}: {signs[0][:60]}{more}"


@dataclass(frozen=True, slots=True)
class _Levels:
    """Computes the levels of blocks, given that the units in `kept`, the alarms, are shown anyway."""

    costs: Sequence[int]
    values: Sequence[float]
    kept: Collection[int]
    mark: int

    def of(self, block: TrimBlock) -> list[tuple[GroupChoice, tuple[int, ...]]]:
        """Returns the levels of a block, from its sign alone to the whole block; units in `kept` cost nothing."""
        signs = [index for index in block.signs if index not in self.kept]
        inside = range(block.start, block.end)
        others = [index for index in inside if index not in self.kept and index not in block.signs]
        others.sort(key=lambda index: (-self._density(index, block), index))
        bonus = _SIGN_VALUE if block.signs else 0.0
        levels: list[tuple[GroupChoice, tuple[int, ...]]] = []
        if block.signs:
            levels.append(self._level(signs, bonus))
        for share in _SHARES:
            chosen = others[: round(share * len(others))]
            if chosen and (not levels or len(chosen) + len(signs) > len(levels[-1][1])):
                levels.append(self._level([*signs, *chosen], bonus))
        # A block that is shown already, or has nothing of its own, must not keep the blocks within it from being shown.
        return levels or [(GroupChoice(0, 0.0), ())]

    def _density(self, index: int, block: TrimBlock) -> float:
        """Returns value per token, averaged with the neighbours: a line is read with what stands around it."""
        near = range(max(block.start, index - 1), min(block.end, index + 2))
        return sum((1 + (at == index)) * self.values[at] / self.costs[at] for at in near) / (1 + len(near))

    def _level(self, indices: Sequence[int], bonus: float) -> tuple[GroupChoice, tuple[int, ...]]:
        chosen = tuple(sorted(indices))
        runs = sum(1 for at, index in enumerate(chosen) if not at or chosen[at - 1] + 1 != index)
        cost = sum(self.costs[index] for index in chosen) + self.mark * runs
        return GroupChoice(cost, bonus + fsum(self.values[index] for index in chosen)), chosen


def _comments(texts: Sequence[str], shape: TextShape) -> frozenset[int]:
    """Returns the indices of comment lines in source code."""
    if shape not in (TextShape.NUMBERED, TextShape.SOURCE):
        return frozenset()
    return frozenset(index for index, text in enumerate(texts) if _COMMENT.match(text))


def _ranges(units: Sequence[Unit], kept: Collection[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for index in sorted(kept):
        start, end = units[index].start, units[index].end
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return tuple(ranges)
