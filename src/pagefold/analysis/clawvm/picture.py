"""The matrix as a picture: mean faults of every policy over the budgets, as SVG without any dependency."""

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import cycle

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 170, 50, 50
_TICKS = (0, 1, 3, 10, 30, 100, 300)
_COLOURS = ("#b3261e", "#d9822b", "#8a6d1d", "#5b6b7a", "#1b6e3c", "#3557a5")
_APART = 15


def faults_by_budget(series: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """One line a policy through (budget, mean faults); faults on a scale of log(1 + n), so that none has a place."""
    budgets = sorted({budget for points in series.values() for budget, _ in points})
    most = max((faults for points in series.values() for _, faults in points), default=0.0)
    ticks = [tick for tick in _TICKS if tick <= most] or [0]
    top = math.log1p(max(most, ticks[-1], 1.0))

    def across(budget: int) -> float:
        share = (budget - budgets[0]) / ((budgets[-1] - budgets[0]) or 1)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def down(faults: float) -> float:
        return _HEIGHT - _BOTTOM - math.log1p(faults) / top * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="15">Faults a policy could have avoided, mean of a workload</text>',
    ]
    for tick in ticks:
        y = f"{down(tick):.1f}"
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{down(tick) + 4:.1f}" text-anchor="end">{tick}</text>')
    for budget in budgets:
        x, under = f"{across(budget):.1f}", _HEIGHT - _BOTTOM + 20
        parts.append(f'<text x="{x}" y="{under}" text-anchor="middle">{budget}</text>')
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 10}">budget in tokens</text>')
    for (name, points), place, colour in zip(
        series.items(), _label_places(series, down), cycle(_COLOURS), strict=False
    ):
        path = " ".join(f"{across(budget):.1f},{down(faults):.1f}" for budget, faults in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{_WIDTH - _RIGHT + 10}" y="{place:.1f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _label_places(series: Mapping[str, Sequence[tuple[int, float]]], down: Callable[[float], float]) -> list[float]:
    """Beside the end of each line, pushed apart so that no two names overlap."""
    ends = [down(points[-1][1]) + 4 for points in series.values()]
    places = [0.0] * len(ends)
    above = -math.inf
    for index in sorted(range(len(ends)), key=ends.__getitem__):
        above = places[index] = max(ends[index], above + _APART)
    over = max(places, default=0.0) - (_HEIGHT - _BOTTOM + 12)
    return [place - over for place in places] if over > 0 else places
