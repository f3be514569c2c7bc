"""Large contents of a store in Postgres, kept in object storage: the database has a row that names the object.

    =bodies/{store}/{scope}/{id}-{random}      a content as it is, so that a part of it can be read

Promises: an object is there before the row that names it, and is deleted after it; a killed process leaves none behind
for ever, because an object is noted as one to delete before it is written, until its row counts. No two objects have
one key, so that nobody deletes what another is just putting. Object storage that fails is let alone for a few seconds
where somebody waits, and the database goes on meanwhile: the error's kind says so. Notes stay in the database, because
every request reads them.
"""

import hashlib
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pagefold.adapters.columns import read_back, spelled
from pagefold.adapters.postgres.server import Server
from pagefold.errors import DeniedError, StoreError
from pagefold.pages.page import PageId
from pagefold.pages.scope import NOTES, StoreScope

FOLDER = "=bodies/"
KEY_OF = "(SELECT key FROM bodies WHERE bodies.page = pages.id ORDER BY ({scope}) DESC, key LIMIT 1)"
TOUCH = """
    UPDATE pages SET last_put = greatest(last_put, %(now)s) WHERE id = %(page)s AND (stored != '' OR EXISTS (
        SELECT 1 FROM bodies WHERE bodies.page = %(page)s AND bodies.scope = %(scope)s)) RETURNING id
"""
NAME = """, outside AS (INSERT INTO bodies (page, scope, key, stored_bytes)
        SELECT id, %(scope)s, %(key)s, %(bytes)s FROM kept ON CONFLICT DO NOTHING RETURNING key
    ), named AS (DELETE FROM objects_to_delete WHERE key IN (SELECT key FROM outside))"""
_EXPECT = "INSERT INTO objects_to_delete (key, due) VALUES (%s, now() + interval '1 day') RETURNING 1"
# One that a row names stays, however it came to be noted.
_DUE = """
    SELECT key FROM objects_to_delete AS noted WHERE due <= now()
    AND NOT EXISTS (SELECT 1 FROM bodies WHERE bodies.key = noted.key) ORDER BY due, key LIMIT 500
"""
_DELETED = "DELETE FROM objects_to_delete WHERE key = ANY(%s) RETURNING 1"
_LARGE = """
    SELECT DISTINCT id, bytes, principal, project, number FROM pages JOIN listings ON page = id
        JOIN scopes ON number = scope WHERE bytes > %s AND stored != '' AND project != %s ORDER BY id, number
"""
_PAUSE_SECONDS = 5.0


class BodyStorage(Protocol):
    """Object storage as bodies need it. Everything may raise StoreError, and DeniedError where it is refused."""

    def put_now(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes | None: ...

    def read(self, key: str, start: int, end: int) -> bytes | None: ...

    def delete(self, keys: Sequence[str]) -> None: ...

    def limited(self, seconds: float) -> "BodyStorage":
        """The same storage, of which no request takes longer."""


@dataclass(frozen=True, slots=True)
class LargeBodies:
    """Where contents of more than so many bytes go, and how many seconds a request may take while somebody waits who
    cannot: less than that one's own deadline, so that a slow bucket is not taken for a slow database."""

    over: int
    objects: BodyStorage
    patience: float = 0.15


class Bodies:
    """The bodies of one store. Everything raises StoreError."""

    def __init__(self, server: Server, large: LargeBodies) -> None:
        self._server, self._objects, self.over = server, large.objects, large.over
        self._patience = large.patience
        self._identity: str = server.ask("SELECT identity FROM facts")[0][0]
        self._pause, self._again = 0.0, 0.0

    def hurry(self) -> None:
        """Somebody waits who cannot wait long, from now on."""
        self._objects = self._objects.limited(self._patience)
        self._pause = _PAUSE_SECONDS

    def put(self, scope: StoreScope, page: PageId, content: bytes) -> str:
        """Writes an object; returns its key, which a row is to name by `NAME`."""
        key = f"{FOLDER}{self._identity[:16]}/{folder_of(scope)}/{page}-{secrets.token_hex(4)}"
        self._server.ask_and_wait(_EXPECT, (key,))
        self._tried(lambda: self._objects.put_now(key, content))
        return key

    def get(self, key: str) -> bytes | None:
        content: bytes | None = self._tried(lambda: self._objects.get(key))
        return content

    def read(self, key: str, start: int, end: int) -> bytes | None:
        part: bytes | None = self._tried(lambda: self._objects.read(key, start, end))
        return part

    def delete_removed(self) -> int:
        """Deletes the objects that no row names any more; returns how many."""
        total = 0
        while keys := [row[0] for row in self._server.ask(_DUE)]:
            self._tried(lambda keys=keys: self._delete(keys))
            self._server.ask(_DELETED, (keys,))
            total += len(keys)
        return total

    def move_out(self, db: Any, unpacked: Any) -> None:
        """Moves what is large and stands in the database, within the transaction of `db`, once for each scope."""
        found = db.execute(_LARGE, (self.over, spelled(NOTES))).fetchall()
        for page, length, principal, project, number in found:
            [stored] = db.execute("SELECT stored FROM pages WHERE id = %s", (page,)).fetchone()
            scope = StoreScope(read_back(principal), read_back(project))
            key = self.put(scope, page, unpacked(page, length, stored))
            db.execute("INSERT INTO bodies VALUES (%s, %s, %s, %s)", (page, number, key, length))
        moved = [[row[0]] for row in found]
        with db.cursor() as cursor:
            cursor.executemany("UPDATE pages SET stored = '', stored_bytes = 0 WHERE id = %s", moved)

    def _delete(self, keys: Sequence[str]) -> None:
        """One by one where a request for many fails: not every server knows that one."""
        try:
            self._objects.delete(keys)
        except DeniedError:
            raise
        except StoreError:
            for key in keys:
                self._objects.delete([key])

    def _tried(self, step: Any) -> Any:
        now = time.monotonic()
        if now < self._again:
            raise StoreError("the object storage failed a moment ago, and is not asked yet", kind="objects out")
        try:
            return step()
        except StoreError as error:
            self._again = time.monotonic() + self._pause
            kind = "objects denied" if isinstance(error, DeniedError) else "objects failing"
            raise StoreError(str(error), kind=kind) from error


def folder_of(scope: StoreScope) -> str:
    """The folder of a scope, of which the names are hashes: they may be any text, and are nobody's business."""
    spelled = f"{scope.principal}\0{scope.written}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(spelled).hexdigest()[:32]
