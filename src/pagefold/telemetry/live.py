"""Adds up events into a view of what goes on: sessions, their context by level, and the latest incidents.

The same events in the same order give the same view, whether they come from a running proxy or from a trace file. Its
size is bounded: the sessions that were silent longest are dropped, and of each session only the newest turns are kept.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from pagefold.frozen import frozen
from pagefold.telemetry.events import LEVELS, CallEvent, TraceEvent, TurnEvent
from pagefold.wire.quota import Quota

_SESSIONS = 500
_TURNS = 240
_HAPPENED = 200
_MCP = "MCP"
_NOT_SHOWN = {"head", "cost", "seconds", "levels", "bands", "points", "last_fold", "changed"}
_STATUS = ("model", "policy", "tokens", "last_prompt", "saved", "folds", "life", "last")
_STATUS_SESSIONS = 50
_MONEY = ("usd", "usd_saved", "windows")
_ADDED = ("saved", "fresh", "cache_read", "cache_write", "output", "cost", "seconds", *_MONEY)  # of each turn
_SUMMED = (
    "turns",
    "failed",
    "saved",
    "fresh",
    "cache_read",
    "cache_write",
    "output",
    "cost",
    "folds",
    "calls",
    *_MONEY,
)
_ALERT = "duplicate_alert"  # a call made again although its result is in the request: an incident, but no fault


class TimelinePoint(NamedTuple):
    """One turn of a session's timeline: tokens by level, whether it was a fold point, and whether it had a fault."""

    levels: Mapping[str, int]
    fold: bool
    fault: bool


@frozen
class Incident:
    """Something that the dashboard lists by itself: a fold, a new beginning, a fault, a recall, an error."""

    number: int
    at: float
    session: str
    what: str
    reason: str
    page: str = ""


@dataclass(slots=True)
class LiveSession:
    """One conversation so far. `changed` is the number of the event that changed it last."""

    name: str
    began: float
    last: float
    agent: str = ""
    model: str = ""
    policy: str = ""
    api: str = ""
    turns: int = 0
    failed: int = 0
    tokens: int = 0
    head: int = 0
    saved: int = 0
    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cost: float = 0.0
    usd: float = 0.0
    usd_saved: float = 0.0
    windows: float = 0.0
    life: float = 0.0
    warm_usd: float = 0.0
    cold_usd: float = 0.0
    seconds: float = 0.0
    folds: int = 0
    recalls: int = 0
    faults: int = 0
    calls: int = 0
    levels: Mapping[str, int] = field(default_factory=dict)
    bands: tuple[tuple[str, int], ...] = ()
    points: deque[TimelinePoint] = field(default_factory=lambda: deque(maxlen=_TURNS))
    last_fold: TurnEvent | None = None
    changed: int = 0
    last_prompt: int = 0

    @property
    def prompt(self) -> int:
        return self.fresh + self.cache_read + self.cache_write

    def to_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__ if name not in _NOT_SHOWN},
            "levels": {level: self.levels.get(level, 0) for level in LEVELS},
            "bands": [list(band) for band in self.bands],
        }


class LiveView:
    """The view. `number` counts the events so far, `told` the incidents. It keeps at most `most` sessions."""

    def __init__(self, most: int = _SESSIONS) -> None:
        self._most = most
        self.sessions: dict[str, LiveSession] = {}
        self.happened: deque[Incident] = deque(maxlen=_HAPPENED)
        self.faults: Counter[str] = Counter()
        self.recalls: Counter[str] = Counter()
        self.number = self.told = 0
        self.window: Quota | None = None  # of five hours, as the provider said last
        self._dropped: Counter[str] = Counter()
        self._cold = 0

    def see(self, event: TraceEvent) -> None:
        self.number += 1
        if isinstance(event, TurnEvent):
            self._turn(event)
        else:
            self._called(event)

    @property
    def totals(self) -> Counter[str]:
        """Sums over all sessions, dropped ones included. Made when asked for, which is not at every turn."""
        sums = self._dropped.copy()
        sums["cold"] = self._cold
        for session in self.sessions.values():
            _add(sums, session)
        return sums

    def changed_since(self, number: int) -> Iterator[LiveSession]:
        """Yields the sessions that an event after this number changed, the newest first."""
        for session in reversed(self.sessions.values()):
            if session.changed <= number:
                return
            yield session

    def newest(self, most: int | None = None) -> list[LiveSession]:
        return list(islice(reversed(self.sessions.values()), most))

    def named(self, name: str) -> LiveSession | None:
        """Returns the session of this name, or the only one whose name begins with it, or None."""
        if session := self.sessions.get(name):
            return session
        matches = [session for key, session in self.sessions.items() if name and key.startswith(name)]
        return matches[0] if len(matches) == 1 else None

    def _turn(self, turn: TurnEvent) -> None:
        session = self._session(turn.session, turn.began, turn.at)
        failed = turn.status >= 400 or turn.status == 0 or bool(turn.error)
        session.agent, session.api = turn.agent or session.agent, turn.api or session.api
        session.model, session.policy = turn.model or session.model, turn.policy or session.policy
        session.turns += 1
        session.failed += failed
        if turn.cold_usd:
            session.life, session.warm_usd, session.cold_usd = turn.life, turn.warm_usd, turn.cold_usd
        if turn.window_used or turn.window_resets:
            self.window = Quota(turn.window_used, turn.window_resets)
        for name in _ADDED:
            setattr(session, name, getattr(session, name) + getattr(turn, name))
        session.last_prompt = turn.prompt or session.last_prompt
        if turn.tokens:
            session.tokens, session.head = turn.tokens, turn.head
            session.levels, session.bands = turn.levels, turn.bands
            fault = bool(turn.faults) and any(fault.kind != _ALERT for fault in turn.faults)
            session.points.append(TimelinePoint(turn.levels, bool(turn.fold), fault))
        if turn.fold or turn.begun_anew or turn.faults or turn.recalls or failed or turn.cold or turn.shrunk:
            self._tell(session, turn, failed=failed)

    def _tell(self, session: LiveSession, turn: TurnEvent, *, failed: bool) -> None:
        if turn.fold:
            session.folds += 1
            session.last_fold = turn
            self._note(turn, "fold", turn.fold)
        if turn.begun_anew:
            self._note(turn, "begun_anew", turn.begun_anew)
        for fault in turn.faults:
            session.faults += fault.kind != _ALERT
            self.faults[fault.kind] += 1
            self._note(turn, fault.kind, fault.reason, fault.page)
        for recall in turn.recalls:
            session.recalls += 1
            self.recalls[recall.how] += 1
            self._note(turn, "recall", recall.how, recall.page)
        if turn.cold:
            self._cold += 1
            self._note(turn, "cold", "the provider's cache held nothing of it any more")
        if turn.shrunk:
            self._note(turn, "shrunk", "the provider found the request too long, and a smaller one was sent")
        if failed:
            self._note(turn, "failed", turn.error or (f"status {turn.status}" if turn.status else turn.ending))

    def _called(self, call: CallEvent) -> None:
        session = self._session(call.session, "", call.at)
        session.agent, session.api = session.agent or _MCP, session.api or "mcp"
        session.calls += 1
        session.saved += max(0, call.before - call.after)
        session.tokens += call.after

    def _session(self, name: str, began: str, at: float) -> LiveSession:
        """Returns the session of an event and moves it to the end of the list.

        The first request of a conversation has another name, `began`. Where two conversations began with the same
        words, the first that goes on takes over what that request counted.
        """
        session = self.sessions.pop(name, None)
        if session is None and began and (session := self.sessions.pop(began, None)):
            session.name = name
        if session is None:
            session = LiveSession(name, at, at)
            while len(self.sessions) >= self._most:
                _add(self._dropped, self.sessions.pop(next(iter(self.sessions))))
        session.last, session.changed = at, self.number
        self.sessions[name] = session
        return session

    def _note(self, turn: TurnEvent, what: str, reason: str, page: str = "") -> None:
        self.told += 1
        self.happened.append(Incident(self.told, turn.at, turn.session, what, reason, page))


def _add(sums: Counter[str], session: LiveSession) -> None:
    for name in _SUMMED:
        sums[name] += getattr(session, name)


def status_rows(live: LiveView) -> dict[str, Any]:
    """The newest sessions in the few figures that a status line shows, as values that JSON can hold."""
    rows = [{name: getattr(session, name) for name in _STATUS} for session in live.newest(_STATUS_SESSIONS)]
    return {"sessions": rows}


def snapshot(live: LiveView, most: int | None = None) -> dict[str, Any]:
    """Returns the view as values that JSON can hold."""
    return {
        "number": live.number,
        "totals": {name: round(value, 6 if name in _MONEY else 3) for name, value in live.totals.items()},
        "window": {"used": live.window.used, "resets": live.window.resets} if live.window else None,
        "faults": dict(live.faults),
        "recalls": dict(live.recalls),
        "sessions": [session.to_dict() for session in live.newest(most)],
        "happened": [
            {"at": one.at, "session": one.session, "what": one.what, "reason": one.reason, "page": one.page}
            for one in reversed(live.happened)
        ],
    }
