"""A random life of a store's pages against a plain dictionary."""

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pagefold.pages.page import PageId, handle_of, id_of
from pagefold.pages.store import Collected, Store

ABSENT = id_of(b"never put")
CONTENTS = st.sampled_from([b"", b"a", b"b", b"c" * 10, b"d" * 30, b"e" * 1000, bytes(range(256))]) | st.binary(
    max_size=40
)
HISTORIES = st.sampled_from(["one", "two", "", "nul\0", "lone \udcff"])
TIMES = st.integers(-3, 8).map(float) | st.floats(-3, 8)


class RandomLife(RuleBasedStateMachine):
    """A store and a plain dictionary live the same random life and must agree on everything that can be asked.

    `reopen` opens the store again as it was left; for a store in memory it returns the same one.
    """

    def __init__(self, reopen: Callable[[], Store]) -> None:
        super().__init__()
        self.reopen = reopen
        self.store = reopen()
        self.pages = self.store.pages
        self.kept: dict[PageId, tuple[float, bytes]] = {}
        self.listings: dict[str, list[PageId]] = {}
        self.holds: set[tuple[str, PageId]] = set()
        self.turns: dict[str, float] = {}
        self.seen: set[PageId] = {ABSENT}

    @rule(content=CONTENTS, history=HISTORIES, now=TIMES)
    def put(self, content: bytes, history: str, now: float) -> None:
        page = self.pages.put(content, history=history, now=now)
        self.seen.add(page)
        before = self.kept[page][0] if page in self.kept else now
        self.kept[page] = (max(before, now), content)
        if history and page not in self.listings.setdefault(history, []):
            self.listings[history].append(page)

    @rule(history=HISTORIES, data=st.data())
    def hold(self, history: str, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.seen)))
        self.holds.add((history, page))
        assert self.pages.hold(page, history) == (page in self.kept)

    @rule(history=HISTORIES)
    def release(self, history: str) -> None:
        self.pages.release(history)
        self.holds = {hold for hold in self.holds if hold[0] != history}

    @rule(history=HISTORIES, now=TIMES)
    def renew(self, history: str, now: float) -> None:
        self.pages.renew(history, now)
        if history:
            self.turns[history] = max(now, self.turns.get(history, now))

    def last_use(self, page: PageId) -> float:
        lists = {history for history, listed in self.listings.items() if page in listed}
        uses = lists | {history for history, held in self.holds if held == page}
        return max([self.kept[page][0], *(self.turns[history] for history in uses if history in self.turns)])

    @rule(before=st.none() | TIMES, max_bytes=st.none() | st.integers(0, 1500), leased=st.none() | TIMES)
    def collect(self, before: float | None, max_bytes: int | None, leased: float | None) -> None:
        endless = {page for history, page in self.holds if history not in self.turns}
        queue = sorted((self.last_use(page), page) for page in self.kept if page not in endless)
        total = sum(len(content) for _, content in self.kept.values())
        gone: list[bytes] = []
        while queue and (
            (before is not None and queue[0][0] < before)
            or (
                max_bytes is not None
                and total - sum(map(len, gone)) > max_bytes
                and (leased is None or queue[0][0] < leased)
            )
        ):
            page = queue.pop(0)[1]
            gone.append(self.kept.pop(page)[1])
            self.listings = {name: [one for one in listed if one != page] for name, listed in self.listings.items()}
        over = {history for history, last in self.turns.items() if before is not None and last < before}
        self.turns = {history: last for history, last in self.turns.items() if history not in over}
        self.holds = {hold for hold in self.holds if hold[0] not in over}

        collected = self.pages.collect(before=before, max_bytes=max_bytes, leased=leased)

        held = {page for _, page in self.holds} & self.kept.keys()
        assert collected == Collected(len(gone), sum(map(len, gone)), len(held))

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = self.reopen()
        self.pages = self.store.pages

    @invariant()
    def agrees(self) -> None:
        for page in self.seen:
            content = self.kept[page][1] if page in self.kept else None
            assert self.pages.get(page) == content
            assert self.pages.exists(page) == (content is not None)
            assert list(self.pages.find(handle_of(page))) == ([] if content is None else [page])
        for history in ("one", "two", "", "nul\0", "lone \udcff"):
            assert list(self.pages.listed(history)) == self.listings.get(history, [])

    def teardown(self) -> None:
        self.store.close()
