"""Rates the items of a list by their place and what is known about them, with one strategy for each tool.

    element_count      earlier items first                     cascading          the newest comment first
    size_proportional  lock files and minified code last       thread_level       unresolved threads, their ends
    head_tail          the last 70 %, then the start           priority           place, activity and recency together
    default            all the same

A strategy is named in the call, configured for a tool, or looked up in the table below: by the tool's name, then by
the name after the first `__`. Values lie between 0 and 1 and do not consider size: cost is the solver's business.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pagefold.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What strategies may ask about one item, as far as the item says it."""

    path: str = ""
    resolved: bool | None = None
    activity: float | None = None
    days: float | None = None  # since it was last touched


Strategy = Callable[[Sequence[ItemFacts]], list[float]]

_TOOLS: Mapping[str, str] = {
    "get_issues": "priority",
    "get_merge_requests": "priority",
    "get_issue_comments": "cascading",
    "get_merge_request_diffs": "size_proportional",
    "get_merge_request_discussions": "thread_level",
    "get_job_logs": "head_tail",
    "get_pipeline": "default",
    "get_users": "default",
    "get_statuses": "default",
}


def strategy_for(tool: str, named: str | None = None, configured: Mapping[str, str] | None = None) -> str:
    """Returns the name of the strategy for a tool. Raises ConfigError where a name is no strategy."""
    if named is not None:
        return _checked(named, "strategy")
    for name in (tool, tool.partition("__")[2]):
        for table in (configured or {}, _TOOLS):
            if name in table:
                return _checked(table[name], f"strategies.{name}")
    return "default"


def item_values(strategy: str, items: Sequence[ItemFacts]) -> list[float]:
    """Returns the value of each item. Raises ConfigError for a name that is no strategy."""
    return STRATEGIES[_checked(strategy, "strategy")](items)


def thread_values(thread: float, comments: int) -> list[float]:
    """Returns the values of a thread's comments: first and last as much as the thread, those between half."""
    return [thread if index in (0, comments - 1) else thread / 2 for index in range(comments)]


def _checked(name: str, where: str) -> str:
    if name not in STRATEGIES:
        raise ConfigError(f"{where} = {name!r}: expected one of {', '.join(STRATEGIES)}")
    return name


def _default(items: Sequence[ItemFacts]) -> list[float]:
    return [1.0] * len(items)


def _element_count(items: Sequence[ItemFacts]) -> list[float]:
    return [1 - 0.7 * index / len(items) for index in range(len(items))]


def _cascading(items: Sequence[ItemFacts]) -> list[float]:
    return [0.95 ** (len(items) - 1 - index) for index in range(len(items))]


def _size_proportional(items: Sequence[ItemFacts]) -> list[float]:
    return [_path_value(item.path.lower()) for item in items]


def _path_value(path: str) -> float:
    if path.endswith((".lock", ".sum", "package-lock.json", "yarn.lock")):
        return 0.05
    if path.endswith((".min.js", ".min.css")):
        return 0.10
    if "migration" in path or "schema" in path:
        return 0.60
    return 0.70 if "test" in path or "spec" in path else 1.0


def _thread_level(items: Sequence[ItemFacts]) -> list[float]:
    return [0.3 if item.resolved else 1.0 for item in items]


def _head_tail(items: Sequence[ItemFacts]) -> list[float]:
    # Twice these shares would cover every item; halved, they leave a middle.
    head, tail = math.ceil(0.15 * len(items)), math.ceil(0.35 * len(items))
    return [0.8 if index < head else 1.0 if index >= len(items) - tail else 0.1 for index in range(len(items))]


def _priority(items: Sequence[ItemFacts]) -> list[float]:
    if all(item.activity is None and item.days is None for item in items):
        return _element_count(items)
    place = [1 - index / len(items) for index in range(len(items))]
    active = _scaled([item.activity for item in items], place)
    recent = _scaled([None if item.days is None else 1 / (1 + item.days / 30) for item in items], place)
    return [0.40 * p + 0.35 * a + 0.25 * r for p, a, r in zip(place, active, recent, strict=True)]


def _scaled(signal: Sequence[float | None], place: Sequence[float]) -> list[float]:
    values = [value for value in signal if value is not None]
    if not values:
        return list(place)
    low, span = min(values), max(max(values) - min(values), 1e-9)
    return [at if value is None else (value - low) / span for value, at in zip(signal, place, strict=True)]


STRATEGIES: Mapping[str, Strategy] = {
    "default": _default,
    "element_count": _element_count,
    "cascading": _cascading,
    "size_proportional": _size_proportional,
    "thread_level": _thread_level,
    "head_tail": _head_tail,
    "priority": _priority,
}
