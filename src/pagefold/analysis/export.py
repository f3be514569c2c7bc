"""Rows for export: what a session cost under each policy, and at which level each page stood, and why.

Holds figures and names of tools, no text: a decision names its page by place and by the hash of its content.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pagefold.analysis.engine import SessionResult
from pagefold.analysis.replay import SessionReplay
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.timeline import level_changes
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Session

SESSIONS = {
    "session": "VARCHAR",
    "source": "VARCHAR",
    "path": "VARCHAR",
    "policy": "VARCHAR",
    "requests": "BIGINT",
    "tokens": "BIGINT",
    "cached_tokens": "BIGINT",
    "written_tokens": "BIGINT",
    "cost": "DOUBLE",
    "penalty": "DOUBLE",
    "peak": "BIGINT",
    "over": "BIGINT",
    "moved": "BIGINT",
    "expired": "BIGINT",
    "demanded": "BIGINT",
    "missed": "BIGINT",
    "cost_usd": "DOUBLE",
}
DECISIONS = {
    "session": "VARCHAR",
    "policy": "VARCHAR",
    "request": "INTEGER",
    "place": "INTEGER",
    "page": "VARCHAR",
    "role": "VARCHAR",
    "tool": "VARCHAR",
    "level": "VARCHAR",
    "part": "VARCHAR",
    "reason": "VARCHAR",
    "fold": "BOOLEAN",
    "tokens": "INTEGER",
    "shown_tokens": "INTEGER",
}
BY_POLICY = """
SELECT policy, count(*) AS sessions, sum(requests)::BIGINT AS requests, sum(tokens)::BIGINT AS tokens,
       sum(cost) AS cost, sum(penalty) AS penalty, sum(cost_usd) AS cost_usd,
       sum(missed)::BIGINT AS missed, sum(demanded)::BIGINT AS demanded
FROM sessions GROUP BY policy ORDER BY cost DESC, policy
"""
BY_TOOL = """
SELECT policy, tool, count(*) FILTER (NOT fold) AS results, sum(tokens) FILTER (NOT fold)::BIGINT AS tokens,
       sum(shown_tokens) FILTER (NOT fold)::BIGINT AS shown_tokens,
       count(*) FILTER (fold AND level = 'structured') AS kept_in_lines,
       count(*) FILTER (fold AND level = 'pointer') AS handles
FROM decisions WHERE role = 'tool' GROUP BY policy, tool ORDER BY policy, tokens DESC NULLS LAST, tool
"""
BY_LEVEL = """
SELECT policy, level, fold, count(*) AS decisions, sum(tokens)::BIGINT AS tokens, count(DISTINCT session) AS sessions
FROM decisions GROUP BY policy, level, fold ORDER BY policy, fold, decisions DESC, level
"""
_ID = 16  # hexadecimal digits of a page's hash


@dataclass(frozen=True, slots=True)
class ExportedSession:
    """Figures by policy, and decisions as lines of JSON."""

    figures: dict[str, ReplayFigures]
    decisions: bytes


def export_session(session: Session, job: ReplayJob, *, policies: tuple[str, ...]) -> ExportedSession:
    figures: dict[str, ReplayFigures] = {}
    decisions: list[dict[str, Any]] = []
    for name in policies:
        replay = SessionReplay(session, job.of(session).terms(name))
        decisions += _decision_rows(session, replay, name)
        figures[name] = replay.figures
    return ExportedSession(figures, _lines(decisions))


def session_rows(result: SessionResult[ExportedSession], job: ReplayJob) -> bytes:
    """Returns the rows of the table `sessions` for one session, as lines of JSON."""
    rows = []
    for policy, figures in result.value.figures.items():
        values = figures.to_dict() | {
            "session": result.id,
            "source": result.source,
            "path": str(result.path),
            "policy": policy,
            "cost_usd": job.prices.usd(figures.cost),
        }
        rows.append({name: values[name] for name in SESSIONS})
    return _lines(rows)


def _decision_rows(session: Session, replay: SessionReplay, policy: str) -> Iterator[dict[str, Any]]:
    """One row for every page on arrival, and one more at every fold that decided about it."""
    for change in level_changes(session, replay):
        message = session.messages[change.place]
        tool = next((block.name for block in message.blocks if block.name), None)
        yield {
            "session": session.id,
            "policy": policy,
            "request": change.request,
            "place": change.place,
            "page": hashlib.sha256(message.text.encode("utf-8", "surrogatepass")).hexdigest()[:_ID],
            "role": str(message.role),
            "tool": tool if message.role is Role.TOOL else None,
            "level": str(change.level),
            "part": change.part,
            "reason": change.reason,
            "fold": change.shown is None,
            "tokens": replay.count(message),
            "shown_tokens": None if change.shown is None else replay.count(change.shown),
        }


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows).encode()
