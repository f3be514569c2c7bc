"""A store that is locked, deleted, replaced, damaged or cannot be written holds nobody up, and comes back by itself."""

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pagefold.adapters.breaker import Breaker
from pagefold.adapters.steady_store import SteadyStore
from pagefold.adapters.stores import open_steady_store, open_store
from pagefold.adapters.timings import BUCKETS, Histogram
from pagefold.errors import StoreError
from pagefold.pages.forgetting import Choice, ForgettingStore

DEADLINE = 0.15


@contextmanager
def steady(path: Path) -> Iterator[tuple[SteadyStore, list[tuple[str, str]]]]:
    told: list[tuple[str, str]] = []
    store = open_steady_store(
        path, deadline=DEADLINE, report=lambda kind, line: told.append((kind, line)), round_seconds=0.05
    )
    try:
        yield store, told
    finally:
        store.close()


def until(is_so: Callable[[], bool], seconds: float = 5.0) -> None:
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.01)


def kept(path: Path, contents: list[bytes], history: str) -> bool:
    """Whether another process reads all of these from the store."""
    with closing(open_store(path)) as other:
        pages = other.pages.listed(history)
        return [other.pages.get(page) for page in pages] == contents


def test_a_locked_store_costs_one_deadline_and_then_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with steady(path) as (store, told):
        store.pages.put(b"before", history="h")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            began = time.monotonic()
            with pytest.raises(StoreError, match="no answer within 150 ms"):
                store.pages.put(b"meanwhile", history="h")
            for _ in range(100):
                with pytest.raises(StoreError, match="is not used now"):
                    store.pages.put(b"meanwhile", history="h")
                store.notes.put("note", b"noted in the outage")
                assert store.notes.newest("note") == b"noted in the outage"
                assert store.pages.original_of(next(iter(store.acknowledged.contents))) is None
            assert time.monotonic() - began < 3 * DEADLINE
            assert store.pages.get(next(iter(store.acknowledged.contents))) == b"before"
            assert store.is_out
            other.execute("ROLLBACK")
        until(lambda: not store.is_out)
        store.pages.put(b"after", history="h")
        assert (store.health().errors["late"], store.health().unsaved_notes) == (1, 0)
    assert [kind for kind, _ in told][:1] == ["store late"]
    assert [kind for kind, _ in told][-1:] == ["store back"]
    with closing(open_store(path)) as store_again:
        assert store_again.notes.newest("note") == b"noted in the outage"


def test_who_waits_elsewhere_gives_up_after_the_deadline_and_asks_no_more(tmp_path: Path) -> None:
    path, done = tmp_path / "store.sqlite3", list[str]()

    def step() -> None:
        store.notes.put("note", b"noted")
        done.append(threading.current_thread().name)

    with steady(path) as (store, _):
        asked = store.soon(step)
        asked.step.result(asked.seconds)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            late, never = store.soon(step), store.soon(step)
            with pytest.raises(TimeoutError):
                late.step.result(late.seconds)
            assert never.step.cancel()
            late.give_up()
            assert store.is_out
            store.soon(step).step.result(0)
            other.execute("ROLLBACK")
        until(lambda: not store.is_out)
        assert store.health().errors["late"] == 1
    assert sorted(done) == ["MainThread", "pagefold-store", "pagefold-store"]


def test_what_another_process_decided_before_an_outage_is_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with steady(path) as (store, _):
        with closing(open_store(path)) as other:
            other.notes.put("decided", b"warm")
        with closing(sqlite3.connect(path, isolation_level=None)) as holding:
            holding.execute("BEGIN EXCLUSIVE")
            assert store.notes.put_if_absent("decided", b"cold") == b"cold"
            holding.execute("ROLLBACK")
        until(lambda: not store.is_out)
        assert store.notes.newest("decided") == b"warm"
        assert store.acknowledged.notes["", "decided"][0] == b"warm"


@pytest.mark.parametrize("settling", [0.0, 10.0])
def test_a_new_process_waits_longer_for_a_store_that_is_slow(tmp_path: Path, settling: float) -> None:
    path = tmp_path / "store.sqlite3"
    with (
        closing(open_steady_store(path, deadline=0.02, settling=settling)) as store,
        closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other,
    ):
        other.execute("BEGIN EXCLUSIVE")
        released = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        released.start()
        store.notes.put("decided", b"cold")
        assert store.is_out == (settling == 0.0)
        released.join()


@pytest.mark.parametrize("side_files", [False, True])
def test_a_deleted_store_is_made_anew_with_what_was_acknowledged(tmp_path: Path, side_files: bool) -> None:
    path = tmp_path / "store.sqlite3"
    with steady(path) as (store, told):
        page = store.pages.put(b"first", history="h", name="Read")
        store.pages.hold(page, "h")
        assert store.notes.put_if_absent("decided", b"cold") == b"cold"
        path.unlink()
        if side_files:
            for ending in ("-wal", "-shm"):
                (tmp_path / f"store.sqlite3{ending}").unlink()
        until(lambda: store.health().mended == 1 and not store.is_out)
        store.pages.put(b"second", history="h")
    assert kept(path, [b"first", b"second"], "h")
    with closing(open_store(path)) as again:
        assert again.notes.newest("decided") == b"cold"
        assert again.pages.collect(before=time.time() + 9).held == 1
        assert again.pages.listings("h")[0].name == "Read"
    assert [kind for kind, _ in told] == ["store gone", "store back"]


def test_a_replaced_store_keeps_its_own_and_gets_what_was_acknowledged(tmp_path: Path) -> None:
    path, other = tmp_path / "store.sqlite3", tmp_path / "other.sqlite3"
    with closing(open_store(other)) as backup:
        backup.pages.put(b"of the backup", history="b")
    with steady(path) as (store, _):
        store.pages.put(b"mine", history="h")
        shutil.move(other, path)
        until(lambda: store.health().mended == 1 and not store.is_out)
        store.pages.put(b"more", history="h")
        assert store.pages.listed("b")
    assert kept(path, [b"mine", b"more"], "h")
    assert kept(path, [b"of the backup"], "b")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_two_instances_whose_store_is_deleted_go_on_with_one(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with steady(path) as (one, _), steady(path) as (two, _):
        one.pages.put(b"one", history="h")
        two.pages.put(b"two", history="h")
        path.unlink()
        until(lambda: one.health().mended == two.health().mended == 1 and not one.is_out and not two.is_out)
        one.pages.put(b"three", history="h")
        assert len(two.pages.listed("h")) == 3
    with closing(open_store(path)) as again:
        assert {again.pages.get(page) for page in again.pages.listed("h")} == {b"one", b"two", b"three"}


def test_a_damaged_store_is_kept_beside_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with closing(open_store(path)) as before:
        for number in range(200):
            before.pages.put(b"%d " % number * 500, history="old")
    with steady(path) as (store, told):
        store.pages.put(b"mine", history="h")
        with path.open("r+b") as file:
            for place in range(100, path.stat().st_size - 4096, 512):
                file.seek(place)
                file.write(os.urandom(64))
        until(lambda: store.health().mended > 0 and not store.is_out, 10)
        store.pages.put(b"more", history="h")
    assert kept(path, [b"mine", b"more"], "h")
    assert len(list(tmp_path.glob("store.sqlite3.damaged-*"))) >= 1
    assert "store damaged" in [kind for kind, _ in told]


def test_damage_that_nobody_saw_is_mended_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    store = open_steady_store(path, deadline=DEADLINE, round_seconds=60.0)
    pages = [b"%d " % number * 500 for number in range(50)]
    for page in pages:
        store.pages.put(page, history="h")
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        for place in range(100, path.stat().st_size, 512):
            file.seek(place)
            file.write(os.urandom(64))
    store.close()
    assert kept(path, pages, "h")
    assert store.health().mended == 1


def test_one_damaged_page_is_stored_once_more(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with steady(path) as (store, _):
        page = store.pages.put(b"precious", history="h")
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE contents SET stored = x'00'")
            db.commit()
        until(lambda: store.health().errors["damaged page"] > 0)
        until(lambda: store.pages.get(page) == b"precious")
        assert not store.is_out
    assert kept(path, [b"precious"], "h")


def test_a_store_that_cannot_be_opened_is_opened_when_it_can_be(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.write_text("no folder")
    with steady(folder / "store.sqlite3") as (store, told):
        assert store.is_out
        store.notes.put("note", b"early")
        folder.unlink()
        until(lambda: not store.is_out)
        assert store.notes.newest("note") == b"early"
        store.pages.put(b"late", history="h")
    assert kept(folder / "store.sqlite3", [b"late"], "h")
    assert told[0][0] == "store shut"


def test_a_file_that_is_no_store_is_left_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are mine\n" * 100)
    with steady(path) as (store, _):
        time.sleep(0.3)
        assert store.is_out
    assert path.read_text() == "these are mine\n" * 100


def test_a_breaker_opens_by_waiting_too_and_not_by_many_quick_calls() -> None:
    breaker = Breaker(0.25)
    for number in range(10_000):
        assert not breaker.took(0.015, number * 0.015)
    breaker = Breaker(0.25)
    times = [number for number in range(20) if breaker.took(0.2, number * 0.2)]
    assert (times, breaker.kind) == ([7], "slow")
    breaker.close(9.0)
    assert not breaker.is_open


def test_a_histogram_counts_upwards() -> None:
    times = Histogram()
    for seconds in (0.0001, 0.003, 0.25, 99.0):
        times.add(seconds)
    counted = dict(times.cumulative())
    assert (counted["0.0005"], counted["0.005"], counted["0.25"], counted["10.0"], counted["+Inf"]) == (1, 2, 3, 3, 4)
    assert len(counted) == len(BUCKETS) + 1


def test_what_was_forgotten_does_not_come_back_into_a_new_store(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with steady(path) as (store, _), closing(open_store(path)) as other:
        store.pages.put(b"a secret", history="gone")
        store.pages.put(b"of both", history="gone")
        store.pages.put(b"of both", history="stays")
        store.notes.put("note", b"of the forgotten", history="gone")
        assert isinstance(other, ForgettingStore)
        other.forget(Choice("gone"))
        until(lambda: not store.acknowledged.notes)
        until(lambda: list(store.acknowledged.contents.values()) == [b"of both"])
        path.unlink()
        until(lambda: store.health().mended == 1)
        until(lambda: not store.is_out)
    assert kept(path, [], "gone")
    assert kept(path, [b"of both"], "stays")
    with closing(open_store(path)) as again:
        assert again.notes.newest("note") is None


def test_what_this_process_forgets_is_forgotten_at_once(tmp_path: Path) -> None:
    with steady(tmp_path / "store.sqlite3") as (store, _):
        store.pages.put(b"a secret", history="gone")
        store.forgotten(store.scope, "gone")
        until(lambda: not store.acknowledged.contents, 0.5)
