"""The events of the decision trace, each one line of JSON, and the way back.

No event holds a header, a text that a client, a tool or a model wrote, or an argument of a call: there are figures,
hashes, the names that pagefold itself gives, and the name of a model that a provider answered to. Tools that ship with
pagefold are named, others are a hash unless their names were asked for. A line that is no event is not an error:
`parse` gives None for it, and whoever reads counts it.

Events are named tuples: one is made with every turn, and a frozen dataclass so large takes three times as long.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

VERSION = 1
LEVELS = ("full", "compressed", "structured", "pointer")

_NAME = re.compile(r"[\w.:/@+\[\]-]{1,100}", re.ASCII)
_HASHED = 10


class TracedFault(NamedTuple):
    """The agent needed what was not there. `page` is a handle."""

    kind: str
    page: str
    reason: str


class TracedRecall(NamedTuple):
    """A page was asked for by its handle; `how` says by whom it was answered."""

    page: str
    how: str


class TracedResult(NamedTuple):
    """A tool's answer that came with a turn, in characters as it came and as it went on."""

    tool: str
    before: int
    after: int


class TracedDecision(NamedTuple):
    """At which level the message at `place` stands from a fold point on, and why."""

    place: int
    level: str
    reason: str


class TurnEvent(NamedTuple):
    """One request to a model and its answer.

    `session` names the conversation by a hash of its beginning; `began` is the name that its first request had, which
    could not know the answer that tells it from others. `tokens` is what was sent, as estimated, and `levels` how that
    divides. `bands` are its messages in their order, in characters, neighbours of a level together; the `head` stands
    before them.
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

    @property
    def prompt(self) -> int:
        """Tokens of the request as the provider counted them; 0 where it did not say."""
        return self.fresh + self.cache_read + self.cache_write


class CallEvent(NamedTuple):
    """One tool call through the MCP proxy: tokens of its answer as the server sent it and as the agent read it."""

    at: float
    session: str
    tool: str
    before: int = 0
    after: int = 0


TraceEvent: TypeAlias = TurnEvent | CallEvent

_KINDS: Mapping[str, type[TurnEvent] | type[CallEvent]] = {"turn": TurnEvent, "call": CallEvent}
CALL = b'"event":"call"'
"""Stands in every line that tells of a call."""
_NAMES = {made: name for name, made in _KINDS.items()}
_PARTS: Mapping[str, Any] = {
    "decisions": TracedDecision,
    "results": TracedResult,
    "recalls": TracedRecall,
    "faults": TracedFault,
}


def line_of(event: TraceEvent) -> str:
    """One line without its end. What is as it would be anyway is left out."""
    told: dict[str, Any] = {"v": VERSION, "event": _NAMES[type(event)]}
    defaults = event._field_defaults
    for name, value in zip(event._fields, event, strict=True):
        if name in defaults and value == defaults[name]:
            continue
        told[name] = round(value, 3) if isinstance(value, float) else value
    return json.dumps(told, separators=(",", ":"))


def parse(line: str | bytes) -> TraceEvent | None:
    """The event that a line says, or None where it says none: half a line, another program's, a later pagefold's."""
    try:
        said = json.loads(line)
        if not isinstance(said, dict) or said.get("v") != VERSION:
            return None
        made = _KINDS[said["event"]]
        values = {name: _value(made, name, said[name]) for name in made._fields if name in said}
        return made(**values)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _value(made: type[TurnEvent] | type[CallEvent], name: str, value: Any) -> Any:
    """A member as its field has it. Raises TypeError or ValueError where it is something else."""
    if name in _PARTS:
        return tuple(_part(_PARTS[name], one) for one in value)
    if name == "bands":
        return tuple((_level(level), int(count)) for level, count in value)
    if name == "levels":
        return {_level(level): int(count) for level, count in value.items()}
    expected = made.__annotations__[name]
    if isinstance(value, bool) is not (expected is bool) or not isinstance(
        value, (int, float) if expected is float else expected
    ):
        raise TypeError(name)
    return value


def _part(made: Any, value: Any) -> Any:
    kinds = made.__annotations__.values()
    if len(value) != len(kinds) or not all(type(one) is kind for one, kind in zip(value, kinds, strict=True)):
        raise TypeError(made.__name__)
    return made(*value)


def _level(level: Any) -> str:
    if level not in LEVELS:
        raise ValueError("levels")
    return str(level)


# ---- names ------------------------------------------------------------------------------------------------------


def hashed(text: str) -> str:
    """A name in place of a text: the same for the same text, and nothing of it."""
    return "#" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASHED]


@lru_cache(maxsize=1000)
def tool_name(tool: str, known: frozenset[str], *, spelled: bool = False) -> str:
    """A tool as an event names it: those that pagefold ships with, and all where `spelled`; others by a hash."""
    if tool in known or (spelled and _NAME.fullmatch(tool)):
        return tool
    return hashed(tool) if tool else ""


@lru_cache(maxsize=1000)
def model_name(model: str, *, answered: bool) -> str:
    """A model as an event names it: only what a provider answered to, since a client can ask for anything."""
    return model if answered and _NAME.fullmatch(model) else ""


_AGENTS = {
    "claude-cli": "Claude Code",
    "claude-code": "Claude Code",
    "codex": "Codex",
    "opencode": "opencode",
    "ai-sdk": "AI SDK",
    "langchain": "LangChain",
    "anthropic": "Anthropic SDK",
    "asyncanthropic": "Anthropic SDK",
    "openai": "OpenAI SDK",
    "asyncopenai": "OpenAI SDK",
    "python": "a script",
    "aiohttp": "a script",
    "httpx": "a script",
    "curl": "curl",
}


@lru_cache(maxsize=256)
def agent_name(user_agent: str) -> str:
    """Which of the agents that pagefold knows this is, by how it introduces itself; nothing else of that is kept."""
    first = user_agent[:200].lower()
    return next((name for sign, name in _AGENTS.items() if sign in first), "another agent" if user_agent else "")
