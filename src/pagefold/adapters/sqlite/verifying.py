"""Checks the files of a store: SQLite's own structure, every content against its id, and that rows name what is there.

Reads everything and changes nothing, while others read and write. What cannot be read is told, and the rest is checked.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pagefold import zstd
from pagefold.adapters.columns import read_back
from pagefold.adapters.sqlite import journal, pages
from pagefold.adapters.sqlite.database import Connection, Guard
from pagefold.adapters.sqlite.long_statements import execute_interruptibly
from pagefold.adapters.sqlite.packing import Packing
from pagefold.adapters.sqlite.search import connect as connect_index
from pagefold.adapters.sqlite.search import index_beside
from pagefold.errors import StoreError
from pagefold.pages.journal import Rules
from pagefold.pages.memory_store import MemoryPages

_LOOSE = {
    "a content that no page has": "SELECT key FROM contents WHERE key NOT IN (SELECT key FROM pages)",
    "a listing of a page that is not there": "SELECT page FROM listings WHERE page NOT IN (SELECT id FROM pages)",
    "a page that nobody lists": "SELECT id FROM pages WHERE id NOT IN (SELECT page FROM listings)",
    "a form of a page that is not there": "SELECT page FROM shown WHERE page NOT IN (SELECT id FROM pages)",
    "a redaction of a page that is not there": "SELECT page FROM redacted WHERE page NOT IN (SELECT id FROM pages)",
    "a listing of no scope": "SELECT page FROM listings WHERE scope NOT IN (SELECT number FROM scopes)",
    "a note to send what is not listed": "SELECT place FROM awaiting WHERE place NOT IN (SELECT place FROM listings)",
}
_SHOWN = 1000


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong in which file."""

    file: str
    what: str


@dataclass(frozen=True, slots=True)
class Verified:
    """How much was checked, and what is damaged."""

    pages: int
    bytes: int
    journal_lines: int
    damages: tuple[Damage, ...]


class _Check:
    """One run over the files of a store."""

    def __init__(self, path: Path, key: str) -> None:
        self._path, self._key, self._packing = path, key, Packing()
        self.pages = self.bytes = self.lines = 0

    def run(self) -> Iterator[Damage]:
        yield from self._looked_at(self._path, lambda: pages.connect(self._path, self._key), self._contents)
        beside = journal.beside(self._path)
        if beside.exists():
            yield from self._looked_at(beside, lambda: journal.connect(beside, self._key), self._journal)
        if (index := index_beside(self._path)).exists():
            damages = self._looked_at(index, lambda: connect_index(index, self._key), lambda _: iter(()))
            yield from (Damage(damage.file, f"{damage.what}: delete it, it is made again") for damage in damages)

    def _looked_at(
        self, file: Path, opened: Callable[[], Connection], contents: Callable[[Connection], Iterator[str]]
    ) -> Iterator[Damage]:
        """What SQLite finds in a file, then what is wrong with what it holds."""
        try:
            with Guard(file, "file"), closing(opened()) as db:
                for (line,) in execute_interruptibly(db, f"PRAGMA integrity_check({_SHOWN})"):
                    if line != "ok":
                        yield Damage(str(file), str(line))
                for what in contents(db):
                    yield Damage(str(file), what)
        except StoreError as error:
            yield Damage(str(file), str(error))

    def _contents(self, db: Connection) -> Iterator[str]:
        for page, key, length, stored_length in db.execute("SELECT id, key, bytes, stored_bytes FROM pages"):
            row = db.execute("SELECT stored FROM contents WHERE key = ?", (key,)).fetchone()
            stored = row[0] if row else None
            try:
                content = self._packing.unpacked(page, length, stored)
            except zstd.ZstdError:
                content = None
            self.pages += 1
            if content is None:
                yield f"page {page}: " + ("its content is not what was put there" if row else "its content is missing")
                continue
            self.bytes += len(content)
            if len(stored or b"") != stored_length:
                yield f"page {page}: it says that {stored_length} bytes are stored, and {len(stored or b'')} are"
        for what, query in _LOOSE.items():
            for (name,) in db.execute(query):
                yield f"{what}: {name}"

    def _journal(self, db: Connection) -> Iterator[str]:
        """Every line is read, and every record is put together from its lines."""
        for (principal,) in db.execute("SELECT DISTINCT principal FROM lines").fetchall():
            name, rules = read_back(principal), Rules({}, frozenset())
            beside = journal.beside(self._path)
            opened = journal.SqliteJournal(beside, rules, MemoryPages(), principal=name, key=self._key)
            with closing(opened):
                try:
                    lines = opened.lines()
                    self.lines += len(lines)
                    places = dict.fromkeys((line.entry.scope, line.entry.key) for line in lines)
                except StoreError as error:
                    yield str(error)
                    continue
                for scope, key in places:
                    try:
                        opened.record(scope, key)
                    except StoreError as error:
                        yield str(error)


def verify(path: Path, key: str = "") -> Verified:
    """Checks the store at a path with what lies beside it. Raises StoreError where there is none."""
    if not path.exists():
        raise StoreError(f"there is no store {path}")
    check = _Check(path, key)
    damages = tuple(check.run())
    return Verified(check.pages, check.bytes, check.lines, damages)
