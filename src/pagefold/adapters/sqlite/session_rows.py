"""One small row for each session that the model proxy has seen, in the file of the daily counts.

A row has the client's own name of the session and numbers: no text of a tool, a client or a model. Several processes
add to one row. A file that cannot be used raises StoreError, and the proxy goes on without it.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from pagefold.adapters.private_files import make_private
from pagefold.derive.session_row import SessionRow, parse_row
from pagefold.errors import StoreError, WireError

_BUSY_SECONDS = 5.0
_MOST = 200_000
_TABLE = "CREATE TABLE IF NOT EXISTS sessions (name TEXT PRIMARY KEY, ended REAL NOT NULL, row TEXT NOT NULL)"


def add(path: Path, rows: Iterable[SessionRow]) -> None:
    """Adds to what is known of these sessions. The oldest of very many are forgotten. Raises StoreError."""
    rows = list(rows)
    if not rows:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=True)
        make_private(path)
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
            db.execute(_TABLE)
            db.execute("BEGIN IMMEDIATE")
            for row in rows:
                found = db.execute("SELECT row FROM sessions WHERE name = ?", (row.session,)).fetchone()
                whole = _read(row.session, found[0] if found else None)
                whole.add(row)
                values = (row.session, whole.ended, whole.to_json())
                db.execute("INSERT OR REPLACE INTO sessions (name, ended, row) VALUES (?, ?, ?)", values)
            db.execute(
                "DELETE FROM sessions WHERE name IN (SELECT name FROM sessions ORDER BY ended DESC LIMIT -1 OFFSET ?)",
                (_MOST,),
            )
            db.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"the sessions in {path} cannot be written ({error}): move the file away") from error


def read(path: Path) -> list[SessionRow]:
    """All sessions, the oldest first. Raises StoreError."""
    if not path.exists():
        return []
    try:
        make_private(path)
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as db:
            db.execute(_TABLE)
            rows = db.execute("SELECT name, row FROM sessions ORDER BY ended, name").fetchall()
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"the sessions in {path} cannot be read ({error}): move the file away") from error
    return [_read(name, row) for name, row in rows]


def _read(name: str, row: str | None) -> SessionRow:
    try:
        return parse_row(name, row) if row else SessionRow(name)
    except WireError:
        return SessionRow(name)
