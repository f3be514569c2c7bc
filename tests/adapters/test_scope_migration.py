"""A store and a journal from before there were scopes are the user's own, with every page, note, hold and form."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from pagefold.adapters.columns import spelled
from pagefold.adapters.sqlite import journal as journal_module
from pagefold.adapters.sqlite.database import migrate
from pagefold.adapters.sqlite.journal import beside
from pagefold.adapters.sqlite.schema import APPLICATION_ID, MIGRATIONS
from pagefold.adapters.sqlite.store import SqliteStore
from pagefold.pages.journal import Rules
from pagefold.pages.page import handle_of, id_of
from pagefold.pages.scope import StoreScope

BEFORE_SCOPES = 3
FORM = id_of(b"[a form]")


def old_store(path: Path) -> None:
    """A store as the version before scopes wrote it: a session, a note of each kind, a page of no history."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, "page store", APPLICATION_ID, MIGRATIONS[:BEFORE_SCOPES])
        listed = {b"one": "session", b"two": "session", b"cold": "note-ab", b"begun": "began-ab", b"said": "turn-a-b"}
        listed |= {b"bound": "reasoning-ab", b"original": "shown:ab", b"loose": ""}
        for key, (content, history) in enumerate(listed.items(), 1):
            db.execute("INSERT INTO contents VALUES (?, ?)", (key, content))
            row = (id_of(content), key, len(content), len(content), float(key))
            db.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?)", row)
            if history:
                db.execute("INSERT INTO listings (history, page) VALUES (?, ?)", (spelled(history), id_of(content)))
        db.execute("INSERT INTO holds VALUES (?, ?)", (b"session", id_of(b"one")))
        db.execute("INSERT INTO sunk (page, history) VALUES (?, ?)", (id_of(b"two"), b"session"))
        db.execute("INSERT INTO awaiting (place, owner) VALUES (1, 'me')")
        db.execute("INSERT INTO shown VALUES (?, ?)", (FORM, id_of(b"one")))


def old_journal(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, "journal", journal_module._APPLICATION_ID, journal_module._MIGRATIONS[:1])
        value = '{"text": "kept"}'
        entry = json.dumps({"op": "append", "schema": "note", "value": value, "provenance": [], "read": None})
        row = (b"me", b"t", b"session:s", b"notes", entry, "committed", b"", "reset", 1, 5.0)
        names = "owner, token, scope, key, entry, state, detail, boundary, version, staged_at"
        db.execute(f"INSERT INTO lines ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def test_all_of_an_older_store_is_the_users_own(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    old_store(path)
    old_journal(beside(path))

    with closing(SqliteStore(path, sender="me")) as store:
        pages = [id_of(content) for content in (b"one", b"two")]
        assert list(store.pages.listed("session")) == pages
        assert [store.pages.get(id_of(content)) for content in (b"one", b"loose")] == [b"one", b"loose"]
        assert store.pages.stats().pages == 3, "notes are no pages of anybody's"
        assert store.pages.original_of(FORM) == b"one"
        notes = [store.notes.newest(name) for name in ("note-ab", "began-ab", "turn-a-b", "reasoning-ab", "shown:ab")]
        assert notes == [b"cold", b"begun", b"said", b"bound", b"original"]
        assert store.pages.get(id_of(b"cold")) is None
        assert [unsent.entry.page for unsent in store.outbox.next_batch(10, 1000)] == pages[:1]
        assert list(store.outbox.find_sent(handle_of(pages[1]))) == [(pages[1], "session")]
        with closing(store.open_journal(Rules({}, frozenset()), "me")) as journal:
            record = journal.record("session:s", "notes")
            assert record is not None
            assert record.value == [{"text": "kept"}]
        other = store.scoped(StoreScope("another"))
        assert other.pages.get(pages[0]) is None
        assert store.pages.collect(max_bytes=0, leased=-1.0).held == 1  # from now on a lease
        assert store.pages.get(pages[0]) == b"one"
