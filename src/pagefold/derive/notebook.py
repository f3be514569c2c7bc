"""Notes: what cannot be recomputed from a history, kept under its prefix hash.

What was known at a request, with what the history began, and under which change reasoning was made. They go through the
store like everything else that outlives a request, so that another instance, or this one after a restart, derives the
same bytes. Without a store they live as long as the process.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from pagefold.derive.pinned_policy import LOST, PASSED, PinnedPolicy, parse
from pagefold.derive.policy import NOTHING, Notes
from pagefold.derive.prefix_hashes import Root
from pagefold.errors import WireError
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.page import PageId
from pagefold.pages.store import NoteStore
from pagefold.wire import json_text
from pagefold.wire.json_text import as_list, as_object

_REMEMBERED = 10_000
_RETRIED = 300.0  # seconds within which the same first request is the same history; providers forget it after that


class Begun(NamedTuple):
    """What is known of how a history began; None where it begins now, or has to begin anew for a `reason`.

    `unnoted` is the name under which that has yet to be noted, if it has.
    """

    beginning: PinnedPolicy | None
    unnoted: str = ""
    reason: str = ""


class Notebook:
    """Raises StoreError where the store does."""

    def __init__(self, notes: NoteStore | None = None) -> None:
        self.notes = notes or MemoryStore().notes
        self._known: dict[bytes, Notes] = {}
        self._begun: dict[str, PinnedPolicy] = {}
        self._made_under: dict[str, bytes] = {}
        self._unsaved: dict[str, bytes] = {}

    def made_under(self, key: str) -> bytes | None:
        """The change of the request to which a piece of reasoning is an answer; None where that is not known."""
        if (known := self.remembered_made_under(key)) is not None:
            return known
        name = _name_of_reasoning(key)
        content = self.notes.newest(name)
        return None if content is None else _kept(self._made_under, name, content)

    @property
    def has_bound_reasoning(self) -> bool:
        """Whether reasoning is known that is bound to something else than a client's own bytes."""
        return bool(self._made_under)

    def remembered_made_under(self, key: str) -> bytes | None:
        """The same as far as this process knows it, without the store."""
        return self._made_under.get(_name_of_reasoning(key))

    def note_made_under(self, keys: Iterable[str], change: bytes) -> None:
        """Notes under which change these pieces of reasoning were made: for this process, and by `save` for others."""
        for key in keys:
            name = _name_of_reasoning(key)
            self._unsaved[name] = _kept(self._made_under, name, change)

    def save(self, now: float) -> None:
        """Stores what was noted of reasoning. What could not be stored is tried again the next time."""
        while self._unsaved:
            name, change = next(iter(self._unsaved.items()))
            self.notes.put(name, change, now=now)
            self._unsaved.pop(name, None)

    def get(self, prefix_hash: bytes) -> Notes:
        found = self._known.get(prefix_hash)
        if found is None:
            content = self.notes.newest(f"note-{prefix_hash.hex()}")
            found = _kept(self._known, prefix_hash, NOTHING if content is None else _parsed(content))
        return found

    def put(self, prefix_hash: bytes, notes: Notes, now: float) -> None:
        said: dict[str, Any] = {"link": prefix_hash.hex(), "cold": notes.cold, "smaller": notes.smaller}
        # What is rare is left out where it is not there, so that a note stays the few bytes it is.
        said |= {"recalled": list(notes.recalled)} if notes.recalled else {}
        self.notes.put(f"note-{prefix_hash.hex()}", json_text.bytes_of(json_text.dumps(said)), now=now)
        _kept(self._known, prefix_hash, notes)

    def begun(self, root: Root, asked: str, now: float) -> Begun:
        """How a history began that is asked for like this: by which model, under which policy, in which window."""
        if root.answered is None:
            first = _name_of_beginning(root.asked, asked)
            found, _ = self._beginning(first)
            retried = found is not None and now - found.at <= _RETRIED
            return Begun(found) if retried else Begun(None, first)
        name = _name_of_beginning(root.answered, asked)
        found, noted = self._beginning(name)
        if not noted:
            found, noted = self._beginning(_name_of_beginning(root.asked, asked))
            return Begun(found, name, "" if found else PASSED if noted else LOST)
        return Begun(found) if found else Begun(None, name, PASSED)

    def put_begun(self, name: str, beginning: PinnedPolicy, now: float) -> None:
        try:
            said = beginning.to_json()
        except ValueError:  # a policy of the caller's own: whoever has the same caller has the same policy
            said = ""
        if said:
            self.notes.put(name, json_text.bytes_of(said), now=now)
        _kept(self._begun, name, beginning)

    def _beginning(self, name: str) -> tuple[PinnedPolicy | None, bool]:
        """The beginning of this name, and whether there is a note of it at all."""
        if (known := self._begun.get(name)) is not None:
            return known, True
        content = self.notes.newest(name)
        found = None if content is None else parse(json_text.text_of(content))
        return found and _kept(self._begun, name, found), content is not None


def _kept(known: dict[Any, Any], key: Any, value: Any) -> Any:
    known.pop(key, None)
    known[key] = value
    if len(known) > _REMEMBERED:
        del known[next(iter(known))]
    return value


def _name_of_reasoning(key: str) -> str:
    return f"reasoning-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _name_of_beginning(prefix_hash: bytes, asked: str) -> str:
    return f"began-{hashlib.sha256(prefix_hash + asked.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _parsed(content: bytes) -> Notes:
    try:
        said = as_object(json_text.parse(json_text.text_of(content)))
    except WireError:
        return NOTHING
    recalled = tuple(PageId(page) for page in as_list(said.get("recalled")) if isinstance(page, str))
    return Notes(said.get("cold") is True, said.get("smaller") is True, recalled)
