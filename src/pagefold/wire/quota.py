"""Reads how much of a subscription's five-hour and weekly windows is used, as providers say with an answer or in a log.

Anthropic says it of an OAuth account in headers (`anthropic-ratelimit-unified-5h-utilization` and `-7d-utilization`,
shares); the ChatGPT backend of Codex in headers and events (`x-codex-primary-used-percent`, with the length of the
window). On some plans the first of Codex's two windows is the weekly one, so a window is known by its length. What is
not reported is None.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pagefold.frozen import frozen
from pagefold.wire.json_text import as_object

_HOURS, _WEEK = 5 * 60, 7 * 24 * 60  # the two windows that subscriptions have, in minutes
_ANTHROPIC = {_HOURS: "anthropic-ratelimit-unified-5h-", _WEEK: "anthropic-ratelimit-unified-7d-"}
_CODEX = ("x-codex-primary-", "x-codex-secondary-")
_SAME = 60.0  # seconds by which reports of one window's end may differ
_MOST = 100.0  # windows: whatever is above is no share


@frozen
class Quota:
    """`used` is the share of the window that all clients of the account have used, which may exceed 1; `resets` is when
    it ends, in seconds since 1970, or 0 where that is not said."""

    used: float
    resets: float = 0.0


@frozen
class Limits:
    """What an account has used of its window of five hours and of its week."""

    hours: Quota | None = None
    week: Quota | None = None


NO_LIMITS = Limits()


@dataclass(slots=True)
class WindowUse:
    """Follows one window of one account. `last` is the newest report, if there is any."""

    last: Quota | None = None

    def increase(self, quota: Quota | None) -> float:
        """The share of a window that was used since the last report; 0 at the first, which holds what came before."""
        if quota is None:
            return 0.0
        last, self.last = self.last, quota
        if last is None:
            return 0.0
        if quota.resets > last.resets + _SAME or (not quota.resets and quota.used < last.used / 2):
            return quota.used  # of a window that began since
        if quota.used < last.used or quota.resets < last.resets - _SAME:
            self.last = last  # an answer that was overtaken by another
            return 0.0
        return quota.used - last.used


@dataclass(slots=True)
class LimitsUse:
    """Follows one account: the shares of a five-hour window and of a week that were used since the last report."""

    hours: WindowUse = field(default_factory=WindowUse)
    week: WindowUse = field(default_factory=WindowUse)

    def increase(self, limits: Limits) -> tuple[float, float]:
        return self.hours.increase(limits.hours), self.week.increase(limits.week)


def limits_in(headers: Mapping[str, str]) -> Limits:
    """Returns what the headers of an answer say. They are found by names in lower case."""
    return _limits(_in_headers(headers, _HOURS), _in_headers(headers, _WEEK))


def limits_of_codex(limits: Any) -> Limits:
    """Returns what Codex's `rate_limits` say, in an event of its backend or in its log."""
    return _limits(_of_codex(limits, _HOURS), _of_codex(limits, _WEEK))


def _limits(hours: Quota | None, week: Quota | None) -> Limits:
    return NO_LIMITS if hours is None and week is None else Limits(hours, week)


def _in_headers(headers: Mapping[str, str], minutes: int) -> Quota | None:
    if (used := _number(headers.get(f"{_ANTHROPIC[minutes]}utilization"))) is not None:
        return Quota(used, _number(headers.get(f"{_ANTHROPIC[minutes]}reset"), _ALWAYS) or 0.0)
    for prefix in _CODEX:
        if _number(headers.get(f"{prefix}window-minutes"), _ALWAYS) == minutes:
            used = _number(headers.get(f"{prefix}used-percent"), 100 * _MOST)
            if used is not None:
                return Quota(used / 100, _number(headers.get(f"{prefix}reset-at"), _ALWAYS) or 0.0)
    return None


def _of_codex(limits: Any, minutes: int) -> Quota | None:
    for name in ("primary", "secondary"):
        window = as_object(as_object(limits).get(name))
        if window.get("window_minutes") == minutes:
            used = _number(window.get("used_percent"), 100 * _MOST)
            if used is not None:
                resets = window.get("resets_at", window.get("reset_at"))
                return Quota(used / 100, _number(resets, _ALWAYS) or 0.0)
    return None


_ALWAYS = 1e12


def _number(value: Any, most: float = _MOST) -> float | None:
    """Returns a number that is at least 0 and at most so much, or None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and 0 <= number <= most else None
