"""What every store promises about the outbox of the history sink."""

from collections.abc import Callable, Iterator

import pytest

from pagefold.pages.kinds import PageKind
from pagefold.pages.manifest import ManifestEntry
from pagefold.pages.page import PageId, handle_of, id_of
from pagefold.pages.store import Store, UnsentPage


class OutboxSuite:
    @pytest.fixture
    def sending(self, reopen: Callable[..., Store]) -> Iterator[Store]:
        """A store whose puts are noted to be sent by "me"."""
        store = reopen(sender="me")
        yield store
        store.close()

    def test_what_is_put_under_a_history_is_to_be_sent_once(self, sending: Store) -> None:
        page = sending.pages.put(b"12345", history="s", now=1.0, kind=PageKind.EVIDENCE, name="Read")
        sending.pages.put(b"12345", history="s", now=2.0)
        sending.pages.put(b"of no session")

        [unsent] = sending.outbox.next_batch(10, 1000)
        assert (unsent.session, sending.outbox.backlog()) == ("s", (1, 5))
        assert unsent.entry == ManifestEntry(page, PageKind.EVIDENCE, "Read", 5, 1.0, unsent.entry.place)

    def test_a_note_is_not_sent(self, sending: Store) -> None:
        sending.notes.put("a", b"noted", history="s")
        sending.notes.put_if_absent("b", b"decided", history="s")
        sending.notes.put_if_possible("c", b"a fold", history="s")

        assert sending.outbox.backlog() == (0, 0)

    def test_without_a_sender_nothing_is_noted(self, store: Store) -> None:
        store.pages.put(b"one", history="s")

        assert list(store.outbox.next_batch(10, 1000)) == []
        assert store.outbox.backlog() == (0, 0)

    def test_a_batch_is_bounded_and_gives_the_least_tried_and_oldest_first(self, sending: Store) -> None:
        contents = [bytes([n]) * 10 for n in range(5)]
        for content in contents:
            sending.pages.put(content, history="s")
        outbox = sending.outbox

        assert pages_in(outbox.next_batch(3, 1000)) == [id_of(content) for content in contents[:3]]
        assert pages_in(outbox.next_batch(10, 25)) == [id_of(content) for content in contents[:2]]
        assert pages_in(outbox.next_batch(10, 1)) == [id_of(contents[0])], "at least one"
        outbox.mark_tried(outbox.next_batch(2, 1000))
        assert pages_in(outbox.next_batch(10, 1000)) == [id_of(contents[n]) for n in (2, 3, 4, 0, 1)]

    def test_what_was_sent_is_found_by_its_handle_also_when_it_is_collected(self, sending: Store) -> None:
        page = sending.pages.put(b"one", history="s")
        sending.pages.put(b"one", history="t")
        outbox = sending.outbox
        assert list(outbox.find_sent(handle_of(page))) == []

        outbox.mark_sent(outbox.next_batch(10, 1000))
        assert outbox.backlog() == (0, 0)
        assert sorted(outbox.find_sent(handle_of(page))) == [(page, "s"), (page, "t")]
        assert list(outbox.find_sent("no handle")) == []

        sending.pages.put(b"one", history="s")
        assert outbox.backlog() == (0, 0), "what was sent is not sent again"
        assert sending.pages.collect(max_bytes=0).unsent == 0
        assert len(outbox.find_sent(handle_of(page))) == 2

    def test_a_session_is_enqueued_except_for_what_the_sink_has(self, sending: Store) -> None:
        pages = [sending.pages.put(bytes([n]), history="s") for n in range(3)]
        outbox = sending.outbox
        outbox.mark_sent(outbox.next_batch(1, 1000))
        outbox.note_in_sink("s", [pages[1]])

        assert outbox.enqueue("s") == 0, "they wait already, or were sent"
        assert outbox.enqueue("nobody") == 0
        assert outbox.backlog()[0] == 2

    def test_pages_from_before_there_was_a_sender_wait_once_they_are_enqueued(
        self, reopen: Callable[..., Store]
    ) -> None:
        store = reopen()
        page = store.pages.put(b"one", history="s")
        store.close()
        sending = reopen(sender="me")

        assert (sending.outbox.enqueue("s"), sending.outbox.enqueue("s")) == (1, 0)
        assert pages_in(sending.outbox.next_batch(10, 1000)) == [page]
        sending.close()

    def test_a_sender_adopts_what_others_left(self, reopen: Callable[..., Store]) -> None:
        first = reopen(sender="first")
        page = first.pages.put(b"one", history="s")
        identity = first.outbox.store_id
        first.close()
        second = reopen(sender="second")

        assert list(second.outbox.next_batch(10, 1000)) == []
        assert (second.outbox.adopt(), second.outbox.adopt()) == (1, 0)
        assert pages_in(second.outbox.next_batch(10, 1000)) == [page]
        assert second.outbox.store_id == identity
        second.close()

    def test_a_collected_page_is_not_sent_and_that_is_told(self, sending: Store) -> None:
        sending.pages.put(b"one", history="s")

        assert sending.pages.collect(max_bytes=0).unsent == 1
        assert list(sending.outbox.next_batch(10, 1000)) == []
        assert sending.outbox.backlog() == (0, 0)


def pages_in(batch: object) -> list[PageId]:
    assert isinstance(batch, list | tuple)
    return [unsent.entry.page for unsent in batch if isinstance(unsent, UnsentPage)]
