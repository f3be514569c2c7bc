"""What every store promises about the journal: the way of a line from staged to committed or rejected."""

from collections.abc import Iterator
from typing import Any

import pytest

from pagefold.pages.journal import (
    SCHEMAS,
    Boundary,
    Flushed,
    Journal,
    JournalEntry,
    JournalLine,
    JournalRecord,
    LineState,
    Op,
    RejectReason,
    Rules,
    flush,
)
from pagefold.pages.page import PageId, id_of
from pagefold.pages.store import Store

MINE = "session:1"
RULES = Rules(SCHEMAS, frozenset({MINE}))
PAGE = id_of(b"what it came from")


def note(text: str, *, scope: str = MINE, page: PageId = PAGE) -> JournalEntry:
    return JournalEntry.of(Op.APPEND, scope, "notes", "note", {"text": text}, provenance=[page])


def goal(text: str, read_version: int | None, *, page: PageId = PAGE) -> JournalEntry:
    value: dict[str, Any] = {"goal": text, "source": {}}
    return JournalEntry.of(Op.SET, MINE, "plan", "plan", value, provenance=[page], read_version=read_version)


class JournalSuite:
    @pytest.fixture
    def journal(self, store: Store) -> Iterator[Journal]:
        store.pages.put(b"what it came from")
        journal = store.open_journal(RULES)
        yield journal
        journal.close()

    def test_a_line_is_staged_validated_and_committed_and_nothing_applies_before(self, journal: Journal) -> None:

        staged = journal.stage(note("one"), now=5.0)
        assert (staged.state, journal.record(MINE, "notes")) == (LineState.STAGED, None)

        assert (journal.validate(staged.number).state, journal.record(MINE, "notes")) == (LineState.VALIDATED, None)

        done = journal.commit(staged.number, Boundary.RESET)
        assert done == JournalLine(1, "", note("one"), LineState.COMMITTED, None, "", Boundary.RESET, 1, 5.0)
        assert journal.record(MINE, "notes") == JournalRecord(MINE, "notes", "note", 1, [{"text": "one"}])

    def test_a_rejected_line_stays_visible_and_cannot_be_committed(self, journal: Journal) -> None:
        line = journal.validate(journal.stage(note("x", scope="session:2")).number)

        with pytest.raises(ValueError, match="line 1 is rejected"):
            journal.commit(line.number, Boundary.RESET)

        assert journal.lines(state=LineState.REJECTED) == [line]
        assert line.reason is RejectReason.SCOPE_VIOLATION
        assert journal.pending() == []

    def test_a_line_nobody_validated_or_staged_cannot_be_committed(self, journal: Journal) -> None:
        line = journal.stage(note("x"))

        with pytest.raises(ValueError, match="line 1 is staged"):
            journal.commit(line.number, Boundary.RESET)
        with pytest.raises(ValueError, match="no line 2"):
            journal.commit(2, Boundary.RESET)

    def test_steps_that_are_done_again_change_nothing(self, journal: Journal) -> None:
        line = journal.stage(note("one"), token="t")
        assert journal.stage(note("one"), token="t") == line
        journal.validate(line.number)
        done = journal.commit(line.number, Boundary.RESET)

        assert journal.stage(note("one"), token="t") == journal.validate(line.number) == done
        assert journal.commit(line.number, Boundary.SHUTDOWN) == done
        assert len(journal.lines()) == 1

    def test_of_two_that_read_the_same_version_the_second_is_rejected_at_its_commit(self, journal: Journal) -> None:
        first, second = (journal.validate(journal.stage(goal(text, 0)).number) for text in ("mine", "yours"))
        assert first.state is second.state is LineState.VALIDATED

        journal.commit(first.number, Boundary.COMPACTION)
        late = journal.commit(second.number, Boundary.COMPACTION)

        assert (late.state, late.reason) == (LineState.REJECTED, RejectReason.DESTRUCTIVE_OP)
        assert journal.record(MINE, "plan") == JournalRecord(MINE, "plan", "plan", 1, {"goal": "mine", "source": {}})

    @pytest.mark.parametrize("boundary", Boundary)
    def test_a_flush_commits_what_it_can_and_says_what_it_could_not(self, journal: Journal, boundary: Boundary) -> None:
        for given_entry in (note("one"), goal("mine", 0), goal("late", 0), note("two")):
            journal.stage(given_entry)

        flushed = flush(journal, boundary)

        assert [line.number for line in flushed.committed] == [1, 2, 4]
        assert [(line.number, line.reason) for line in flushed.rejected] == [(3, RejectReason.DESTRUCTIVE_OP)]
        assert {line.boundary for line in flushed.committed} == {boundary}
        assert flush(journal, boundary) == Flushed(boundary)

    def test_a_line_belongs_to_its_owner_and_whoever_opens_the_journal_for_it_goes_on(
        self, store: Store, journal: Journal
    ) -> None:
        line = journal.stage(note("x"), token="t")
        another = store.open_journal(RULES, "another")
        assert list(another.pending()) == []
        assert list(another.lines()) == [line]
        with pytest.raises(ValueError, match="no line 1 of 'another'"):
            another.validate(line.number)
        with pytest.raises(ValueError, match="no line 1 of 'another'"):
            another.commit(line.number, Boundary.RESET)
        assert another.stage(note("y"), token="t").number == 2, "tokens belong to their owner too"
        another.close()

        again = store.open_journal(RULES)
        assert [done.number for done in flush(again, Boundary.SHUTDOWN).committed] == [line.number]
        again.close()

    def test_opening_and_reading_a_journal_writes_nothing(self, journal: Journal) -> None:
        assert list(journal.lines()) == list(journal.pending()) == []
        assert journal.record(MINE, "notes") is None
        assert flush(journal, Boundary.RESET) == Flushed(Boundary.RESET)

    def test_the_pages_a_committed_line_came_from_are_never_collected(self, store: Store, journal: Journal) -> None:
        kept, loose = store.pages.put(b"kept"), store.pages.put(b"loose")
        journal.stage(note("x", page=kept))
        flush(journal, Boundary.COMPACTION)

        store.pages.collect(max_bytes=0)

        assert (store.pages.exists(kept), store.pages.exists(loose)) == (True, False)

    def test_the_pages_of_a_line_rejected_at_its_commit_are_let_go(self, store: Store, journal: Journal) -> None:
        other = store.pages.put(b"only the late one came from here")
        first = journal.validate(journal.stage(goal("first", 0)).number)
        late = journal.validate(journal.stage(goal("late", 0, page=other)).number)
        journal.commit(first.number, Boundary.RESET)

        assert journal.commit(late.number, Boundary.RESET).reason is RejectReason.DESTRUCTIVE_OP

        store.pages.collect(max_bytes=0)
        assert (store.pages.exists(PAGE), store.pages.exists(other)) == (True, False)

    def test_a_page_collected_between_validation_and_commit_is_a_reason_and_not_a_dangling_line(
        self, store: Store, journal: Journal
    ) -> None:
        line = journal.validate(journal.stage(note("x")).number)
        store.pages.collect(max_bytes=0)

        done = journal.commit(line.number, Boundary.RESET)

        assert (done.state, done.reason) == (LineState.REJECTED, RejectReason.PROVENANCE_FAIL)
        assert journal.record(MINE, "notes") is None
