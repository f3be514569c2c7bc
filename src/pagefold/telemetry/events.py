"""Defines the events of the decision trace, writes each as one line of JSON, and reads such lines.

An event holds no header, no argument of a call, and no text that a client, a tool or a model wrote. It holds figures,
hashes, names that pagefold gives, and the name of a model that a provider answered to. Tools that ship with pagefold
are named; others are a hash unless the user asked for their names. A line that is no event is not an error: `parse`
returns None, and the reader counts it.

Events are named tuples because one is made at every turn, and a frozen dataclass this large takes three times as long.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias

VERSION = 1
LEVELS = ("full", "compressed", "structured", "pointer")

_NAME = re.compile(r"[\w.:/@+\[\]-]{1,100}", re.ASCII)
_HASHED = 10
_DIGITS = dict.fromkeys(("usd", "usd_saved", "windows", "warm_usd", "cold_usd"), 6)


class TracedFault(NamedTuple):
    """The agent needed a page that was not in the request. `page` is its handle."""

    kind: str
    page: str
    reason: str


class TracedRecall(NamedTuple):
    """The agent asked for a page by its handle; `how` says who answered."""

    page: str
    how: str


class TracedResult(NamedTuple):
    """A tool result that is new in a turn: its characters as the client sent it and as pagefold sent it on."""

    tool: str
    before: int
    after: int


class TracedDecision(NamedTuple):
    """The level that the message at `place` has after a fold point, why, and which parts of the digest hold it."""

    place: int
    level: str
    reason: str
    part: str = ""


class TurnEvent(NamedTuple):
    """One request to a model and its answer.

    `session` is a hash of the conversation's beginning, its first answer included; `began` is the name of its first
    request, which came before that answer. `tokens` is the estimated size of the request sent, and `levels` divides it
    by level. `bands` are the request's messages in order, in characters, with neighbours of one level joined; `head`
    is the tokens before them (system prompt, tools). `usd` is what the reported usage costs at list prices, `windows`
    the share of a five-hour window that was used since the answer before, and `window_used` that used in all. `life` is
    how long the provider caches the prompt; going on costs `warm_usd` until then and `cold_usd` afterwards.
    `begun_anew` says why the prefix may have moved though nothing was folded.
    """

    at: float
    session: str
    began: str = ""
    agent: str = ""
    api: str = ""
    model: str = ""
    policy: str = ""
    status: int = 0
    ending: str = "whole"
    error: str = ""
    seconds: float = 0.0
    messages: int = 0
    tokens: int = 0
    head: int = 0
    saved: int = 0
    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cost: float = 0.0
    cold: bool = False
    kept: int = 0
    moved: int = 0
    shrunk: bool = False
    fold: str = ""
    levels: Mapping[str, int] = {}
    bands: tuple[tuple[str, int], ...] = ()
    decisions: tuple[TracedDecision, ...] = ()
    results: tuple[TracedResult, ...] = ()
    recalls: tuple[TracedRecall, ...] = ()
    faults: tuple[TracedFault, ...] = ()
    usd: float = 0.0
    usd_saved: float = 0.0
    windows: float = 0.0
    window_used: float = 0.0
    window_resets: float = 0.0
    life: float = 0.0
    warm_usd: float = 0.0
    cold_usd: float = 0.0
    begun_anew: str = ""

    @property
    def prompt(self) -> int:
        """Tokens of the request as the provider counted them; 0 where it did not say."""
        return self.fresh + self.cache_read + self.cache_write


class CallEvent(NamedTuple):
    """One tool call through the MCP proxy: tokens of the result as the server sent it and as the agent read it."""

    at: float
    session: str
    tool: str
    before: int = 0
    after: int = 0


TraceEvent: TypeAlias = TurnEvent | CallEvent

_KINDS: Mapping[str, type[TurnEvent] | type[CallEvent]] = {"turn": TurnEvent, "call": CallEvent}
CALL = b'"event":"call"'
"""These bytes are in every line of a CallEvent and in no other."""
_NAMES = {made: name for name, made in _KINDS.items()}
_PARTS: Mapping[str, Any] = {
    "decisions": TracedDecision,
    "results": TracedResult,
    "recalls": TracedRecall,
    "faults": TracedFault,
}


def line_of(event: TraceEvent) -> str:
    """Returns the event as one line of JSON without its newline. Fields that have their default are left out."""
    fields: dict[str, Any] = {"v": VERSION, "event": _NAMES[type(event)]}
    defaults = event._field_defaults
    for name, value in zip(event._fields, event, strict=True):
        if name in defaults and value == defaults[name]:
            continue
        fields[name] = round(value, _DIGITS.get(name, 3)) if isinstance(value, float) else value
    return json.dumps(fields, separators=(",", ":"))


def parse(line: str | bytes) -> TraceEvent | None:
    """Returns the event of a line, or None for half a line, another program's line, or one of a later version."""
    try:
        fields = json.loads(line)
        if not isinstance(fields, dict) or fields.get("v") != VERSION:
            return None
        kind = _KINDS[fields["event"]]
        return kind(**{name: _value(kind, name, fields[name]) for name in kind._fields if name in fields})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _value(kind: type[TurnEvent] | type[CallEvent], name: str, value: Any) -> Any:
    """Returns a JSON value as its field holds it. Raises TypeError or ValueError for a value of another type."""
    if name in _PARTS:
        return tuple(_part(_PARTS[name], part) for part in value)
    if name == "bands":
        return tuple((_level(level), int(count)) for level, count in value)
    if name == "levels":
        return {_level(level): int(count) for level, count in value.items()}
    expected = kind.__annotations__[name]
    if isinstance(value, bool) is not (expected is bool) or not isinstance(
        value, (int, float) if expected is float else expected
    ):
        raise TypeError(name)
    return value


def _part(kind: Any, values: Any) -> Any:
    required = len(kind._fields) - len(kind._field_defaults)
    if not required <= len(values) or [type(value) for value in values] != _types_of(kind)[: len(values)]:
        raise TypeError(kind.__name__)
    return kind(*values)


@cache
def _types_of(kind: Any) -> list[type]:
    return list(kind.__annotations__.values())


def _level(level: Any) -> str:
    return LEVELS[LEVELS.index(level)]


# ---- names ------------------------------------------------------------------------------------------------------


def hashed(text: str) -> str:
    """Returns a short hash that stands for a text and reveals nothing of it."""
    return "#" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASHED]


@lru_cache(maxsize=1000)
def tool_name(tool: str, known: frozenset[str], *, spelled: bool = False) -> str:
    """Returns how an event names a tool: by its name where it is `known` or `spelled` is set, else by a hash."""
    if tool in known or (spelled and _NAME.fullmatch(tool)):
        return tool
    return hashed(tool) if tool else ""


@lru_cache(maxsize=1000)
def model_name(model: str, *, answered: bool) -> str:
    """Returns how an event names a model: only if a provider `answered` to it, because clients can send any text."""
    return model if answered and _NAME.fullmatch(model) else ""


_AGENTS = {
    "claude-cli": "Claude Code",
    "claude-code": "Claude Code",
    "codex": "Codex",
    "opencode": "opencode",
    "ai-sdk": "AI SDK",
    "langchain": "LangChain",
    "anthropic": "Anthropic SDK",
    "openai": "OpenAI SDK",
    "python": "a script",
    "aiohttp": "a script",
    "httpx": "a script",
    "curl": "curl",
}


@lru_cache(maxsize=256)
def agent_name(user_agent: str) -> str:
    """Returns the product name of a known agent by its User-Agent header; nothing else of the header is kept."""
    start = user_agent[:200].lower()
    return next((name for sign, name in _AGENTS.items() if sign in start), "another agent" if user_agent else "")
