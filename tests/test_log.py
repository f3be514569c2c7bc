"""A log that only grows: whatever goes on from it, it holds what it held. A property against plain lists."""

import threading
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from pagefold.log import Log

steps = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 12), st.lists(st.integers(0, 2), max_size=4)), max_size=12
)


@given(steps)
def test_logs_that_share_their_memory_are_as_lists_that_do_not(done: list[tuple[int, int, list[int]]]) -> None:
    logs, lists = [Log[int]()], [list[int]()]

    for which, after, items in done:
        log, plain = logs[which % len(logs)], lists[which % len(lists)]
        logs += [log.with_items(items), log.upto(after), log.with_items(items, min(after, len(log)))]
        lists += [[*plain, *items], plain[:after], [*plain[:after], *items]]

    assert logs == lists
    for log, plain in zip(logs, lists, strict=True):
        assert (len(log), list(log), log[:], log[1:-1], log[::-2]) == (
            len(plain),
            plain,
            plain,
            plain[1:-1],
            plain[::-2],
        )
        assert [log[at] for at in range(-len(log), len(log))] == plain * 2
        assert list(reversed(log)) == plain[::-1]
        assert [log.extends(other) for other in logs] == [plain[: len(other)] == other for other in lists]


def test_threads_that_go_on_from_the_same_log_do_not_see_each_other() -> None:
    begun = Log(range(1_000))
    start = threading.Barrier(8)

    def grow(name: int) -> list[Log[int]]:
        start.wait()
        grown = begun
        return [grown := grown.with_items((name,)) for _ in range(2_000)]

    with ThreadPoolExecutor(8) as pool:
        grown = list(pool.map(grow, range(8)))
    for name, logs in enumerate(grown):
        assert all(len(log) == 1_001 + at for at, log in enumerate(logs))
        assert logs[-1].since(1_000) == [name] * 2_000
