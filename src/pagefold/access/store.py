"""Where teams, tokens, use and the audit log are kept: the protocol, and the one in memory."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pagefold.access.budget import Period, Spent, UsageReport
from pagefold.access.team import (
    NO_USE,
    AdministrativeAct,
    IssuedToken,
    Team,
    TeamUse,
    UseByAttribution,
    token_id,
)


@dataclass(frozen=True, slots=True)
class AccessState:
    """What instances have to know: all teams, the teams of the tokens that are valid by stored hash, and what teams
    have used in a period."""

    revision: int
    teams: Mapping[str, Team] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    spent: Mapping[str, Spent] = field(default_factory=dict)


class AccessStore(Protocol):
    """Every method may raise StoreError. Acts are stored with their line of the audit log, or not at all; lines are
    added and never changed."""

    @property
    def where(self) -> str: ...

    def set_team(self, team: Team, act: AdministrativeAct) -> None:
        """Adds a team, or changes its limits."""

    def teams(self) -> Sequence[Team]: ...

    def add_token(self, digest: str, token: IssuedToken, act: AdministrativeAct) -> None: ...

    def tokens(self) -> Sequence[IssuedToken]:
        """All tokens, revoked ones too, in the order they were made."""

    def revoke(self, identity: str, act: AdministrativeAct) -> bool:
        """Revokes the token of this id; returns False where there is none that is valid."""

    def audit(self) -> Sequence[AdministrativeAct]:
        """All administrative acts, the oldest first."""

    def report(self, report: UsageReport, period: Period, known: AccessState | None = None) -> AccessState:
        """Adds what an instance has counted, once, and returns what it has to know. Teams and tokens are read again
        only where their revision is another than the `known` one."""

    def uses(self, since: str = "") -> UseByAttribution:
        """All use from a day on."""

    def close(self) -> None: ...


class MemoryAccess:
    """An access store that lives as long as the process."""

    where = "memory"

    def __init__(self) -> None:
        self._revision = 0
        self._teams: dict[str, Team] = {}
        self._tokens: dict[str, IssuedToken] = {}
        self._acts: list[AdministrativeAct] = []
        self._uses: UseByAttribution = {}
        self._minutes: dict[tuple[str, int], int] = {}
        self._reports: dict[str, int] = {}

    def set_team(self, team: Team, act: AdministrativeAct) -> None:
        self._teams[team.name] = team
        self._changed(act)

    def teams(self) -> Sequence[Team]:
        return [self._teams[name] for name in sorted(self._teams)]

    def add_token(self, digest: str, token: IssuedToken, act: AdministrativeAct) -> None:
        self._tokens[digest] = token
        self._changed(act)

    def tokens(self) -> Sequence[IssuedToken]:
        return list(self._tokens.values())

    def revoke(self, identity: str, act: AdministrativeAct) -> bool:
        for digest, token in self._tokens.items():
            if token_id(digest) == identity and not token.revoked:
                self._tokens[digest] = replace(token, revoked=act.at)
                self._changed(act)
                return True
        return False

    def audit(self) -> Sequence[AdministrativeAct]:
        return list(self._acts)

    def report(self, report: UsageReport, period: Period, known: AccessState | None = None) -> AccessState:
        if not report.is_empty and report.number > self._reports.get(report.instance, 0):
            self._reports[report.instance] = report.number
            for use, counts in report.uses.items():
                self._uses[use] = self._uses.get(use, NO_USE) + counts
            for minute, requests in report.minutes.items():
                self._minutes[minute] = self._minutes.get(minute, 0) + requests
        tokens = {digest: token.team for digest, token in self._tokens.items() if not token.revoked}
        spent = {name: self._spent(name, period) for name in self._teams}
        return AccessState(self._revision, dict(self._teams), tokens, spent)

    def uses(self, since: str = "") -> UseByAttribution:
        return {use: counts for use, counts in self._uses.items() if use.day >= since}

    def close(self) -> None:
        pass

    def _changed(self, act: AdministrativeAct) -> None:
        self._revision += 1
        self._acts.append(act)

    def _spent(self, team: str, period: Period) -> Spent:
        own = [(use.day, counts) for use, counts in self._uses.items() if use.team == team]
        day = _sum(counts for of, counts in own if of == period.day)
        month = _sum(counts for of, counts in own if of.startswith(period.month))
        return Spent(day, month, self._minutes.get((team, period.minute), 0))


def _sum(counts: Iterable[TeamUse]) -> TeamUse:
    return sum(counts, NO_USE)
