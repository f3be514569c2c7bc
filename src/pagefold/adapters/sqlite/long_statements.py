"""Executes statements that read or write a whole file, which takes seconds for a large one, so that Ctrl-C ends them.

Python hears of a signal only between two of its own instructions, and such a statement is one. So it runs on a thread
of its own, and the thread that asked for it can be interrupted: SQLite then takes back what the statement has done.
"""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pagefold.adapters.sqlite.database import Connection

_AGAIN = 0.05  # seconds


def execute_interruptibly(db: Connection, statement: str, values: Sequence[Any] = ()) -> list[Any]:
    """Returns the rows of a statement. Raises what the statement raises; where the thread that waits for it is
    interrupted, the statement is ended first."""
    rows, errors, ended = list[Any](), list[BaseException](), threading.Event()

    def execute() -> None:
        try:
            rows.extend(db.execute(statement, values).fetchall())
        except BaseException as error:  # noqa: BLE001  raised again by the thread that waits
            errors.append(error)
        finally:
            ended.set()  # what an interrupted `join` leaves says nothing

    threading.Thread(target=execute, name="long statement", daemon=True).start()
    try:
        ended.wait()
    except BaseException:
        while not ended.is_set():  # nor may it have begun
            with suppress(sqlite3.Error):
                db.interrupt()
            ended.wait(_AGAIN)
        raise
    if errors:
        raise errors[0]
    return rows
