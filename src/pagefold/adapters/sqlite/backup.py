"""Copies a store while it is used, puts a copy back in its place, and encrypts a store that is not.

A copy is a store itself: the pages, and the journal beside them under the copy's name, both of their owner alone and
encrypted as the store is. The search index is not copied, since it is made again. A copy is checked before it counts.
The journal is copied before the pages, since a line is written after the page that it came from.
"""

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pagefold.adapters.sqlite import journal, pages
from pagefold.adapters.sqlite.database import Connection, Guard, connect_to
from pagefold.adapters.sqlite.long_statements import execute_interruptibly
from pagefold.adapters.sqlite.search import index_beside
from pagefold.adapters.sqlite.verifying import Verified, verify
from pagefold.errors import StoreError

_SIDE_FILES = ("", "-wal", "-shm", "-journal")


def back_up(store: Path, copy: Path, key: str = "") -> Verified:
    """Copies the store to a path where nothing is yet. Raises StoreError, also where the store is damaged."""
    if not store.exists():
        raise StoreError(f"there is no store {store}")
    for file in (copy, journal.beside(copy)):
        if file.exists():
            raise StoreError(f"{file} is there already: name another file")
    with _made(copy) as (new, new_journal):
        _copy_both(store, new, new_journal, key)
        return _sound(verify(new, key), store)


def restore(copy: Path, store: Path, key: str = "") -> tuple[Verified, tuple[Path, ...]]:
    """Puts a copy in the place of the store. Returns what was checked, and where the files that stood there are now."""
    _sound(verify(copy, key), copy)
    return _put_in_place(copy, store, key, to_key=key)


def encrypt(store: Path, key: str) -> tuple[Verified, tuple[Path, ...]]:
    """Encrypts a store that is not, with its journal, and deletes the readable files."""
    _sound(verify(store), store)
    verified, replaced = _put_in_place(store, store, "", to_key=key)
    for file in replaced:
        file.unlink()
    return verified, ()


def _put_in_place(copy: Path, store: Path, key: str, to_key: str) -> tuple[Verified, tuple[Path, ...]]:
    made = store.with_name(f"{store.stem}.new{store.suffix}")
    with _made(made) as (new, new_journal):
        _copy_both(copy, new, new_journal, key)
        if to_key != key:
            from pagefold.adapters.sqlite.encrypted import encrypt_file  # noqa: PLC0415  an extra

            for file in (new, new_journal):
                if file.exists():
                    encrypt_file(file, to_key)
        verified = _sound(verify(new, to_key), copy)
    for file in (store, journal.beside(store)):
        _refuse_if_used(file, key)
    moved = [*_moved_away(store), *_moved_away(journal.beside(store))]
    for ending in _SIDE_FILES:  # it is made again; that of another state of the store would miss pages
        index = index_beside(store)
        index.with_name(index.name + ending).unlink(missing_ok=True)
    made.rename(store)
    with suppress(FileNotFoundError):
        journal.beside(made).rename(journal.beside(store))
    return verified, tuple(moved)


@contextmanager
def _made(copy: Path) -> Iterator[tuple[Path, Path]]:
    """Paths for a copy and its journal beside where they are to be; they get their names when the block has ended
    well, and are deleted when it has not."""
    part = copy.with_name(f"{copy.name}.{os.getpid()}.part")
    both = (part, journal.beside(part))
    try:
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield both
        for file, name in zip(both, (copy, journal.beside(copy)), strict=True):
            with suppress(FileNotFoundError):
                file.rename(name)
    except OSError as error:
        raise StoreError(f"{copy} cannot be written ({error.strerror})") from error
    finally:
        for file in both:
            for ending in _SIDE_FILES:
                file.with_name(file.name + ending).unlink(missing_ok=True)


def _copy_both(store: Path, new: Path, new_journal: Path, key: str) -> None:
    beside = journal.beside(store)
    if beside.exists():
        with Guard(beside, "journal"), closing(journal.connect(beside, key)) as db:
            _copy(db, new_journal)
    with Guard(store, "page store"), closing(pages.connect(store, key)) as db:
        _copy(db, new)


def _copy(db: Connection, new: Path) -> None:
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    execute_interruptibly(db, "VACUUM INTO ?", (str(new),))


def _refuse_if_used(file: Path, key: str) -> None:
    """Raises StoreError where another process has the file open. One that is damaged, or has another key, is used by
    nobody."""
    if not file.exists():
        return
    try:
        with Guard(file, "store"), closing(connect_to(file, key, 1.0)) as db:
            db.execute("PRAGMA journal_mode = DELETE")  # refused unless nobody else has it open; empties the log
    except StoreError as error:
        if error.kind == "locked":
            raise


def _moved_away(file: Path) -> list[Path]:
    """Renames a file with those that SQLite keeps beside it; returns their new names."""
    if not file.exists():
        return []
    away = file.with_name(f"{file.name}.replaced-{time.strftime('%Y%m%d-%H%M%S')}")
    file.rename(away)
    for ending in _SIDE_FILES[1:]:
        with suppress(FileNotFoundError):
            file.with_name(file.name + ending).rename(away.with_name(away.name + ending))
    return [away.with_name(away.name + ending) for ending in _SIDE_FILES if away.with_name(away.name + ending).exists()]


def _sound(verified: Verified, store: Path) -> Verified:
    if verified.damages:
        first = verified.damages[0]
        more = f", and {len(verified.damages) - 1} more" if len(verified.damages) > 1 else ""
        raise StoreError(f"{store} is damaged ({first.what}{more}): `pagefold store verify` tells all", kind="damaged")
    return verified
