"""What every store promises about notes."""

import pytest

from pagefold.pages.scope import StoreScope
from pagefold.pages.store import NewNote, NoteStore, Store


class NoteSuite:
    @pytest.fixture
    def notes(self, store: Store) -> NoteStore:
        return store.notes

    def test_the_note_that_was_put_last_is_the_newest_under_its_name(self, notes: NoteStore) -> None:
        assert notes.newest("a") is None
        notes.put("a", b"first", now=1.0)
        notes.put("b", b"other", now=2.0)
        notes.put("a", b"second", now=3.0)

        assert (notes.newest("a"), notes.newest("b"), notes.newest("c")) == (b"second", b"other", None)

    def test_notes_that_are_put_together_are_each_the_newest_under_their_names(
        self, store: Store, notes: NoteStore
    ) -> None:
        notes.put("a", b"before", now=1.0)
        notes.put_all((NewNote("a", b"first"), NewNote("b", b"other", "over"), NewNote("a", b"second")), now=2.0)
        assert [notes.newest(name) for name in "abc"] == [b"second", b"other", None]
        store.pages.renew("over", 3.0)

        store.pages.collect(before=9.0)

        assert notes.newest("b") is None

    def test_a_content_that_was_put_before_under_the_name_counts_at_its_first_time(self, notes: NoteStore) -> None:
        for content in (b"first", b"second", b"first"):
            notes.put("a", content)

        assert notes.newest("a") == b"second"

    def test_of_two_that_put_if_absent_the_first_stands_and_both_are_told(self, notes: NoteStore) -> None:
        assert notes.put_if_absent("a", b"mine", now=1.0) == b"mine"
        assert notes.put_if_absent("a", b"yours", now=2.0) == b"mine"
        assert notes.put_if_absent("b", b"yours", now=2.0) == b"yours"
        assert (notes.newest("a"), notes.newest("b")) == (b"mine", b"yours")

    def test_of_what_is_put_if_possible_the_newest_is_read(self, notes: NoteStore) -> None:
        notes.put_if_possible("a", b"first", now=1.0, history="h")
        notes.put_if_possible("b", b"other", now=1.0, history="h")
        for number in range(20):
            notes.put_if_possible("a", b"newer %d" % number, now=2.0 + number, history="h")

        assert (notes.newest("a"), notes.newest("b")) == (b"newer 19", b"other")

    def test_what_is_put_if_possible_belongs_to_its_principal_and_history(self, store: Store) -> None:
        ann, bob = (store.scoped(StoreScope(name, "/work")).notes for name in ("ann", "bob"))
        ann.put_if_possible("fold", b"of ann", now=1.0, history="live")
        ann.put_if_possible("other fold", b"of ann's past", now=1.0, history="over")
        assert bob.newest("fold") is None
        bob.put_if_possible("fold", b"of bob", now=1.0, history="over")
        store.scoped(StoreScope("ann", "/work")).pages.renew("live", 9.0)

        store.pages.collect(before=9.0)

        assert (ann.newest("fold"), ann.newest("other fold"), bob.newest("fold")) == (b"of ann", None, None)

    def test_what_was_put_stands_against_a_later_put_if_absent(self, notes: NoteStore) -> None:
        notes.put("a", b"first")
        notes.put("a", b"second")

        assert notes.put_if_absent("a", b"third") == b"second"

    def test_a_note_lives_as_long_as_its_history(self, store: Store, notes: NoteStore) -> None:
        notes.put("a", b"of the live one", now=1.0, history="live")
        notes.put_if_absent("b", b"of the live one too", now=1.0, history="live")
        notes.put("c", b"of the one that is over", now=1.0, history="over")
        notes.put("d", b"of none", now=1.0)
        store.pages.renew("live", 9.0)
        store.pages.renew("over", 3.0)

        store.pages.collect(before=9.0)

        kept = [notes.newest(name) for name in "abcd"]
        assert kept == [b"of the live one", b"of the live one too", None, None]

    def test_names_and_contents_may_be_anything(self, notes: NoteStore) -> None:
        for name in ("a", "nul\0", "lone \udcff", "x" * 700, "a/../b"):
            assert notes.put_if_absent(name, name.encode("utf-8", "surrogatepass")) == notes.newest(name)
        assert notes.put_if_absent("empty", b"") == notes.newest("empty") == b""

    def test_notes_survive_reopening_the_store(
        self, notes: NoteStore, store: Store, request: pytest.FixtureRequest
    ) -> None:
        notes.put("a", b"kept")
        assert notes.put_if_absent("b", b"kept too") == b"kept too"
        store.close()
        again: Store = request.getfixturevalue("reopen")()

        assert (again.notes.newest("a"), again.notes.put_if_absent("b", b"late")) == (b"kept", b"kept too")
        again.close()
