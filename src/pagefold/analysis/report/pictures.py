"""Pictures of a report, as SVG inside the page: no script, no font, no colour that the page's style does not give.

Each has a title and a description for those who do not see it, and every mark says in words what it is.
"""

import math
from collections.abc import Iterator, Sequence
from html import escape

from pagefold.analysis.compare import MISSED
from pagefold.analysis.report import PolicyPoint
from pagefold.analysis.timeline import Mark, Timeline, Track
from pagefold.number_format import rate, short
from pagefold.pages.kinds import ResidencyLevel

_WIDTH, _LEFT, _RIGHT = 960, 64, 16
_TRACKS = 420  # more pages than this are drawn together: nobody sees a line a third of a pixel high
_LEVELS = {
    ResidencyLevel.FULL: "whole",
    ResidencyLevel.COMPRESSED: "lossless form",
    ResidencyLevel.STRUCTURED: "lines kept",
    ResidencyLevel.POINTER: "handle only",
}


def timeline(told: Timeline) -> str:
    """Pages as stripes, as high as they are long, over turns; below it the size of every request."""
    turns = max(1, len(told.after))
    step = (_WIDTH - _LEFT - _RIGHT) / turns
    body = "".join(_tracks(told, step, top=24, height=300))
    marks = "".join(_marks(told, step, top=24, height=300))
    sizes = "".join(_sizes(told, step, top=384, height=130))
    said = (
        f"{len(told.tracks)} pages over {turns} turns, {len(told.folds)} fold points, {len(told.faults)} faults, "
        f"{len(told.misses)} answers with a miss, {len(told.recalls)} recalls."
    )
    return _svg("timeline", 552, "Pages over turns, coloured by level", said, body + marks + sizes)


def legend() -> str:
    keys = "".join(
        f'<li><span class="key {level}" aria-hidden="true"></span>{words}</li>' for level, words in _LEVELS.items()
    )
    marks = "".join(
        f'<li><span class="key line {name}" aria-hidden="true"></span>{words}</li>'
        for name, words in (("fold", "fold point"), ("miss", "a fact was missed"), ("fault", "fault"))
    )
    return f'<ul class="legend">{keys}{marks}</ul>'


def _tracks(told: Timeline, step: float, *, top: float, height: float) -> Iterator[str]:
    total = sum(track.tokens for track in told.tracks) or 1
    y = top
    for group in _grouped(told.tracks):
        size = sum(track.tokens for track in group)
        tall = height * size / total
        label = group[0].label if len(group) == 1 else f"{len(group)} pages from {group[0].label}"
        yield f"<g><title>{escape(label)}: {short(size)} tokens</title>"
        # A group goes by its largest page.
        track = max(group, key=lambda one: one.tokens)
        ends = [*(turn for turn, _ in track.levels[1:]), len(told.after)]
        for (start, level), end in zip(track.levels, ends, strict=True):
            if end > start:
                x, wide = _LEFT + start * step, (end - start) * step
                size_of = f'width="{wide:.1f}" height="{max(tall, 0.3):.2f}"'
                yield f'<rect class="{level}" x="{x:.1f}" y="{y:.2f}" {size_of}/>'
        yield "</g>"
        y += tall
    yield f'<text class="axis" x="{_LEFT - 8}" y="{top + 10}" text-anchor="end">first</text>'
    yield f'<text class="axis" x="{_LEFT - 8}" y="{top + height - 2}" text-anchor="end">last</text>'


def _grouped(tracks: Sequence[Track]) -> list[list[Track]]:
    """Neighbours together until few enough are left to be seen."""
    size = -(-len(tracks) // _TRACKS) or 1
    return [list(tracks[at : at + size]) for at in range(0, len(tracks), size)]


def _marks(told: Timeline, step: float, *, top: float, height: float) -> Iterator[str]:
    for mark in told.folds:
        x = _LEFT + mark.turn * step
        yield (
            f'<g class="fold"><title>{_said(mark, "Fold")}</title>'
            f'<line x1="{x:.1f}" y1="{top - 8}" x2="{x:.1f}" y2="{top + height + 4}"/></g>'
        )
    for kind, marks, y in (("miss", told.misses, height + 14), ("fault", told.faults, height + 28)):
        for mark in marks:
            x = _LEFT + (mark.turn + 0.5) * step
            yield (
                f'<g class="{kind}"><title>{_said(mark, kind.capitalize())}</title>'
                f'<circle cx="{x:.1f}" cy="{top + y:.1f}" r="3"/></g>'
            )
    for mark in told.recalls:
        x = _LEFT + (mark.turn + 0.5) * step
        yield (
            f'<g class="recall"><title>{_said(mark, "Recall")}</title><path d="M{x:.1f} {top - 10} l4 8 h-8 z"/></g>'
        )
    for y, word in ((height + 18, "missed"), (height + 32, "faults")):
        yield f'<text class="axis" x="{_LEFT - 8}" y="{top + y}" text-anchor="end">{word}</text>'


def _said(mark: Mark, what: str) -> str:
    return escape(f"{what} before answer {mark.turn + 1}: {mark.why}")


def _sizes(told: Timeline, step: float, *, top: float, height: float) -> Iterator[str]:
    highest = max([*told.before, *told.after, 1])

    def path(sizes: Sequence[int]) -> str:
        points = [
            f"{_LEFT + (at + 0.5) * step:.1f},{top + height * (1 - size / highest):.1f}"
            for at, size in enumerate(sizes)
        ]
        return " ".join(points)

    yield f'<polyline class="before" points="{path(told.before)}"><title>As logged</title></polyline>'
    yield f'<polyline class="after" points="{path(told.after)}"><title>After</title></polyline>'
    if 0 < told.window < highest:
        y = top + height * (1 - told.window / highest)
        yield f'<line class="window" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
        words = f"the window, {short(told.window)}"
        yield f'<text class="axis" x="{_WIDTH - _RIGHT}" y="{y - 4:.1f}" text-anchor="end">{words}</text>'
    yield f'<line class="rule" x1="{_LEFT}" y1="{top + height}" x2="{_WIDTH - _RIGHT}" y2="{top + height}"/>'
    yield f'<text class="axis" x="{_LEFT - 8}" y="{top + 10}" text-anchor="end">{short(highest)}</text>'
    yield f'<text class="axis" x="{_LEFT - 8}" y="{top + height}" text-anchor="end">0</text>'
    for turn in _ticks(len(told.after)):
        x = _LEFT + (turn - 0.5) * step
        yield f'<text class="axis" x="{x:.1f}" y="{top + height + 16}" text-anchor="middle">{turn}</text>'
    yield f'<text class="axis" x="{_WIDTH - _RIGHT}" y="{top + height + 32}" text-anchor="end">turn</text>'


def _ticks(most: int) -> list[int]:
    step = next(size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if most / size <= 12)
    return list(range(step, most + 1, step)) or [1]


def pareto(points: Sequence[PolicyPoint]) -> str:
    """Cost with misses priced in over what was missed: lower left is better."""
    top, height = 24, 320
    highest = max([1.05, *(point.effective for point in points)]) * 1.03
    widest = max([MISSED * 2, *(point.missed for point in points)]) * 1.12

    def x(missed: float) -> float:
        return _LEFT + math.sqrt(missed / widest) * (_WIDTH - _LEFT - _RIGHT)

    def y(effective: float) -> float:
        return top + height * (1 - effective / highest)

    body = [
        f'<rect class="eligible" x="{_LEFT}" y="{top}" width="{x(MISSED) - _LEFT:.1f}" height="{height}"/>',
        f'<text class="axis" x="{x(MISSED) + 4:.1f}" y="{top + 12}">more than {rate(MISSED)} missed</text>',
        f'<line class="window" x1="{_LEFT}" y1="{y(1):.1f}" x2="{_WIDTH - _RIGHT}" y2="{y(1):.1f}"/>',
        f'<text class="axis" x="{_WIDTH - _RIGHT}" y="{y(1) - 5:.1f}" text-anchor="end">the history as it is</text>',
        f'<line class="rule" x1="{_LEFT}" y1="{top + height}" x2="{_WIDTH - _RIGHT}" y2="{top + height}"/>',
        f'<line class="rule" x1="{_LEFT}" y1="{top}" x2="{_LEFT}" y2="{top + height}"/>',
    ]
    for value in (0.25, 0.5, 0.75, 1.0):
        if value < highest:
            body.append(f'<text class="axis" x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in (0.001, 0.003, 0.01, 0.03, 0.1):
        if value < widest:
            body.append(
                f'<text class="axis" x="{x(value):.1f}" y="{top + height + 18}" text-anchor="middle">'
                f"{100 * value:g} %</text>"
            )
    body.append(
        f'<text class="axis" x="{_WIDTH - _RIGHT}" y="{top + height + 36}" text-anchor="end">facts missed</text>'
    )
    best = unbeaten(points)
    taken: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda one: (-one.effective, one.missed)):
        name = f"{point.policy} {short(point.window)}"
        px, py = x(point.missed), y(point.effective)
        ly = py
        while any(abs(px - ox) < 130 and abs(ly - oy) < 14 for ox, oy in taken):
            ly += 14
        taken.append((px, ly))
        kind = "best" if (point.policy, point.window) in best else "other"
        near_end = px > _WIDTH - 190
        tx, anchor = (px - 9, "end") if near_end else (px + 9, "start")
        body.append(
            f'<g class="point {kind}"><title>{escape(name)}: {point.effective:.3f} with misses, '
            f"{rate(point.missed)} missed</title>"
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5"/>'
            f'<text x="{tx:.1f}" y="{ly + 4:.1f}" text-anchor="{anchor}">{escape(name)}</text></g>'
        )
    said = "; ".join(f"{one.policy} {short(one.window)} {one.effective:.2f} at {rate(one.missed)}" for one in points)
    return _svg("pareto", top + height + 44, "Policies by cost and by what they miss", said, "".join(body))


def unbeaten(points: Sequence[PolicyPoint]) -> set[tuple[str, int]]:
    """The points that no other beats in both."""
    return {
        (one.policy, one.window)
        for one in points
        if not any(
            other.effective <= one.effective
            and other.missed <= one.missed
            and other is not one
            and (other.effective, other.missed) != (one.effective, one.missed)
            for other in points
        )
    }


def bar(before: float, after: float, whole: float) -> str:
    """A bar of what it was with what is left of it, beside a row's numbers, which say the same."""
    if whole <= 0:
        return ""
    wide, left = 100 * min(1.0, before / whole), 100 * min(1.0, after / whole)
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="was" width="{wide:.1f}" height="10"/><rect class="is" width="{left:.1f}" height="10"/></svg>'
    )


def _svg(name: str, height: float, title: str, said: str, body: str) -> str:
    return (
        f'<svg class="{name}" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(said)}</desc>{body}</svg>'
    )
