"""Whether a call may be run early, and what happens to its answer until somebody asks. No clock, no tasks, no I/O.

`may_dispatch` is the one place that decides. Nothing gets past it but a tool that is known by name (or by a glob that
spells something out) to be pure or read-only, that its server does not call writing, and that stays on this machine or
on hosts the user allowed.

An answer waits under its tool, its canonical arguments and the write epoch in which it was asked for. It is given to
the first real identical call and then dropped. Errors do not wait. What waits was not shown to anybody.
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
"""Names that are never run early, however they are configured. Case and a server's prefix make no difference."""

FRESH_SECONDS = 60
"""How long an answer from beyond this machine waits where its model says nothing."""

_LONGEST_ARGUMENTS = 16_384
_DEEPEST = 50
_WAITING = 64
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
    """A decision with its reason; true where the call may be run."""

    allowed: bool
    reason: str
    host: str | None = None

    def __bool__(self) -> bool:
        return self.allowed


def canonical(arguments: object) -> str | None:
    """One text for equal arguments: keys sorted, numbers as they are spelled. None for what is no JSON object."""
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
    found: ToolMatch | None,
    arguments: Mapping[str, Any],
    *,
    annotations: Mapping[str, Any] | None = None,
    allowed_hosts: Collection[str] = (),
) -> Verdict:
    """Whether this call may be run before anybody asked for it. The first reason against it is the answer.

    `annotations` are what the server says of the tool (readOnlyHint and so on). They can only ever speak against.
    """
    if re.split(r"__|[-./: ]", tool)[-1].strip().casefold() in NEVER or tool.strip().casefold() in NEVER:
        return Verdict(False, f"{tool} is never run early")
    if found is None or found.for_every_tool:
        return Verdict(False, "nothing is known of this tool by its name")
    if found.model.side_effect_class not in READING:
        return Verdict(False, f"its effect is {found.model.side_effect_class}")
    if found.model.speculate is False:
        return Verdict(False, "switched off for this tool")
    if objection := _objection(tool, found, annotations or {}):
        return Verdict(False, objection)
    text = canonical(arguments)
    if text is None or len(text) > _LONGEST_ARGUMENTS:
        return Verdict(False, "its arguments are no JSON object of reasonable length")
    strings = list(_strings(arguments))
    if any(map(_DEVICE.match, strings)):
        return Verdict(False, "an argument names a device or another machine's share")
    return _within_reach(found, strings, annotations or {}, allowed_hosts)


def _objection(tool: str, found: ToolMatch, annotations: Mapping[str, Any]) -> str | None:
    """What the server, or the name under a glob, says against it. An annotation of a strange type says the worst."""
    if "readOnlyHint" in annotations and annotations["readOnlyHint"] is not True:
        return "its server does not call it read-only"
    if "destructiveHint" in annotations and annotations["destructiveHint"] is not False:
        return "its server calls it destructive"
    if not found.by_name and _WRITING.search(_WORD_EDGE.sub("_", tool).casefold()):
        return "its name says that it writes, and only a glob says that it reads"
    return None


def _within_reach(
    found: ToolMatch, strings: Collection[str], annotations: Mapping[str, Any], allowed_hosts: Collection[str]
) -> Verdict:
    """A request to another machine tells it what the agent may want: only to hosts that the user named."""
    addressed = [text for text in strings if "://" in text]
    hosts = {host for text in addressed if (host := extract_host(text.strip()))}
    stays = found.model.is_local() and annotations.get("openWorldHint", False) is False
    if stays and not addressed:
        if not found.model.watch and found.model.cost_model.freshness_ttl_s is None:
            return Verdict(False, "nothing tells whether its answer still holds")
        return Verdict(True, "reads on this machine")
    if not hosts and found.model.rate_limit_host:
        hosts = {found.model.rate_limit_host}
    if not hosts:
        return Verdict(False, "it may reach the network, and no host is known")
    allowed = {host.strip().casefold() for host in allowed_hosts}
    if strange := sorted(host for host in hosts if host.casefold() not in allowed):
        return Verdict(False, f"{strange[0]} is not a host that may be asked early")
    return Verdict(True, "reads from a host that is allowed", min(hosts))


def _strings(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for key, inner in value.items():
            yield from _strings(key, depth + 1)
            yield from _strings(inner, depth + 1)
    elif isinstance(value, list | tuple) and depth < _DEEPEST:
        for inner in value:
            yield from _strings(inner, depth + 1)


# ---- write epochs ----------------------------------------------------------------------------------------------------


class WriteEpochs:
    """How often something was written that a tool reads. Equal epochs mean: nothing we saw came in between."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._counts: dict[str, int] = {}
        self._all = 0

    def of(self, tool: str) -> tuple[int, int]:
        return self._all, self._counts.setdefault(tool, 0)

    def called(self, tool: str) -> bool:
        """To be told when a real call begins, and again when it has ended: it writes somewhere in between.

        True if anything may have been written.
        """
        found = self._registry.find(tool)
        if found is not None and found.model.side_effect_class in READING:
            return False
        if found is None or self._touches_everything(tool, found):
            self._all += 1
            return True
        for reader in self._counts:
            if self._touches(tool, found, reader):
                self._counts[reader] += 1
        return True

    def _touches_everything(self, tool: str, found: ToolMatch) -> bool:
        model = found.model
        if model.side_effect_class is SideEffectClass.INDETERMINATE or not found.by_name:
            return True
        # Somewhere else, but nobody says where.
        outside = model.side_effect_class is SideEffectClass.MUTATES_EXTERNAL
        return outside and not (model.invalidates or self._registry.server(tool) or model.rate_limit_host)

    def _touches(self, tool: str, writer: ToolMatch, reader: str) -> bool:
        model, found = writer.model, self._registry.find(reader)
        if found is None or any(fnmatchcase(reader, name) or found.pattern == name for name in model.invalidates):
            return True
        server = self._registry.server(tool)
        if server is not None and server == self._registry.server(reader):
            return True
        if model.side_effect_class is SideEffectClass.MUTATES_LOCAL:
            # A file may be read by many tools, under many names; only what lives elsewhere is left alone.
            return found.model.open_world is not True
        return model.rate_limit_host is not None and model.rate_limit_host == found.model.rate_limit_host


# ---- answers that wait -----------------------------------------------------------------------------------------------

Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class Ticket:
    """A call that was started early: what it was, and in which epoch. `witness` is the state of what it reads."""

    tool: str
    arguments: str
    epoch: tuple[int, int]
    started: float
    witness: object = None

    @property
    def key(self) -> tuple[str, str]:
        return self.tool, self.arguments


@dataclass(frozen=True, slots=True)
class Waiting(Generic[Body]):
    ticket: Ticket
    body: Body


@dataclass(slots=True)
class PrefetchTally:
    """What became of what was started early."""

    dispatched: int = 0
    used: int = 0
    failed: int = 0
    stale: int = 0
    unused: int = 0


class PrefetchedAnswers(Generic[Body]):
    """Answers under (tool, canonical arguments, write epoch), each for one real call. Seconds come in as values."""

    def __init__(self, registry: ToolRegistry, epochs: WriteEpochs) -> None:
        self._registry = registry
        self._epochs = epochs
        self._running: dict[tuple[str, str], Ticket] = {}
        self._waiting: dict[tuple[str, str], Waiting[Body]] = {}
        self.tally = PrefetchTally()

    def begin(self, tool: str, arguments: Mapping[str, Any], now: float, witness: object = None) -> Ticket | None:
        """A ticket for a call that starts now; None where the same is already running, or waits and still holds."""
        text = canonical(arguments)
        if text is None or self.holds(tool, text, now):
            return None
        ticket = Ticket(tool, text, self._epochs.of(tool), now, witness)
        self._running[ticket.key] = ticket
        self.tally.dispatched += 1
        return ticket

    def holds(self, tool: str, arguments: str, now: float) -> bool:
        """Whether these arguments, in canonical form, are being asked for already or wait in the epoch that is."""
        key = (tool, arguments)
        if key in self._running:
            return self._running[key].epoch == self._epochs.of(tool)
        waiting = self._waiting.get(key)
        return waiting is not None and not self._is_stale(waiting.ticket, now)

    def settle(self, ticket: Ticket, body: Body, *, failed: bool, witness: object = None) -> bool:
        """The call has ended. Its answer waits only if it is no error and nothing was written since it began."""
        if self._running.get(ticket.key) is ticket:
            del self._running[ticket.key]
        if failed:
            self.tally.failed += 1
            return False
        if ticket.epoch != self._epochs.of(ticket.tool) or ticket.witness != witness:
            self.tally.stale += 1
            return False
        while len(self._waiting) >= _WAITING:
            del self._waiting[next(iter(self._waiting))]
            self.tally.unused += 1
        self._waiting[ticket.key] = Waiting(ticket, body)
        return True

    def abandon(self, ticket: Ticket) -> None:
        """The call was given up."""
        if self._running.get(ticket.key) is ticket:
            del self._running[ticket.key]
        self.tally.failed += 1

    def take(self, tool: str, arguments: Mapping[str, Any], now: float, witness: object = None) -> Body | None:
        """The answer for a real call, once. None where there is none, or anything it was made of may have changed."""
        text = canonical(arguments)
        waiting = self._waiting.pop((tool, text), None) if text is not None else None
        if waiting is None:
            return None
        if self._is_stale(waiting.ticket, now) or waiting.ticket.witness != witness:
            self.tally.stale += 1
            return None
        self.tally.used += 1
        return waiting.body

    def running(self, tool: str, arguments: Mapping[str, Any]) -> Ticket | None:
        """The early call that a real one may wait for instead of running the tool a second time."""
        text = canonical(arguments)
        ticket = self._running.get((tool, text)) if text is not None else None
        return ticket if ticket and ticket.epoch == self._epochs.of(tool) else None

    def sweep(self, now: float) -> int:
        """Drops what can no longer be served; how many that were."""
        old = [key for key, waiting in self._waiting.items() if self._is_stale(waiting.ticket, now)]
        for key in old:
            del self._waiting[key]
        self.tally.stale += len(old)
        return len(old)

    def _is_stale(self, ticket: Ticket, now: float) -> bool:
        if ticket.epoch != self._epochs.of(ticket.tool):
            return True
        found = self._registry.find(ticket.tool)
        if found is None:
            return True
        ttl = found.model.cost_model.freshness_ttl_s
        if ttl is None and not found.model.is_local():
            ttl = FRESH_SECONDS
        return ttl is not None and now - ticket.started > ttl
