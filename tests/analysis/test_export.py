"""Exports: the rows add up to a replay's figures, hold no text, and are added up by DuckDB in no time."""

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pagefold.adapters import parquet
from pagefold.analysis.engine import Engine, SessionResult, run_on_sessions
from pagefold.analysis.export import (
    BY_LEVEL,
    BY_POLICY,
    BY_TOOL,
    DECISIONS,
    SESSIONS,
    ExportedSession,
    export_session,
    session_rows,
)
from pagefold.analysis.problems import FileProblem
from pagefold.analysis.replay import Terms, replay
from pagefold.analysis.replay_job import ReplayJob
from pagefold.derive.cost import ASSUMED
from pagefold.derive.learned import Folds, Learned
from pagefold.derive.policies import policy_named
from pagefold.errors import ConfigError
from pagefold.tokens import counter
from tests.analysis.logs import session, talk, written

EARLY = Learned(folds=Folds(miss=300, least=4_000, cold=2_000, rent=0.2))
POLICIES = ("identity", "economic")
JOB = ReplayJob(ASSUMED, "o200k", 200_000, learned=EARLY)


class Rows(NamedTuple):
    sessions: bytes
    decisions: bytes


def results(path: Path) -> list[SessionResult[ExportedSession] | FileProblem]:
    return list(run_on_sessions([path], partial(export_session, policies=POLICIES), JOB, Engine(jobs=1)))


def rows(path: Path) -> list[Rows]:
    return [
        Rows(session_rows(result, JOB), result.value.decisions)
        for result in results(path)
        if isinstance(result, SessionResult)
    ]


def lines(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_session_is_one_row_a_policy_with_the_figures_of_a_replay(tmp_path: Path) -> None:
    (found,) = rows(written(tmp_path / "logs.jsonl", talk("one", turns=30)))

    for row, name in zip(lines(found.sessions), POLICIES, strict=True):
        policy = policy_named(name, window=JOB.window, prices=JOB.prices, learned=EARLY)
        expected = replay(session("one", turns=30), Terms(policy, JOB.prices, counter("o200k"), JOB.window)).to_dict()
        assert {key: row[key] for key in row if key in expected} == {
            key: expected[key] for key in row if key in expected
        }
        assert (row["session"], row["policy"]) == ("one", name)
        assert list(row) == list(SESSIONS)


def test_every_page_is_decided_on_arrival_and_at_each_fold(tmp_path: Path) -> None:
    (found,) = rows(written(tmp_path / "logs.jsonl", talk("one", turns=30)))
    decided = [row for row in lines(found.decisions) if row["policy"] == "economic"]

    assert {row["place"] for row in decided} == set(range(61))
    assert {row["level"] for row in decided if row["fold"]} >= {"structured", "compressed"} or any(
        row["level"] == "pointer" for row in decided
    )
    assert all(row["reason"] and row["level"] and list(row) == list(DECISIONS) for row in decided)
    assert all(row["shown_tokens"] <= row["tokens"] for row in decided if not row["fold"])


def test_no_text_of_a_log_is_exported(tmp_path: Path) -> None:
    (found,) = rows(written(tmp_path / "logs.jsonl", talk("one", turns=12)))

    assert b"handler_" not in found.decisions + found.sessions
    assert b"part_" not in found.decisions + found.sessions


def test_a_problem_is_a_problem(tmp_path: Path) -> None:
    found = results(written(tmp_path / "logs.jsonl", talk("one", turns=1), "{broken"))

    assert [isinstance(one, FileProblem) for one in found].count(True) == 1


def test_tables_are_written_in_parts_and_added_up(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed (the extra analysis)")
    found = rows(written(tmp_path / "logs.jsonl", *(talk(f"s{at}", turns=12) for at in range(4))))
    folder = tmp_path / "it's"
    with parquet.tables(folder, sessions=SESSIONS, decisions=DECISIONS) as tables:
        tables["decisions"].part_bytes = 20_000
        for one in found:
            tables["sessions"].add(one.sessions)
            tables["decisions"].add(one.decisions)

    names = sorted(path.name for path in folder.iterdir())
    assert names[-1] == "sessions-00001.parquet"
    assert len(names) > 2
    assert not any(name.startswith(".") or name.endswith(".part") for name in names)
    (economic, identity) = sorted(parquet.query(folder, BY_POLICY, ["sessions"]), key=lambda row: row["policy"])
    told = [line for one in found for line in lines(one.sessions) if line["policy"] == "identity"]
    assert identity["cost"] == pytest.approx(sum(line["cost"] for line in told))
    assert identity["tokens"] == sum(line["tokens"] for line in told)
    assert economic["sessions"] == 4
    tools = parquet.query(folder, BY_TOOL, ["decisions"])
    assert {row["tool"] for row in tools} == {"Read"}
    assert sum(row["decisions"] for row in parquet.query(folder, BY_LEVEL, ["decisions"])) == tables["decisions"].rows


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed (the extra analysis)")
    with pytest.raises(ConfigError, match=r"no sessions-\*\.parquet there"):
        parquet.query(tmp_path, BY_POLICY, ["sessions"])


@pytest.mark.requirement("S-10-duckdb")
def test_the_decisions_of_ten_thousand_sessions_are_added_up(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed (the extra analysis)")
    (found,) = rows(written(tmp_path / "logs.jsonl", talk("one", turns=12)))
    with parquet.duckdb().connect() as database:
        source = tmp_path / "one.jsonl"
        source.write_bytes(found.decisions)
        target = tmp_path / "decisions-00001.parquet"
        database.execute(
            "COPY (SELECT * REPLACE ('s' || number AS session) FROM read_json(?), range(10000) AS many(number)) "
            f"TO '{target}' (FORMAT parquet, COMPRESSION zstd)",
            [str(source)],
        )

    levels = parquet.query(tmp_path, BY_LEVEL, ["decisions"])
    tools = parquet.query(tmp_path, BY_TOOL, ["decisions"])

    assert tools
    assert {row["sessions"] for row in levels if row["policy"] == "identity"} == {10_000}
