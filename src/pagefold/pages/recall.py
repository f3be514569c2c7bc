"""Recalls a page by its handle, byte for byte, or says why that cannot be: unknown, denied or failed.

An answer is a value and never an exception, because a model that gets an error tries again. `text` is for the model.
"""

from dataclasses import dataclass
from typing import TypeAlias

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


def recall(store: PageStore, handle: str, *, within: str | None = None) -> RecallAnswer:
    """Returns the page a handle names; with `within`, only a page that was put under that history."""
    try:
        pages = list(store.find(handle))
        if not pages:
            return Unknown(handle)
        if within is not None:
            listed = set(store.listed(within))
            pages = [page for page in pages if page in listed]
            if not pages:
                return Unknown(handle)  # whether another history has it is nobody's business
        if len(pages) > 1:
            return Failed(handle, "the handle is ambiguous in this store; recall it within one conversation")
        content = store.get(pages[0])
    except StoreError as error:
        return Failed(handle, str(error))
    if content is None:
        return Unknown(handle)
    if id_of(content) != pages[0]:
        return Failed(handle, "what the store holds is not what was put there")
    return Recalled(pages[0], content)
