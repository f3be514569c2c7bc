"""Write-back: what is held is committed once, under its own scope, and replaces nothing that was not read."""

import pytest

from pagefold.pages.faults import Boundary
from pagefold.pages.journal import LineState, MemoryJournal, Rejected, flush
from pagefold.pages.pins import Pins
from pagefold.pages.producers import Held, Refused, Scope, constrain, constraints_in, plan, prefer
from pagefold.pages.store import MemoryPages
from pagefold.pages.writeback import Scopes, durable, read_back, stage, stated, write_back


def made(held: Held | Refused) -> Held:
    assert not isinstance(held, Refused)
    return held


RULE = made(constrain("Never push to main."))
HOUSE = made(constrain("Commit in English.", scope=Scope.PROJECT))
TASTE = made(prefer("British spelling."))
GOAL = made(plan("Ship it", ["write", "test"]))
FILE = constraints_in("# Rules\nTests first.\n", "AGENTS.md")
ALL = Pins().holding(RULE, HOUSE, GOAL, TASTE, *FILE)
SCOPES = Scopes("a", "shop")


def journal_of(store: MemoryPages, scopes: Scopes = SCOPES) -> MemoryJournal:
    return MemoryJournal(scopes.rules, store.exists, scopes.session)


def test_what_is_held_comes_back_except_for_what_a_file_says() -> None:
    store = MemoryPages()
    journal = journal_of(store)

    flushed = write_back(journal, store, SCOPES, ALL, Boundary.COMPACTION)

    assert (len(flushed.committed), flushed.rejected) == (4, ())
    assert read_back(journal, SCOPES) == Pins().holding(HOUSE, RULE, GOAL, TASTE)
    assert read_back(journal, Scopes("b", "shop")) == Pins().holding(HOUSE, TASTE)
    assert read_back(journal, Scopes("b")) == Pins()
    assert all(store.get(page) is not None for line in journal.lines() for page in line.entry.provenance)


def test_without_a_project_what_holds_for_it_is_kept_with_the_session() -> None:
    store, alone = MemoryPages(), Scopes("a")
    journal = journal_of(store, alone)
    write_back(journal, store, alone, ALL, Boundary.SHUTDOWN)

    assert {line.entry.scope for line in journal.lines()} == {"session:a"}
    assert set(read_back(journal, alone).held) == {RULE, HOUSE, GOAL, TASTE}


@pytest.mark.parametrize("boundary", Boundary)
def test_a_flush_of_what_was_flushed_writes_nothing(boundary: Boundary) -> None:
    store = MemoryPages()
    journal = journal_of(store)
    write_back(journal, store, SCOPES, ALL, boundary)
    before = list(journal.lines())

    assert write_back(journal, store, SCOPES, ALL, boundary).committed == ()
    assert list(journal.lines()) == before
    assert {line.boundary for line in before} == {boundary}


def test_what_was_noted_down_is_committed_once_by_whoever_comes_next() -> None:
    store = MemoryPages()
    journal = journal_of(store)
    stage(journal, store, SCOPES, stated(ALL))
    stage(journal, store, SCOPES, stated(ALL))

    assert [line.state for line in journal.lines()] == [LineState.STAGED] * 3, "a plan waits for its flush"
    flush(journal, Boundary.SHUTDOWN)
    assert set(read_back(journal, SCOPES).held) == {RULE, HOUSE, TASTE}


def test_plans_that_follow_each_other_all_commit_and_the_last_holds() -> None:
    store = MemoryPages()
    journal = journal_of(store)
    for step in (1, 2, 1):
        now = Pins().holding(made(plan("Ship it", ["write", "test"], current=step)))
        assert write_back(journal, store, SCOPES, now, Boundary.COMPACTION).rejected == ()

    held = read_back(journal, SCOPES).plan
    assert held is not None
    assert held.current == 1
    assert [line.version for line in journal.lines()] == [1, 2, 3]


def test_a_plan_that_somebody_else_replaced_meanwhile_is_refused_and_stays_visible() -> None:
    store = MemoryPages()
    journal = journal_of(store)
    stage(journal, store, SCOPES, [GOAL])
    other = made(plan("Ship something else"))
    stage(journal, store, SCOPES, [other])

    flushed = flush(journal, Boundary.COMPACTION)

    assert [line.reason for line in flushed.rejected] == [Rejected.DESTRUCTIVE_OP]
    assert read_back(journal, SCOPES).plan == GOAL
    assert len(journal.lines(state=LineState.REJECTED)) == 1


def test_a_scope_that_is_not_ones_own_is_refused() -> None:
    store = MemoryPages()
    journal = journal_of(store, Scopes("a", "shop"))
    stage(journal, store, Scopes("b", "shop"), [RULE])

    assert [line.reason for line in flush(journal, Boundary.RESET).rejected] == [Rejected.SCOPE_VIOLATION]


def test_only_what_a_file_says_needs_no_journal() -> None:
    assert durable(Pins().holding(*FILE)) == ()
    assert durable(ALL) == (RULE, HOUSE, GOAL, TASTE)
