"""Recalls a page by its handle, byte for byte, or says why that cannot be: unknown, denied or failed.

An answer is a value and never an exception, because a model that gets an error tries again. `text` is for the model.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from pagefold.errors import StoreError
from pagefold.pages.page import HANDLE, PageId, id_of
from pagefold.pages.store import PageStore


@dataclass(frozen=True, slots=True)
class Recalled:
    page: PageId
    content: bytes


@dataclass(frozen=True, slots=True)
class Unknown:
    """No such page, or none that whoever asks was shown: a final answer."""

    handle: str

    @property
    def text(self) -> str:
        if HANDLE.fullmatch(self.handle):
            return f"There is no page {self.handle}. Nothing can be recalled under this handle; do not try it again."
        return f"{self.handle!r} is not a page handle; one looks like pf-abcdefghij."


@dataclass(frozen=True, slots=True)
class Denied:
    """The history sink refuses our key, for this reason."""

    handle: str
    reason: str = ""

    @property
    def text(self) -> str:
        return f"Page {self.handle} may not be read: {self.reason}"


@dataclass(frozen=True, slots=True)
class Failed:
    """The store could not answer; trying again later may help."""

    handle: str
    reason: str

    @property
    def text(self) -> str:
        return f"Page {self.handle} could not be read: {self.reason}"


RecallAnswer: TypeAlias = Recalled | Unknown | Denied | Failed


@runtime_checkable
class PagesInParts(Protocol):
    """Pages of which a part can be read without the rest."""

    def read(self, page: PageId, start: int, end: int) -> bytes | None:
        """The bytes from `start` up to `end`. They cannot be checked against the id. Raises StoreError."""


def recall(store: PageStore, handle: str, *, within: str | None = None) -> RecallAnswer:
    """Returns the page a handle names; with `within`, only a page that was put under that history."""
    try:
        page = _named(store, handle, within)
        if not isinstance(page, str):
            return page
        content = store.get(page)
    except StoreError as error:
        return Failed(handle, str(error))
    if content is None:
        return Unknown(handle)
    if id_of(content) != page:
        return Failed(handle, "what the store holds is not what was put there")
    return Recalled(page, content)


def read(store: PageStore, handle: str, start: int, end: int, *, within: str | None = None) -> RecallAnswer:
    """Returns a part of the page a handle names; only that is read, where the store can do so."""
    if not isinstance(store, PagesInParts):
        answer = recall(store, handle, within=within)
        if isinstance(answer, Recalled):
            return Recalled(answer.page, answer.content[max(0, start) : max(0, end)])
        return answer
    try:
        page = _named(store, handle, within)
        if not isinstance(page, str):
            return page
        part = store.read(page, start, end)
    except StoreError as error:
        return Failed(handle, str(error))
    return Unknown(handle) if part is None else Recalled(page, part)


def _named(store: PageStore, handle: str, within: str | None) -> PageId | Unknown | Failed:
    """The page that a handle names, or why it names none. Raises StoreError."""
    pages = list(store.find(handle))
    if pages and within is not None:
        listed = set(store.listed(within))
        pages = [page for page in pages if page in listed]
    if not pages:
        return Unknown(handle)  # whether another history has it is nobody's business
    if len(pages) > 1:
        return Failed(handle, "the handle is ambiguous in this store; recall it within one conversation")
    return pages[0]
