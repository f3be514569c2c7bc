"""Context drawn as bands of colour, one colour a level: with attributes alone, so that no style has to be allowed.

Each drawing is one picture to a screen reader, with its figures in words.
"""

from collections.abc import Mapping, Sequence

from pagefold.dashboard.html import Html, el
from pagefold.telemetry.events import LEVELS
from pagefold.telemetry.live import TimelinePoint

_WIDE, _HIGH = 1000, 160
_POINTS = 120


def legend(levels: Mapping[str, int] | None = None) -> Html:
    def told(level: str) -> str:
        return level if levels is None else f"{level} {levels.get(level, 0):,}"

    items = (el("li", el("span", "", class_=f"dot {level}", aria_hidden="true"), told(level)) for level in LEVELS)
    return el("ul", items, class_="legend", aria_label="Levels")


def bar(counts: Sequence[int]) -> Html:
    """How much stands at each level, as parts of one bar."""
    total = sum(counts) or 1
    words = ", ".join(f"{level} {count:,}" for level, count in zip(LEVELS, counts, strict=True) if count)
    rects, at = [], 0.0
    for level, count in zip(LEVELS, counts, strict=True):
        width = 100 * count / total
        rects.append(el("rect", x=round(at, 2), y=0, width=round(width, 2), height=10, class_=level))
        at += width
    return el(
        "svg",
        rects,
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=words or "nothing yet",
    )


def strip(characters: Sequence[tuple[str, int]], tokens: int, head: int) -> Html:
    """One request from its beginning to its end, neighbours of a level together."""
    scale = (tokens - head) / (sum(count for _, count in characters) or 1)
    bands = [(LEVELS[0], head), *((level, round(count * scale)) for level, count in characters)]
    total = sum(count for _, count in bands) or 1
    rects, at = [], 0.0
    for level, count in bands:
        width = _WIDE * count / total
        title = el("title", f"{level}, {count:,} tokens")
        rects.append(el("g", title, el("rect", x=round(at, 1), y=0, width=round(width, 1), height=40, class_=level)))
        at += width
    words = f"{tokens:,} tokens from the beginning of the request to its end: " + ", ".join(
        f"{count:,} {level}" for level, count in bands[:12]
    )
    return el(
        "svg",
        rects,
        viewBox=f"0 0 {_WIDE} 40",
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
        class_="strip",
    )


def timeline(points: Sequence[TimelinePoint]) -> Html:
    """Tokens by level over the newest turns; a line marks a fold point, a mark at the foot a fault."""
    points = points[-_POINTS:]
    top = max(sum(point.levels.values()) for point in points) or 1
    step = _WIDE / len(points)
    shapes: list[Html] = []
    floor = [0.0] * len(points)
    for level in LEVELS:
        if not any(point.levels.get(level) for point in points):
            continue
        roof = [low + point.levels.get(level, 0) for low, point in zip(floor, points, strict=True)]
        shapes.append(el("path", d=_area(floor, roof, step, top), class_=level))
        floor = roof
    for at, point in enumerate(points):
        if point.fold:
            x = round(at * step, 1)
            shapes.append(el("line", x1=x, x2=x, y1=0, y2=_HIGH, class_="fold"))
        if point.fault:
            x = round(at * step, 1)
            shapes.append(el("rect", x=x, y=_HIGH - 6, width=round(max(step, 4), 1), height=6, class_="fault"))
    folds, faults = sum(point.fold for point in points), sum(point.fault for point in points)
    last = sum(points[-1].levels.values())
    words = (
        f"{len(points)} turns, up to {top:,} tokens, {last:,} in the last; {folds} fold points, {faults} with faults"
    )
    drawn = el(
        "svg",
        shapes,
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
        class_="timeline",
    )
    return el("figure", drawn, el("figcaption", f"{words}. Dashed: a fold point. Red at the foot: faults."))


def _area(floor: Sequence[float], roof: Sequence[float], step: float, top: float) -> str:
    """The outline of one level in steps, a turn each."""

    def y(value: float) -> int:
        return round(_HIGH - _HIGH * value / top)

    path = [f"M0 {y(roof[0])}"]
    for at, value in enumerate(roof):
        path.append(f"V{y(value)}H{round((at + 1) * step, 1):g}")
    for at in range(len(floor) - 1, -1, -1):
        path.append(f"V{y(floor[at])}H{round(at * step, 1):g}")
    return "".join(path) + "Z"
