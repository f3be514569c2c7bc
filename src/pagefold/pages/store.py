"""The protocols of a store: pages, notes, the outbox of the history sink, the search index and the journal.

An implementation gives all five parts and passes tests/conformance. `pages.memory_store` needs nothing but memory,
`adapters.sqlite` keeps files; `adapters.stores.open_store` is the one place that chooses. Every method may raise
StoreError: the caller goes on without the store and counts it. Times come in as values.

A store is opened for a scope, and every part reaches that scope alone: pages, forms, holds and search that of the
principal and the project; notes and the journal that of the principal, since the name of a history is asked for there.
Only a collection, the backlog of the outbox and its batches are of the whole store.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pagefold.pages.journal import Journal, Rules
from pagefold.pages.kinds import PageKind
from pagefold.pages.manifest import ManifestEntry
from pagefold.pages.page import Page, PageId
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.search import SearchIndex

RENEW_SECONDS = 3600.0
"""How often a turn of a history has to be noted: far more often than anything is collected."""


@dataclass(frozen=True, slots=True)
class Collected:
    """How much a collection removed, and how many pages it kept because a live history holds them.

    `unsent` counts the pages that were removed before the history sink had them.
    """

    pages: int
    bytes: int
    held: int
    unsent: int = 0


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page as it was first put under a history: its kind there, and the name by which the model knows it."""

    page: PageId
    kind: PageKind | None = None
    name: str = ""
    first_put: float = 0.0


@dataclass(frozen=True, slots=True)
class StoreStats:
    """How much a store holds: contents as they were put and as they are stored, held pages, histories that list one."""

    pages: int
    bytes: int
    stored_bytes: int
    held: int
    histories: int


@dataclass(frozen=True, slots=True)
class UnsentPage:
    """A page of a session that the history sink does not have yet, and whose it is."""

    session: str
    entry: ManifestEntry
    scope: StoreScope = THIS_USER


class PageStore(Protocol):
    """Contents under the hash of their bytes. They never change, and a page that a history holds is never collected.

    A page that was put in another scope alone is answered like one that was never put.
    """

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
        """Keeps a content; once this returns it survives the process being killed.

        With a `history` it is listed there, with the kind and name of the first time. `shown_form` is the id of a text
        that was shown in place of the content: `original_of` finds the content by it. The first content of a form
        stays. Forms are kept for the principal, whatever the project: whoever asks has the form itself.
        """

    def put_held(self, pages: Sequence[Page], *, history: str, now: float = 0.0) -> None:
        """Puts pages under a history that is given their handles, and holds them for it. Together, because a fold names
        dozens."""

    def get(self, page: PageId) -> bytes | None: ...

    def original_of(self, text: PageId) -> bytes | None:
        """Returns the content in place of which a text was shown, if that was noted and the content is kept."""

    def exists(self, page: PageId) -> bool: ...

    def redactions(self, page: PageId) -> Sequence[str]:
        """The kinds of the secrets that were taken out of a page before it was stored. It is a page of its own, and the
        handle of the original leads to it."""

    def find(self, handle: str) -> Sequence[PageId]:
        """Returns the pages that a handle may name: one, none, or in very rare cases several."""

    def listed(self, history: str) -> Sequence[PageId]:
        """Returns the pages put under a history, oldest first, each once."""

    def listings(self, history: str) -> Sequence[ListedPage]:
        """Returns the same pages, each with its kind and name."""

    def hold(self, page: PageId, history: str) -> bool:
        """Keeps a page because a live history was given its handle: until the history is released, or, where its turns
        are noted by `renew`, until its last turn is too old.

        False where the page is not there: then it is held from the moment it is put again.
        """

    def renew(self, history: str, now: float) -> None:
        """Notes a turn of a history, if it has a name. What it lists and holds, and its notes, count as put then."""

    def release(self, history: str) -> None: ...

    def collect(
        self, *, before: float | None = None, max_bytes: int | None = None, leased: float | None = None
    ) -> Collected:
        """Removes pages last put before a time, then the oldest until the rest fits; never one that is held.

        A page counts as put when a history that lists or holds it had a turn. What was put since `leased` stays,
        however large the rest is. Whosever they are: the one bound is that of the whole store.
        """

    def stats(self) -> StoreStats: ...


class NewNote(NamedTuple):
    """A note to be put: its name, its content and the history that it belongs to."""

    name: str
    content: bytes
    history: str = ""


class NoteStore(Protocol):
    """Small contents under names of the caller's: what cannot be recomputed from a history, and decisions."""

    def newest(self, name: str) -> bytes | None:
        """Returns the content that was put last under a name. One put twice counts at its first time."""

    def put(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        """A note of a `history` lives as long as that, and is forgotten with it."""

    def put_all(self, notes: Sequence["NewNote"], *, now: float = 0.0) -> None:
        """Puts several notes, as `put` does each; together they cost little more than one."""

    def put_if_absent(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> bytes:
        """Puts a content where the name has none yet, and returns what stands under the name then.

        Of several callers at once, in any process, one puts and all get the same answer.
        """

    def put_if_possible(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        """Puts what may be large and could be made again: where it holds a secret or cannot be stored now, it is
        dropped. Of what is put under a name the newest is read, and a store need keep no other."""


class Outbox(Protocol):
    """What the history sink has yet to get, and what it has.

    A store that was opened with a sender notes, together with each put under a history, that the page is to be sent. A
    note belongs to one sender; one that starts adopts all that it finds.
    """

    @property
    def store_id(self) -> str:
        """The same for as long as the store lives, and another for every other store."""

    def adopt(self) -> int:
        """Takes over the notes of other senders: sending a page twice does no harm."""

    def enqueue(self, session: str) -> int:
        """Notes all pages of a session that were not sent; returns how many that adds."""

    def next_batch(self, pages: int, length: int) -> Sequence[UnsentPage]:
        """Returns what to send next, the least tried and oldest first: as much as fits, and at least one."""

    def mark_sent(self, batch: Sequence[UnsentPage]) -> None: ...

    def mark_tried(self, batch: Sequence[UnsentPage]) -> None: ...

    def note_in_sink(self, session: str, pages: Sequence[PageId]) -> None:
        """Notes pages that the sink has, because they came from there."""

    def find_sent(self, handle: str) -> Sequence[tuple[PageId, str]]:
        """Returns the sent pages that a handle may name, each with its session, also those collected since."""

    def backlog(self) -> tuple[int, int]:
        """Returns how many pages are to be sent, by whichever sender, and their bytes."""


class Store(Protocol):
    """One store with its five parts. `sender` names who sends to the history sink what is put here, if anybody does."""

    @property
    def where(self) -> str:
        """The file or address, for people; without any key."""

    @property
    def sender(self) -> str: ...

    @property
    def scope(self) -> StoreScope: ...

    def scoped(self, scope: StoreScope) -> "Store":
        """The same store for another scope, over the same connection. Closing this store closes that one too."""

    @property
    def pages(self) -> PageStore: ...

    @property
    def notes(self) -> NoteStore: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def search_index(self) -> SearchIndex: ...

    def open_journal(self, rules: Rules, owner: str = "") -> Journal:
        """The journal as one owner writes it; whoever opens it closes it. Opening it writes nothing."""

    def close(self) -> None: ...


class NotesAsPages:
    """Notes kept as pages that are listed under the note's name, each called after its history.

    `put_if_absent` is safe within one thread; a store that several processes share overrides it.
    """

    def __init__(self, pages: PageStore) -> None:
        self._pages = pages

    def newest(self, name: str) -> bytes | None:
        pages = self._pages.listed(name)
        return self._pages.get(pages[-1]) if pages else None

    def put(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        self._pages.put(content, history=name, now=now, name=history)

    def put_all(self, notes: Sequence[NewNote], *, now: float = 0.0) -> None:
        for note in notes:
            self.put(note.name, note.content, now=now, history=note.history)

    def put_if_absent(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> bytes:
        if (standing := self.newest(name)) is not None:
            return standing
        self.put(name, content, now=now, history=history)
        return content

    def put_if_possible(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        self.put(name, content, now=now, history=history)
