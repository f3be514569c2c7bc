"""Decides whether a call may be run early, and keeps its answer until a real call asks for it.

`may_dispatch` is the one place that decides. It allows only a tool that is known by its name (or by a glob that spells
something out) to be pure or read-only, that its server does not call writing, and that stays on this machine or goes to
hosts that the user allowed.

An answer is kept under its tool, its canonical arguments and the write epoch in which the call was made. It is given to
the first real identical call and then dropped. Errors are not kept. A kept answer does not count as shown.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Generic, TypeVar

from pagefold.tools.model import READING, SideEffectClass
from pagefold.tools.projection import extract_host
from pagefold.tools.registry import ToolMatch, ToolRegistry

NEVER = frozenset({"bash", "agent", "edit", "write", "multiedit", "notebookedit"})
"""Names that are never run early, whatever the settings say. Case and a server's prefix make no difference."""

_MAX_ARGUMENT_CHARACTERS = 16_384
_MAX_DEPTH = 50
_MAX_WAITING = 64
_WRITING = re.compile(
    r"(?:^|[_\-./ ])(write|create|update|delete|remove|edit|add|insert|append|move|rename|copy|send|post|put|patch|set"
    r"|upload|download|push|merge|commit|apply|run|exec|execute|call|invoke|click|type|press|submit|start|stop|restart"
    r"|kill|close|open|enable|disable|grant|revoke|assign|enroll|publish|deploy|install|drop|truncate|clear|reset"
    r"|import|export|sync|trigger|cancel|approve|book|pay|transfer|fork|scale|navigate)(?=$|[_\-./ ])"
)
_WORD_EDGE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_DEVICE = re.compile(r"(\\\\|//|/dev/|/proc/|/sys/)|(con|prn|aux|nul|com\d|lpt\d)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call may be run early, and why; true where it may."""

    allowed: bool
    reason: str
    host: str | None = None

    def __bool__(self) -> bool:
        return self.allowed


def canonical(arguments: object) -> str | None:
    """Returns the same text for equal arguments, with sorted keys; None for what is no JSON object."""
    if not isinstance(arguments, Mapping):
        return None
    try:
        return _canonical.encode(dict(arguments))
    except (TypeError, ValueError, RecursionError):
        return None


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


# ---- the decision ----------------------------------------------------------------------------------------------------


def may_dispatch(
    tool: str,
    match: ToolMatch | None,
    arguments: Mapping[str, Any],
    *,
    annotations: Mapping[str, Any] | None = None,
    allowed_hosts: Collection[str] = (),
) -> Verdict:
    """Decides whether this call may be run before anybody asked for it. The first reason against it is returned.

    `annotations` are what the server says about the tool (readOnlyHint and so on). They can only forbid, never allow.
    """
    if re.split(r"__|[-./: ]", tool)[-1].strip().casefold() in NEVER or tool.strip().casefold() in NEVER:
        return Verdict(False, f"{tool} is never run early")
    if match is None or match.for_every_tool:
        return Verdict(False, "nothing is known of this tool by its name")
    if match.model.side_effect_class not in READING:
        return Verdict(False, f"its effect is {match.model.side_effect_class}")
    if match.model.speculate is False:
        return Verdict(False, "switched off for this tool")
    if objection := _objection(tool, match, annotations or {}):
        return Verdict(False, objection)
    text = canonical(arguments)
    if text is None or len(text) > _MAX_ARGUMENT_CHARACTERS:
        return Verdict(False, "its arguments are no JSON object of reasonable length")
    strings = list(_strings(arguments))
    if any(map(_DEVICE.match, strings)):
        return Verdict(False, "an argument names a device or another machine's share")
    return _within_reach(match, strings, annotations or {}, allowed_hosts)


def _objection(tool: str, match: ToolMatch, annotations: Mapping[str, Any]) -> str | None:
    """Returns what the server, or the tool's own name, says against the call. An annotation of a wrong type forbids."""
    if "readOnlyHint" in annotations and annotations["readOnlyHint"] is not True:
        return "its server does not call it read-only"
    if "destructiveHint" in annotations and annotations["destructiveHint"] is not False:
        return "its server calls it destructive"
    if not match.by_name and _WRITING.search(_WORD_EDGE.sub("_", tool).casefold()):
        return "its name says that it writes, and only a glob says that it reads"
    return None


def _within_reach(
    match: ToolMatch, strings: Collection[str], annotations: Mapping[str, Any], allowed_hosts: Collection[str]
) -> Verdict:
    """Allows calls on this machine and to hosts that the user named: a request tells a host what the agent wants."""
    addressed = [text for text in strings if "://" in text]
    hosts = {host for text in addressed if (host := extract_host(text.strip()))}
    stays = match.model.is_local() and annotations.get("openWorldHint", False) is False
    if stays and not addressed:
        if not match.model.watch and match.model.cost_model.freshness_ttl_s is None:
            return Verdict(False, "nothing tells whether its answer still holds")
        return Verdict(True, "reads on this machine")
    if not hosts and match.model.rate_limit_host:
        hosts = {match.model.rate_limit_host}
    if not hosts:
        return Verdict(False, "it may reach the network, and no host is known")
    allowed = {host.strip().casefold() for host in allowed_hosts}
    if strange := sorted(host for host in hosts if host.casefold() not in allowed):
        return Verdict(False, f"{strange[0]} is not a host that may be asked early")
    return Verdict(True, "reads from a host that is allowed", min(hosts))


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth < _MAX_DEPTH:
        for key, inner in value.items():
            yield from _strings(key, depth + 1)
            yield from _strings(inner, depth + 1)
    elif isinstance(value, list | tuple) and depth < _MAX_DEPTH:
        for inner in value:
            yield from _strings(inner, depth + 1)


# ---- write epochs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ticket:
    """A call that was started, and its write epoch. `witness` is the state of the files that it reads."""

    tool: str
    arguments: str
    epoch: tuple[int, int]
    started: float
    witness: object = None

    @property
    def key(self) -> tuple[str, str]:
        return self.tool, self.arguments


class WriteEpochs:
    """Counts, for each tool, the writes to what it reads. Equal epochs mean that no write was seen in between."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._counts: dict[str, int] = {}
        self._all = 0

    def of(self, tool: str) -> tuple[int, int]:
        return self._all, self._counts.setdefault(tool, 0)

    def called(self, tool: str) -> None:
        """Records a real call. To be called when it begins and again when it has ended: it writes in between."""
        match = self._registry.find(tool)
        if match is not None and match.model.side_effect_class in READING:
            return
        if match is None or self._touches_everything(tool, match):
            self._all += 1
            return
        for reader in self._counts:
            if self._touches(tool, match, reader):
                self._counts[reader] += 1

    def is_current(self, ticket: Ticket, now: float) -> bool:
        """Tells whether the answer to a call still holds: nothing was written since, and it has not grown old."""
        match = self._registry.find(ticket.tool)
        if match is None or ticket.epoch != self.of(ticket.tool):
            return False
        ttl = match.model.freshness_seconds()
        return ttl is None or now - ticket.started <= ttl

    def _touches_everything(self, tool: str, match: ToolMatch) -> bool:
        model = match.model
        if model.side_effect_class is SideEffectClass.INDETERMINATE or not match.by_name:
            return True
        # It writes to another machine, and nobody says to which.
        outside = model.side_effect_class is SideEffectClass.MUTATES_EXTERNAL
        return outside and not (model.invalidates or self._registry.server(tool) or model.rate_limit_host)

    def _touches(self, tool: str, writer: ToolMatch, reader: str) -> bool:
        model, match = writer.model, self._registry.find(reader)
        if match is None or any(fnmatchcase(reader, name) or match.pattern == name for name in model.invalidates):
            return True
        server = self._registry.server(tool)
        if server is not None and server == self._registry.server(reader):
            return True
        if model.side_effect_class is SideEffectClass.MUTATES_LOCAL:
            # Many tools may read a file, under many names; only those that read from elsewhere are left alone.
            return match.model.open_world is not True
        return model.rate_limit_host is not None and model.rate_limit_host == match.model.rate_limit_host


# ---- answers that wait -----------------------------------------------------------------------------------------------

Body = TypeVar("Body")


class PrefetchedAnswers(Generic[Body]):
    """The answers of early calls in one conversation, each for one real call. The time is passed in, in seconds."""

    def __init__(self, epochs: WriteEpochs) -> None:
        self._epochs = epochs
        self._running: dict[tuple[str, str], Ticket] = {}
        self._waiting: dict[tuple[str, str], tuple[Ticket, Body]] = {}

    def begin(self, tool: str, arguments: Mapping[str, Any], now: float, witness: object = None) -> Ticket | None:
        """Returns a ticket for a call that starts now; None where the same call runs already or its answer waits."""
        text = canonical(arguments)
        if text is None or self.holds(tool, text, now):
            return None
        ticket = Ticket(tool, text, self._epochs.of(tool), now, witness)
        self._running[ticket.key] = ticket
        return ticket

    def holds(self, tool: str, arguments: str, now: float) -> bool:
        """Tells whether the call with these canonical arguments is running, or its answer waits, in this epoch."""
        key = (tool, arguments)
        if key in self._running:
            return self._running[key].epoch == self._epochs.of(tool)
        waiting = self._waiting.get(key)
        return waiting is not None and self._epochs.is_current(waiting[0], now)

    def settle(self, ticket: Ticket, body: Body, *, failed: bool, witness: object = None) -> bool:
        """Ends a call. Its answer is kept if it is no error and nothing was written since the call began."""
        self.abandon(ticket)
        if failed or ticket.epoch != self._epochs.of(ticket.tool) or ticket.witness != witness:
            return False
        while len(self._waiting) >= _MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._waiting[ticket.key] = (ticket, body)
        return True

    def abandon(self, ticket: Ticket) -> None:
        """Ends a call that was given up."""
        if self._running.get(ticket.key) is ticket:
            del self._running[ticket.key]

    def take(self, tool: str, arguments: Mapping[str, Any], now: float, witness: object = None) -> Body | None:
        """Returns the answer for a real call, once; None where there is none or what it is made of may have changed."""
        text = canonical(arguments)
        waiting = self._waiting.pop((tool, text), None) if text is not None else None
        if waiting is None:
            return None
        ticket, body = waiting
        return body if self._epochs.is_current(ticket, now) and ticket.witness == witness else None

    def running(self, tool: str, arguments: Mapping[str, Any]) -> Ticket | None:
        """Returns the early call that a real one may wait for instead of running the tool a second time."""
        text = canonical(arguments)
        ticket = self._running.get((tool, text)) if text is not None else None
        return ticket if ticket and ticket.epoch == self._epochs.of(tool) else None

    def sweep(self, now: float) -> None:
        """Drops the answers that can no longer be given."""
        self._waiting = {key: kept for key, kept in self._waiting.items() if self._epochs.is_current(kept[0], now)}
