"""Lets teams in: verifies tokens, refuses what is over a limit, and reports use to the access store, twice a second.

Promises: verifying and refusing never wait for the store. A token that was revoked is refused half a second later, on
every instance. Without an answer of the store nobody is let in who was not known before (it fails closed); those that
were known are let in through an outage of at most an hour. Use is counted in an outage too, and stored after it, once.
"""

import secrets
import threading
import time
from collections.abc import Callable

from pagefold.access.budget import NOTHING_SPENT, OverLimit, Period, Spent, UsageReport, over_limit, spent_of
from pagefold.access.store import AccessState, AccessStore
from pagefold.access.team import NO_USE, Attribution, Team, TeamUse, UseByAttribution, hash_of_secret, stored_hash
from pagefold.errors import StoreError

POLL_SECONDS = 0.5
TRUSTED_SECONDS = 3600.0
_CLOSING_SECONDS = 3.0
_MOST_PROJECTS = 200  # of one team in one process: a client may name any
_OTHERS = "(others)"


class AccessGate:
    """The gate of one process. `opened` opens the access store, which need not be there. `report` gets the kind of a
    problem and a sentence. The first look at the store is taken before this returns."""

    def __init__(
        self,
        opened: Callable[[], AccessStore],
        *,
        report: Callable[[str, str], None] = lambda kind, sentence: None,
        clock: Callable[[], float] = time.time,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._open, self._report, self._clock = opened, report, clock
        self._store: AccessStore | None = None
        self._state: AccessState | None = None
        self._of, self._heard = Period.at(clock()), 0.0
        self._instance, self._number = secrets.token_hex(8), 1
        self._uses: UseByAttribution = {}
        self._minutes: dict[tuple[str, int], int] = {}
        self._sending: UsageReport | None = None  # what the store may have been told already
        self.seen: UseByAttribution = {}
        """All that this process has counted, by attribution without the day."""
        self._projects: dict[str, set[str]] = {}
        self._out = False
        self._lock, self._looking = threading.Lock(), threading.Lock()
        self._ended = threading.Event()
        self.look()
        self._thread = threading.Thread(target=self._watch, args=(poll_seconds,), name="pagefold-access", daemon=True)
        self._thread.start()

    @property
    def is_shut(self) -> bool:
        """Whether nobody can be verified: the store has not answered, or not for an hour."""
        return self._state is None or time.monotonic() - self._heard > TRUSTED_SECONDS

    @property
    def is_out(self) -> bool:
        """Whether the store did not answer when it was asked last."""
        return self._out

    def team_of(self, token: str) -> Team | None:
        """The team of a token, or None where it is not valid."""
        return self._team(stored_hash(token)) if token else None

    def team_of_secret(self, secret: str) -> Team | None:
        """The team of what a browser's cookie holds in place of a token."""
        return self._team(hash_of_secret(secret)) if secret else None

    def admit(self, team: Team) -> OverLimit | None:
        """Counts a request of a team, or says why it may not be made now."""
        now = self._clock()
        with self._lock:
            refused = over_limit(team, self._spent(team.name, now), now)
            if refused is None:
                minute = (team.name, int(now // 60))
                self._minutes[minute] = self._minutes.get(minute, 0) + 1
            return refused

    def spent(self, team: str) -> Spent:
        with self._lock:
            return self._spent(team, self._clock())

    def teams(self) -> list[Team]:
        return list(self._state.teams.values()) if self._state else []

    def add(self, team: str, project: str, agent: str, model: str, counts: TeamUse) -> None:
        """Counts what a request of a team has used."""
        day = Period.at(self._clock()).day
        with self._lock:
            projects = self._projects.setdefault(team, set())
            if project not in projects and len(projects) >= _MOST_PROJECTS:
                project = _OTHERS
            projects.add(project)
            whole = Attribution(team, "", project, agent, model)
            self.seen[whole] = self.seen.get(whole, NO_USE) + counts
            use = Attribution(team, day, project, agent, model)
            self._uses[use] = self._uses.get(use, NO_USE) + counts

    def look(self) -> bool:
        """Tells the store what was counted and hears what it knows. Returns whether it answered."""
        with self._looking:
            return self._look()

    def _look(self) -> bool:
        period = Period.at(self._clock())
        with self._lock:
            if self._sending is None:
                self._sending = UsageReport(self._instance, self._number, self._uses, self._minutes)
                self._uses, self._minutes = {}, {}
            report = self._sending
        try:
            if self._store is None:
                self._store = self._open()
            state = self._store.report(report, period, self._state)
        except StoreError as error:
            if not self._out:
                self._report(f"access {error.kind}", f"teams cannot be looked up, those known go on: {error}")
            self._out = True
            return False
        with self._lock:
            self._state, self._of, self._heard, self._sending = state, period, time.monotonic(), None
            self._number += 0 if report.is_empty else 1
        if self._out:
            self._out = False
            self._report("access back", f"teams are looked up again in {self._store.where}")
        return True

    def close(self) -> None:
        """Stores what was counted, if the store answers."""
        self._ended.set()
        self._thread.join(_CLOSING_SECONDS)
        if not self._thread.is_alive():
            if self.look():
                self.look()  # what was counted while a report was under way
            if self._store is not None:
                self._store.close()

    def _watch(self, seconds: float) -> None:
        while not self._ended.wait(seconds):
            self.look()

    def _team(self, digest: str) -> Team | None:
        state = self._state
        if state is None or self.is_shut:
            return None
        return state.teams.get(state.tokens.get(digest, ""))

    def _spent(self, team: str, now: float) -> Spent:
        known = self._state.spent.get(team, NOTHING_SPENT) if self._state else NOTHING_SPENT
        period = Period.at(now)
        if self._sending is not None:
            known, of = spent_of(team, known, self._of, self._sending, period), period
        else:
            of = self._of
        return spent_of(team, known, of, UsageReport("", 0, self._uses, self._minutes), period)
