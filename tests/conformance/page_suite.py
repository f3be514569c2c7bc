"""What every store promises about pages."""

import pytest

from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page, handle_of, id_of
from pagefold.pages.store import Collected, ListedPage, PageStore, Store, StoreStats

ABSENT = id_of(b"never put")


class PageSuite:
    @pytest.fixture
    def pages(self, store: Store) -> PageStore:
        return store.pages

    @pytest.mark.parametrize(
        "content",
        [b"", b"a", bytes(range(256)), b"word " * 100_000, "é\ud800\0".encode("utf-8", "surrogatepass")],
        ids=["empty", "short", "every byte", "long", "odd text"],
    )
    def test_what_is_put_comes_back_byte_for_byte_under_its_hash(self, pages: PageStore, content: bytes) -> None:
        page = pages.put(content)

        assert page == id_of(content)
        assert pages.get(page) == content
        assert pages.exists(page)

    def test_a_page_never_put_is_answered_with_nothing(self, pages: PageStore) -> None:
        pages.put(b"another")

        assert pages.get(ABSENT) is None
        assert not pages.exists(ABSENT)
        assert list(pages.find(handle_of(ABSENT))) == []
        assert list(pages.listed("nobody")) == []

    def test_a_page_is_found_by_its_handle_and_by_no_other(self, pages: PageStore) -> None:
        put = [pages.put(bytes([n])) for n in range(50)]

        assert [list(pages.find(handle_of(page))) for page in put] == [[page] for page in put]

    @pytest.mark.parametrize("handle", ["", "pf-", "pf-short", "pf-ABCDEFGHIJ", "pf-abcdefghij ", "%", "pf-abcdefghi_"])
    def test_what_is_no_handle_finds_nothing(self, pages: PageStore, handle: str) -> None:
        pages.put(b"content")

        assert list(pages.find(handle)) == []

    def test_a_history_lists_its_pages_oldest_first_and_each_once(self, pages: PageStore) -> None:
        contents = [b"one", b"two", b"one", b"three", b"two"]
        for content in contents:
            pages.put(content, history="here")
        pages.put(b"one", history="there")
        pages.put(b"nowhere")

        assert list(pages.listed("here")) == [id_of(b"one"), id_of(b"two"), id_of(b"three")]
        assert list(pages.listed("there")) == [id_of(b"one")]
        assert list(pages.listed("")) == []

    def test_pages_last_put_before_a_time_are_collected_and_younger_ones_stay(self, pages: PageStore) -> None:
        old, young = pages.put(b"old", now=1.0), pages.put(b"younger", now=2.0)

        assert pages.collect(before=2.0) == Collected(pages=1, bytes=3, held=0)
        assert pages.get(old) is None
        assert list(pages.find(handle_of(old))) == []
        assert pages.get(young) == b"younger"

    def test_the_oldest_pages_are_collected_until_the_rest_fits(self, pages: PageStore) -> None:
        put = [pages.put(bytes([n]) * 10, now=float(n)) for n in (3, 1, 2, 4)]

        assert pages.collect(max_bytes=25) == Collected(pages=2, bytes=20, held=0)
        assert [pages.exists(page) for page in put] == [True, False, False, True]

    def test_a_collection_without_limits_or_with_a_generous_one_removes_nothing(self, pages: PageStore) -> None:
        page = pages.put(b"content")

        assert pages.collect() == Collected(pages=0, bytes=0, held=0)
        assert pages.collect(max_bytes=10**30) == Collected(pages=0, bytes=0, held=0)
        assert pages.exists(page)

    def test_putting_a_page_again_makes_it_young_and_never_old(self, pages: PageStore) -> None:
        page = pages.put(b"again", now=1.0)
        pages.put(b"again", now=9.0)
        pages.put(b"again", now=5.0)

        assert pages.collect(before=9.0).pages == 0
        assert pages.exists(page)

    def test_a_held_page_is_never_collected_and_others_go_in_its_place(self, pages: PageStore) -> None:
        held, free = pages.put(b"held", now=1.0), pages.put(b"free", now=2.0)

        assert pages.hold(held, "live")
        assert pages.collect(before=99.0, max_bytes=0) == Collected(pages=1, bytes=4, held=1)
        assert pages.get(held) == b"held"
        assert not pages.exists(free)

    def test_a_page_that_two_histories_hold_stays_until_both_have_let_go(self, pages: PageStore) -> None:
        page = pages.put(b"shared")
        pages.hold(page, "one")
        pages.hold(page, "two")
        pages.hold(page, "two")

        pages.release("one")
        assert pages.collect(max_bytes=0) == Collected(pages=0, bytes=0, held=1)

        pages.release("two")
        pages.release("unknown")
        assert pages.collect(max_bytes=0) == Collected(pages=1, bytes=6, held=0)

    def test_a_hold_of_a_history_with_turns_ends_when_its_last_turn_is_too_old(self, pages: PageStore) -> None:
        page = pages.put(b"held", history="live", now=1.0)
        pages.hold(page, "live")
        pages.renew("live", 5.0)
        pages.renew("live", 3.0)  # late news of an earlier turn

        assert pages.collect(before=5.0) == Collected(pages=0, bytes=0, held=1)
        assert pages.collect(before=5.5) == Collected(pages=1, bytes=4, held=0)

    def test_what_a_history_lists_is_as_young_as_its_last_turn(self, pages: PageStore) -> None:
        young, old = pages.put(b"young", history="live", now=1.0), pages.put(b"old", history="over", now=2.0)
        pages.renew("live", 9.0)
        pages.renew("over", 3.0)

        assert pages.collect(before=9.0).pages == 1
        assert (pages.exists(young), pages.exists(old)) == (True, False)

    def test_what_is_leased_stays_however_large_the_rest_is(self, pages: PageStore) -> None:
        old, leased = pages.put(b"o" * 10, now=1.0), pages.put(b"l" * 10, history="live", now=1.0)
        pages.renew("live", 5.0)

        assert pages.collect(max_bytes=0, leased=5.0).pages == 1
        assert (pages.exists(old), pages.exists(leased)) == (False, True)

    def test_a_hold_on_a_missing_page_says_so_and_counts_once_it_is_put(self, pages: PageStore) -> None:
        assert not pages.hold(id_of(b"later"), "live")

        page = pages.put(b"later")
        assert pages.collect(max_bytes=0) == Collected(pages=0, bytes=0, held=1)
        assert pages.exists(page)

    def test_pages_put_together_are_listed_in_order_and_held(self, pages: PageStore) -> None:
        one, two = Page.of(PageKind.EVIDENCE, "one", "Read a"), Page.of(PageKind.PLAN, "two")

        pages.put_held([one, two, one], history="live", now=1.0)
        pages.put_held([], history="live", now=2.0)

        assert list(pages.listings("live")) == [
            ListedPage(one.id, PageKind.EVIDENCE, "Read a", 1.0),
            ListedPage(two.id, PageKind.PLAN, "", 1.0),
        ]
        assert pages.collect(max_bytes=0) == Collected(pages=0, bytes=0, held=2)
        assert (pages.get(one.id), pages.get(two.id)) == (b"one", b"two")

    def test_a_collected_page_leaves_its_listing_and_comes_back_at_the_end(self, pages: PageStore) -> None:
        first = pages.put(b"first", history="here", now=1.0)
        second = pages.put(b"second", history="here", now=2.0)

        pages.collect(before=2.0)
        assert list(pages.listed("here")) == [second]

        pages.put(b"first")
        assert list(pages.listed("here")) == [second]

        pages.put(b"first", history="here")
        assert list(pages.listed("here")) == [second, first]

    def test_what_a_text_was_shown_for_is_found_by_the_text_for_as_long_as_it_is_kept(self, pages: PageStore) -> None:
        form, other = id_of(b"[a form]"), id_of(b"[another form]")
        pages.put(b"said", now=1, shown_form=form)
        pages.put(b"said otherwise", now=2, shown_form=form)  # the first one stays
        pages.put(b"said", now=1, history="here", shown_form=other)

        assert pages.original_of(form) == pages.original_of(other) == b"said"
        assert pages.original_of(id_of(b"said")) is None
        assert pages.original_of(ABSENT) is None

        pages.collect(before=2)
        assert pages.original_of(form) is None
        pages.put(b"said otherwise", now=2, shown_form=form)
        assert pages.original_of(form) == b"said otherwise"

    def test_letting_go_of_pages_does_not_unlist_them(self, pages: PageStore) -> None:
        page = pages.put(b"content", history="here")
        pages.hold(page, "here")

        pages.release("here")

        assert list(pages.listed("here")) == [page]

    def test_a_listing_keeps_the_kind_and_name_of_the_first_time(self, pages: PageStore) -> None:
        page = pages.put(b"one", history="here", now=1.0, kind=PageKind.EVIDENCE, name="Read \ud800")
        pages.put(b"one", history="here", now=2.0, kind=PageKind.PLAN, name="again")
        pages.put(b"one", history="there", now=3.0)

        assert list(pages.listings("here")) == [ListedPage(page, PageKind.EVIDENCE, "Read \ud800", 1.0)]
        assert list(pages.listings("there")) == [ListedPage(page, None, "", 3.0)]

    def test_stats_count_what_is_held_and_listed(self, pages: PageStore) -> None:
        assert pages.stats() == StoreStats(0, 0, 0, 0, 0)
        page = pages.put(b"12345", history="one")
        pages.put(b"12345", history="two")
        pages.put(b"")
        pages.hold(page, "one")
        pages.hold(ABSENT, "one")

        stats = pages.stats()
        assert (stats.pages, stats.bytes, stats.held, stats.histories) == (2, 5, 1, 2)
