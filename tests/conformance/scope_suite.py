"""What every store promises about scopes: what was put in one is not there for another, however it is asked for."""

from collections.abc import Callable

import pytest

from pagefold.pages.journal import Boundary, LineState, flush
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import handle_of, id_of
from pagefold.pages.scope import StoreScope
from pagefold.pages.store import ListedPage, Store, StoreStats
from tests.conformance.journal_suite import MINE, RULES, note

HERE = StoreScope("ann", "/work/a")
OTHERS = [
    StoreScope("bob", "/work/a"),
    StoreScope("bob", None),
    StoreScope("", None),
    StoreScope("ann", "/work/b"),
    StoreScope("ann", ""),
]
OF_ANOTHER = OTHERS[:3]
FORM = id_of(b"[a form]")


class ScopeSuite:
    @pytest.mark.parametrize("scope", OTHERS, ids=str)
    def test_a_page_of_another_scope_is_as_one_that_was_never_put(self, store: Store, scope: StoreScope) -> None:
        here, there = store.scoped(HERE), store.scoped(scope)
        page = here.pages.put(b"a secret word", history="h", kind=PageKind.EVIDENCE, name="Read secret.txt")
        here.pages.hold(page, "h")

        assert there.pages.get(page) is None
        assert not there.pages.exists(page)
        assert not there.pages.hold(page, "h")
        assert list(there.pages.find(handle_of(page))) == list(there.pages.listed("h")) == []
        assert list(there.pages.listings("h")) == []
        assert there.pages.stats() == StoreStats(0, 0, 0, 0, 0)
        assert [list(there.search_index.search(words)) for words in ("secret", "secret.txt", "word")] == [[]] * 3
        assert list(there.search_index.search("secret", history="h")) == []
        assert here.pages.get(page) == b"a secret word"
        assert here.pages.stats().histories == 1
        assert [hit.name for hit in here.search_index.search("secret.txt")] == ["Read secret.txt"]

    def test_a_content_that_two_put_is_there_for_both_under_their_own_names(self, store: Store) -> None:
        for scope in (HERE, *OTHERS[:1]):
            store.scoped(scope).pages.put(b"shared", history=f"of {scope.principal}", name=f"Read {scope.principal}.md")
        ann, bob = (store.scoped(scope) for scope in (HERE, OTHERS[0]))
        page = id_of(b"shared")

        assert ann.pages.get(page) == bob.pages.get(page) == b"shared"
        assert list(ann.pages.listed("of bob")) == list(bob.pages.listed("of ann")) == []
        assert list(ann.search_index.search("bob.md")) == []
        assert [hit.name for hit in bob.search_index.search("shared")] == ["Read bob.md"]

    def test_all_projects_of_a_principal_are_read_together_and_nothing_is_listed_twice(self, store: Store) -> None:
        first, second = store.scoped(HERE), store.scoped(StoreScope("ann", "/work/b"))
        page = first.pages.put(b"both", history="h", now=1.0, name="first")
        second.pages.put(b"both", history="h", now=2.0, name="second")
        other = second.pages.put(b"the second alone", now=3.0)
        every = store.scoped(StoreScope("ann"))

        assert (every.pages.get(page), every.pages.get(other)) == (b"both", b"the second alone")
        assert list(every.pages.listings("h")) == [ListedPage(page, None, "first", 1.0)]
        assert (every.pages.stats().pages, every.pages.stats().histories) == (2, 1)
        assert [hit.page for hit in every.search_index.search("alone")] == [other]

    def test_what_is_held_in_any_scope_is_not_collected_and_nobody_else_lets_go_of_it(self, store: Store) -> None:
        here, there = store.scoped(HERE), store.scoped(OTHERS[0])
        page = here.pages.put(b"held", history="h")
        here.pages.hold(page, "h")

        there.pages.release("h")
        assert there.pages.collect(max_bytes=0).pages == 0
        here.pages.release("h")
        assert there.pages.collect(max_bytes=0).pages == 1

    def test_a_form_belongs_to_the_principal(self, store: Store) -> None:
        store.scoped(HERE).pages.put(b"ann's", shown_form=FORM)
        bob = store.scoped(OTHERS[0])

        assert bob.pages.original_of(FORM) is None
        assert store.scoped(StoreScope("ann", "/work/b")).pages.original_of(FORM) == b"ann's"
        bob.pages.put(b"bob's", shown_form=FORM)
        assert (bob.pages.original_of(FORM), store.scoped(HERE).pages.original_of(FORM)) == (b"bob's", b"ann's")

    @pytest.mark.parametrize("scope", OF_ANOTHER, ids=str)
    def test_notes_belong_to_the_principal_and_no_recall_or_search_reaches_them(
        self, store: Store, scope: StoreScope
    ) -> None:
        here, there = store.scoped(HERE), store.scoped(scope)
        here.notes.put("note-1", b"cold secret")
        page = id_of(b"cold secret")

        assert there.notes.newest("note-1") is None
        assert there.notes.put_if_absent("note-1", b"another") == b"another"
        for project in (None, "", "/work/a", "/work/b"):
            own = store.scoped(StoreScope("ann", project))
            assert own.notes.newest("note-1") == b"cold secret"
            assert own.pages.get(page) is None
            assert list(own.pages.find(handle_of(page))) == []
            assert list(own.search_index.search("secret")) == []

    @pytest.mark.parametrize("scope", OF_ANOTHER, ids=str)
    def test_the_journal_of_another_principal_is_another_journal(self, store: Store, scope: StoreScope) -> None:
        here, there = store.scoped(HERE), store.scoped(scope)
        here.pages.put(b"what it came from")
        journal, other = here.open_journal(RULES, "me"), there.open_journal(RULES, "me")
        journal.stage(note("ann's"), token="t")
        [line] = flush(journal, Boundary.RESET).committed
        assert line.state is LineState.COMMITTED

        assert list(other.lines()) == list(other.pending()) == []
        assert other.record(MINE, "notes") is None
        assert other.stage(note("theirs"), token="t").entry == note("theirs"), "its tokens are its own"
        assert [rejected.entry for rejected in flush(other, Boundary.RESET).rejected] == [note("theirs")]
        record = journal.record(MINE, "notes")
        assert record is not None
        assert record.value == [{"text": "ann's"}]
        journal.close()
        other.close()

    def test_what_was_sent_is_found_in_its_scope_alone_and_sent_with_it(self, reopen: Callable[..., Store]) -> None:
        store = reopen(sender="me")
        here, there = store.scoped(HERE), store.scoped(OTHERS[0])
        page = here.pages.put(b"one", history="s")
        there.pages.put(b"one", history="s")

        batch = there.outbox.next_batch(10, 1000)
        assert {(unsent.session, unsent.scope) for unsent in batch} == {("s", HERE), ("s", OTHERS[0])}
        store.outbox.mark_sent([unsent for unsent in batch if unsent.scope == HERE])
        assert list(here.outbox.find_sent(handle_of(page))) == [(page, "s")]
        assert list(there.outbox.find_sent(handle_of(page))) == []
        assert (here.outbox.enqueue("s"), there.outbox.enqueue("s"), store.outbox.backlog()) == (0, 0, (1, 3))
        store.close()
