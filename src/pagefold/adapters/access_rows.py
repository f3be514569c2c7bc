"""The access store in tables of SQL: one set of statements that SQLite and Postgres both take.

`SCHEMA` makes the tables. Values stand for `?`; an engine that spells them otherwise translates. Every act and every
report is one transaction.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from pagefold.access.budget import Period, Spent, UsageReport
from pagefold.access.store import AccessState
from pagefold.access.team import (
    USE_FIELDS,
    AdministrativeAct,
    Attribution,
    IssuedToken,
    Team,
    TeamLimits,
    TeamUse,
    UseByAttribution,
    token_id,
)

SCHEMA = """
    CREATE TABLE access_facts (one BIGINT PRIMARY KEY, revision BIGINT NOT NULL);
    INSERT INTO access_facts VALUES (1, 0);
    CREATE TABLE access_teams (name TEXT PRIMARY KEY, usd_day DOUBLE PRECISION NOT NULL,
        usd_month DOUBLE PRECISION NOT NULL, tokens_day BIGINT NOT NULL, tokens_month BIGINT NOT NULL,
        requests_minute BIGINT NOT NULL);
    CREATE TABLE access_tokens (digest TEXT PRIMARY KEY, team TEXT NOT NULL, label TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL, revoked DOUBLE PRECISION NOT NULL);
    CREATE TABLE access_audit (number BIGINT PRIMARY KEY, happened DOUBLE PRECISION NOT NULL, actor TEXT NOT NULL,
        act TEXT NOT NULL, team TEXT NOT NULL, detail TEXT NOT NULL);
    CREATE TABLE access_uses (team TEXT NOT NULL, day TEXT NOT NULL, project TEXT NOT NULL, agent TEXT NOT NULL,
        model TEXT NOT NULL, requests BIGINT NOT NULL, prompt BIGINT NOT NULL, cached BIGINT NOT NULL,
        output BIGINT NOT NULL, saved BIGINT NOT NULL, microusd BIGINT NOT NULL, microusd_saved BIGINT NOT NULL,
        PRIMARY KEY (team, day, project, agent, model));
    CREATE TABLE access_minutes (team TEXT NOT NULL, minute BIGINT NOT NULL, requests BIGINT NOT NULL,
        PRIMARY KEY (team, minute));
    CREATE TABLE access_reports (instance TEXT PRIMARY KEY, number BIGINT NOT NULL, minute BIGINT NOT NULL)
"""
_SET_TEAM = """
    INSERT INTO access_teams VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET usd_day = excluded.usd_day,
        usd_month = excluded.usd_month, tokens_day = excluded.tokens_day, tokens_month = excluded.tokens_month,
        requests_minute = excluded.requests_minute
"""
_TOKENS = "SELECT digest, team, label, created, revoked FROM access_tokens ORDER BY created, digest"
_ACTED = """
    INSERT INTO access_audit (number, happened, actor, act, team, detail)
    SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ? FROM access_audit
"""
_REVISED = "UPDATE access_facts SET revision = revision + 1"
_REPORTED = """
    INSERT INTO access_reports VALUES (?, ?, ?) ON CONFLICT (instance)
    DO UPDATE SET number = excluded.number, minute = excluded.minute WHERE access_reports.number < excluded.number
    RETURNING 1
"""
_USED = f"""
    INSERT INTO access_uses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (team, day, project, agent, model)
    DO UPDATE SET {", ".join(f"{name} = access_uses.{name} + excluded.{name}" for name in USE_FIELDS)}
"""  # noqa: S608  names of fields of ours
_ASKED = """
    INSERT INTO access_minutes VALUES (?, ?, ?) ON CONFLICT (team, minute)
    DO UPDATE SET requests = access_minutes.requests + excluded.requests
"""
_SUMS = ", ".join(f"CAST(coalesce(sum({name}), 0) AS BIGINT)" for name in USE_FIELDS)
_BY_TEAM = f"SELECT team, day, {_SUMS} FROM access_uses WHERE day >= ? GROUP BY team, day"  # noqa: S608  the same
_KEPT_MINUTES = 10  # of requests a minute, and days' worth of names of instances
_KEPT_INSTANCES = 7 * 24 * 60

Execute: TypeAlias = Callable[[str, Sequence[Any]], list[Any]]
"""Executes a statement with its values, and returns the rows."""


class SqlEngine(Protocol):
    """A database with the tables of `SCHEMA`."""

    @property
    def where(self) -> str: ...

    def transaction(self) -> AbstractContextManager[Execute]:
        """Raises StoreError for whatever goes wrong within."""

    def close(self) -> None: ...


class SqlAccess:
    """The access store in a database."""

    def __init__(self, engine: SqlEngine) -> None:
        self._engine, self.where = engine, engine.where

    def set_team(self, team: Team, act: AdministrativeAct) -> None:
        limits = team.limits
        row = (team.name, limits.usd_day, limits.usd_month, limits.tokens_day, limits.tokens_month)
        with self._engine.transaction() as execute:
            _acted(execute, act)
            execute(_SET_TEAM, (*row, limits.requests_minute))

    def teams(self) -> Sequence[Team]:
        with self._engine.transaction() as execute:
            return _teams(execute)

    def add_token(self, digest: str, token: IssuedToken, act: AdministrativeAct) -> None:
        with self._engine.transaction() as execute:
            _acted(execute, act)
            values = (digest, token.team, token.label, token.created, token.revoked)
            execute("INSERT INTO access_tokens VALUES (?, ?, ?, ?, ?)", values)

    def tokens(self) -> Sequence[IssuedToken]:
        with self._engine.transaction() as execute:
            return [IssuedToken(token_id(digest), *row) for digest, *row in execute(_TOKENS, ())]

    def revoke(self, identity: str, act: AdministrativeAct) -> bool:
        with self._engine.transaction() as execute:
            known = [digest for digest, *_, revoked in execute(_TOKENS, ()) if not revoked]
            digest = next((digest for digest in known if token_id(digest) == identity), None)
            if digest is None:
                return False
            _acted(execute, act)
            execute("UPDATE access_tokens SET revoked = ? WHERE digest = ?", (act.at, digest))
            return True

    def audit(self) -> Sequence[AdministrativeAct]:
        with self._engine.transaction() as execute:
            rows = execute("SELECT happened, actor, act, team, detail FROM access_audit ORDER BY number", ())
            return [AdministrativeAct(*row) for row in rows]

    def report(self, report: UsageReport, period: Period, known: AccessState | None = None) -> AccessState:
        with self._engine.transaction() as execute:
            if not report.is_empty:
                _add(execute, report, period)
            [(revision,)] = execute("SELECT revision FROM access_facts", ())
            spent = _spent(execute, period)
            if known is not None and known.revision == revision:
                return AccessState(revision, known.teams, known.tokens, spent)
            teams = {team.name: team for team in _teams(execute)}
            tokens = {digest: team for digest, team, _, _, revoked in execute(_TOKENS, ()) if not revoked}
            return AccessState(revision, teams, tokens, spent)

    def uses(self, since: str = "") -> UseByAttribution:
        with self._engine.transaction() as execute:
            names = ", ".join(USE_FIELDS)
            rows = execute(
                f"SELECT team, day, project, agent, model, {names} FROM access_uses WHERE day >= ? "  # noqa: S608
                "ORDER BY team, day, project, agent, model",
                (since,),
            )
            return {Attribution(*row[:5]): TeamUse(*row[5:]) for row in rows}

    def close(self) -> None:
        self._engine.close()


def _teams(execute: Execute) -> list[Team]:
    rows = execute(
        "SELECT name, usd_day, usd_month, tokens_day, tokens_month, requests_minute FROM access_teams ORDER BY name", ()
    )
    return [Team(name, TeamLimits(*limits)) for name, *limits in rows]


def _acted(execute: Execute, act: AdministrativeAct) -> None:
    execute(_REVISED, ())  # first: whoever acts at the same time waits here
    execute(_ACTED, (act.at, act.actor, act.act, act.team, act.detail))


def _add(execute: Execute, report: UsageReport, period: Period) -> None:
    """Adds a report, unless it was added before and its answer was lost."""
    if not execute(_REPORTED, (report.instance, report.number, period.minute)):
        return
    for use, counts in sorted(report.uses.items(), key=lambda item: repr(item[0])):  # one order: no deadlocks
        row = (use.team, use.day, use.project, use.agent, use.model)
        execute(_USED, (*row, *(getattr(counts, name) for name in USE_FIELDS)))
    for (team, minute), requests in sorted(report.minutes.items()):
        execute(_ASKED, (team, minute, requests))
    if report.number % 100 == 1:
        execute("DELETE FROM access_minutes WHERE minute < ?", (period.minute - _KEPT_MINUTES,))
        execute("DELETE FROM access_reports WHERE minute < ?", (period.minute - _KEPT_INSTANCES,))


def _spent(execute: Execute, period: Period) -> dict[str, Spent]:
    day: dict[str, TeamUse] = {}
    month: dict[str, TeamUse] = {}
    for team, of, *sums in execute(_BY_TEAM, (f"{period.month}-01",)):
        month[team] = month.get(team, TeamUse()) + TeamUse(*sums)
        if of == period.day:
            day[team] = TeamUse(*sums)
    rows = execute("SELECT team, requests FROM access_minutes WHERE minute = ?", (period.minute,))
    minutes: dict[str, int] = dict(rows)
    names = {*month, *minutes}
    return {team: Spent(day.get(team, TeamUse()), month.get(team, TeamUse()), minutes.get(team, 0)) for team in names}
