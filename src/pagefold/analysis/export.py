"""Sessions and decisions as rows: what a session cost under each policy, and at which level each page stood, and why.

Figures and names of tools, no text: a decision names its page by place and by the hash of its content.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagefold.adapters import recordings
from pagefold.analysis.replay import SessionReplay, Terms
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.derive.cost import Prices
from pagefold.derive.learned import SHIPPED, Learned
from pagefold.derive.policies import policy_named
from pagefold.derive.policy import Derived
from pagefold.pages.kinds import ResidencyLevel
from pagefold.tokens import counter
from pagefold.wire.message import Message, Role
from pagefold.wire.transcripts import Format, Problem, Session

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
class Job:
    """In values that travel between processes."""

    policies: tuple[str, ...]
    prices: Prices
    tokens: str
    window: int
    format: Format | None
    max_line_bytes: int
    overhead: int = 0
    learned: Learned = SHIPPED


@dataclass(frozen=True, slots=True)
class Exported:
    """Rows of one session as lines of JSON, or a problem without one."""

    path: Path
    sessions: bytes = b""
    decisions: bytes = b""
    problem: Problem | None = None


def exported(batches: Sequence[recordings.LogBatch], job: Job) -> list[Exported]:
    found: list[Exported] = []
    for batch in batches:
        for item in recordings.sessions(batch, max_bytes=job.max_line_bytes):
            if isinstance(item, Problem):
                found.append(Exported(batch.path, problem=item))
                continue
            totals, decisions = list[str](), list[str]()
            for name in job.policies:
                run = SessionReplay(item, _terms(name, job))
                decisions += map(_line, _decided(item, run, name))
                totals.append(_line(_total(item, batch.path, name, run.figures, job)))
            found.append(Exported(batch.path, _bytes(totals), _bytes(decisions)))
    return found


def _terms(name: str, job: Job) -> Terms:
    policy = policy_named(
        name, window=job.window, prices=job.prices, tokens=job.tokens, learned=job.learned, offline=True
    )
    return Terms(policy, job.prices, counter(job.tokens), job.window, job.overhead)


def _total(session: Session, path: Path, policy: str, figures: ReplayFigures, job: Job) -> dict[str, Any]:
    told = figures.to_dict() | {
        "session": session.id,
        "source": session.source or path.name.partition(".")[0],
        "path": str(path),
        "policy": policy,
        "cost_usd": job.prices.usd(figures.cost),
    }
    return {name: told[name] for name in SESSIONS}


def _decided(session: Session, run: SessionReplay, policy: str) -> Iterator[dict[str, Any]]:
    """One row for every page on arrival, and one more at every fold that decided about it."""
    known: dict[int, dict[str, Any]] = {}
    heard = 0
    for number, (turn, derived) in enumerate(run):
        for place in range(heard, turn):
            known[place] = _page(session, place, run, policy)
        if derived.reason:
            for decision in derived.decisions:
                row = {"request": number, "level": str(decision.level), "reason": decision.reason, "fold": True}
                if decision.place in known:
                    yield known[decision.place] | row | {"shown_tokens": None}
        else:
            yield from _arrived(session, derived, range(heard, turn), run, known, number)
        heard = turn


def _arrived(
    session: Session, derived: Derived, places: range, run: SessionReplay, known: dict[int, dict[str, Any]], number: int
) -> Iterator[dict[str, Any]]:
    for place, message in zip(places, derived.append, strict=False):
        same = message.raw == session.messages[place].raw
        level = ResidencyLevel.FULL if same else ResidencyLevel.COMPRESSED
        yield known[place] | {
            "request": number,
            "level": str(level),
            "reason": "as it came" if same else "a lossless form is cheaper",
            "fold": False,
            "shown_tokens": run.count(message),
        }


def _page(session: Session, place: int, run: SessionReplay, policy: str) -> dict[str, Any]:
    message: Message = session.messages[place]
    tool = next((block.name for block in message.blocks if block.name), "") if message.role is Role.TOOL else ""
    return {
        "session": session.id,
        "policy": policy,
        "request": 0,
        "place": place,
        "page": hashlib.sha256(message.text.encode("utf-8", "surrogatepass")).hexdigest()[:_ID],
        "role": str(message.role),
        "tool": tool or None,
        "level": "",
        "reason": "",
        "fold": False,
        "tokens": run.count(message),
        "shown_tokens": None,
    }


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=True) + "\n"


def _bytes(lines: Sequence[str]) -> bytes:
    return "".join(lines).encode()
