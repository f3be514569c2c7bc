"""The store in memory: for tests, and for a run that must leave nothing behind."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from pagefold.pages.journal import JournalEntry, JournalLine, JournalRecord, LineState, Rules, record_of
from pagefold.pages.journal_steps import JournalBase
from pagefold.pages.kinds import PageKind
from pagefold.pages.manifest import ManifestEntry
from pagefold.pages.page import Page, PageId, id_of, id_range
from pagefold.pages.scope import NOTES, THIS_USER, StoreScope
from pagefold.pages.search import LIMIT, Document, Query, SearchHit, parse_query, pattern_of, ranked
from pagefold.pages.store import Collected, ListedPage, NotesAsPages, PageStore, StoreStats, UnsentPage


class HistoryKey(NamedTuple):
    """A history of a principal in a project."""

    principal: str
    project: str
    history: str


@dataclass(slots=True)
class MemoryContents:
    """What the pages of all scopes share. `unsent` and `sent` are the outbox's, by history and page."""

    sender: str = ""
    contents: dict[PageId, bytes] = field(default_factory=dict)
    histories: dict[HistoryKey, dict[PageId, ManifestEntry]] = field(default_factory=dict)
    unsent: dict[tuple[HistoryKey, PageId], "_Waiting"] = field(default_factory=dict)
    sent: set[tuple[HistoryKey, PageId]] = field(default_factory=set)
    times: dict[PageId, float] = field(default_factory=dict)
    held: dict[HistoryKey, set[PageId]] = field(default_factory=dict)
    turns: dict[HistoryKey, float] = field(default_factory=dict)
    originals: dict[tuple[str, PageId], PageId] = field(default_factory=dict)
    places: int = 0


@dataclass(slots=True)
class MemoryPages:
    """Pages in dictionaries."""

    scope: StoreScope = THIS_USER
    shared: MemoryContents = field(default_factory=MemoryContents)

    def scoped(self, scope: StoreScope) -> "MemoryPages":
        return replace(self, scope=scope)

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
        page, shared, key = id_of(content), self.shared, self.key_of(history)
        shared.contents[page] = content
        shared.times[page] = max(now, shared.times.get(page, now))
        shared.places += 1
        entry = ManifestEntry(page, kind, name, len(content), now, shared.places)
        shared.histories.setdefault(key, {}).setdefault(page, entry)
        if history and shared.sender and self.scope.project != NOTES and (key, page) not in shared.sent:
            shared.unsent.setdefault((key, page), _Waiting(shared.sender))
        if shown_form:
            shared.originals.setdefault((self.scope.principal, shown_form), page)
        return page

    def put_held(self, pages: Sequence[Page], *, history: str, now: float = 0.0) -> None:
        for page in pages:
            self.hold(self.put(page.content, history=history, now=now, kind=page.kind, name=page.name), history)

    def keep_newest(self, history: str) -> None:
        """Removes what a history listed before its newest page, unless others have it."""
        shared = self.shared
        listed = shared.histories.get(self.key_of(history), {})
        for page in list(listed)[:-1]:
            del listed[page]
            if not any(page in pages for pages in chain(shared.histories.values(), shared.held.values())):
                del shared.contents[page], shared.times[page]

    def get(self, page: PageId) -> bytes | None:
        return self.shared.contents.get(page) if self._reaches(page) else None

    def original_of(self, text: PageId) -> bytes | None:
        page = self.shared.originals.get((self.scope.principal, text))
        return None if page is None else self.shared.contents.get(page)

    def exists(self, page: PageId) -> bool:
        return page in self.shared.contents and self._reaches(page)

    def redactions(self, page: PageId) -> Sequence[str]:
        """None: what is in memory alone is kept as it is."""
        del page
        return ()

    def find(self, handle: str) -> Sequence[PageId]:
        span = id_range(handle)
        if span is None:
            return []
        return sorted(page for page in self.shared.contents if span[0] <= page < span[1] and self._reaches(page))

    def listed(self, history: str) -> Sequence[PageId]:
        return [listed.page for listed in self.listings(history)]

    def listings(self, history: str) -> Sequence[ListedPage]:
        listed = self.shared.histories.items() if history else ()
        lists = [entries.values() for key, entries in listed if key.history == history and self._reaches_key(key)]
        first: dict[PageId, ManifestEntry] = {}
        for entry in sorted(chain.from_iterable(lists), key=lambda entry: entry.place):
            first.setdefault(entry.page, entry)
        return [ListedPage(entry.page, entry.kind, entry.name, entry.first_put) for entry in first.values()]

    def hold(self, page: PageId, history: str) -> bool:
        self.shared.held.setdefault(self.key_of(history), set()).add(page)
        return self.exists(page)

    def release(self, history: str) -> None:
        for key in [key for key in self.shared.held if key.history == history and self._reaches_key(key)]:
            del self.shared.held[key]

    def renew(self, history: str, now: float) -> None:
        if history:
            key = self.key_of(history)
            self.shared.turns[key] = max(now, self.shared.turns.get(key, now))

    def collect(
        self, *, before: float | None = None, max_bytes: int | None = None, leased: float | None = None
    ) -> Collected:
        shared = self.shared
        held = set[PageId]().union(*(pages for key, pages in shared.held.items() if key not in shared.turns))
        seen = self._seen()
        total = sum(map(len, shared.contents.values()))
        gone, freed = set[PageId](), 0
        for page in sorted(shared.contents.keys() - held, key=lambda page: (seen[page], page)):
            too_large = max_bytes is not None and total - freed > max_bytes and (leased is None or seen[page] < leased)
            if too_large or (before is not None and seen[page] < before):
                freed += len(shared.contents.pop(page))
                gone.add(page)
        shared.times = {page: time for page, time in shared.times.items() if page not in gone}
        shared.originals = {text: page for text, page in shared.originals.items() if page not in gone}
        for key, entries in shared.histories.items():
            shared.histories[key] = {page: entry for page, entry in entries.items() if page not in gone}
        waiting = len(shared.unsent)
        shared.unsent = {key: waits for key, waits in shared.unsent.items() if key[1] not in gone}
        for key in [key for key, last in shared.turns.items() if before is not None and last < before]:
            del shared.turns[key]
            shared.held.pop(key, None)
        still = set[PageId]().union(*shared.held.values()) & shared.contents.keys()
        return Collected(len(gone), freed, len(still), waiting - len(shared.unsent))

    def _seen(self) -> dict[PageId, float]:
        """When each page was last put, or a history that lists or holds it had a turn; a note goes by its history."""
        shared = self.shared
        seen = dict(shared.times)
        uses = [(page, shared.turns.get(key)) for key, pages in shared.held.items() for page in pages]
        for key, entries in shared.histories.items():
            uses += [(page, shared.turns.get(key)) for page in entries]
            if key.project == NOTES:
                of = {other.history: last for other, last in shared.turns.items() if other.principal == key.principal}
                uses += [(page, of.get(entry.name)) for page, entry in entries.items() if entry.name]
        for page, last in uses:
            if last is not None and page in seen:
                seen[page] = max(seen[page], last)
        return seen

    def stats(self) -> StoreStats:
        pages = set[PageId]().union(*(entries for _, entries in self.lists()))
        length = sum(len(self.shared.contents[page]) for page in pages)
        held = set[PageId]().union(*(held for key, held in self.shared.held.items() if self._reaches_key(key)))
        histories = {key.history for key, entries in self.lists() if key.history and entries}
        return StoreStats(len(pages), length, length, len(held & pages), len(histories))

    def key_of(self, history: str) -> HistoryKey:
        """Where this scope writes what belongs to a history."""
        return HistoryKey(self.scope.principal, self.scope.written, history)

    def lists(self) -> Iterator[tuple[HistoryKey, dict[PageId, ManifestEntry]]]:
        """The histories within the scope, with what they list; that of the name "" has what belongs to none."""
        return (item for item in self.shared.histories.items() if self._reaches_key(item[0]))

    def _reaches_key(self, key: HistoryKey) -> bool:
        return self.scope.reaches(key.principal, key.project)

    def _reaches(self, page: PageId) -> bool:
        return any(page in entries for _, entries in self.lists())


@dataclass(slots=True)
class _Waiting:
    sender: str
    tries: int = 0


@dataclass(slots=True)
class MemoryOutbox:
    _pages: MemoryPages
    store_id: str = "memory"

    def adopt(self) -> int:
        shared = self._pages.shared
        others = [waits for waits in shared.unsent.values() if waits.sender != shared.sender]
        for waits in others:
            waits.sender = shared.sender
        return len(others)

    def enqueue(self, session: str) -> int:
        shared = self._pages.shared
        lists = [(key, pages) for key, pages in self._pages.lists() if session and key.history == session]
        keys = {(key, page) for key, pages in lists for page in pages} - shared.sent - shared.unsent.keys()
        shared.unsent.update({key: _Waiting(shared.sender) for key in keys})
        return len(keys)

    def next_batch(self, pages: int, length: int) -> Sequence[UnsentPage]:
        shared = self._pages.shared
        own = [(waits.tries, *item) for item, waits in shared.unsent.items() if waits.sender == shared.sender]
        unsent_pages = [
            (tries, UnsentPage(key.history, shared.histories[key][page], StoreScope(key.principal, key.project)))
            for tries, key, page in own
        ]
        batch: list[UnsentPage] = []
        for _, unsent in sorted(unsent_pages, key=lambda item: (item[0], item[1].entry.place))[:pages]:
            length -= unsent.entry.bytes
            if batch and length < 0:
                break
            batch.append(unsent)
        return batch

    def mark_sent(self, batch: Sequence[UnsentPage]) -> None:
        for unsent in batch:
            self._pages.shared.unsent.pop(_place_of(unsent), None)
            self._pages.shared.sent.add(_place_of(unsent))

    def mark_tried(self, batch: Sequence[UnsentPage]) -> None:
        for unsent in batch:
            if waits := self._pages.shared.unsent.get(_place_of(unsent)):
                waits.tries += 1

    def note_in_sink(self, session: str, pages: Sequence[PageId]) -> None:
        self._pages.shared.sent.update((self._pages.key_of(session), page) for page in pages)

    def find_sent(self, handle: str) -> Sequence[tuple[PageId, str]]:
        span, scope = id_range(handle), self._pages.scope
        if span is None:
            return []
        sent = (item for item in self._pages.shared.sent if span[0] <= item[1] < span[1])
        return sorted({(page, key.history) for key, page in sent if scope.reaches(key.principal, key.project)})

    def backlog(self) -> tuple[int, int]:
        shared = self._pages.shared
        return len(shared.unsent), sum(len(shared.contents[page]) for _, page in shared.unsent)


def _place_of(unsent: UnsentPage) -> tuple[HistoryKey, PageId]:
    return HistoryKey(unsent.scope.principal, unsent.scope.written, unsent.session), unsent.entry.page


@dataclass(slots=True)
class MemorySearch:
    """Reads every page for every query. A term counts the more, the fewer pages have it."""

    _pages: MemoryPages

    def search(self, query: str, *, history: str | None = None, limit: int = LIMIT) -> Sequence[SearchHit]:
        asked = parse_query(query)
        documents = dict(self._documents(asked, history))
        scores: defaultdict[PageId, float] = defaultdict(float)
        for pattern in map(pattern_of, asked.terms):
            having = [
                page for page, read in documents.items() if pattern.search(read.text) or pattern.search(read.name)
            ]
            for page in having:
                scores[page] += 1 / len(having)
        return ranked({page: documents[page] for page in scores}, scores, asked, max(0, limit))

    def _documents(self, query: Query, history: str | None) -> Iterator[tuple[PageId, Document]]:
        newest: dict[PageId, tuple[bool, int, HistoryKey]] = {}
        for key, entries in self._pages.lists():
            for entry in entries.values() if history in (None, key.history) else ():
                place = (bool(key.history), entry.place, key)  # where it has a name, before where it has none
                newest[entry.page] = max(newest.get(entry.page, place), place)
        for page, (_, _, key) in newest.items():
            entry = self._pages.shared.histories[key][page]
            yield page, Document.of(self._pages.shared.contents[page], query, key.history, entry.kind, entry.name)


class MemoryJournal(JournalBase):
    """The journal over lines that all owners of a principal share."""

    def __init__(
        self,
        rules: Rules,
        pages: PageStore,
        owner: str = "",
        shared: "MemoryLines | None" = None,
    ) -> None:
        super().__init__(rules, pages, owner, "memory")
        shared = shared or MemoryLines()
        self._lines, self._tokens = shared.lines, shared.tokens

    def stage(self, entry: JournalEntry, *, token: str = "", now: float = 0.0) -> JournalLine:
        if number := self._tokens.get((self.owner, token)):
            return self._lines[number - 1]
        line = JournalLine(len(self._lines) + 1, self.owner, entry, staged_at=now)
        self._lines.append(line)
        if token:
            self._tokens[self.owner, token] = line.number
        return line

    def record(self, scope: str, key: str) -> JournalRecord | None:
        return self._record(scope, key)

    def _record(self, scope: str, key: str) -> JournalRecord | None:
        committed = (
            line for line in self._lines if line.version and (line.entry.scope, line.entry.key) == (scope, key)
        )
        return record_of(sorted(committed, key=lambda line: line.version))

    def lines(self, *, scope: str | None = None, state: LineState | None = None) -> Sequence[JournalLine]:
        return [line for line in self._lines if scope in (None, line.entry.scope) and state in (None, line.state)]

    def pending(self) -> Sequence[JournalLine]:
        return [line for line in self._lines if line.pending and line.owner == self.owner]

    def close(self) -> None:
        pass

    def _changing(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _own_line(self, number: int) -> JournalLine | None:
        line = self._lines[number - 1] if 0 < number <= len(self._lines) else None
        return line if line and line.owner == self.owner else None

    def _replace(self, line: JournalLine) -> None:
        self._lines[line.number - 1] = line


@dataclass(slots=True)
class MemoryLines:
    """The lines of a principal's journal, and the numbers of those that were staged under a token."""

    lines: list[JournalLine] = field(default_factory=list)
    tokens: dict[tuple[str, str], int] = field(default_factory=dict)


class MemoryNotes(NotesAsPages):
    """Notes in memory."""

    def __init__(self, pages: MemoryPages) -> None:
        super().__init__(pages)
        self._keep_newest = pages.keep_newest

    def put_if_possible(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        self.put(name, content, now=now, history=history)
        self._keep_newest(name)


class MemoryStore:
    """All five parts in memory, gone with the process."""

    where = "memory"

    def __init__(self, sender: str = "", scope: StoreScope = THIS_USER) -> None:
        self.journals: defaultdict[str, MemoryLines] = defaultdict(MemoryLines)
        self.show(MemoryPages(scope, MemoryContents(sender)))

    def scoped(self, scope: StoreScope) -> "MemoryStore":
        view = copy(self)
        view.show(self.pages.scoped(scope))
        return view

    @property
    def sender(self) -> str:
        return self.pages.shared.sender

    def open_journal(self, rules: Rules, owner: str = "") -> MemoryJournal:
        return MemoryJournal(rules, self.pages.scoped(self.scope.own), owner, self.journals[self.scope.principal])

    def close(self) -> None:
        pass

    def show(self, pages: MemoryPages) -> None:
        """Sets the scope to that of these pages."""
        self.pages, self.scope = pages, pages.scope
        self.notes: NotesAsPages = MemoryNotes(pages.scoped(pages.scope.notes))
        self.outbox, self.search_index = MemoryOutbox(pages), MemorySearch(pages)
