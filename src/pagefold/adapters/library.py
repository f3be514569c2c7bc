"""The library: a store together with the history sink, as the proxies and the command line use them.

It puts, recalls, searches and restores pages, and counts what was asked. A recall asks the sink only for what the store
no longer has; its four answers are recalled, unknown, denied and failed. A put never waits for the sink; a recall from
it, and a restore, wait as long as one request may take.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pagefold.adapters.sink import HistorySink, ObjectStorage, SinkState
from pagefold.adapters.stores import open_store
from pagefold.encode.recall_reply import RecallReply, reply_to_recall
from pagefold.errors import ConfigError, DeniedError, StoreError
from pagefold.pages import recall as recalling
from pagefold.pages.context_tools import PARTS
from pagefold.pages.exchanges import Work
from pagefold.pages.kinds import PageKind
from pagefold.pages.manifest import (
    ManifestEntry,
    folder_of,
    handle_folder,
    in_order,
    named_by,
    page_key,
    parse_part,
    sessions_of,
)
from pagefold.pages.memory_store import MemoryPages
from pagefold.pages.page import PageId, id_of
from pagefold.pages.recall import Denied, Failed, RecallAnswer, Recalled, Unknown
from pagefold.pages.recall_frame import frame_of
from pagefold.pages.search import LIMIT, SearchAnswer, SearchFailed, SearchResults
from pagefold.pages.store import Store
from pagefold.settings.sections import SinkSettings

_AT_ONCE = 8
_CHUNK = 32
_USUALLY_FOUND, _MOST_FOUND = 5, 20
_ANSWERS = {Recalled: "recalled", Unknown: "unknown", Denied: "denied", Failed: "failed"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Status:
    """How much a store holds and what was asked of it; `levels` and `faults` come from the caller, if it knows them."""

    path: str
    pages: int
    bytes: int
    stored_bytes: int
    held: int
    sessions: int
    recalls: Mapping[str, int]
    searches: int
    sink: SinkState | None
    levels: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)


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


class Library:
    """A store, with the history sink behind it where there are `objects`; closing it closes the store.

    What is put under a history is sent to the sink where the store has a sender; else the sink is only read.
    """

    def __init__(
        self,
        store: Store,
        objects: ObjectStorage | None = None,
        *,
        prefix: str = "history/",
        flush_seconds: float = 5.0,
    ) -> None:
        self.store = store
        self._objects, self._prefix, self._flush_seconds = objects, prefix, flush_seconds
        self._answers: Counter[str] = Counter()
        self._searches = 0
        self._sink = HistorySink(store, objects, prefix) if objects else None
        if self._sink and store.sender:
            self._sink.start()

    @classmethod
    def open(cls, path: Path, settings: SinkSettings, *, sending: bool = True) -> "Library":
        """With the sink that the settings name, if any. Raises StoreError, and ConfigError where obstore is missing."""
        objects = objects_of(settings)
        store = open_store(path, sender=secrets.token_hex(8) if objects and sending else "")
        return cls(store, objects, prefix=settings.prefix, flush_seconds=settings.flush_seconds)

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
        page = self.store.pages.put(content, history=history, now=now, kind=kind, name=name, shown_form=shown_form)
        if self._sink and history:
            self._sink.wake()
        return page

    def recall(self, handle: str, *, within: str | None = None) -> RecallAnswer:
        """Returns the whole page, from the store or else from the sink; with `within`, only a page of that history."""
        answer = recalling.recall(self.store.pages, handle, within=within)
        if not isinstance(answer, Recalled):
            answer = self._from_sink(handle, within, answer, self._whole)
        return self._counted(answer)

    def read(self, handle: str, start: int, end: int, *, within: str | None = None) -> RecallAnswer:
        """Returns a part of a page. From the sink only that part is read, and it cannot be checked against the id."""
        answer = recalling.recall(self.store.pages, handle, within=within)
        if isinstance(answer, Recalled):
            return self._counted(Recalled(answer.page, answer.content[max(0, start) : max(0, end)]))
        part = self._from_sink(handle, within, answer, lambda objects, key, _: objects.read(key, start, max(0, end)))
        return self._counted(part)

    def answer(
        self,
        handle: str,
        *,
        within: str | None = None,
        cursor: str = "",
        lines: str = "",
        path: str = "",
        find: str = "",
        budget: int | None = None,
        history: str | None = None,
        work: Callable[[], Work] | None = None,
    ) -> RecallReply:
        """Returns the text for an agent that recalls a page: all of it, its next piece, or the part it asked for.

        A page is recalled `within` one history, or from all; what was folded in `history` comes with its place there.
        """
        recalled = self.recall(handle, within=within)
        if not isinstance(recalled, Recalled):
            return RecallReply(recalled.text, reason=_ANSWERS[type(recalled)])
        # It may have come from the sink, so parts are taken of what was recalled.
        pages = MemoryPages()
        pages.put(recalled.content)
        try:
            frame = frame_of(self.store.pages, handle, within or history, work)
        except StoreError as error:
            return RecallReply(Failed(handle, str(error)).text, reason=_ANSWERS[Failed])
        return reply_to_recall(
            pages, handle, cursor=cursor, lines=lines, path=path, find=find, budget=budget, frame=frame
        )

    def answer_call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        budget: int,
        within: str | None = None,
        work: Callable[[], Work] | None = None,
    ) -> tuple[str, bool]:
        """Returns the text for an agent that calls context_recall or context_search, and whether it is a failure.

        Pages are searched for `within` one history, and recalled from all: a handle may come from another surface.
        `work` gives what has been done in that history up to now. Raises StoreError.
        """
        if tool == "context_search":
            limit = arguments.get("limit")
            most = limit if isinstance(limit, int) and 0 < limit <= _MOST_FOUND else _USUALLY_FOUND
            matches = self.search(str(arguments.get("query", "")), within=within, limit=most)
            return matches.text, isinstance(matches, SearchFailed)
        part = {name: str(arguments.get(name) or "") for name in PARTS}
        recalled = self.answer(str(arguments.get("handle", "")), **part, budget=budget, history=within, work=work)
        return recalled.text, recalled.page is None

    def search(self, query: str, *, within: str | None = None, limit: int = LIMIT) -> SearchAnswer:
        """Returns the pages of the store that match, of one history or of all."""
        self._searches += 1
        try:
            return SearchResults(query, tuple(self.store.search_index.search(query, history=within, limit=limit)))
        except StoreError as error:
            return SearchFailed(query, str(error))

    def status(self, *, levels: Mapping[str, int] | None = None, faults: Mapping[str, int] | None = None) -> Status:
        """Raises StoreError."""
        stats = self.store.pages.stats()
        return Status(
            self.store.where,
            stats.pages,
            stats.bytes,
            stats.stored_bytes,
            stats.held,
            stats.histories,
            dict(self._answers),
            self._searches,
            self._sink.state() if self._sink else None,
            dict(levels or {}),
            dict(faults or {}),
        )

    def sessions(self) -> Sequence[str]:
        """Returns the sessions in the sink. Raises StoreError, and ConfigError where there is no sink."""
        return sessions_of(self._required().folders(self._prefix))

    def send(self, session: str) -> int:
        """Has all of a session sent, also what was put before there was a sink; returns how many pages that adds."""
        self._required()
        added = self.store.outbox.enqueue(session)
        if self._sink:
            self._sink.wake()
        return added

    def restore(self, session: str, *, now: float) -> Restored:
        """Brings a session's pages back into the store, each checked against its id. Raises StoreError."""
        objects = self._required()
        folder = folder_of(self._prefix, session)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            parts = _found(pool.map(objects.get, objects.keys(f"{folder}/manifest")))
            entries = in_order(map(parse_part, parts))
            pages = length = present = 0
            missing: list[PageId] = []
            for at in range(0, len(entries), _CHUNK):
                chunk = entries[at : at + _CHUNK]
                # Noted first: what came from the sink does not await being sent there.
                self.store.outbox.note_in_sink(session, [entry.page for entry in chunk])
                contents = pool.map(lambda entry: self._content(objects, folder, entry), chunk)
                for entry, (content, local) in zip(chunk, contents, strict=True):
                    if content is None:
                        missing.append(entry.page)
                        continue
                    self.store.pages.put(content, history=session, now=now, kind=entry.kind, name=entry.name)
                    present += local
                    pages += not local
                    length += 0 if local else len(content)
        return Restored(session, pages, length, present, tuple(missing))

    def close(self) -> bool:
        """Lets the sink send what waits, for as long as the settings say, then closes; returns whether all was sent."""
        sink, self._sink = self._sink, None
        done = sink.close(self._flush_seconds) if sink else True
        self.store.close()
        return done

    def _counted(self, answer: RecallAnswer) -> RecallAnswer:
        self._answers[_ANSWERS[type(answer)]] += 1
        return answer

    # ---- the sink's side -------------------------------------------------------------------------------------

    def _required(self) -> ObjectStorage:
        if self._objects is None:
            raise ConfigError("there is no history sink: set sink.endpoint and sink.bucket")
        return self._objects

    def _content(self, objects: ObjectStorage, folder: str, entry: ManifestEntry) -> tuple[bytes | None, bool]:
        """Returns a page's content, and whether the store had it already."""
        if (content := self.store.pages.get(entry.page)) is not None:
            return content, True
        content = objects.get(page_key(folder, entry.page))
        return (content if content is not None and id_of(content) == entry.page else None), False

    def _from_sink(
        self,
        handle: str,
        within: str | None,
        locally: RecallAnswer,
        read: Callable[[ObjectStorage, str, PageId], bytes | None],
    ) -> RecallAnswer:
        """Returns what the sink has under a handle that the store did not recall, or else the store's answer."""
        if self._objects is None:
            return locally
        try:
            places = self._places(self._objects, handle, within)
            if len({page for page, _ in places}) > 1:
                return Failed(handle, "the handle is ambiguous in the history sink; recall it within one session")
            for page, folder in places:
                content = read(self._objects, page_key(folder, page), page)
                if content is not None:
                    return Recalled(page, content)
        except StoreError as error:
            if not isinstance(locally, Unknown):
                return locally
            return Denied(handle, str(error)) if isinstance(error, DeniedError) else Failed(handle, str(error))
        return locally

    def _places(self, objects: ObjectStorage, handle: str, within: str | None) -> list[tuple[PageId, str]]:
        """Returns the pages a handle may name, with their folders: by the outbox, else by asking over the network."""
        noted = [
            (page, folder_of(self._prefix, session))
            for page, session in self.store.outbox.find_sent(handle)
            if within in (None, session)
        ]
        if noted or not within:
            return noted
        folder = folder_of(self._prefix, within)
        looked_in = handle_folder(folder, handle)
        return [(page, folder) for page in named_by(handle, objects.keys(looked_in))] if looked_in else []

    def _whole(self, objects: ObjectStorage, key: str, page: PageId) -> bytes | None:
        content = objects.get(key)
        if content is not None and id_of(content) != page:
            raise StoreError("what the history sink holds is not what was sent there")
        return content


def objects_of(settings: SinkSettings) -> ObjectStorage | None:
    """Returns the object storage that the settings name, or None where they name none. Raises ConfigError."""
    if not (settings.endpoint and settings.bucket):
        return None
    try:
        from pagefold.adapters.s3 import S3Objects  # noqa: PLC0415  obstore is an extra, and costs a start 20 ms
    except ImportError as error:
        raise ConfigError(
            "sink.endpoint: the history sink needs the extra s3: install it by pip install 'pagefold[s3]'"
        ) from error
    return S3Objects(settings)


def _found(contents: Iterable[T | None]) -> list[T]:
    return [content for content in contents if content is not None]
