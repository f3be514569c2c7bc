"""Writes a SQLite file anew, so that nothing is left in it of what was removed.

Removed rows are overwritten (secure_delete), but a row that was moved within the file may have left a copy where it
stood, and versions before that left all. Writers wait meanwhile.
"""

from typing import Literal, NamedTuple

from pagefold.adapters.sqlite.database import Connection
from pagefold.adapters.sqlite.long_statements import execute_interruptibly
from pagefold.errors import StoreError


def rewrite(db: Connection, what: str) -> None:
    """Writes a file anew without what was removed, empties its log, and lets it shrink from now on. Raises StoreError
    where somebody who reads the file for long keeps the log from being emptied."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    execute_interruptibly(db, "VACUUM")
    if checkpoint(db, "TRUNCATE").in_the_way:
        raise StoreError(
            f"{what}: what was forgotten is still in its log, because another process reads it: do the same again",
            kind="locked",
        )


class Checkpoint(NamedTuple):
    """How many frames the log had, and how many of them were moved into the file; what was in the way is left."""

    in_the_way: int
    frames: int
    moved: int


def checkpoint(db: Connection, how: Literal["PASSIVE", "TRUNCATE"] = "PASSIVE") -> Checkpoint:
    """Moves the log into the file: PASSIVE without keeping anybody waiting, TRUNCATE as the only one who writes."""
    return Checkpoint(*db.execute(f"PRAGMA wal_checkpoint({how})").fetchone())


def empty_log(db: Connection) -> None:
    """Moves the log into the file and gives its room back, unless somebody is in the way: then it stays for another
    time. Nobody waits for the disk."""
    done = checkpoint(db)
    if done.in_the_way or done.moved < done.frames:
        return
    waiting = db.execute("PRAGMA busy_timeout").fetchone()[0]
    db.execute("PRAGMA busy_timeout = 0").fetchall()
    try:
        checkpoint(db, "TRUNCATE")
    finally:
        db.execute(f"PRAGMA busy_timeout = {waiting}").fetchall()
