"""A store takes secrets out before it keeps anything, and with a key its files say nothing to whoever takes them."""

import gc
import json
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import apsw
import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as FailingKeyring

from pagefold.adapters.library import Library
from pagefold.adapters.protection import Protection, key_of
from pagefold.adapters.stores import open_store
from pagefold.errors import ConfigError, StoreError
from pagefold.pages.journal import Boundary, JournalEntry, Op, flush
from pagefold.pages.page import handle_of, id_of
from pagefold.pages.redaction import Redactor
from pagefold.pages.writeback import Scopes
from pagefold.settings.sections import StoreSettings

KEY = "5e" * 32
TOKEN = b"ghp_" + b"abcdEFGH1234" * 3
TEXT = b"the token is " + TOKEN + b" and nothing else"


def left_in(folder: Path, bytes_: bytes) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and bytes_ in path.read_bytes()]


def test_a_secret_is_in_no_file_and_the_handle_of_the_original_recalls_the_rest(tmp_path: Path) -> None:
    library = Library(open_store(tmp_path / "store.sqlite3", protection=Protection(redactor=Redactor())))
    page = library.put(TEXT, history="h", now=1.0, name="Bash " + TOKEN.decode())
    library.store.notes.put("turn-a", TEXT, now=1.0)
    hits = library.store.search_index.search("token")
    reply = library.answer(handle_of(id_of(TEXT)))

    assert library.store.notes.newest("turn-a") == TEXT
    assert "[redacted by pagefold: github-token] and nothing else" in reply.text
    assert "1 secret was taken out of this page" in reply.text
    assert [hit.page for hit in hits] == [page]
    assert library.store.pages.hold(id_of(TEXT), "h")
    library.close()
    assert left_in(tmp_path, TOKEN) == []


def test_a_note_in_json_is_searched_as_what_it_says(tmp_path: Path) -> None:
    own = Redactor([r"(?m)^pass (?P<secret>\S+)$"])
    note = json.dumps({"texts": ["log in:\npass opensesame\nand go on"]}).encode()
    with closing(open_store(tmp_path / "store.sqlite3", protection=Protection(redactor=own))) as store:
        store.notes.put("fold", note)
        assert store.notes.newest("fold") == note
    with closing(open_store(tmp_path / "store.sqlite3", protection=Protection(redactor=own))) as store:
        assert store.notes.newest("fold") is None, "it was in memory only"


def test_what_is_put_into_an_encrypted_store_leaves_no_cursor_behind(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "store.sqlite3", protection=Protection(KEY))) as store:
        for number in range(3):
            store.pages.put(b"before %d" % number, history="h")
        alive = _cursors()
        for number in range(50):
            store.pages.put(b"page %d" % number, history="h", now=1.0)
            assert store.pages.get(id_of(b"page %d" % number))
            store.pages.hold(id_of(b"page %d" % number), "h")
            store.notes.put("note", b"note %d" % number, now=1.0)
        assert _cursors() <= alive + 1


def _cursors() -> int:
    return sum(isinstance(one, apsw.Cursor) for one in gc.get_objects())


def test_without_redaction_everything_is_kept_as_it_is(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "store.sqlite3")) as store:
        assert store.pages.get(store.pages.put(TEXT)) == TEXT


def test_no_file_of_an_encrypted_store_has_a_byte_of_what_it_keeps(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.sqlite3", protection=Protection(KEY))
    store.pages.put(b"remarkable words " * 50, history="conversation", name="remarkable name")
    store.notes.put("note", b"remarkable note")
    assert store.search_index.search("remarkable")
    assert left_in(tmp_path, b"remarkable") == [], "while it is open: the log too"
    store.close()

    assert left_in(tmp_path, b"remarkable") == left_in(tmp_path, b"conversation") == []
    with closing(open_store(tmp_path / "store.sqlite3", protection=Protection(KEY))) as again:
        assert again.notes.newest("note") == b"remarkable note"


@pytest.mark.parametrize(
    ("made", "opened", "words"),
    [(KEY, "", "is encrypted"), (KEY, "6f" * 32, "with this key"), ("", KEY, "is not encrypted")],
)
def test_a_store_is_not_opened_with_another_key_and_nothing_is_moved_away(
    tmp_path: Path, made: str, opened: str, words: str
) -> None:
    open_store(tmp_path / "store.sqlite3", protection=Protection(made)).close()

    with pytest.raises(StoreError, match=words):
        open_store(tmp_path / "store.sqlite3", protection=Protection(opened))
    open_store(tmp_path / "store.sqlite3", protection=Protection(made)).close()


def test_the_key_comes_from_the_setting_or_a_command(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY.upper() + "\n")

    assert key_of(StoreSettings()) == ""
    assert key_of(StoreSettings(key=KEY)) == key_of(StoreSettings(key_command=f"cat {tmp_path / 'key'}")) == KEY
    for wrong in (StoreSettings(key="a" * 63), StoreSettings(key_command="false"), StoreSettings(key_command="echo x")):
        with pytest.raises(ConfigError, match=r"store\.key"):
            key_of(wrong)


def test_the_key_is_made_in_the_keyring_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory(KeyringBackend):
        kept: ClassVar[dict[tuple[str, str], str]] = {}
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return self.kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.kept[service, username] = password

    usual = keyring.get_keyring()
    keyring.set_keyring(Memory())  # type: ignore[no-untyped-call]
    try:
        key = key_of(StoreSettings(keyring=True))
        assert key_of(StoreSettings(keyring=True)) == key == Memory.kept["pagefold", "store"]
        assert len(bytes.fromhex(key)) == 32
        keyring.set_keyring(FailingKeyring())  # type: ignore[no-untyped-call]
        with pytest.raises(ConfigError, match=r"store\.keyring: this computer's keyring cannot be used"):
            key_of(StoreSettings(keyring=True))
    finally:
        keyring.set_keyring(usual)


def test_a_secret_in_a_journal_entry_is_in_no_file_and_is_written_once(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store.sqlite3", protection=Protection(redactor=Redactor()))
    page = store.pages.put(b"source", history="h")
    with closing(store.open_journal(Scopes("h").rules, "h")) as journal:
        for version in range(3):
            entry = JournalEntry.of(
                Op.APPEND,
                "session:h",
                "notes",
                "note",
                {"text": TEXT.decode()},
                provenance=[page],
                read_version=version,
            )
            journal.stage(entry, token=f"{page} {version}")
            flush(journal, Boundary.SHUTDOWN)
        record = journal.record("session:h", "notes")
    store.close()

    assert record is not None
    assert [entry["text"] for entry in record.value] == [
        "the token is [redacted by pagefold: github-token] and nothing else"
    ]
    assert left_in(tmp_path, TOKEN) == []


def test_a_note_that_is_put_every_turn_takes_a_bounded_number_of_rows(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "store.sqlite3")) as store:
        for turn in range(100):
            store.notes.put("used-h", b"at %d" % turn, now=float(turn), history="h")
        rows = len(store.scoped(store.scope.notes).pages.listed("used-h"))
        pages = store.scoped(store.scope.notes).pages.stats().pages

        assert store.notes.newest("used-h") == b"at 99"
    assert rows == pages < 16
