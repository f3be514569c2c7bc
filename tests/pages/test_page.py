import hashlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pagefold.pages.kinds import PageKind
from pagefold.pages.page import HANDLE, Page, PageId, handle_of, id_of, id_range

ids = st.binary(min_size=32, max_size=32).map(lambda digest: PageId(digest.hex()))
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def test_a_page_is_named_by_the_hash_of_its_content_alone() -> None:
    one, other = Page.of(PageKind.EVIDENCE, "text", "read a"), Page.of(PageKind.PLAN, "text", "read b")

    assert one.id == other.id == id_of(b"text") == hashlib.sha256(b"text").hexdigest()
    assert one.handle == handle_of(one.id)
    assert one != other


@given(ids)
def test_a_handle_is_the_first_fifty_bits_in_ten_letters(page: PageId) -> None:
    handle = handle_of(page)

    assert HANDLE.fullmatch(handle)
    spelled = "".join(f"{'abcdefghijklmnopqrstuvwxyz234567'.index(letter):05b}" for letter in handle[3:])
    assert spelled == f"{int(page, 16):0256b}"[:50]


@given(ids)
@example(PageId("0" * 64))
def test_the_range_of_a_handle_holds_exactly_the_ids_that_have_it(page: PageId) -> None:
    span = id_range(handle_of(page))

    assert span is not None
    first, past = (int(end, 16) for end in span)
    assert first <= int(page, 16) < past
    assert past - first == 1 << 206
    assert handle_of(PageId(f"{first:064x}")) == handle_of(PageId(f"{past - 1:064x}")) == handle_of(page)
    assert first == 0 or handle_of(PageId(f"{first - 1:064x}")) != handle_of(page)


@given(ids, ids)
@example(PageId("0" * 64), PageId("0" * 13 + "4" + "0" * 50))
@example(PageId("0" * 64), PageId("0" * 13 + "3" + "f" * 50))
def test_an_id_compares_into_a_range_as_text_if_and_only_if_it_has_the_handle(page: PageId, other: PageId) -> None:
    span = id_range(handle_of(page))

    assert span is not None
    assert (span[0] <= other < span[1]) == (handle_of(other) == handle_of(page))


def test_the_last_handle_of_all_finds_its_ids_too() -> None:
    page = PageId("f" * 64)
    span = id_range(handle_of(page))

    assert span is not None
    assert span[0] <= page < span[1]


@pytest.mark.parametrize(
    "text",
    ["", "pf-", "pf-abcdefghi", "pf-abcdefghijk", "PF-ABCDEFGHIJ", "pf-abcdefgh18", " pf-abcdefghij", "abcdefghij"],
)
def test_what_is_no_handle_has_no_range(text: str) -> None:
    assert id_range(text) is None


@given(ANY_TEXT)
@example("\ud800")
@example("\udfff\ud800")
@example("\ud83d\ude00")
@example("\r\n\0")
def test_any_text_comes_back_from_its_page(text: str) -> None:
    assert Page.of(PageKind.EVIDENCE, text).text == text


@given(ANY_TEXT, ANY_TEXT)
@example("\U0001f600", "\ud83d\ude00")
def test_two_texts_are_one_page_only_if_they_are_the_same(one: str, other: str) -> None:
    pages = Page.of(PageKind.EVIDENCE, one), Page.of(PageKind.EVIDENCE, other)

    assert (pages[0].id == pages[1].id) == (one == other)


def test_bytes_that_are_no_text_stay_as_they_are_and_show_as_replacement_characters() -> None:
    page = Page(PageKind.EVIDENCE, b"\xff\xfea")

    assert page.content == b"\xff\xfea"
    assert page.text == "\ufffd\ufffda"
