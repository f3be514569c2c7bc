"""A store as a whole: damages are told, a copy brings everything back, and a plain store can be encrypted."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pagefold.adapters.protection import Protection
from pagefold.adapters.sqlite.backup import back_up, encrypt, restore
from pagefold.adapters.sqlite.journal import beside
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.rewriting import checkpoint
from pagefold.adapters.sqlite.verifying import verify
from pagefold.adapters.stores import open_store
from pagefold.errors import StoreError
from pagefold.pages.journal import Boundary, JournalEntry, Op, flush
from pagefold.pages.store import Store
from pagefold.pages.writeback import Scopes

KEY = "5e" * 32
PAGES = [f"{number} zebra {'x' * number * 100}".encode() for number in range(20)]


def opened(path: Path, key: str = "") -> Store:
    return open_store(path, protection=Protection(key))


def filled(path: Path, key: str = "") -> Path:
    with closing(opened(path, key)) as store:
        for number, content in enumerate(PAGES):
            page = store.pages.put(content, history="h", now=float(number), shown_form=None)
        store.notes.put("note", b"zebra noted", history="h")
        scopes = Scopes("h")
        with closing(store.open_journal(scopes.rules, "h")) as journal:
            for text in ("zebra", "otter"):
                read = 0 if text == "zebra" else 1
                entry = JournalEntry.of(
                    Op.APPEND, scopes.names[0], "notes", "note", {"text": text}, provenance=[page], read_version=read
                )
                journal.stage(entry)
                assert flush(journal, Boundary.SHUTDOWN).committed
        assert store.search_index.search("zebra")
    return path


def contents(path: Path, key: str = "") -> list[bytes | None]:
    with closing(opened(path, key)) as store, closing(store.open_journal(Scopes("h").rules)) as journal:
        record = journal.record("session:h", "notes")
        said = str(record.value if record else None).encode()
        return [*(store.pages.get(page) for page in store.pages.listed("h")), store.notes.newest("note"), said]


STATEMENTS = {
    "a content is changed": "UPDATE contents SET stored = CAST('other' AS BLOB) WHERE key = 3",
    "a packed content is cut": "UPDATE contents SET stored = substr(stored, 1, 20) WHERE key = 15",
    "a content is missing": "DELETE FROM contents WHERE key = 4",
    "a content is no bytes": "UPDATE contents SET stored = 7 WHERE key = 5",
    "a length is wrong": "UPDATE pages SET bytes = bytes + 1 WHERE key = 6",
    "a stored length is wrong": "UPDATE pages SET stored_bytes = 1 WHERE key = 7",
    "an id is another's": "UPDATE pages SET id = substr(id, 1, 63) || 'x' WHERE key = 8",
    "a page is missing": "DELETE FROM pages WHERE key = 9",
    "a listing is missing": "DELETE FROM listings WHERE place = 2",
    "a scope is missing": "DELETE FROM scopes",
    "a form of nothing": "INSERT INTO shown VALUES (x'', 'form', 'nothing')",
    "a redaction of nothing": "INSERT INTO redacted VALUES ('a', 'nothing', 'key')",
    "a note to send nothing": "INSERT INTO awaiting (place, owner) VALUES (999, 'me')",
}


@pytest.mark.parametrize("damage", STATEMENTS)
def test_a_planted_damage_of_the_pages_is_told(tmp_path: Path, damage: str) -> None:
    path = filled(tmp_path / "store.sqlite3")
    assert verify(path).damages == ()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        assert db.execute(STATEMENTS[damage]).rowcount > 0

    damages = verify(path).damages

    assert damages
    assert {damage.file for damage in damages} == {str(path)}
    with pytest.raises(StoreError, match="is damaged"):
        back_up(path, tmp_path / "copy.sqlite3")
    assert not list(tmp_path.glob("copy*"))


@pytest.mark.parametrize("statement", ["UPDATE lines SET entry = '{'", "DELETE FROM lines WHERE version = 1"])
def test_a_planted_damage_of_the_journal_is_told(tmp_path: Path, statement: str) -> None:
    path = filled(tmp_path / "store.sqlite3")
    with closing(sqlite3.connect(beside(path), isolation_level=None)) as db:
        db.execute(statement)

    assert {damage.file for damage in verify(path).damages} == {str(beside(path))}


@pytest.mark.parametrize("key", ["", KEY], ids=["plain", "encrypted"])
@pytest.mark.parametrize("name", ["store.sqlite3", "store.journal.sqlite3", "store.sqlite3.search"])
def test_overwritten_bytes_of_any_file_are_told(tmp_path: Path, name: str, key: str) -> None:
    path = filled(tmp_path / "store.sqlite3", key)
    assert verify(path, key).damages == ()
    file = tmp_path / name
    content = bytearray(file.read_bytes())
    for start in range(4096, len(content), 4096):  # the head of every page but the first
        content[start : start + 60] = b"\xa5" * 60
    file.write_bytes(content)

    assert str(file) in {damage.file for damage in verify(path, key).damages}


@pytest.mark.parametrize("key", ["", KEY], ids=["plain", "encrypted"])
def test_a_copy_of_a_store_in_use_brings_everything_back(tmp_path: Path, key: str) -> None:
    path, copy = filled(tmp_path / "store.sqlite3", key), tmp_path / "copies" / "copy.sqlite3"
    before = contents(path, key)
    with closing(opened(path, key)) as store:
        verified = back_up(path, copy, key)
        late = store.pages.put(b"after the copy", history="h")
    assert (verified.pages, verified.journal_lines, verified.damages) == (21, 2, ())
    assert [path.stat().st_mode & 0o777 for path in (copy, beside(copy))] == [0o600, 0o600]
    if key:
        assert not any(b"zebra" in file.read_bytes() for file in copy.parent.iterdir())
    with pytest.raises(StoreError, match="is there already"):
        back_up(path, copy, key)
    with closing(opened(path, key)), pytest.raises(StoreError, match="stays locked"):
        restore(copy, path, key)

    _, replaced = restore(copy, path, key)

    assert contents(path, key) == before == contents(copy, key)
    assert [".replaced-" in file.name for file in replaced] == [True, True]
    with closing(opened(path, key)) as store:
        assert store.pages.get(late) is None
        page = store.pages.put(b"giraffe", history="h")
        assert [hit.page for hit in store.search_index.search("giraffe")] == [page]


def test_a_damaged_copy_replaces_nothing(tmp_path: Path) -> None:
    path, copy = filled(tmp_path / "store.sqlite3"), tmp_path / "copy.sqlite3"
    before = contents(path)
    copy.write_bytes(path.read_bytes()[:-4096])

    with pytest.raises(StoreError, match="is damaged"):
        restore(copy, path)

    assert contents(path) == before


def test_a_plain_store_is_encrypted_with_its_journal(tmp_path: Path) -> None:
    path = filled(tmp_path / "store.sqlite3")
    before = contents(path)
    with pytest.raises(StoreError, match="pagefold store encrypt"):
        opened(path, KEY)

    encrypt(path, KEY)

    assert not any(b"zebra" in file.read_bytes() for file in tmp_path.iterdir())
    assert contents(path, KEY) == before
    with closing(opened(path, KEY)) as store:
        assert len(store.search_index.search("zebra")) > 1


def test_a_file_of_an_earlier_version_shrinks_once_it_was_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA auto_vacuum = NONE")
        db.execute("CREATE TABLE t (x)")
        db.execute("DROP TABLE t")
        db.commit()
    sizes = []
    with closing(SqlitePages(path)) as pages:
        for anew in (True, False):
            for number in range(200):
                pages.put(bytes([number]) + number.to_bytes(2) * 4000 + bytes(range(256)) * 16, now=1.0)
            checkpoint(pages._db)
            sizes.append(path.stat().st_size)
            pages.collect(before=2.0)
            if anew:
                pages.make_shrinkable()
            sizes.append(path.stat().st_size)

    assert sizes[1] < sizes[0]
    assert sizes[3] <= sizes[1]
