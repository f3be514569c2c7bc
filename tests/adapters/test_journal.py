"""What only a journal on disk can get wrong: other processes, kills, damage, and pages that are collected under it."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.adapters.sqlite.journal import SqliteJournal, beside
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.errors import StoreError
from pagefold.pages.journal import (
    SCHEMAS,
    Boundary,
    JournalEntry,
    JournalLine,
    JournalRecord,
    LineState,
    Op,
    RejectReason,
    Rules,
    flush,
)
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.page import PageId, id_of

BENCH = Path(__file__).parent.parent.parent / "bench" / "journal.py"
MINE = "session:1"
RULES = Rules(SCHEMAS, frozenset({MINE}))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlitePages]:
    with closing(SqlitePages(tmp_path / "store.db")) as store:
        yield store


@pytest.fixture
def page(store: SqlitePages) -> PageId:
    return store.put(b"what it came from")


@pytest.fixture
def journal(tmp_path: Path, store: SqlitePages) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "journal.db", RULES, store)) as journal:
        yield journal


def note(page: PageId, text: str = "x") -> JournalEntry:
    return JournalEntry.of(Op.APPEND, MINE, "notes", "note", {"text": text}, provenance=[page])


def goal(page: PageId, text: str, read_version: int | None) -> JournalEntry:
    return JournalEntry.of(
        Op.SET, MINE, "plan", "plan", {"goal": text, "source": {}}, provenance=[page], read_version=read_version
    )


# -------------------------------------------------------------------------------------------------------- as pure


KEYS = st.sampled_from(["notes", "plan", "\udc80 odd", "é"])
VALUES = st.sampled_from([{"text": "x"}, {"text": "\udfff"}, {"goal": "g", "source": {}}, [], [{"text": "y"}], 1])
ENTRIES = st.builds(
    lambda op, scope, key, schema, value, read_version, known: JournalEntry.of(
        op, scope, key, schema, value, provenance=[id_of(b"known" if known else b"unknown")], read_version=read_version
    ),
    st.sampled_from(Op),
    st.sampled_from([MINE, MINE, MINE, "session:2"]),
    KEYS,
    st.sampled_from(["note", "plan"]),
    VALUES,
    st.none() | st.integers(0, 3),
    st.sampled_from([True, True, True, False]),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(ENTRIES, st.sampled_from(["", "", "t", "\udc80"]), st.booleans()), max_size=12))
def test_the_journal_on_disk_answers_as_the_one_in_memory(steps: list[tuple[JournalEntry, str, bool]]) -> None:
    with tempfile.TemporaryDirectory() as name, closing(SqlitePages(Path(name) / "store.db")) as store:
        store.put(b"known")
        memory = MemoryStore()
        memory.pages.put(b"known")
        pure = memory.open_journal(RULES)
        with closing(SqliteJournal(Path(name) / "journal.db", RULES, store)) as kept:
            for entry, token, flushes in steps:
                assert kept.stage(entry, token=token, now=2.5) == pure.stage(entry, token=token, now=2.5)
                if flushes:
                    assert flush(kept, Boundary.PRUNE) == flush(pure, Boundary.PRUNE)
        with closing(SqliteJournal(Path(name) / "journal.db", RULES, store)) as again:
            assert (again.lines(), again.pending()) == (pure.lines(), pure.pending())
            for entry, _, _ in steps:
                assert again.record(entry.scope, entry.key) == pure.record(entry.scope, entry.key)
                rejected = pure.lines(scope=entry.scope, state=LineState.REJECTED)
                assert again.lines(scope=entry.scope, state=LineState.REJECTED) == rejected


# ---------------------------------------------------------------------------------------------- several at once


def test_of_many_that_set_what_they_all_read_one_wins_and_the_others_are_refused(
    tmp_path: Path, store: SqlitePages, page: PageId
) -> None:
    def write(name: str) -> list[JournalLine]:
        with closing(SqliteJournal(tmp_path / "journal.db", RULES, store, owner=name)) as own:
            own.stage(goal(page, name, read_version=0))
            own.stage(note(page, name))
            flushed = flush(own, Boundary.RESET)
            return [*flushed.committed, *flushed.rejected]

    names = [f"writer {n}" for n in range(8)]
    with ThreadPoolExecutor(8) as threads:
        lines = [line for written in threads.map(write, names) for line in written]

    sets = [line for line in lines if line.entry.op is Op.SET]
    winner = next(line for line in sets if line.state is LineState.COMMITTED)
    assert {line.reason for line in sets if line is not winner} == {RejectReason.DESTRUCTIVE_OP}
    with closing(SqliteJournal(tmp_path / "journal.db", RULES, store)) as journal:
        record, notes = journal.record(MINE, "plan"), journal.record(MINE, "notes")
    assert record == JournalRecord(MINE, "plan", "plan", 1, json.loads(winner.entry.value))
    assert notes is not None
    assert sorted(note["text"] for note in notes.value) == names


def test_a_record_is_seen_as_another_process_left_it(
    tmp_path: Path, store: SqlitePages, journal: SqliteJournal, page: PageId
) -> None:
    journal.stage(note(page, "mine"))
    flush(journal, Boundary.RESET)
    with closing(SqliteJournal(tmp_path / "journal.db", RULES, store, owner="another")) as another:
        another.stage(note(page, "theirs"))
        flush(another, Boundary.RESET)

    assert journal.record(MINE, "notes") == JournalRecord(
        MINE, "notes", "note", 2, [{"text": "mine"}, {"text": "theirs"}]
    )


@pytest.mark.skipif(os.name != "posix", reason="forks and kills with POSIX signals")
def test_writers_killed_before_any_statement_lose_no_commit_and_overwrite_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH), "--runs", "14", "--seed", "7"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost commits 0, half commits 0, destructive overwrites 0, problems in all 0" in done.stdout


# ----------------------------------------------------------------------------------------------------- provenance


def test_a_store_that_fails_leaves_the_line_for_the_next_flush(
    tmp_path: Path, store: SqlitePages, journal: SqliteJournal, page: PageId
) -> None:
    journal.stage(note(page))
    store.close()

    with pytest.raises(StoreError, match=r"store.db is closed"):
        flush(journal, Boundary.RESET)

    assert [line.state for line in journal.pending()] == [LineState.STAGED]
    with (
        closing(SqlitePages(store.path)) as again,
        closing(SqliteJournal(tmp_path / "journal.db", RULES, again)) as next_one,
    ):
        assert len(flush(next_one, Boundary.RESET).committed) == 1


# --------------------------------------------------------------------------------------------------------- damage


def spoiled(path: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement, values)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lines SET entry = 'not json'",
        "UPDATE lines SET entry = '{}'",
        "UPDATE lines SET entry = '[]'",
        "UPDATE lines SET state = 'lost'",
        "UPDATE lines SET owner = 5",
        "UPDATE lines SET scope = x'ff'",
    ],
)
def test_a_damaged_line_is_refused_and_names_the_file(journal: SqliteJournal, page: PageId, statement: str) -> None:
    journal.stage(note(page))
    spoiled(journal.path, statement)

    with pytest.raises(StoreError) as refused:
        journal.lines()

    assert f"the journal {journal.path} is damaged" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_record_with_a_missing_version_is_refused_and_not_made_up(
    tmp_path: Path, store: SqlitePages, journal: SqliteJournal, page: PageId
) -> None:
    for text in ("one", "two", "three"):
        journal.stage(note(page, text))
    flush(journal, Boundary.RESET)
    spoiled(journal.path, "DELETE FROM lines WHERE version = 2")

    with closing(SqliteJournal(tmp_path / "journal.db", RULES, store)) as again, pytest.raises(StoreError) as refused:
        again.record(MINE, "notes")

    assert "version 2 of notes is missing" in str(refused.value)


def test_a_page_store_is_not_a_journal_and_is_left_as_it_is(store: SqlitePages, page: PageId) -> None:
    with pytest.raises(StoreError, match="another program's database: name another file for the journal"):
        SqliteJournal(store.path, RULES, store).lines()

    assert store.get(page) == b"what it came from"


def test_two_commits_of_one_version_cannot_both_stand(journal: SqliteJournal, page: PageId) -> None:
    for text in ("one", "two"):
        journal.stage(note(page, text))
    flush(journal, Boundary.RESET)

    with pytest.raises(sqlite3.IntegrityError):
        spoiled(journal.path, "UPDATE lines SET version = 1")


def test_the_journal_syncs_with_every_commit_and_lies_beside_its_store(journal: SqliteJournal) -> None:
    assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert beside(Path("/data/store.sqlite3")) == Path("/data/store.journal.sqlite3")


# --------------------------------------------------------------------------------------------------- the command


def pagefold(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pagefold", "journal", "--store", str(home / "store.db"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=home, env={"HOME": str(home)})


def test_the_command_lists_what_was_committed_and_what_was_rejected_and_why(tmp_path: Path, store: SqlitePages) -> None:
    page = store.put(b"seen")
    with closing(SqliteJournal(beside(store.path), RULES, store, owner="me")) as journal:
        journal.stage(note(page, "kept"))
        journal.stage(replace(note(page, "lost"), scope="session:2"))
        flush(journal, Boundary.RESET)

    told = pagefold(home=tmp_path).stdout
    assert "committed" in told
    assert "scope_violation: scope 'session:2'" in told

    listed = json.loads(pagefold("--json", "--state", "committed", home=tmp_path).stdout)
    assert [(line["line"], line["value"], line["version"]) for line in listed["lines"]] == [(1, {"text": "kept"}, 1)]
    listed = json.loads(pagefold("--json", "--scope", "session:2", home=tmp_path).stdout)
    assert [(line["state"], line["reason"]) for line in listed["lines"]] == [("rejected", "scope_violation")]


def test_what_a_writer_wrote_is_shown_as_it_is_and_not_obeyed_by_the_terminal(
    tmp_path: Path, store: SqlitePages
) -> None:
    page = store.put(b"seen")
    with closing(SqliteJournal(beside(store.path), RULES, store)) as journal:
        journal.stage(replace(note(page, "[/bold] x"), key="[red]\x1b[2J\udc80"))

    told = pagefold(home=tmp_path).stdout

    assert "[/bold] x" in told
    assert r"[red]\x1b[2J\udc80" in told


def test_the_examples_of_the_documentation_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (BENCH.parent.parent / "docs" / "journal.md").read_text()
    monkeypatch.chdir(tmp_path)
    Path("AGENTS.md").write_text("# Tests\nRun make.\n")
    names: dict[str, Any] = {}

    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(code, names)

    lines = names["journal"].lines()
    assert {line.state for line in lines} == {LineState.COMMITTED}
    assert [line.entry.schema for line in lines][-1] == "note"
    assert {"constraint", "preference"} < {line.entry.schema for line in lines}
    names["journal"].close()
    names["store"].close()


def test_looking_at_a_journal_that_is_not_there_makes_none(tmp_path: Path) -> None:
    assert "nothing was written back yet" in pagefold(home=tmp_path).stderr
    assert json.loads(pagefold("--json", home=tmp_path).stdout)["lines"] == []
    assert list(tmp_path.iterdir()) == []
