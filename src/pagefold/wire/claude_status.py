"""Claude Code's status line: what the client tells the program that prints it, and the line that is printed.

The client's own figures are always there; pagefold's are joined to them where the model proxy knows the session.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text
from pagefold.wire.json_text import as_count, as_object, as_string

_PROMPT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_FOLDING = "economic"
_APART = " · "


@dataclass(frozen=True, slots=True)
class ClaudeStatus:
    """What the client says of its session: the model, tokens of the last prompt, and how many its window holds."""

    model: str = ""
    prompt: int = 0
    window: int = 0


def parse(text: str) -> ClaudeStatus:
    """What is not there is 0 or empty; so is all of it where the text is not JSON."""
    try:
        told = as_object(json_text.parse(text))
    except WireError:
        return ClaudeStatus()
    context = as_object(told.get("context_window"))
    usage = as_object(context.get("current_usage"))
    prompt = sum(as_count(usage.get(name)) for name in _PROMPT)
    return ClaudeStatus(
        as_string(as_object(told.get("model")).get("id")), prompt, as_count(context.get("context_window_size"))
    )


def session_of(status: ClaudeStatus, sessions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The session that is meant, of those that a proxy lists with the newest first: the one whose last prompt was as
    long as the client says, else the newest of its model."""
    model = status.model.partition("[")[0]  # the client marks a longer window there
    named = [one for one in sessions if not model or str(one.get("model", "")).startswith(model)]
    exact = [one for one in named if status.prompt and one.get("last_prompt") == status.prompt]
    return next(iter((*exact, *named)), None)


def line(status: ClaudeStatus, session: Mapping[str, Any] | None, *, reached: bool, now: float) -> str:
    """The status line. `reached` is whether a proxy answered."""
    parts = [_window(status)] if status.prompt or status.window else []
    if not reached:
        return _APART.join(["pagefold: no proxy", *parts])
    if session is None:
        return _APART.join(["pagefold: no request yet", *parts])
    parts.append(f"saved {_short(session.get('saved', 0))}")
    warm = float(session.get("life", 0)) - (now - float(session.get("last", now)))
    if session.get("life"):
        parts.append(f"cache warm for {_time(warm)}" if warm > 0 else "cache cold")
    parts.append(_next_fold(status, session, cold=bool(session.get("life")) and warm <= 0))
    return _APART.join(["pagefold", *parts])


def _window(status: ClaudeStatus) -> str:
    if not status.window:
        return f"{_short(status.prompt)} in the window"
    return f"{100 * status.prompt // status.window} % of {_short(status.window)}"


def _next_fold(status: ClaudeStatus, session: Mapping[str, Any], *, cold: bool) -> str:
    policy = str(session.get("policy", ""))
    if not policy.startswith(_FOLDING):
        return f"no folds ({policy or 'observing'})"
    if cold:
        return "may fold next: the cache is cold"
    left = max(0, status.window - int(session.get("tokens", 0)))
    return f"folds in {_short(left)} at the latest (window full)" if status.window else "folds when it pays"


def _short(number: Any) -> str:
    count = int(number)
    return f"{count / 1e6:.1f}M" if count >= 1_000_000 else f"{count / 1e3:.0f}k" if count >= 10_000 else str(count)


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
