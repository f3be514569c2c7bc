"""What a store has acknowledged to this process, so that a store that was lost can be given it again.

Contents are remembered up to a number of bytes, the newest first; of what is older only where it belongs is remembered,
and its content is read from the lost store, which can often still be read.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pagefold.pages.page import PageId, id_range
from pagefold.pages.scope import StoreScope
from pagefold.pages.store import Store

_BYTES = 32 << 20
_ENTRIES = 100_000
_SURE = 1_000  # in a row that are there: so are the older ones


@dataclass(slots=True)
class Acknowledged:
    """Pages by scope and history with how they were put, which of them are held, and notes by principal and name."""

    most_bytes: int = _BYTES
    contents: dict[PageId, bytes] = field(default_factory=dict)
    puts: dict[tuple[StoreScope, PageId, str], dict[str, Any]] = field(default_factory=dict)
    holds: dict[tuple[StoreScope, PageId, str], None] = field(default_factory=dict)
    notes: dict[tuple[str, str], tuple[bytes, float, str]] = field(default_factory=dict)
    scopes: dict[PageId, set[StoreScope]] = field(default_factory=dict)
    _bytes: int = 0

    def put(self, scope: StoreScope, page: PageId, content: bytes, how: dict[str, Any]) -> None:
        self._bytes += len(content) - len(self.contents.pop(page, b""))
        self.contents[page] = content
        while self._bytes > self.most_bytes:
            oldest = next(iter(self.contents))
            self._bytes -= len(self.contents.pop(oldest))
            self.scopes.pop(oldest, None)
        self.scopes.setdefault(page, set()).add(scope)
        _keep(self.puts, (scope, page, str(how.get("history", ""))), how)

    def get(self, scope: StoreScope, page: PageId) -> bytes | None:
        """The content of a page that was put lately, if that was within the scope."""
        put_in = self.scopes.get(page, ())
        reached = any(scope.reaches(other.principal, other.written) for other in put_in)
        return self.contents.get(page) if reached else None

    def held(self, scope: StoreScope, page: PageId, history: str) -> None:
        _keep(self.holds, (scope, page, history), None)

    def released(self, scope: StoreScope, history: str) -> None:
        self.holds = {key: None for key in self.holds if (key[0], key[2]) != (scope, history)}

    def noted(self, principal: str, name: str, content: bytes, now: float, history: str) -> None:
        _keep(self.notes, (principal, name), (content, now, history))

    def forget(self, scope: StoreScope, history: str) -> None:
        """Forgets a history that the store was told to forget: it must not come back from here."""
        for known in (self.puts, self.holds):
            for key in [key for key in list(known) if (key[0], key[2]) == (scope, history)]:
                known.pop(key, None)
        for name in [
            name for name, note in list(self.notes.items()) if (name[0], note[2]) == (scope.principal, history)
        ]:
            self.notes.pop(name, None)
        left = {page for _, page, _ in list(self.puts)}
        for page in [page for page in list(self.contents) if page not in left]:
            self._bytes -= len(self.contents.pop(page, b""))
            self.scopes.pop(page, None)

    def forget_what_is_gone(self, store: Store, start: int, many: int) -> bool:
        """Forgets what the store, which is sound, does not have any more: somebody has removed it, here or in another
        process. Looks at so many histories and notes from a place on, and returns whether there are more. Raises
        StoreError."""
        histories = list({(scope, history): None for scope, _, history in list(self.puts) if history})
        for scope, history in histories[start : start + many]:
            if not store.scoped(scope).pages.listed(history):
                self.forget(scope, history)
        names = list(self.notes)
        for principal, name in names[start : start + many]:
            if store.scoped(StoreScope(principal)).notes.newest(name) is None:
                self.notes.pop((principal, name), None)
        return start + many < max(len(histories), len(names))

    def find(self, scope: StoreScope, handle: str) -> list[PageId]:
        span = id_range(handle)
        pages = [] if span is None else sorted(page for page in self.contents if span[0] <= page < span[1])
        return [page for page in pages if self.get(scope, page) is not None]

    def give(self, store: Store, read: Callable[[StoreScope, PageId], bytes | None]) -> int:
        """Puts what a store lacks of it there, and returns how many pages could not be: of those neither this nor
        `read` knows the content. Raises StoreError."""
        within = cache(store.scoped)
        listed = cache(lambda scope, history: frozenset(within(scope).pages.listed(history)))
        for (principal, name), (content, now, history) in _lacking(
            self.notes, lambda key, note: within(StoreScope(key[0])).notes.newest(key[1]) == note[0]
        ):
            within(StoreScope(principal)).notes.put(name, content, now=now, history=history)
        lost = 0
        for (scope, page, _), how in _lacking(self.puts, lambda key, how: key[1] in listed(key[0], key[2])):
            known = self.contents.get(page)
            known = read(scope, page) if known is None else known
            if known is None:
                lost += 1
            else:
                within(scope).pages.put(known, **how)
        for scope, page, history in list(self.holds):
            within(scope).pages.hold(page, history)
        return lost


def _lacking(known: dict[Any, Any], is_there: Callable[[Any, Any], bool]) -> list[tuple[Any, Any]]:
    """What is not there, oldest first. A store loses what was put last: so the newest are asked for first, and after
    many in a row that are there, the older ones are there too."""
    lacking: list[tuple[Any, Any]] = []
    found = 0
    for key, value in reversed(list(known.items())):
        if found == _SURE:
            break
        if is_there(key, value):
            found += 1
        else:
            found = 0
            lacking.append((key, value))
    return lacking[::-1]


def _keep(known: dict[Any, Any], key: Any, value: Any) -> None:
    known.pop(key, None)
    known[key] = value
    if len(known) > _ENTRIES:
        del known[next(iter(known))]
