"""Where page contents live: the protocol every store keeps, and the store that needs nothing but memory.

Contents are found by their hash and never change. A page that a live history was given a handle for is never collected.
Every method may raise StoreError; the caller goes on without the store and counts it. Times come in as values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId, id_of, id_range


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection removed, and what it kept because live histories name it.

    `unsent` counts what it removed before the history sink had it.
    """

    pages: int
    bytes: int
    held: int
    unsent: int = 0


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page as it was first put under a history: what it is there, and by which name the model knows it."""

    page: PageId
    kind: PageKind | None = None
    name: str = ""
    first_put: float = 0.0


class PageStore(Protocol):
    def put(
        self,
        content: bytes,
        *,
        history: str = "",
        now: float = 0.0,
        kind: PageKind | None = None,
        name: str = "",
        shown_form: PageId | None = None,
    ) -> PageId:
        """Keep a content; when this returns it survives the process being killed.

        Listed under `history` if given, with the kind and name of the first time. `shown_form` is the id of a text that
        stands for the content, whole: `original_of` finds it again. The first content of such a text stays.
        """

    def get(self, page: PageId) -> bytes | None: ...

    def read(self, page: PageId, start: int, end: int) -> bytes | None:
        """The bytes from `start` up to `end` of a content; short where it is shorter."""

    def original_of(self, text: PageId) -> bytes | None:
        """The content that a text was shown for, if that was noted and the content is kept."""

    def exists(self, page: PageId) -> bool: ...

    def find(self, handle: str) -> Sequence[PageId]:
        """The pages a handle may name: one, none, or, once in a very long while, several."""

    def listed(self, history: str) -> Sequence[PageId]:
        """The pages put under a history, oldest first, each once."""

    def listings(self, history: str) -> Sequence[ListedPage]:
        """The same, each with its kind and name."""

    def hold(self, page: PageId, history: str) -> bool:
        """A live history was given this page's handle: keep it until the history is released.

        False where the page is not there (any more): it is held from the moment it is put again.
        """

    def release(self, history: str) -> None: ...

    def collect(self, *, before: float | None = None, max_bytes: int | None = None) -> Collected:
        """Remove pages last put before a time, then the oldest until the rest fits; never one that is held."""

    def close(self) -> None: ...


@dataclass(slots=True)
class MemoryPages:
    """The store protocol over dictionaries: for tests, and for a run that must leave nothing behind."""

    _contents: dict[PageId, bytes] = field(default_factory=dict)
    _times: dict[PageId, float] = field(default_factory=dict)
    _histories: dict[str, dict[PageId, ListedPage]] = field(default_factory=dict)
    _held: dict[str, set[PageId]] = field(default_factory=dict)
    _shown: dict[PageId, PageId] = field(default_factory=dict)

    def put(
        self,
        content: bytes,
        *,
        history: str = "",
        now: float = 0.0,
        kind: PageKind | None = None,
        name: str = "",
        shown_form: PageId | None = None,
    ) -> PageId:
        page = id_of(content)
        self._contents[page] = content
        self._times[page] = max(now, self._times.get(page, now))
        if history:
            self._histories.setdefault(history, {}).setdefault(page, ListedPage(page, kind, name, now))
        if shown_form:
            self._shown.setdefault(shown_form, page)
        return page

    def get(self, page: PageId) -> bytes | None:
        return self._contents.get(page)

    def read(self, page: PageId, start: int, end: int) -> bytes | None:
        content = self._contents.get(page)
        return None if content is None else content[max(0, start) : max(0, end)]

    def original_of(self, text: PageId) -> bytes | None:
        page = self._shown.get(text)
        return None if page is None else self._contents.get(page)

    def exists(self, page: PageId) -> bool:
        return page in self._contents

    def find(self, handle: str) -> Sequence[PageId]:
        span = id_range(handle)
        return [] if span is None else sorted(page for page in self._contents if span[0] <= page < span[1])

    def listed(self, history: str) -> Sequence[PageId]:
        return list(self._histories.get(history, ()))

    def listings(self, history: str) -> Sequence[ListedPage]:
        return list(self._histories.get(history, {}).values())

    def hold(self, page: PageId, history: str) -> bool:
        self._held.setdefault(history, set()).add(page)
        return page in self._contents

    def release(self, history: str) -> None:
        self._held.pop(history, None)

    def collect(self, *, before: float | None = None, max_bytes: int | None = None) -> Collected:
        held = set().union(*self._held.values()) & self._contents.keys()
        total = sum(map(len, self._contents.values()))
        pages = freed = 0
        for page in self._oldest_first():
            old = before is not None and self._times[page] < before
            large = max_bytes is not None and total - freed > max_bytes
            if page in held or not (old or large):
                continue
            freed += len(self._contents.pop(page))
            pages += 1
            del self._times[page]
            for listed in self._histories.values():
                listed.pop(page, None)
            self._shown = {text: said for text, said in self._shown.items() if said != page}
        return Collected(pages, freed, len(held))

    def close(self) -> None:
        pass

    def _oldest_first(self) -> Iterator[PageId]:
        return iter(sorted(self._contents, key=lambda page: (self._times[page], page)))
