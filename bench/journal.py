"""Kills writers of the journal and checks what is lost: nothing, half a commit, or what another writer had committed.

    python bench/journal.py [--runs 1000] [--writers 3] [--seed 1]

Every run has several processes write to one journal and one store at once. The first is killed with SIGKILL right
before its n-th SQL statement, n going round over all of them, from making the files to the last commit; the second
before any of them; the third at any instant, or not at all. Whatever a writer was told is written down before it is
killed. Then everything is read back and checked, each writer's successor tries again what its predecessor had begun,
and everything is checked once more. Processes are forked from one that has imported everything, so that a run takes
milliseconds.
"""

import argparse
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pagefold.adapters.sqlite import database
from pagefold.adapters.sqlite.journal import SqliteJournal
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.pages.journal import (
    Boundary,
    JournalEntry,
    JournalLine,
    LineState,
    Op,
    RejectReason,
    Rules,
    Schema,
    flush,
)
from pagefold.pages.page import id_of

RUNS_PER_FILE = 7  # shares no factor with the statements, so that each of them also falls on a new file
SCOPE = "project:bench"
RULES = Rules(
    {
        "note": Schema("note", {"text": "string"}, many=True),
        "plan": Schema("plan", {"goal": "string"}),
        "facts": Schema("facts", {"seen": "object"}),
    },
    frozenset({SCOPE}),
)


class Telling(SqliteJournal):
    """A journal that tells whoever listens what it has answered."""

    tell: Callable[[dict[str, Any]], None]

    def stage(self, entry: JournalEntry, *, token: str = "", now: float = 0.0) -> JournalLine:
        line = super().stage(entry, token=token, now=now)
        self.tell({"staged": line.number, "token": token})
        return line

    def commit(self, number: int, boundary: Boundary) -> JournalLine:
        line = super().commit(number, boundary)
        self.tell({line.state: line.number, "version": line.version, "reason": line.reason})
        return line


def write(folder: Path, owner: str, tell: Callable[[dict[str, Any]], None]) -> None:
    """What every writer does, and what its successor does again: three entries, a flush, one more, a flush."""
    with (
        closing(SqlitePages(folder / "store.db")) as store,
        closing(Telling(folder / "journal.db", RULES, store, owner=owner)) as journal,
    ):
        journal.tell = tell
        page = store.put(f"what {owner} saw".encode())
        plan = journal.record(SCOPE, "plan")
        goal, read_version = {"goal": owner}, plan.version if plan else 0
        stage = partial(_stage, journal, page)
        stage(Op.APPEND, "notes", "note", {"text": f"{owner} 1"}, token="1")
        stage(Op.SET, "plan", "plan", goal, token="2", read_version=read_version)
        stage(Op.MERGE, "facts", "facts", {"seen": {owner: 1}}, token="3")
        flush(journal, Boundary.COMPACTION)
        stage(Op.APPEND, "notes", "note", {"text": f"{owner} 2"}, token="4")
        flush(journal, Boundary.SHUTDOWN)


def _stage(
    journal: SqliteJournal,
    page: Any,
    op: Op,
    key: str,
    schema: str,
    value: Any,
    token: str,
    read_version: int | None = None,
) -> None:
    journal.stage(
        JournalEntry.of(op, SCOPE, key, schema, value, provenance=[page], read_version=read_version), token=token
    )


# ------------------------------------------------------------------------------------------------------- killing


@contextmanager
def before_each_statement(act: Callable[[str], None]) -> Iterator[None]:
    """Call `act` right before every SQL statement of every connection that is opened meanwhile."""
    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(act)
        return connection

    database.sqlite3.connect = traced  # type: ignore[attr-defined]
    try:
        yield
    finally:
        database.sqlite3.connect = connect  # type: ignore[attr-defined]


def statements_of(folder: Path) -> int:
    """How many statements a writer runs that nobody disturbs."""
    seen: list[str] = []
    with before_each_statement(seen.append):
        write(folder, "alone", lambda told: None)
    return len(seen)


@dataclass(slots=True)
class Writer:
    """A forked process, and what it has told so far."""

    owner: str
    pid: int
    pipe: int
    told: list[dict[str, Any]] = field(default_factory=list)
    killed_before: str = ""

    def end(self) -> int:
        """Wait until it is gone; what killed it, or 0."""
        with os.fdopen(self.pipe, "rb") as pipe:
            lines = pipe.read().split(b"\n")[:-1]
        _, status = os.waitpid(self.pid, 0)
        for line in map(json.loads, lines):
            if "killed" in line:
                self.killed_before = line["killed"]
            else:
                self.told.append(line)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise SystemExit(f"writer {self.owner} failed by itself")
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def started(folder: Path, owner: str, kill_at: int) -> Writer:
    """A writer that kills itself before its `kill_at`-th statement; 0 for never."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Writer(owner, pid, reading)
    status = 1
    try:
        os.close(reading)
        _be_writer(folder, owner, kill_at, writing)
        status = 0
    finally:
        os._exit(status)


def _be_writer(folder: Path, owner: str, kill_at: int, pipe: int) -> None:
    left = kill_at

    def tell(told: dict[str, Any]) -> None:
        os.write(pipe, json.dumps(told).encode() + b"\n")

    def count(statement: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            tell({"killed": " ".join(statement.split())[:24]})
            os.kill(os.getpid(), signal.SIGKILL)

    with before_each_statement(count):
        write(folder, owner, tell)


# ------------------------------------------------------------------------------------------------------ checking


@dataclass(slots=True)
class Checked:
    """All that was ever told, and ever seen committed, in one journal."""

    staged: dict[int, tuple[str, str]] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    seen: dict[int, JournalLine] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def hear(self, writer: Writer) -> None:
        for told in writer.told:
            if "staged" in told:
                self.staged[told["staged"]] = (writer.owner, told["token"])
            elif LineState.COMMITTED in told:
                self.committed[told[LineState.COMMITTED]] = told["version"]

    def check(self, folder: Path) -> None:
        with (
            closing(SqlitePages(folder / "store.db")) as store,
            closing(SqliteJournal(folder / "journal.db", RULES, store)) as journal,
        ):
            self._check_lines(journal)
            self._check_records(journal)
            store.collect(max_bytes=0)
            for line in journal.lines(state=LineState.COMMITTED):
                for page in line.entry.provenance:
                    if id_of(store.get(page) or b"") != page:
                        self.problems.append(f"lost provenance: line {line.number} came from {page}")
        for name in ("journal.db", "store.db"):
            with closing(sqlite3.connect(folder / name)) as db:
                found = db.execute("PRAGMA integrity_check").fetchall()
            if found != [("ok",)]:
                self.problems.append(f"damaged: {name}: {found}")

    def _check_lines(self, journal: SqliteJournal) -> None:
        lines = {line.number: line for line in journal.lines()}
        for number, (owner, token) in self.staged.items():
            if number not in lines or lines[number].owner != owner:
                self.problems.append(f"lost stage: line {number}, {token} of {owner}")
        for number, version in self.committed.items():
            line = lines.get(number)
            if line is None or (line.state, line.version) != (LineState.COMMITTED, version):
                self.problems.append(f"lost commit: line {number} at version {version} is {line}")
        for number, line in self.seen.items():
            if lines.get(number) != line:
                self.problems.append(f"overwritten: {line} is {lines.get(number)}")
        self.seen = {number: line for number, line in lines.items() if not line.pending}
        self.reasons = Counter(line.reason for line in lines.values() if line.reason)

    def _check_records(self, journal: SqliteJournal) -> None:
        committed = journal.lines(state=LineState.COMMITTED)
        for key in ("notes", "plan", "facts"):
            lines = sorted((line for line in committed if line.entry.key == key), key=lambda line: line.version)
            if [line.version for line in lines] != list(range(1, len(lines) + 1)):
                self.problems.append(f"half commit: versions of {key} are {[line.version for line in lines]}")
                continue
            record = journal.record(SCOPE, key)
            values = [json.loads(line.entry.value) for line in lines]
            if record is None:
                continue
            for line in lines:
                if line.entry.op is Op.SET and line.entry.read_version != line.version - 1:
                    self.problems.append(
                        f"destructive: line {line.number} read {line.entry.read_version}: {line.version}"
                    )
            expected: Any = values if key == "notes" else values[-1]
            if key == "facts":
                expected = {"seen": {owner: 1 for value in values for owner in value["seen"]}}
            if record.value != expected or (key == "notes" and len({note["text"] for note in values}) != len(values)):
                self.problems.append(f"wrong record: {key} is {record.value}, its lines say {expected}")


def succeed(folder: Path, writer: Writer) -> list[str]:
    """Do again what a writer may have left half done, as the process that follows it would."""
    told: list[dict[str, Any]] = []
    write(folder, writer.owner, told.append)
    writer.told += told
    with (
        closing(SqlitePages(folder / "store.db")) as store,
        closing(SqliteJournal(folder / "journal.db", RULES, store, owner=writer.owner)) as journal,
    ):
        own = [line for line in journal.lines() if line.owner == writer.owner]
        left = [f"left over: {line}" for line in journal.pending()]
        twice = [f"{writer.owner} has {len(own)} lines for four entries"] if len(own) != 4 else []
        refused = [
            f"refused without reason: {line}"
            for line in own
            if line.state is LineState.REJECTED
            and (line.reason, line.entry.op) != (RejectReason.DESTRUCTIVE_OP, Op.SET)
        ]
    return [*left, *twice, *refused]


def one_run(folder: Path, run: int, writers: int, statements: int, dice: random.Random) -> list[Writer]:
    kill_at = [run % statements + 1, dice.randint(1, statements)] + [0] * writers
    running = [started(folder, f"{run}-{n}", kill_at[n]) for n in range(writers)]
    if writers > 2 and run % 2:
        time.sleep(dice.random() * 0.02)
        os.kill(running[2].pid, signal.SIGKILL)
    for writer in running:
        writer.end()
    return running


def measure(runs: int, writers: int, seed: int) -> bool:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        statements = statements_of(Path(folder))
    boundaries: Counter[str] = Counter()
    problems: list[str] = []
    commits = stages = 0
    reasons: Counter[str] = Counter()
    for first in range(0, runs, RUNS_PER_FILE):
        with tempfile.TemporaryDirectory() as name:
            checked = Checked()
            for run in range(first, min(first + RUNS_PER_FILE, runs)):
                ended = one_run(Path(name), run, writers, statements, dice)
                boundaries.update(writer.killed_before for writer in ended if writer.killed_before)
                for writer in ended:
                    checked.hear(writer)
                checked.check(Path(name))
                for writer in ended:
                    problems += succeed(Path(name), writer)
                    checked.hear(writer)
                checked.check(Path(name))
            problems += checked.problems
            commits += len(checked.committed)
            stages += len(checked.staged)
            reasons += checked.reasons
    killed = sum(boundaries.values())
    print(f"{runs} runs of {writers} writers, {statements} statements each; {killed} killed before a statement,")
    print(f"{runs // 2 if writers > 2 else 0} at any instant. {stages} entries staged, {commits} commits told,")
    print(f"{reasons[RejectReason.DESTRUCTIVE_OP]} refused for having read an older version.")
    for statement, count in boundaries.most_common():
        print(f"  {count:5} before {statement}")
    for problem in problems[:20]:
        print(problem)
    kinds = Counter(problem.partition(":")[0] for problem in problems)
    print(
        f"lost commits {kinds['lost commit']}, half commits {kinds['half commit']}, destructive overwrites "
        f"{kinds['destructive'] + kinds['overwritten']}, problems in all {len(problems)}"
    )
    return not problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="how many times writers are started and killed")
    parser.add_argument("--writers", type=int, default=3, help="processes that write at once")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return 0 if measure(options.runs, options.writers, options.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
