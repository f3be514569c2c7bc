"""Notes: what cannot be recomputed from a history, kept under its prefix hash.

What was known at a request, with what the history began, and under which change reasoning was made. They go through the
store like everything else that outlives a request, so that another instance, or this one after a restart, derives the
same bytes. Without a store they live as long as the process.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pagefold.derive.pinned_policy import LOST, PASSED, PinnedPolicy, parse
from pagefold.derive.policy import NOTHING, Notes
from pagefold.derive.prefix_hashes import Root
from pagefold.errors import WireError
from pagefold.pages.page import PageId
from pagefold.pages.store import NewNote, NoteStore
from pagefold.wire import json_text
from pagefold.wire.json_text import as_list, as_object

_REMEMBERED = 10_000
_UNSTORED = 100_000  # notes without a store: more, because what is forgotten of them cannot be read again
_SAVED_AT_ONCE = 20  # notes: the store is asked with a deadline, and others wait
_RETRIED = 300.0  # seconds within which the same first request is the same history; providers forget it after that


class Begun(NamedTuple):
    """What is known of how a history began; None where it begins now, or has to begin anew for a `reason`.

    `unnoted` is the name under which that has yet to be noted, if it has; `anew` says that what stands there is over.
    """

    beginning: PinnedPolicy | None
    unnoted: str = ""
    reason: str = ""
    anew: bool = False


class CacheUse(NamedTuple):
    """When the provider last used its cache of a conversation, and for how many seconds it keeps it; 0 is for ever."""

    at: float
    life: float

    def is_over(self, now: float) -> bool:
        return bool(self.life) and now - self.at > self.life


class SavedFold(NamedTuple):
    """The state of a history after its newest fold, as a policy wrote it down: after so many `messages`, the last of
    which has this prefix hash. `came_tokens` is what these cost as they came."""

    prefix_hash: bytes
    messages: int
    came_tokens: int
    state: str


class ProcessNotes:
    """Notes without a store: they live as long as the process, and the oldest of very many are forgotten."""

    def __init__(self) -> None:
        self._contents: dict[str, bytes] = {}

    def newest(self, name: str) -> bytes | None:
        return self._contents.get(name)

    def put(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        del now, history
        _kept(self._contents, name, content, _UNSTORED)

    def put_all(self, notes: Sequence[NewNote], *, now: float = 0.0) -> None:
        for note in notes:
            self.put(note.name, note.content, now=now)

    def put_if_absent(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> bytes:
        del now, history
        standing = self._contents.get(name)
        return _kept(self._contents, name, content, _UNSTORED) if standing is None else standing

    def put_if_possible(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        """Keeps nothing: a process that has seen a history has its state."""


class Notebook:
    """Raises StoreError where the store does."""

    def __init__(self, notes: NoteStore | None = None) -> None:
        self.notes = notes or ProcessNotes()
        self._known: dict[bytes, Notes] = {}
        self._begun: dict[str, PinnedPolicy] = {}
        self._made_under: dict[str, bytes] = {}
        self._decided: dict[bytes, Notes] = {}
        self._used: dict[str, CacheUse] = {}
        self._unsaved: dict[str, tuple[bytes, str]] = {}  # with the history that each belongs to
        self._arms: dict[str, str] = {}

    def arm(self, session: str, arm: str, now: float) -> str:
        """The group of a trial in which a session is: this one, unless an instance has noted another before."""
        if (known := self._arms.get(session)) is None:
            name = f"arm-{hashlib.sha256(session.encode('utf-8', 'surrogatepass')).hexdigest()}"
            stored = json_text.text_of(self.notes.put_if_absent(name, arm.encode(), now=now))
            known = _kept(self._arms, session, stored)
        return known

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

    def note_made_under(self, keys: Iterable[str], change: bytes, history: str = "") -> None:
        """Notes under which change these pieces of reasoning were made: for this process, and by `save` for others."""
        for key in keys:
            name = _name_of_reasoning(key)
            self._unsaved[name] = (_kept(self._made_under, name, change), history)

    def used(self, conversation: str, now: float) -> CacheUse | None:
        """The last use of a conversation's cache by any instance; None where that is not known. Another instance is
        asked about only where this one would call the cache cold: a later use can only make it warm."""
        known = self._used.get(conversation)
        if known is None or known.is_over(now):
            content = self.notes.newest(_name_of_use(conversation))
            stored = _parsed_use(content) if content is not None else None
            if stored is not None and (known is None or stored.at > known.at):
                known = _kept(self._used, conversation, stored)
        return known

    def note_use(self, conversation: str, use: CacheUse) -> None:
        """Notes that the provider used its cache: for this process, and by `save` for others."""
        _kept(self._used, conversation, use)
        content = json_text.bytes_of(json_text.dumps(use._asdict()))
        self._unsaved[_name_of_use(conversation)] = (content, conversation)

    def save(self, now: float) -> None:
        """Stores what was noted of reasoning and of caches. What could not be stored is tried again the next time."""
        while self._unsaved:
            notes = [NewNote(name, *kept) for name, kept in islice(list(self._unsaved.items()), _SAVED_AT_ONCE)]
            self.notes.put_all(notes, now=now)
            for name, content, history in notes:
                if self._unsaved.get(name) == (content, history):
                    self._unsaved.pop(name, None)  # another thread may have saved it as well

    def get(self, prefix_hash: bytes) -> Notes:
        notes = self._known.get(prefix_hash)
        if notes is None:
            content = self.notes.newest(f"note-{prefix_hash.hex()}")
            notes = _kept(self._known, prefix_hash, NOTHING if content is None else _parsed(content))
        return notes

    def put(self, prefix_hash: bytes, notes: Notes, now: float, history: str = "") -> None:
        self.notes.put(f"note-{prefix_hash.hex()}", _spelled(prefix_hash, notes), now=now, history=history)
        _kept(self._known, prefix_hash, notes)
        _kept(self._decided, prefix_hash, notes)

    def decided(self, prefix_hash: bytes) -> Notes | None:
        """What was decided at this request, as far as this process knows."""
        return self._decided.get(prefix_hash)

    def decide(self, prefix_hash: bytes, notes: Callable[[], Notes], now: float, history: str = "") -> Notes:
        """What is known at this request: these notes, unless an instance has decided before. That is noted too where
        it is nothing, so that nobody decides otherwise later."""
        if (decided := self._decided.get(prefix_hash)) is not None:
            return decided
        own = notes()
        name, content = f"note-{prefix_hash.hex()}", _spelled(prefix_hash, own)
        stored = self.notes.put_if_absent(name, content, now=now, history=history)
        standing = own if stored == content else _parsed(stored)
        _kept(self._known, prefix_hash, standing)
        _kept(self._decided, prefix_hash, standing)
        return standing

    def begun(self, root: Root, asked: str, now: float) -> Begun:
        """How a history began that is asked for like this: by which model, under which policy, in which window."""
        if root.answered is None:
            first = _name_of_beginning(root.asked, asked)
            beginning, noted = self._beginning(first)
            retried = beginning is not None and now - beginning.at <= _RETRIED
            return Begun(beginning) if retried else Begun(None, first, anew=noted)
        name = _name_of_beginning(root.answered, asked)
        beginning, noted = self._beginning(name)
        if not noted:
            beginning, noted = self._beginning(_name_of_beginning(root.asked, asked))
            return Begun(beginning, name, "" if beginning else PASSED if noted else LOST)
        return Begun(beginning) if beginning else Begun(None, name, PASSED, anew=True)

    def put_begun(self, begun: Begun, beginning: PinnedPolicy, now: float, history: str = "") -> PinnedPolicy:
        """Notes with what a history begins, unless another instance has begun it. Returns what stands."""
        try:
            content = json_text.bytes_of(beginning.to_json())
        except ValueError:  # a policy of the caller's own: whoever has the same caller has the same policy
            content = b""
        if content and begun.anew:
            self.notes.put(begun.unnoted, content, now=now, history=history)
        elif content:
            standing = self.notes.put_if_absent(begun.unnoted, content, now=now, history=history)
            beginning = (parse(json_text.text_of(standing)) if standing != content else None) or beginning
        _kept(self._begun, begun.unnoted, beginning)
        return beginning

    def saved_fold(self, answered: bytes, policy: PinnedPolicy) -> SavedFold | None:
        """The newest fold that was saved of a history, or of a fork of it. Raises ValueError for a policy of the
        caller's own."""
        content = self.notes.newest(_name_of_fold(answered, policy))
        if content is None:
            return None
        head, _, state = json_text.text_of(content).partition("\n")
        try:
            said = as_object(json_text.parse(head))
            return SavedFold(bytes.fromhex(said["after"]), int(said["messages"]), int(said["came"]), state)
        except (WireError, LookupError, TypeError, ValueError):
            return None

    def save_fold(self, answered: bytes, policy: PinnedPolicy, fold: SavedFold, now: float, history: str = "") -> None:
        """Saves a fold of a history whose first answer has this prefix hash, if that is possible now. Raises ValueError
        for a policy of the caller's own."""
        head = {"after": fold.prefix_hash.hex(), "messages": fold.messages, "came": fold.came_tokens}
        content = json_text.bytes_of(f"{json_text.dumps(head)}\n{fold.state}")
        self.notes.put_if_possible(_name_of_fold(answered, policy), content, now=now, history=history)

    def _beginning(self, name: str) -> tuple[PinnedPolicy | None, bool]:
        """The beginning of this name, and whether there is a note of it at all."""
        if (remembered := self._begun.get(name)) is not None:
            return remembered, True
        content = self.notes.newest(name)
        beginning = None if content is None else parse(json_text.text_of(content))
        return beginning and _kept(self._begun, name, beginning), content is not None


def _kept(cache: dict[Any, Any], key: Any, value: Any, most: int = _REMEMBERED) -> Any:
    cache.pop(key, None)
    cache[key] = value
    if len(cache) > most:
        cache.pop(next(iter(cache)), None)
    return value


def _name_of_reasoning(key: str) -> str:
    return f"reasoning-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _name_of_beginning(prefix_hash: bytes, asked: str) -> str:
    return f"began-{hashlib.sha256(prefix_hash + asked.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _name_of_fold(answered: bytes, policy: PinnedPolicy) -> str:
    return f"fold-{hashlib.sha256(answered + policy.to_json().encode('utf-8', 'surrogatepass')).hexdigest()}"


def _name_of_use(conversation: str) -> str:
    return f"used-{conversation}"


def _spelled(prefix_hash: bytes, notes: Notes) -> bytes:
    fields: dict[str, Any] = {"link": prefix_hash.hex(), "cold": notes.cold, "smaller": notes.smaller}
    # What is rare is left out where it is not there, so that a note stays the few bytes it is.
    fields |= {"recalled": list(notes.recalled)} if notes.recalled else {}
    fields |= {"unstored": True} if notes.unstored else {}
    return json_text.bytes_of(json_text.dumps(fields))


def _parsed_use(content: bytes) -> CacheUse | None:
    try:
        fields = as_object(json_text.parse(json_text.text_of(content)))
        return CacheUse(float(fields["at"]), float(fields["life"]))
    except (WireError, LookupError, TypeError, ValueError):
        return None


def _parsed(content: bytes) -> Notes:
    try:
        fields = as_object(json_text.parse(json_text.text_of(content)))
    except WireError:
        return NOTHING
    recalled = tuple(PageId(page) for page in as_list(fields.get("recalled")) if isinstance(page, str))
    return Notes(fields.get("cold") is True, fields.get("smaller") is True, recalled, fields.get("unstored") is True)
