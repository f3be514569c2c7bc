"""Write-back: what is held is committed once, under its own scope, and replaces nothing that was not read."""

import pytest

from pagefold.pages.journal import Boundary, Journal, LineState, RejectReason, flush
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.pins import Pins, entry_of
from pagefold.pages.producers import PinnedItem, Refused, Scope, constrain, constraints_in, plan, prefer
from pagefold.pages.writeback import Scopes, Writeback, durable


def made(held: PinnedItem | Refused) -> PinnedItem:
    assert not isinstance(held, Refused)
    return held


RULE = made(constrain("Never push to main."))
HOUSE = made(constrain("Commit in English.", scope=Scope.PROJECT))
TASTE = made(prefer("British spelling."))
GOAL = made(plan("Ship it", ["write", "test"]))
FILE = constraints_in("# Rules\nTests first.\n", "AGENTS.md")
ALL = Pins().holding(RULE, HOUSE, GOAL, TASTE, *FILE)
SCOPES = Scopes("a", "shop")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def journal(store: MemoryStore) -> Journal:
    return store.open_journal(SCOPES.rules, SCOPES.session)


@pytest.fixture
def session(store: MemoryStore) -> Writeback:
    return Writeback(store, SCOPES)


def test_what_is_held_comes_back_except_for_what_a_file_says(
    store: MemoryStore, session: Writeback, journal: Journal
) -> None:
    flushed = session.write(ALL, Boundary.COMPACTION)

    assert (len(flushed.committed), flushed.rejected) == (4, ())
    assert session.read() == Pins().holding(HOUSE, RULE, GOAL, TASTE)
    assert Writeback(store, Scopes("b", "shop")).read() == Pins().holding(HOUSE, TASTE)
    assert Writeback(store, Scopes("b")).read() == Pins()
    assert all(store.pages.get(page) is not None for line in journal.lines() for page in line.entry.provenance)


def test_without_a_project_what_holds_for_it_is_kept_with_the_session(store: MemoryStore, journal: Journal) -> None:
    alone = Writeback(store, Scopes("a"))
    alone.write(ALL, Boundary.SHUTDOWN)

    assert {line.entry.scope for line in journal.lines()} == {"session:a"}
    assert set(alone.read().held) == {RULE, HOUSE, GOAL, TASTE}


@pytest.mark.parametrize("boundary", Boundary)
def test_a_flush_of_what_was_flushed_writes_nothing(boundary: Boundary, session: Writeback, journal: Journal) -> None:
    session.write(ALL, boundary)
    before = list(journal.lines())

    assert session.write(ALL, boundary).committed == ()
    assert list(journal.lines()) == before
    assert {line.boundary for line in before} == {boundary}


def test_what_was_staged_is_committed_once_by_whoever_comes_next(
    store: MemoryStore, session: Writeback, journal: Journal
) -> None:
    session.stage(ALL)
    session.stage(ALL)

    assert [line.state for line in journal.lines()] == [LineState.STAGED] * 3, "a plan waits for its flush"
    assert set(Writeback(store, SCOPES).read().held) == {RULE, HOUSE, TASTE}
    assert [line.state for line in journal.lines()] == [LineState.COMMITTED] * 3


def test_plans_that_follow_each_other_all_commit_and_the_last_holds(session: Writeback, journal: Journal) -> None:
    for step in (1, 2, 1):
        now = Pins().holding(made(plan("Ship it", ["write", "test"], current=step)))
        assert session.write(now, Boundary.COMPACTION).rejected == ()

    held = session.read().plan
    assert held is not None
    assert held.current == 1
    assert [line.version for line in journal.lines()] == [1, 2, 3]


def test_a_plan_that_somebody_else_replaced_meanwhile_is_refused_and_stays_visible(
    session: Writeback, journal: Journal, store: MemoryStore
) -> None:
    # Another process of the session has staged its plan and not committed it yet.
    other = made(plan("Ship something else"))
    store.pages.put(other.page.content)
    journal.stage(entry_of(other, "session:a", read_version=0))

    flushed = session.write(Pins().holding(GOAL), Boundary.COMPACTION)

    assert [line.reason for line in flushed.rejected] == [RejectReason.DESTRUCTIVE_OP]
    assert session.read().plan == other
    assert len(journal.lines(state=LineState.REJECTED)) == 1


def test_a_scope_that_is_not_ones_own_is_refused(store: MemoryStore, journal: Journal) -> None:
    store.pages.put(RULE.page.content)
    journal.stage(entry_of(RULE, "session:b"))

    assert [line.reason for line in flush(journal, Boundary.RESET).rejected] == [RejectReason.SCOPE_VIOLATION]


def test_only_what_a_file_says_needs_no_journal(session: Writeback, journal: Journal) -> None:
    assert durable(Pins().holding(*FILE)) == ()
    assert durable(ALL) == (RULE, HOUSE, GOAL, TASTE)
    assert session.write(Pins().holding(*FILE), Boundary.RESET).committed == ()
    assert list(journal.lines()) == []
