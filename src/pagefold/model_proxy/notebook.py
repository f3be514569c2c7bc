"""Notes: what was known at a request and cannot be recomputed, kept under the link of its history.

They go through the store like everything else that outlives a request, so that another instance, or this one after a
restart, derives the same bytes. Without a store they live as long as the process.
"""

from typing import Any

from pagefold.derive.policy import NOTHING, Notes
from pagefold.errors import WireError
from pagefold.model_proxy.recalling import Said
from pagefold.pages.page import PageId
from pagefold.pages.store import MemoryStore, Store
from pagefold.wire import json_text
from pagefold.wire.json_text import as_list, as_object

_REMEMBERED = 10_000


class Notebook:
    """Raises StoreError where the store does."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store or MemoryStore()
        self._known: dict[bytes, Notes] = {}

    def get(self, link: bytes) -> Notes:
        found = self._known.get(link)
        if found is None:
            pages = self._store.listed(_name(link))
            content = self._store.get(pages[-1]) if pages else None
            found = self._remember(link, NOTHING if content is None else _parsed(content))
        return found

    def put(self, link: bytes, notes: Notes, now: float) -> None:
        said: dict[str, Any] = {"link": link.hex(), "cold": notes.cold, "smaller": notes.smaller}
        # What is rare is left out where it is not there, so that a note stays the few bytes it is.
        said |= {"recalled": list(notes.recalled)} if notes.recalled else {}
        said |= {"summaries": dict(notes.summaries)} if notes.summaries else {}
        self._store.put(json_text.bytes_of(json_text.dumps(said)), history=_name(link), now=now)
        self._remember(link, notes)

    def said(self, link: bytes, gist: str) -> Said | None:
        """What was really said in the turn that a client saw as a message of this gist, after this history."""
        pages = self._store.listed(_name_of_turn(link, gist))
        content = self._store.get(pages[-1]) if pages else None
        try:
            return None if content is None else Said.parse(json_text.text_of(content))
        except WireError:
            return None

    def put_said(self, link: bytes, gist: str, said: Said, now: float) -> None:
        self._store.put(said.to_json().encode("utf-8", "surrogatepass"), history=_name_of_turn(link, gist), now=now)

    def _remember(self, link: bytes, notes: Notes) -> Notes:
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[link] = notes
        return notes


def _name(link: bytes) -> str:
    return f"note-{link.hex()}"


def _name_of_turn(link: bytes, gist: str) -> str:
    return f"turn-{link.hex()}-{gist}"


def _parsed(content: bytes) -> Notes:
    try:
        said = as_object(json_text.parse(json_text.text_of(content)))
    except WireError:
        return NOTHING
    recalled = tuple(PageId(page) for page in as_list(said.get("recalled")) if isinstance(page, str))
    told = as_object(said.get("summaries"))
    summaries = tuple((PageId(page), text) for page, text in told.items() if isinstance(text, str))
    return Notes(said.get("cold") is True, said.get("smaller") is True, recalled, summaries)
