from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.errors import StoreError
from pagefold.pages.memory_store import MemoryPages
from pagefold.pages.page import PageId, handle_of, id_of
from pagefold.pages.recall import Failed, Recalled, Unknown, recall


class OneHandle(MemoryPages):
    """Every page answers to every handle, as if all their ids began alike."""

    def find(self, handle: str) -> Sequence[PageId]:
        return sorted(self.shared.contents)


class Damaged(MemoryPages):
    def get(self, page: PageId) -> bytes | None:
        content = super().get(page)
        return None if content is None else content + b"?"


class Emptied(MemoryPages):
    """Another process collects between finding a page and getting it."""

    def get(self, page: PageId) -> bytes | None:
        return None


class Lost(MemoryPages):
    def find(self, handle: str) -> Sequence[PageId]:
        raise StoreError("the page store pages.db is damaged: move it away and pagefold starts a new one")


@given(st.binary())
def test_a_recalled_page_is_exact_to_the_byte(content: bytes) -> None:
    store = MemoryPages()
    page = store.put(content, history="mine")

    assert recall(store, handle_of(page)) == Recalled(page, content)
    assert recall(store, handle_of(page), within="mine") == Recalled(page, content)


def test_a_handle_nobody_was_given_is_a_final_answer() -> None:
    handle = handle_of(id_of(b"never put"))

    answer = recall(MemoryPages(), handle)

    assert answer == Unknown(handle)
    assert answer.text == f"There is no page {handle}. Nothing can be recalled under this handle; do not try it again."


@pytest.mark.parametrize("handle", ["", "pf-", "the log from before", "pf-ABCDEFGHIJ", "pf-abcdefghij\n"])
def test_what_is_no_handle_is_answered_with_what_one_looks_like(handle: str) -> None:
    answer = recall(MemoryPages(), handle)

    assert answer == Unknown(handle)
    assert answer.text == f"{handle!r} is not a page handle; one looks like pf-abcdefghij."


def test_a_page_of_another_history_is_as_unknown_as_one_that_never_was() -> None:
    store = MemoryPages()
    handle = handle_of(store.put(b"secret", history="theirs"))

    answer = recall(store, handle, within="mine")

    assert answer == Unknown(handle)


def test_a_store_that_cannot_answer_is_a_failure_that_says_why() -> None:
    handle = handle_of(id_of(b"any"))

    answer = recall(Lost(), handle)

    assert isinstance(answer, Failed)
    assert answer.text == f"Page {handle} could not be read: {answer.reason}"
    assert "pages.db is damaged" in answer.reason


def test_a_content_that_is_not_what_was_put_is_a_failure_and_not_shown() -> None:
    store = Damaged()
    handle = handle_of(store.put(b"content"))

    assert recall(store, handle) == Failed(handle, "what the store holds is not what was put there")


def test_a_page_collected_while_it_is_recalled_is_unknown() -> None:
    store = Emptied()
    handle = handle_of(store.put(b"content"))

    assert recall(store, handle) == Unknown(handle)


def test_a_handle_that_two_pages_share_is_told_apart_by_the_history() -> None:
    store = OneHandle()
    mine, theirs = store.put(b"mine", history="mine"), store.put(b"theirs", history="theirs")
    handle = handle_of(mine)

    assert isinstance(recall(store, handle), Failed)
    assert recall(store, handle, within="mine") == Recalled(mine, b"mine")
    assert recall(store, handle, within="theirs") == Recalled(theirs, b"theirs")
    assert recall(store, handle, within="nobody") == Unknown(handle)


def test_a_handle_that_two_pages_of_one_history_share_is_refused_and_not_guessed() -> None:
    store = OneHandle()
    handle = handle_of(store.put(b"one", history="mine"))
    store.put(b"other", history="mine")

    answer = recall(store, handle, within="mine")

    assert isinstance(answer, Failed)
    assert "ambiguous" in answer.text
