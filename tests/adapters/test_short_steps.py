"""A collection runs in short steps: not more than it has to, none that does everything, and with a rest after each."""

from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from pagefold.adapters.sqlite import collecting
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.short_steps import in_short_steps

KEYS = ("", "5e" * 32)


def run(seconds: Callable[[int], float], frames: int = 0, count: int = 40) -> tuple[list[int], str]:
    """The sizes of so many steps that take so long each, and the order of steps (s), rests (r) and checkpoints (c)."""
    sizes, order, now = list[int](), list[str](), 0.0

    def step(size: int) -> bool:
        nonlocal now
        order.append("s")
        sizes.append(size)
        now += seconds(size)
        return len(sizes) < count

    def empty_log() -> int:
        order.append("c")
        return frames

    in_short_steps(step, empty_log, lambda: order.append("r"), lambda: now)
    return sizes, "".join(order)


def test_steps_grow_while_they_are_short_and_shrink_when_they_take_long() -> None:
    quick, _ = run(lambda size: 0.0)
    slow, _ = run(lambda size: 0.0001 * size)

    assert quick == sorted(quick)
    assert quick[-1] >= 4000
    assert max(slow[20:]) <= 60


def test_a_rest_follows_every_step_and_a_longer_one_a_step_that_took_longer() -> None:
    _, quick = run(lambda size: 0.0, frames=10_000)
    _, slow = run(lambda size: 0.009, count=3)

    assert "ss" not in quick
    assert "sc" not in quick
    assert slow.startswith("srrr")


def test_the_log_is_emptied_right_before_a_step_and_the_more_often_the_longer_it_is() -> None:
    _, much = run(lambda size: 0.0, frames=10_000)
    _, little = run(lambda size: 0.0, frames=1)

    assert "cr" not in much + little
    assert much.count("c") > 30
    assert little.count("c") < 8


def filled(path: Path, key: str, histories: int = 60) -> SqlitePages:
    pages = SqlitePages(path, key=key)
    for number in range(histories):
        for turn in range(5):
            page = pages.put(
                number.to_bytes(2) + bytes([turn]) + bytes(range(256)) * 40, history=f"h{number}", now=1.0 + number
            )
            pages.hold(page, f"h{number}")
        pages.renew(f"h{number}", 1.0 + number)
    return pages


@pytest.mark.parametrize("key", KEYS)
def test_a_step_gives_back_as_many_places_as_it_may(tmp_path: Path, key: str) -> None:
    path = tmp_path / "store.sqlite3"
    with closing(filled(path, key)) as pages:
        before, steps = path.stat().st_size, list[int]()
        collecting.remove(pages._db, collecting.plan(pages._db, 99.0, None, None))
        while collecting.shrink(pages._db, 50):
            steps.append(pages._db.execute("PRAGMA freelist_count").fetchone()[0])
        left = [pages.get(page) for page in pages.listed("h59")]
        pages.collect(before=99.0)

        assert steps[-1] == 0
        assert all(last - now == 50 for last, now in pairwise(steps[:-1]))
        assert left == []
        assert path.stat().st_size < before / 3


@pytest.mark.parametrize("key", KEYS)
def test_leases_end_so_many_at_a_time_and_one_that_was_renewed_goes_on(tmp_path: Path, key: str) -> None:
    with closing(filled(tmp_path / "store.sqlite3", key, 20)) as pages:
        db, held = pages._db, "SELECT count(*) FROM holds"
        assert collecting.end_leases(db, 11.0, 4)
        assert db.execute(held).fetchone()[0] == 5 * 16
        pages.renew("h9", 50.0)
        while collecting.end_leases(db, 11.0, 4):
            pass
        assert db.execute(held).fetchone()[0] == 5 * 11
        assert {bytes(row[0]) for row in db.execute("SELECT history FROM holds")} >= {b"h9", b"h10"}


@pytest.mark.parametrize("key", KEYS)
def test_nothing_is_left_in_the_file_or_its_log_of_what_was_collected(tmp_path: Path, key: str) -> None:
    """Also where it was not overwritten because the file gives its room back."""
    path = tmp_path / "store.sqlite3"
    with closing(SqlitePages(path, key=key)) as pages:
        for number in range(40):
            word = b"kept" if number % 4 == 0 else b"gone"
            noise = bytes((number * 37 + at * at * 7) % 251 for at in range(9000))
            pages.put(word + b" secret %d " % number + noise, now=50.0 if word == b"kept" else 1.0)
        pages.collect(before=9.0)
        found = b"".join(file.read_bytes() for file in tmp_path.iterdir())

    assert b"gone secret" not in found
    assert (b"kept secret" in found) == (not key)
