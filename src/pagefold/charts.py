"""Draws the charts of reports, dashboard and laboratory as SVG, from plain values.

Charts inside a page take their colours from the page's style by class, so that no style has to be allowed in them. Each
is one picture to a screen reader, with its figures in words, and every mark says in words what it is.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

from pagefold.html import Html, HtmlChild, el
from pagefold.number_format import rate, short
from pagefold.pages.kinds import ResidencyLevel

LEVELS = tuple(map(str, ResidencyLevel))
LEVEL_WORDS = {
    ResidencyLevel.FULL: "whole",
    ResidencyLevel.COMPRESSED: "lossless form",
    ResidencyLevel.STRUCTURED: "lines kept",
    ResidencyLevel.POINTER: "handle only",
}
"""The levels in words that need no explanation."""


def legend(keys: Iterable[tuple[str, str]], label: str | None = None) -> Html:
    """Returns a list of colours and what they mean: the class of each key, and its words."""
    items = (el("li", el("span", "", class_=key, aria_hidden="true"), words) for key, words in keys)
    return el("ul", items, class_="legend", aria_label=label)


def _stretched(shapes: HtmlChild, width: int, height: int, words: str | None, class_: str | None = None) -> Html:
    """A chart without text, which is as wide as its place. Without words it only repeats what stands beside it."""
    return el(
        "svg",
        shapes,
        viewBox=f"0 0 {width} {height}",
        preserveAspectRatio="none",
        role="img" if words else None,
        aria_label=words,
        aria_hidden=None if words else "true",
        class_=class_,
    )


def _point(value: float) -> str:
    return f"{value:.1f}"


def _text(x: float, y: float, words: str, *, anchor: str | None = None, class_: str | None = "axis") -> Html:
    return el("text", words, class_=class_, x=_point(x), y=_point(y), text_anchor=anchor)


def _line(x1: float, y1: float, x2: float, y2: float, **attributes: str) -> Html:
    return el("line", x1=_point(x1), y1=_point(y1), x2=_point(x2), y2=_point(y2), **attributes)


# ---- the levels of a request --------------------------------------------------------------------------------------

_WIDE, _HIGH = 1000, 160
_TURNS = 120


def share_bar(before: float, after: float, whole: float) -> Html:
    """A bar of what it was with what is left of it, beside a row's numbers, which say the same."""
    if whole <= 0:
        return Html()
    sizes = (("was", before), ("is", after))
    shapes = [el("rect", class_=key, width=_point(100 * min(1.0, size / whole)), height=10) for key, size in sizes]
    return _stretched(shapes, 100, 10, None, "bar")


def level_bar(counts: Sequence[int]) -> Html:
    """How much stands at each level, as parts of one bar."""
    total = sum(counts) or 1
    words = ", ".join(f"{level} {count:,}" for level, count in zip(LEVELS, counts, strict=True) if count)
    shapes, x = [], 0.0
    for level, count in zip(LEVELS, counts, strict=True):
        width = 100 * count / total
        shapes.append(el("rect", x=round(x, 2), y=0, width=round(width, 2), height=10, class_=level))
        x += width
    return _stretched(shapes, 100, 10, words or "nothing yet")


def request_strip(characters: Sequence[tuple[str, int]], tokens: int, head: int) -> Html:
    """One request from its beginning to its end, neighbours of a level together."""
    scale = (tokens - head) / (sum(count for _, count in characters) or 1)
    bands = [(LEVELS[0], head), *((level, round(count * scale)) for level, count in characters)]
    total = sum(count for _, count in bands) or 1
    shapes, x = [], 0.0
    for level, count in bands:
        width = _WIDE * count / total
        title = el("title", f"{level}, {count:,} tokens")
        shapes.append(el("g", title, el("rect", x=_point(x), y=0, width=_point(width), height=40, class_=level)))
        x += width
    words = f"{tokens:,} tokens from the beginning of the request to its end: " + ", ".join(
        f"{count:,} {level}" for level, count in bands[:12]
    )
    return _stretched(shapes, _WIDE, 40, words, "strip")


def context_timeline(turns: Sequence[tuple[Mapping[str, int], bool, bool]]) -> Html:
    """Tokens by level over the newest turns, each with whether it was a fold point and whether it had a fault."""
    turns = turns[-_TURNS:]
    top = max(sum(levels.values()) for levels, _, _ in turns) or 1
    step = _WIDE / len(turns)
    shapes: list[Html] = []
    floor = [0.0] * len(turns)
    for level in LEVELS:
        if any(levels.get(level) for levels, _, _ in turns):
            roof = [low + levels.get(level, 0) for low, (levels, _, _) in zip(floor, turns, strict=True)]
            shapes.append(el("path", d=_area(floor, roof, step, top), class_=level))
            floor = roof
    for index, (_, fold, fault) in enumerate(turns):
        x = index * step
        if fold:
            shapes.append(_line(x, 0, x, _HIGH, class_="fold"))
        if fault:
            width = _point(max(step, 4))
            shapes.append(el("rect", x=_point(x), y=_HIGH - 6, width=width, height=6, class_="fault"))
    folds, faults = sum(fold for _, fold, _ in turns), sum(fault for _, _, fault in turns)
    last = sum(turns[-1][0].values())
    words = f"{len(turns)} turns, up to {top:,} tokens, {last:,} in the last; {folds} fold points, {faults} with faults"
    drawn = _stretched(shapes, _WIDE, _HIGH, words, "timeline")
    return el("figure", drawn, el("figcaption", f"{words}. Dashed: a fold point. Red at the foot: faults."))


def _area(floor: Sequence[float], roof: Sequence[float], step: float, top: float) -> str:
    """The outline of one level in steps, a turn each."""

    def y(value: float) -> int:
        return round(_HIGH - _HIGH * value / top)

    path = [f"M0 {y(roof[0])}"]
    for index, value in enumerate(roof):
        path.append(f"V{y(value)}H{round((index + 1) * step, 1):g}")
    for index in range(len(floor) - 1, -1, -1):
        path.append(f"V{y(floor[index])}H{round(index * step, 1):g}")
    return "".join(path) + "Z"


# ---- one recorded session -----------------------------------------------------------------------------------------

_WIDTH, _LEFT, _RIGHT = 960, 64, 16
_END = _WIDTH - _RIGHT
_STRIPES = 420  # more pages than this are drawn together: nobody sees a line a third of a pixel high


class Mark(NamedTuple):
    """Something that happened before an answer: the answer's number, what it was, and why."""

    turn: int
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Track:
    """A page: its size as it came, since which answer it stood, and its levels from then on."""

    label: str
    tokens: int
    since: int
    levels: tuple[tuple[int, ResidencyLevel], ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """`before` and `after` are the tokens of each request as it was sent and as it would have been."""

    session: str
    source: str
    window: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    tracks: tuple[Track, ...]
    folds: tuple[Mark, ...]
    faults: tuple[Mark, ...]
    misses: tuple[Mark, ...]
    recalls: tuple[Mark, ...]


def session_timeline(data: Timeline) -> Html:
    """Pages as stripes, as high as they are long, over turns; below them the size of every request."""
    turns = max(1, len(data.after))
    step = (_END - _LEFT) / turns
    shapes = [
        *_stripes(data, step, top=24, height=300),
        *_marks(data, step, top=24, height=300),
        *_sizes(data, step, top=384, height=130),
    ]
    words = (
        f"{len(data.tracks)} pages over {turns} turns, {len(data.folds)} fold points, {len(data.faults)} faults, "
        f"{len(data.misses)} answers with a miss, {len(data.recalls)} recalls."
    )
    return _described("timeline", 552, "Pages over turns, coloured by level", words, shapes)


def _described(name: str, height: float, title: str, words: str, shapes: HtmlChild) -> Html:
    """A chart with text, which a screen reader names by its title and describes by its words."""
    return el(
        "svg",
        el("title", title, id=f"{name}-t"),
        el("desc", words, id=f"{name}-d"),
        shapes,
        class_=name,
        viewBox=f"0 0 {_WIDTH} {height:.0f}",
        role="img",
        aria_labelledby=f"{name}-t {name}-d",
    )


def _stripes(data: Timeline, step: float, *, top: float, height: float) -> Iterator[Html]:
    total = sum(track.tokens for track in data.tracks) or 1
    size = -(-len(data.tracks) // _STRIPES) or 1
    y = top
    for first in range(0, len(data.tracks), size):
        group = data.tracks[first : first + size]
        tokens = sum(track.tokens for track in group)
        tall = height * tokens / total
        label = group[0].label if len(group) == 1 else f"{len(group)} pages from {group[0].label}"
        # A group goes by its largest page.
        track = max(group, key=lambda one: one.tokens)
        ends = [*(turn for turn, _ in track.levels[1:]), len(data.after)]
        rects = [
            el(
                "rect",
                class_=level,
                x=_point(_LEFT + start * step),
                y=f"{y:.2f}",
                width=_point((end - start) * step),
                height=f"{max(tall, 0.3):.2f}",
            )
            for (start, level), end in zip(track.levels, ends, strict=True)
            if end > start
        ]
        yield el("g", el("title", f"{label}: {short(tokens)} tokens"), rects)
        y += tall
    yield _text(_LEFT - 8, top + 10, "first", anchor="end")
    yield _text(_LEFT - 8, top + height - 2, "last", anchor="end")


def _marks(data: Timeline, step: float, *, top: float, height: float) -> Iterator[Html]:
    def mark(kind: str, what: Mark, shape: Html) -> Html:
        words = f"{kind.capitalize()} before answer {what.turn + 1}: {what.why}"
        return el("g", el("title", words), shape, class_=kind)

    for one in data.folds:
        x = _LEFT + one.turn * step
        yield mark("fold", one, _line(x, top - 8, x, top + height + 4))
    for kind, marks, below in (("miss", data.misses, 14), ("fault", data.faults, 28)):
        for one in marks:
            x, y = _LEFT + (one.turn + 0.5) * step, top + height + below
            yield mark(kind, one, el("circle", cx=_point(x), cy=_point(y), r=3))
    for one in data.recalls:
        x = _LEFT + (one.turn + 0.5) * step
        yield mark("recall", one, el("path", d=f"M{x:.1f} {top - 10} l4 8 h-8 z"))
    yield _text(_LEFT - 8, top + height + 18, "missed", anchor="end")
    yield _text(_LEFT - 8, top + height + 32, "faults", anchor="end")


def _sizes(data: Timeline, step: float, *, top: float, height: float) -> Iterator[Html]:
    highest = max([*data.before, *data.after, 1])
    foot = top + height

    def y(size: int) -> float:
        return top + height * (1 - size / highest)

    for key, sizes, title in (("before", data.before, "As logged"), ("after", data.after, "After")):
        points = " ".join(f"{_LEFT + (turn + 0.5) * step:.1f},{y(size):.1f}" for turn, size in enumerate(sizes))
        yield el("polyline", el("title", title), class_=key, points=points)
    if 0 < data.window < highest:
        yield _line(_LEFT, y(data.window), _END, y(data.window), class_="window")
        yield _text(_END, y(data.window) - 4, f"the window, {short(data.window)}", anchor="end")
    yield _line(_LEFT, foot, _END, foot, class_="rule")
    yield _text(_LEFT - 8, top + 10, short(highest), anchor="end")
    yield _text(_LEFT - 8, foot, "0", anchor="end")
    turns = len(data.after)
    every = next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if turns / size <= 12)
    for turn in range(every, turns + 1, every):
        yield _text(_LEFT + (turn - 0.5) * step, foot + 16, str(turn), anchor="middle")
    yield _text(_END, foot + 32, "turn", anchor="end")


# ---- policies against each other ----------------------------------------------------------------------------------


class CostPoint(NamedTuple):
    """A policy's cost relative to the history as it is, misses priced in, and the share of facts it missed."""

    name: str
    effective: float
    missed: float


def cost_over_misses(points: Sequence[CostPoint], limit: float) -> Html:
    """Cost over what was missed: lower left is better. Shaded is where at most `limit` was missed."""
    top, height = 24, 320
    foot = top + height
    highest = max([1.05, *(point.effective for point in points)]) * 1.03
    widest = max([limit * 2, *(point.missed for point in points)]) * 1.12

    def x(missed: float) -> float:
        return _LEFT + math.sqrt(missed / widest) * (_END - _LEFT)

    def y(effective: float) -> float:
        return top + height * (1 - effective / highest)

    shapes = [
        el("rect", class_="eligible", x=_LEFT, y=top, width=_point(x(limit) - _LEFT), height=height),
        _text(x(limit) + 4, top + 12, f"more than {rate(limit)} missed"),
        _line(_LEFT, y(1), _END, y(1), class_="window"),
        _text(_END, y(1) - 5, "the history as it is", anchor="end"),
        _line(_LEFT, foot, _END, foot, class_="rule"),
        _line(_LEFT, top, _LEFT, foot, class_="rule"),
        *(_text(_LEFT - 8, y(at) + 4, f"{at:g}", anchor="end") for at in (0.25, 0.5, 0.75, 1.0) if at < highest),
        *(
            _text(x(at), foot + 18, f"{100 * at:g} %", anchor="middle")
            for at in (0.001, 0.003, 0.01, 0.03, 0.1)
            if at < widest
        ),
        _text(_END, foot + 36, "facts missed", anchor="end"),
    ]
    taken: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda one: (-one.effective, one.missed)):
        px, py = x(point.missed), y(point.effective)
        label = py
        while any(abs(px - other) < 130 and abs(label - height_of) < 14 for other, height_of in taken):
            label += 14
        taken.append((px, label))
        near_end = px > _WIDTH - 190
        title = f"{point.name}: {point.effective:.3f} with misses, {rate(point.missed)} missed"
        label_text = _text(
            px - 9 if near_end else px + 9, label + 4, point.name, anchor="end" if near_end else "start", class_=None
        )
        circle = el("circle", cx=_point(px), cy=_point(py), r=5)
        kind = "best" if is_unbeaten(point, points) else "other"
        shapes.append(el("g", el("title", title), circle, label_text, class_=f"point {kind}"))
    words = "; ".join(f"{point.name} {point.effective:.2f} at {rate(point.missed)}" for point in points)
    return _described("pareto", foot + 44, "Policies by cost and by what they miss", words, shapes)


def is_unbeaten(point: CostPoint, points: Iterable[CostPoint]) -> bool:
    """Whether no other point is as good in both, and better in one."""
    return not any(
        other.effective <= point.effective and other.missed <= point.missed and other[1:] != point[1:]
        for other in points
    )


# ---- faults in the laboratory, as a file of its own ---------------------------------------------------------------

_TICKS = (0, 1, 3, 10, 30, 100, 300)
_COLOURS = ("#b3261e", "#d9822b", "#8a6d1d", "#5b6b7a", "#1b6e3c", "#3557a5")
_APART = 15


def faults_by_budget(series: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """One line a policy through (budget, mean faults); faults on a scale of log(1 + n), so that none has a place."""
    width, height, left, right, above, below = 760, 420, 60, 170, 50, 50
    budgets = sorted({budget for points in series.values() for budget, _ in points})
    most = max((faults for points in series.values() for _, faults in points), default=0.0)
    ticks = [tick for tick in _TICKS if tick <= most] or [0]
    highest = math.log1p(max(most, ticks[-1], 1.0))

    def x(budget: int) -> float:
        return left + (budget - budgets[0]) / ((budgets[-1] - budgets[0]) or 1) * (width - left - right)

    def y(faults: float) -> float:
        return height - below - math.log1p(faults) / highest * (height - above - below)

    shapes: list[Html] = [
        el("rect", width=width, height=height, fill="white"),
        el("text", "Faults a policy could have avoided, mean of a workload", x=left, y=24, font_size=15),
        *(_line(left, y(tick), width - right, y(tick), stroke="#ddd") for tick in ticks),
        *(_text(left - 8, y(tick) + 4, str(tick), anchor="end", class_=None) for tick in ticks),
        *(_text(x(budget), height - below + 20, str(budget), anchor="middle", class_=None) for budget in budgets),
        _text(left, height - 10, "budget in tokens", class_=None),
    ]
    places = _label_places([y(points[-1][1]) + 4 for points in series.values()], height - below + 12)
    for (name, points), place, colour in zip(series.items(), places, cycle(_COLOURS), strict=False):
        path = " ".join(f"{x(budget):.1f},{y(faults):.1f}" for budget, faults in points)
        shapes.append(el("polyline", points=path, fill="none", stroke=colour, stroke_width=2))
        shapes.append(el("text", name, x=width - right + 10, y=_point(place), fill=colour))
    box, namespace = f"0 0 {width} {height}", "http://www.w3.org/2000/svg"
    return el("svg", shapes, xmlns=namespace, viewBox=box, font_family="sans-serif", font_size=12) + "\n"


def _label_places(ends: Sequence[float], lowest: float) -> list[float]:
    """Beside the end of each line, pushed apart so that no two names overlap."""
    places = [0.0] * len(ends)
    above = -math.inf
    for index in sorted(range(len(ends)), key=ends.__getitem__):
        above = places[index] = max(ends[index], above + _APART)
    over = max(places, default=0.0) - lowest
    return [place - over for place in places] if over > 0 else places
