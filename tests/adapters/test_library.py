"""The library over a store alone: recall as a whole, in parts and in bytes, and answers that stay apart."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.sqlite.store import SqliteStore
from pagefold.encode.recall_reply import RecallReply
from pagefold.pages.page import handle_of, id_of
from pagefold.pages.recall import Failed, Recalled, Unknown

CONTENT = b'{"items": [{"name": "first"}, {"name": "second"}]}'
ABSENT = handle_of(id_of(b"never put"))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(SqliteStore(tmp_path / "pages.db"))
    yield library
    library.close()


def test_recalled_unknown_and_failed_are_three_answers_and_each_is_counted(library: Library) -> None:
    page = library.put(CONTENT, history="h")
    handle = handle_of(page)
    broken = library.put(b"broken " * 100)
    assert isinstance(library.store, SqliteStore)
    library.store.pages._db.execute("UPDATE contents SET stored = x'00' WHERE key = 2")

    assert library.recall(handle, within="h") == Recalled(page, CONTENT)
    assert library.recall(ABSENT) == Unknown(ABSENT)
    assert library.recall(handle, within="other") == Unknown(handle)
    assert isinstance(library.recall(handle_of(broken)), Failed)
    assert library.status().recalls == {"recalled": 1, "unknown": 2, "failed": 1}


def test_a_part_is_recalled_by_bytes_path_word_or_line(library: Library) -> None:
    handle = handle_of(library.put(CONTENT, history="h"))

    assert library.read(handle, 2, 7, within="h") == Recalled(id_of(CONTENT), b"items")
    assert library.answer(handle, path="$.items[1].name") == RecallReply('"second"', id_of(CONTENT))
    assert "first" in library.answer(handle, find="FIRST").text
    assert library.answer(handle, lines="1").text == CONTENT.decode()
    assert library.answer(handle).text == CONTENT.decode()


def test_a_part_that_is_not_there_and_a_page_that_is_not_are_told_apart(library: Library) -> None:
    handle = handle_of(library.put(CONTENT, history="h"))

    assert library.answer(ABSENT, find="x").reason == "unknown"
    assert library.answer(handle, within="other", find="x").reason == "unknown"
    missing = library.answer(handle, find="nowhere")
    assert missing.page is None
    assert missing.reason not in ("unknown", "denied", "failed")
