"""Reads from the history sink what a store no longer has, brings sessions back from there, and forgets them there."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from pagefold.adapters.sink import ObjectStorage
from pagefold.errors import DeniedError, StoreError
from pagefold.pages.manifest import (
    ManifestEntry,
    folder_of,
    handle_folder,
    in_order,
    named_by,
    page_key,
    parse_part,
    prefix_for,
    sessions_of,
)
from pagefold.pages.page import PageId, id_of
from pagefold.pages.recall import Denied, Failed, RecallAnswer, Recalled, Unknown
from pagefold.pages.store import Store

_AT_ONCE = 8
_CHUNK = 32

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Restored:
    """How much a restore brought back. `present` was in the store already; `missing` is not in the sink, or damaged."""

    session: str
    pages: int
    bytes: int
    present: int
    missing: tuple[PageId, ...]

    @property
    def known(self) -> bool:
        return bool(self.pages or self.present or self.missing)


class SinkReader:
    """The sessions of a store's principal in the sink. Everything raises StoreError."""

    def __init__(self, store: Store, objects: ObjectStorage, prefix: str) -> None:
        self._store, self._objects = store, objects
        self._prefix = prefix_for(prefix, store.scope.principal)

    def sessions(self) -> Sequence[str]:
        return sessions_of(self._objects.folders(self._prefix))

    def restore(self, session: str, now: float) -> Restored:
        """Brings a session's pages back into the store, each checked against its id."""
        objects, folder = self._objects, folder_of(self._prefix, session)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            parts = _present(pool.map(objects.get, objects.keys(f"{folder}/manifest")))
            entries = in_order(map(parse_part, parts))
            pages = length = present = 0
            missing: list[PageId] = []
            for at in range(0, len(entries), _CHUNK):
                chunk = entries[at : at + _CHUNK]
                # Noted first: what came from the sink does not await being sent there.
                self._store.outbox.note_in_sink(session, [entry.page for entry in chunk])
                contents = pool.map(lambda entry: self._content(folder, entry), chunk)
                for entry, (content, local) in zip(chunk, contents, strict=True):
                    if content is None:
                        missing.append(entry.page)
                        continue
                    self._store.pages.put(content, history=session, now=now, kind=entry.kind, name=entry.name)
                    present += local
                    pages += not local
                    length += 0 if local else len(content)
        return Restored(session, pages, length, present, tuple(missing))

    def recall(
        self,
        handle: str,
        within: str | None,
        locally: RecallAnswer,
        part: tuple[int, int] | None = None,
    ) -> RecallAnswer:
        """Returns what the sink has under a handle that the store did not recall, or else the store's answer.

        Of a `part`, which cannot be checked against the id, only that is read.
        """
        try:
            places = self._places(handle, within)
            if len({page for page, _ in places}) > 1:
                return Failed(handle, "the handle is ambiguous in the history sink; recall it within one session")
            for page, folder in places:
                key = page_key(folder, page)
                content = self._objects.read(key, *part) if part else self._whole(key, page)
                if content is not None:
                    return Recalled(page, content)
        except StoreError as error:
            if not isinstance(locally, Unknown):
                return locally
            return Denied(handle, str(error)) if isinstance(error, DeniedError) else Failed(handle, str(error))
        return locally

    def ended_before(self, time: float, known: Sequence[str]) -> list[str]:
        """The sessions in the sink that got their last page before a time, of those that the store has nothing of."""
        ended = []
        for session in self.sessions():
            if session in known or self._store.pages.listed(session):
                continue
            keys = self._objects.keys(f"{folder_of(self._prefix, session)}/manifest")
            parts = map(parse_part, _present(map(self._objects.get, keys)))
            if max((entry.first_put for part in parts for entry in part.entries), default=time) < time:
                ended.append(session)
        return ended

    def forget(self, sessions: Iterable[str], *, dry_run: bool = False) -> int:
        """Deletes all that the sink has of these sessions, or only counts it; returns how many objects that is."""
        keys = [key for name in dict.fromkeys(sessions) for key in self._objects.keys(folder_of(self._prefix, name))]
        if keys and not dry_run:
            self._objects.delete(keys)
        return len(keys)

    def _content(self, folder: str, entry: ManifestEntry) -> tuple[bytes | None, bool]:
        """Returns a page's content, and whether the store had it already."""
        if (content := self._store.pages.get(entry.page)) is not None:
            return content, True
        content = self._objects.get(page_key(folder, entry.page))
        return (content if content is not None and id_of(content) == entry.page else None), False

    def _places(self, handle: str, within: str | None) -> list[tuple[PageId, str]]:
        """Returns the pages a handle may name, with their folders: by the outbox, else by asking over the network."""
        noted = [
            (page, folder_of(self._prefix, session))
            for page, session in self._store.outbox.find_sent(handle)
            if within in (None, session)
        ]
        if noted or not within:
            return noted
        folder = folder_of(self._prefix, within)
        looked_in = handle_folder(folder, handle)
        return [(page, folder) for page in named_by(handle, self._objects.keys(looked_in))] if looked_in else []

    def _whole(self, key: str, page: PageId) -> bytes | None:
        content = self._objects.get(key)
        if content is not None and id_of(content) != page:
            raise StoreError("what the history sink holds is not what was sent there")
        return content


def _present(contents: Iterable[T | None]) -> list[T]:
    return [content for content in contents if content is not None]
