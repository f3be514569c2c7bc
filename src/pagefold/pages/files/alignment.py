"""How a fresh view of a file fits with what was known of it: which known lines keep their numbers, get others, or lose
them.

Two views are tied by lines that occur once in each and say enough to be told from others. Known lines that a fresh view
should show and does not are dropped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from pagefold.frozen import frozen
from pagefold.pages.files.region import Region, is_telling

_ENOUGH = 3  # ties that give lines without numbers their place: one or two lines may stand elsewhere too


@frozen
class _Fitted:
    """What is left of a known region beside a fresh view: numbered parts, parts without numbers, and by how much the
    lines above and below the view have moved, None where that is not known."""

    numbered: tuple[Region, ...] = ()
    loose: tuple[Region, ...] = ()
    above: int | None = None
    below: int | None = None


def aligned(known: Iterable[Region], fresh: Region) -> tuple[Region, ...]:
    """The known regions and a fresh numbered view of the file, as regions without overlap."""
    numbered = [region for region in known if region.start is not None]
    loose = [region for region in known if region.start is None]
    if not all(_agrees(region, fresh) for region in numbered):
        numbered, more = _moved(numbered, fresh)
        loose += more
    kept = [part for region in numbered for part in _outside(region, fresh)]
    rest: list[Region] = []
    for region in loose:
        fitted = _fitted(region, fresh)
        if fitted is None:
            rest.append(region)
        else:
            kept += [part for part in fitted.numbered if not any(_overlaps(part, other) for other in kept)]
            rest += fitted.loose
    return joined([*kept, fresh], rest)


def joined(numbered: Iterable[Region], loose: Iterable[Region]) -> tuple[Region, ...]:
    """Numbered regions in order, neighbours as one, and the loose ones that do not repeat them."""
    together: list[Region] = []
    for region in sorted(numbered, key=lambda region: region.start or 0):
        if together and together[-1].end == region.start:
            together[-1] = together[-1].joined(region)
        else:
            together.append(region)
    rest = list(loose)
    known = frozenset[str]().union(*[whole.lines for whole in together]) if rest else frozenset[str]()
    return (*together, *[region for region in rest if region.lines[0] not in known or not _repeats(region, together)])


def _repeats(region: Region, others: Iterable[Region]) -> bool:
    """Whether all lines of a region stand, as one run, in one of the others."""
    return any(other.holds(region.lines) for other in others)


def beside(certain: Sequence[Region], doubted: Sequence[Region]) -> tuple[Region, ...]:
    """Regions that are certain, and those in doubt that say nothing else about the same lines. Where they do, their
    numbers are wrong: what is left of them must not stand as if it followed what is certain."""
    held = [region for region in certain if region.start is not None]
    loose = [region for region in (*certain, *doubted) if region.start is None]
    kept: list[Region] = []
    for region in doubted:
        parts = [region] if region.start is not None else []
        for other in held:
            rest: list[Region] = []
            for part in parts:
                numbered, apart = _left_beside(part, other)
                rest += numbered
                loose += apart
            parts = rest
        for part in parts:
            (loose if any(_overlaps(part, one) for one in kept) else kept).append(part)
    return joined([*held, *kept], [one if one.start is None else one.unnumbered() for one in loose])


def _left_beside(part: Region, other: Region) -> tuple[list[Region], list[Region]]:
    """What is left of a numbered region beside a certain one: parts with numbers, and parts without."""
    if not _overlaps(part, other):
        return [part], []
    if _agrees(part, other):
        return _outside(part, other), []
    fitted = _fitted(part, other)
    if fitted is None:
        return [], [rest.unnumbered() for rest in _outside(part, other)]
    return list(fitted.numbered), list(fitted.loose)


def in_order(regions: Iterable[Region]) -> tuple[Region, ...]:
    """Regions without overlap in their order: numbered ones first, neighbours as one."""
    regions = list(regions)
    numbered = [region for region in regions if region.start is not None and region.lines]
    return joined(numbered, [region for region in regions if region.start is None and region.lines])


def _agrees(region: Region, fresh: Region) -> bool:
    """Whether a known region says the same as a fresh view where they overlap."""
    assert region.start is not None
    assert fresh.start is not None
    first, end = max(region.start, fresh.start), min(region.end, fresh.end)
    known = region.lines[first - region.start : end - region.start]
    return first >= end or known == fresh.lines[first - fresh.start : end - fresh.start]


def _overlaps(one: Region, other: Region) -> bool:
    assert one.start is not None
    assert other.start is not None
    return one.start < other.end and other.start < one.end


def _outside(region: Region, fresh: Region) -> list[Region]:
    """The parts of a numbered region before and behind a fresh one."""
    assert region.start is not None
    assert fresh.start is not None
    if not _overlaps(region, fresh):
        return [region]
    count = len(region.lines)
    before = min(count, max(0, fresh.start - region.start))
    behind = max(before, fresh.end - region.start)
    return [part for part in (region.part(0, before), region.part(behind, count)) if part.lines]


def _moved(numbered: Sequence[Region], fresh: Region) -> tuple[list[Region], list[Region]]:
    """Numbered regions where a fresh view disagrees with one of them: with numbers that hold again, and those whose
    numbers are no longer certain."""
    assert fresh.start is not None
    kept: list[Region] = []
    loose: list[Region] = []
    above, below = 0 if fresh.start == 1 else None, None
    apart: list[Region] = []
    for region in numbered:
        if not _overlaps(region, fresh):
            apart.append(region)
            continue
        fitted = _fitted(region, fresh)
        if fitted is None:  # nothing ties them: what it said there is replaced, the rest is somewhere
            loose += [part.unnumbered() for part in _outside(region, fresh)]
            continue
        kept += fitted.numbered
        loose += fitted.loose
        above = fitted.above if above is None else above
        below = fitted.below if fitted.below is not None else below
    for region in apart:
        assert region.start is not None
        is_above = region.start < fresh.start
        shift = above if is_above else below
        if shift is None or (is_above and shift):
            loose.append(region.unnumbered())
        else:
            kept.append(region.moved(shift))
    return kept, loose


def _fitted(region: Region, fresh: Region) -> _Fitted | None:
    """A known region beside a fresh view that shares lines with it; None where nothing ties them."""
    assert fresh.start is not None
    ties = _ties(region.lines, fresh.lines)
    if not ties or (region.start is None and len(ties) < _ENOUGH):
        return None
    (first_fresh, first), (last_fresh, last) = ties[0], ties[-1]
    numbered: list[Region] = []
    loose: list[Region] = []
    above = below = None
    head = first - first_fresh  # where the view begins in the region, if nothing changed up to the first tie
    if region.lines[max(0, head) : first] == fresh.lines[max(0, -head) : first_fresh]:
        above = fresh.start + first_fresh - first - (region.start or 0)
        if head > 0:
            numbered.append(replace(region.part(0, head), start=fresh.start - head))
    elif head > 0:
        loose.append(region.part(0, head).unnumbered())
    left = len(fresh.lines) - last_fresh - 1
    foot = last + 1 + left
    if region.lines[last + 1 : foot] == fresh.lines[last_fresh + 1 : last_fresh + 1 + len(region.lines) - last - 1]:
        below = fresh.start + last_fresh - last - (region.start or 0)
        if foot < len(region.lines):
            numbered.append(replace(region.part(foot, len(region.lines)), start=fresh.end))
    elif foot < len(region.lines):
        loose.append(region.part(foot, len(region.lines)).unnumbered())
    if region.start is None:
        above = below = None
    numbered = [part for part in numbered if (part.start or 0) > 0]
    return _Fitted(tuple(numbered), tuple(loose), above, below)


def _ties(known: tuple[str, ...], fresh: tuple[str, ...]) -> list[tuple[int, int]]:
    """Pairs of indexes, in a fresh view and in known lines, of lines that occur once in both; in the order of both."""
    once = _once(known)
    pairs = [(index, once[line]) for line, index in _once(fresh).items() if line in once]
    ties: list[tuple[int, int]] = []
    for pair in sorted(pairs):
        if not ties or pair[1] > ties[-1][1]:
            ties.append(pair)
    return ties


@lru_cache(maxsize=1024)
def _once(lines: tuple[str, ...]) -> Mapping[str, int]:
    """The indexes of telling lines that occur once, remembered: what is known is held against every fresh view."""
    places: dict[str, int] = {}
    for index, line in enumerate(lines):
        if is_telling(line):
            places[line] = -1 if line in places else index
    return {line: index for line, index in places.items() if index >= 0}
