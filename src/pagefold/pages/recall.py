"""Recall: a page's whole text by its handle, byte for byte, or one of three plain answers why not.

An answer is a value, never an exception: a model that gets an error tries again, and again. `text` is what to tell it.
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
    """No such page: a final answer."""

    handle: str

    @property
    def text(self) -> str:
        if HANDLE.fullmatch(self.handle):
            return f"There is no page {self.handle}. Nothing can be recalled under this handle; do not try it again."
        return f"{self.handle!r} is not a page handle; one looks like pf-abcdefghij."


@dataclass(frozen=True, slots=True)
class Denied:
    """The page exists, but not for this history; or, with a reason, where it lives nobody may read it with our key."""

    handle: str
    reason: str = ""

    @property
    def text(self) -> str:
        if self.reason:
            return f"Page {self.handle} may not be read: {self.reason}"
        return f"Page {self.handle} belongs to another conversation and may not be recalled here."


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
    """The page a handle names; with `within`, only a page that was put under that history."""
    try:
        found = list(store.find(handle))
        if not found:
            return Unknown(handle)
        if within is not None:
            listed = set(store.listed(within))
            found = [page for page in found if page in listed]
            if not found:
                return Denied(handle)
        if len(found) > 1:
            return Failed(handle, "the handle is ambiguous in this store; recall it within one conversation")
        content = store.get(found[0])
    except StoreError as error:
        return Failed(handle, str(error))
    if content is None:
        return Unknown(handle)
    if id_of(content) != found[0]:
        return Failed(handle, "what the store holds is not what was put there")
    return Recalled(found[0], content)
