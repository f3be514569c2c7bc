"""Writes a SQLite file anew, so that nothing is left in it of what was removed.

Removed rows are overwritten (secure_delete), but a row that was moved within the file may have left a copy where it
stood, and versions before that left all. Writers wait meanwhile.
"""

from pagefold.adapters.sqlite.database import Connection
from pagefold.errors import StoreError


def rewrite(db: Connection, what: str) -> None:
    """Writes a file anew without what was removed, empties its log, and lets it shrink from now on. Raises StoreError
    where somebody who reads the file for long keeps the log from being emptied."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("VACUUM")
    if not checkpoint(db, "TRUNCATE"):
        raise StoreError(
            f"{what}: what was forgotten is still in its log, because another process reads it: do the same again",
            kind="locked",
        )


def checkpoint(db: Connection, how: str) -> bool:
    """Moves the log into the file; returns whether nobody was in the way."""
    return not db.execute(f"PRAGMA wal_checkpoint({how})").fetchone()[0]
