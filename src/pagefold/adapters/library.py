"""The library: a store together with the history sink, as the proxies and the command line use them.

It puts, recalls, searches and restores pages, and counts what was asked. A recall asks the sink only for what the store
no longer has; its four answers are recalled, unknown, denied and failed. A put never waits for the sink; a recall from
it, and a restore, wait as long as one request may take.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from pagefold.adapters.protection import UNPROTECTED, Protection
from pagefold.adapters.sink import HistorySink, ObjectStorage, SinkState
from pagefold.adapters.sink_reader import Restored, SinkReader
from pagefold.adapters.steady_store import SETTLING_SECONDS, SteadyStore, SteadyView, StoreHealth
from pagefold.adapters.store_thread import Pending, at_once
from pagefold.adapters.stores import open_steady_store, open_store
from pagefold.encode.recall_reply import RecallReply, reply_to_recall
from pagefold.errors import ConfigError, StoreError
from pagefold.pages import recall as recalling
from pagefold.pages.context_tools import PARTS
from pagefold.pages.exchanges import Work
from pagefold.pages.forgetting import Choice, ForgettingStore, Forgotten
from pagefold.pages.kinds import PageKind
from pagefold.pages.memory_store import MemoryPages, MemoryStore
from pagefold.pages.page import Page, PageId, handle_of
from pagefold.pages.recall import Denied, Failed, RecallAnswer, Recalled, Unknown
from pagefold.pages.recall_frame import frame_of
from pagefold.pages.redaction import redaction_words
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.search import LIMIT, SearchAnswer, SearchFailed, SearchResults
from pagefold.pages.store import PageStore, Store
from pagefold.settings.sections import SinkSettings

_USUALLY_FOUND, _MOST_FOUND = 5, 20
_ANSWERS = {Recalled: "recalled", Unknown: "unknown", Denied: "denied", Failed: "failed"}

_STEADY = (SteadyStore, SteadyView)

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


class Library:
    """A store, with the history sink behind it where there are `objects`; closing it closes the store.

    What is put under a history is sent to the sink where the store has a sender; else the sink is only read. A view has
    the `sink` of the library that it belongs to.
    """

    def __init__(
        self,
        store: Store,
        objects: ObjectStorage | None = None,
        *,
        prefix: str = "history/",
        flush_seconds: float = 5.0,
        sink: HistorySink | None = None,
        is_view: bool = False,
    ) -> None:
        self.store = store
        self._objects, self._prefix, self._is_view = objects, prefix, is_view
        self._flush_seconds = flush_seconds
        self._in_sink = SinkReader(store, objects, prefix) if objects else None
        self._answers: Counter[str] = Counter()
        self._searches = 0
        self._sink = sink
        if objects and not is_view:
            self._sink = HistorySink(store, objects, prefix)
            if store.sender:
                self._sink.start()

    @classmethod
    def open(
        cls,
        where: str | Path,
        settings: SinkSettings,
        *,
        sending: bool = True,
        scope: StoreScope = THIS_USER,
        protection: Protection = UNPROTECTED,
    ) -> "Library":
        """With the sink that the settings name, if any. Raises StoreError, and ConfigError where obstore is missing."""
        objects = objects_of(settings)
        sender = secrets.token_hex(8) if objects and sending else ""
        store = open_store(where, sender=sender, scope=scope, protection=protection)
        return cls(store, objects, prefix=settings.prefix, flush_seconds=settings.flush_seconds)

    @classmethod
    def open_steady(
        cls,
        where: str | Path | None,
        settings: SinkSettings,
        *,
        deadline: float,
        report: Callable[[str, str], None],
        scope: StoreScope = THIS_USER,
        protection: Protection = UNPROTECTED,
    ) -> "Library":
        """The same for somebody who cannot wait for the store, nor do without it: see `adapters.steady_store`. Without
        a place, in memory. Raises ConfigError where obstore is missing."""
        objects = objects_of(settings)
        sender = secrets.token_hex(8) if objects else ""
        store: Store = MemoryStore(sender, scope)
        if where is None:
            report("store shut", "there is no place for the store: what agents may recall is kept in memory")
        else:
            store = open_steady_store(
                where,
                sender=sender,
                scope=scope,
                protection=protection,
                deadline=deadline,
                settling=SETTLING_SECONDS,
                report=report,
            )
        return cls(store, objects, prefix=settings.prefix, flush_seconds=settings.flush_seconds)

    def scoped(self, scope: StoreScope) -> "Library":
        """The library for another scope, on the same store and sink, with the same outages. Closing it closes nothing:
        it ends with this one."""
        return Library(self.store.scoped(scope), self._objects, prefix=self._prefix, sink=self._sink, is_view=True)

    @property
    def health(self) -> StoreHealth:
        """How the store is; always well where it is not watched."""
        return self.store.health() if isinstance(self.store, _STEADY) else StoreHealth()

    def soon(self, step: Callable[[], object]) -> Pending:
        """Does a step that asks the store where nobody else waits for it, if the store has a thread of its own."""
        return self.store.soon(step) if isinstance(self.store, _STEADY) else at_once(step)

    def run(self, step: Callable[[], T]) -> T:
        """Does several calls of the store as one, within one deadline where it has one. Raises StoreError."""
        return self.store.run(step) if isinstance(self.store, _STEADY) else step()

    def when_back(self, call: Callable[[], None]) -> None:
        """Has something called each time the store works again."""
        if isinstance(self.store, SteadyStore):
            self.store.when_back.append(call)

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

    def put_held(self, pages: Sequence[Page], *, history: str, now: float = 0.0) -> None:
        """Puts pages under a history that is given their handles, and holds them for it."""
        self.store.pages.put_held(pages, history=history, now=now)
        if self._sink and history:
            self._sink.wake()

    def recall(self, handle: str, *, within: str | None = None, history: str | None = None) -> RecallAnswer:
        """Returns the whole page, from the store or else from the sink; with `within`, only a page of that history.

        What `history` was shown is recalled there from whichever project of the principal's it was put in: a
        conversation goes on behind another proxy, or after an upgrade."""
        answer = recalling.recall(self.store.pages, handle, within=within)
        if isinstance(answer, Unknown) and within is None and history and self.store.scope.project is not None:
            answer = recalling.recall(self._own_pages, handle, within=history)
        if not isinstance(answer, Recalled):
            answer = self._in_sink.recall(handle, within, answer) if self._in_sink else answer
        return self._counted(answer)

    def read(self, handle: str, start: int, end: int, *, within: str | None = None) -> RecallAnswer:
        """Returns a part of a page. From the sink only that part is read, and it cannot be checked against the id."""
        answer = recalling.read(self.store.pages, handle, start, end, within=within)
        if isinstance(answer, Recalled):
            return self._counted(answer)
        part = (start, max(0, end))
        return self._counted(self._in_sink.recall(handle, within, answer, part) if self._in_sink else answer)

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

        A page is recalled `within` one history, or from the scope; what was folded in `history` comes with its place
        there.
        """
        recalled = self.recall(handle, within=within, history=history)
        if not isinstance(recalled, Recalled):
            return RecallReply(recalled.text, reason=_ANSWERS[type(recalled)])
        # It may have come from the sink, so parts are taken of what was recalled.
        pages = MemoryPages()
        pages.put(recalled.content)
        try:
            frame = frame_of(self._own_pages, handle, within or history, work)
        except StoreError as error:
            return RecallReply(Failed(handle, str(error)).text, reason=_ANSWERS[Failed])
        reply = reply_to_recall(
            pages,
            handle_of(recalled.page),
            cursor=cursor,
            lines=lines,
            path=path,
            find=find,
            budget=budget,
            frame=frame,
        )
        missing = redaction_words(self.store.pages.redactions(recalled.page))
        return replace(reply, text=f"{reply.text}\n{missing}") if missing else reply

    def answer_call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        budget: int,
        within: str | None = None,
        alone: bool = False,
        work: Callable[[], Work] | None = None,
    ) -> tuple[str, bool]:
        """Returns the text for an agent that calls context_recall or context_search, and whether it is a failure.

        Pages are searched for `within` one history, and recalled from the scope: a handle may come from another
        surface, or from the conversation that this one is a part of. `alone` recalls them within the history too.
        `work` gives what has been done in that history up to now. Raises StoreError.
        """
        if tool == "context_search":
            limit = arguments.get("limit")
            most = limit if isinstance(limit, int) and 0 < limit <= _MOST_FOUND else _USUALLY_FOUND
            matches = self.search(str(arguments.get("query", "")), within=within, limit=most)
            return matches.text, isinstance(matches, SearchFailed)
        part = {name: str(arguments.get(name) or "") for name in PARTS}
        handle, only = str(arguments.get("handle", "")), within or "" if alone else None
        recalled = self.answer(handle, **part, budget=budget, within=only, history=within, work=work)
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
        return self._required().sessions()

    def send(self, session: str) -> int:
        """Has all of a session sent, also what was put before there was a sink; returns how many pages that adds."""
        self._required()
        added = self.store.outbox.enqueue(session)
        if self._sink:
            self._sink.wake()
        return added

    def restore(self, session: str, *, now: float) -> Restored:
        """Brings a session's pages back into the store, each checked against its id. Raises StoreError."""
        return self._required().restore(session, now)

    def forget(self, choice: Choice, *, dry_run: bool = False) -> tuple[Forgotten, int]:
        """Forgets in the store and in the sink, or says what that would be; with how many objects of the sink go.

        The sink goes first: while that fails, the store still knows what there is to forget. Raises StoreError.
        """
        store, sink = self.store, self._in_sink
        if not isinstance(store, ForgettingStore):
            raise StoreError(f"{store.where}: this kind of store cannot forget")
        forgotten = store.to_forget(choice)
        names = list(forgotten.names)
        if sink:
            names += [choice.session] if choice.session else []
            names += sink.ended_before(choice.before, names) if choice.before is not None else []
        objects = sink.forget(names, dry_run=dry_run) if sink else 0
        if dry_run:
            return forgotten, objects
        forgotten = store.forget(choice)
        # Once more: a process that was sending meanwhile cannot any more.
        return forgotten, objects + (sink.forget(names) if sink else 0)

    def close(self) -> bool:
        """Lets the sink send what waits, for as long as the settings say, then closes; returns whether all was sent."""
        if self._is_view:
            return True
        sink, self._sink = self._sink, None
        done = sink.close(self._flush_seconds) if sink else True
        self.store.close()
        return done

    def _counted(self, answer: RecallAnswer) -> RecallAnswer:
        self._answers[_ANSWERS[type(answer)]] += 1
        return answer

    @property
    def _own_pages(self) -> PageStore:
        return self.store.scoped(self.store.scope.own).pages

    def _required(self) -> SinkReader:
        if self._in_sink is None:
            raise ConfigError("there is no history sink: set sink.endpoint and sink.bucket")
        return self._in_sink


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
