"""What every store keeps, run over each of them, and over random lives against a plain dictionary."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.pages.page import PageId, handle_of, id_of
from pagefold.pages.store import Collected, MemoryPages, PageStore

ABSENT = id_of(b"never put")


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PageStore]:
    store: PageStore = MemoryPages() if request.param == "memory" else SqlitePages(tmp_path / "pages.db")
    yield store
    store.close()


@pytest.mark.parametrize(
    "content",
    [b"", b"a", bytes(range(256)), b"word " * 100_000, "é\ud800\0".encode("utf-8", "surrogatepass")],
    ids=["empty", "short", "every byte", "long", "odd text"],
)
def test_what_is_put_comes_back_byte_for_byte_under_its_hash(store: PageStore, content: bytes) -> None:
    page = store.put(content)

    assert page == id_of(content)
    assert store.get(page) == content
    assert store.exists(page)


def test_a_page_never_put_is_answered_with_nothing(store: PageStore) -> None:
    store.put(b"another")

    assert store.get(ABSENT) is None
    assert store.read(ABSENT, 0, 10) is None
    assert not store.exists(ABSENT)
    assert list(store.find(handle_of(ABSENT))) == []
    assert list(store.listed("nobody")) == []


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 4, b"0123"), (4, 7, b"456"), (7, 99, b"789"), (10, 20, b""), (5, 5, b""), (6, 3, b""), (-3, 2, b"01")],
)
def test_a_range_is_read_as_far_as_the_content_goes(store: PageStore, start: int, end: int, expected: bytes) -> None:
    assert store.read(store.put(b"0123456789"), start, end) == expected


def test_a_page_is_found_by_its_handle_and_by_no_other(store: PageStore) -> None:
    pages = [store.put(bytes([n])) for n in range(50)]

    assert [list(store.find(handle_of(page))) for page in pages] == [[page] for page in pages]


@pytest.mark.parametrize("handle", ["", "pf-", "pf-short", "pf-ABCDEFGHIJ", "pf-abcdefghij ", "%", "pf-abcdefghi_"])
def test_what_is_no_handle_finds_nothing(store: PageStore, handle: str) -> None:
    store.put(b"content")

    assert list(store.find(handle)) == []


def test_a_history_lists_its_pages_oldest_first_and_each_once(store: PageStore) -> None:
    contents = [b"one", b"two", b"one", b"three", b"two"]
    for content in contents:
        store.put(content, history="here")
    store.put(b"one", history="there")
    store.put(b"nowhere")

    assert list(store.listed("here")) == [id_of(b"one"), id_of(b"two"), id_of(b"three")]
    assert list(store.listed("there")) == [id_of(b"one")]
    assert list(store.listed("")) == []


def test_pages_last_put_before_a_time_are_collected_and_younger_ones_stay(store: PageStore) -> None:
    old, young = store.put(b"old", now=1.0), store.put(b"younger", now=2.0)

    assert store.collect(before=2.0) == Collected(pages=1, bytes=3, held=0)
    assert store.get(old) is None
    assert list(store.find(handle_of(old))) == []
    assert store.get(young) == b"younger"


def test_the_oldest_pages_are_collected_until_the_rest_fits(store: PageStore) -> None:
    pages = [store.put(bytes([n]) * 10, now=float(n)) for n in (3, 1, 2, 4)]

    assert store.collect(max_bytes=25) == Collected(pages=2, bytes=20, held=0)
    assert [store.exists(page) for page in pages] == [True, False, False, True]


def test_a_collection_without_limits_or_with_a_generous_one_removes_nothing(store: PageStore) -> None:
    page = store.put(b"content")

    assert store.collect() == Collected(pages=0, bytes=0, held=0)
    assert store.collect(max_bytes=10**30) == Collected(pages=0, bytes=0, held=0)
    assert store.exists(page)


def test_putting_a_page_again_makes_it_young_and_never_old(store: PageStore) -> None:
    page = store.put(b"again", now=1.0)
    store.put(b"again", now=9.0)
    store.put(b"again", now=5.0)

    assert store.collect(before=9.0).pages == 0
    assert store.exists(page)


def test_a_held_page_is_never_collected_and_others_go_in_its_place(store: PageStore) -> None:
    held, free = store.put(b"held", now=1.0), store.put(b"free", now=2.0)

    assert store.hold(held, "live")
    assert store.collect(before=99.0, max_bytes=0) == Collected(pages=1, bytes=4, held=1)
    assert store.get(held) == b"held"
    assert not store.exists(free)


def test_a_page_that_two_histories_hold_stays_until_both_have_let_go(store: PageStore) -> None:
    page = store.put(b"shared")
    store.hold(page, "one")
    store.hold(page, "two")
    store.hold(page, "two")

    store.release("one")
    assert store.collect(max_bytes=0) == Collected(pages=0, bytes=0, held=1)

    store.release("two")
    store.release("unknown")
    assert store.collect(max_bytes=0) == Collected(pages=1, bytes=6, held=0)


def test_a_hold_on_a_missing_page_says_so_and_counts_once_it_is_put(store: PageStore) -> None:
    assert not store.hold(id_of(b"later"), "live")

    page = store.put(b"later")
    assert store.collect(max_bytes=0) == Collected(pages=0, bytes=0, held=1)
    assert store.exists(page)


def test_a_collected_page_leaves_its_listing_and_comes_back_at_the_end(store: PageStore) -> None:
    first = store.put(b"first", history="here", now=1.0)
    second = store.put(b"second", history="here", now=2.0)

    store.collect(before=2.0)
    assert list(store.listed("here")) == [second]

    store.put(b"first")
    assert list(store.listed("here")) == [second]

    store.put(b"first", history="here")
    assert list(store.listed("here")) == [second, first]


def test_what_a_text_was_shown_for_is_found_by_the_text_for_as_long_as_it_is_kept(store: PageStore) -> None:
    form, other = id_of(b"[a form]"), id_of(b"[another form]")
    store.put(b"said", now=1, shown_form=form)
    store.put(b"said otherwise", now=2, shown_form=form)  # the first one stays
    store.put(b"said", now=1, history="here", shown_form=other)

    assert store.original_of(form) == store.original_of(other) == b"said"
    assert store.original_of(id_of(b"said")) is None
    assert store.original_of(ABSENT) is None

    store.collect(before=2)
    assert store.original_of(form) is None
    store.put(b"said otherwise", now=2, shown_form=form)
    assert store.original_of(form) == b"said otherwise"


def test_letting_go_of_pages_does_not_unlist_them(store: PageStore) -> None:
    page = store.put(b"content", history="here")
    store.hold(page, "here")

    store.release("here")

    assert list(store.listed("here")) == [page]


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=300), st.integers(-400, 400), st.integers(-400, 400))
def test_any_range_of_any_content_is_a_slice_of_it(content: bytes, start: int, end: int) -> None:
    store = MemoryPages()
    with tempfile.TemporaryDirectory() as folder:
        disk = SqlitePages(Path(folder) / "pages.db")
        expected = content[max(0, start) : max(0, end)]

        assert [kind.read(kind.put(content), start, end) for kind in (store, disk)] == [expected, expected]
        disk.close()


CONTENTS = st.sampled_from([b"", b"a", b"b", b"c" * 10, b"d" * 30, b"e" * 1000, bytes(range(256))]) | st.binary(
    max_size=40
)
HISTORIES = st.sampled_from(["one", "two", "", "nul\0", "lone \udcff"])
TIMES = st.integers(-3, 8).map(float) | st.floats(-3, 8)


class Life(RuleBasedStateMachine):
    """A store and a plain dictionary live the same random life and must agree on everything that can be asked."""

    def __init__(self, reopen: Callable[[], PageStore]) -> None:
        super().__init__()
        self.reopen = reopen
        self.store = reopen()
        self.kept: dict[PageId, tuple[float, bytes]] = {}
        self.listings: dict[str, list[PageId]] = {}
        self.holds: set[tuple[str, PageId]] = set()
        self.seen: set[PageId] = {ABSENT}

    @rule(content=CONTENTS, history=HISTORIES, now=TIMES)
    def put(self, content: bytes, history: str, now: float) -> None:
        page = self.store.put(content, history=history, now=now)
        self.seen.add(page)
        before = self.kept[page][0] if page in self.kept else now
        self.kept[page] = (max(before, now), content)
        if history and page not in self.listings.setdefault(history, []):
            self.listings[history].append(page)

    @rule(history=HISTORIES, data=st.data())
    def hold(self, history: str, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.seen)))
        self.holds.add((history, page))
        assert self.store.hold(page, history) == (page in self.kept)

    @rule(history=HISTORIES)
    def release(self, history: str) -> None:
        self.store.release(history)
        self.holds = {hold for hold in self.holds if hold[0] != history}

    @rule(before=st.none() | TIMES, max_bytes=st.none() | st.integers(0, 1500))
    def collect(self, before: float | None, max_bytes: int | None) -> None:
        held = {page for _, page in self.holds} & self.kept.keys()
        queue = sorted((time, page) for page, (time, _) in self.kept.items() if page not in held)
        total = sum(len(content) for _, content in self.kept.values())
        gone: list[bytes] = []
        while queue and (
            (before is not None and queue[0][0] < before)
            or (max_bytes is not None and total - sum(map(len, gone)) > max_bytes)
        ):
            page = queue.pop(0)[1]
            gone.append(self.kept.pop(page)[1])
            self.listings = {name: [one for one in listed if one != page] for name, listed in self.listings.items()}

        collected = self.store.collect(before=before, max_bytes=max_bytes)

        assert collected == Collected(len(gone), sum(map(len, gone)), len(held))

    @precondition(lambda self: isinstance(self.store, SqlitePages))
    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = self.reopen()

    @invariant()
    def agrees(self) -> None:
        for page in self.seen:
            content = self.kept[page][1] if page in self.kept else None
            assert self.store.get(page) == content
            assert self.store.exists(page) == (content is not None)
            assert list(self.store.find(handle_of(page))) == ([] if content is None else [page])
        for history in ("one", "two", "", "nul\0", "lone \udcff"):
            assert list(self.store.listed(history)) == self.listings.get(history, [])

    def teardown(self) -> None:
        self.store.close()


class MemoryLife(Life):
    def __init__(self) -> None:
        super().__init__(MemoryPages)


class SqliteLife(Life):
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        super().__init__(lambda: SqlitePages(Path(self.folder.name) / "pages.db"))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestMemoryLife = MemoryLife.TestCase
TestMemoryLife.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
TestSqliteLife = SqliteLife.TestCase
TestSqliteLife.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
