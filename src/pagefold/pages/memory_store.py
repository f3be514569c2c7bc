"""The store in memory: for tests, and for a run that must leave nothing behind."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from pagefold.pages.journal import JournalEntry, JournalLine, JournalRecord, LineState, Rules, record_of
from pagefold.pages.journal_steps import JournalBase
from pagefold.pages.kinds import PageKind
from pagefold.pages.manifest import ManifestEntry
from pagefold.pages.page import PageId, id_of, id_range
from pagefold.pages.search import LIMIT, Document, Query, SearchHit, parse_query, pattern_of, ranked
from pagefold.pages.store import Collected, ListedPage, NotesAsPages, PageStore, StoreStats, UnsentPage


@dataclass(slots=True)
class MemoryPages:
    """Pages in dictionaries. `unsent` and `sent` are the outbox's, by history and page."""

    sender: str = ""
    contents: dict[PageId, bytes] = field(default_factory=dict)
    histories: dict[str, dict[PageId, ManifestEntry]] = field(default_factory=dict)
    unsent: dict[tuple[str, PageId], "_Waiting"] = field(default_factory=dict)
    sent: set[tuple[str, PageId]] = field(default_factory=set)
    _times: dict[PageId, float] = field(default_factory=dict)
    _held: dict[str, set[PageId]] = field(default_factory=dict)
    _originals: dict[PageId, PageId] = field(default_factory=dict)
    _listings: int = 0

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
        page = id_of(content)
        self.contents[page] = content
        self._times[page] = max(now, self._times.get(page, now))
        if history:
            self._listings += 1
            entry = ManifestEntry(page, kind, name, len(content), now, self._listings)
            self.histories.setdefault(history, {}).setdefault(page, entry)
            if self.sender and (history, page) not in self.sent:
                self.unsent.setdefault((history, page), _Waiting(self.sender))
        if shown_form:
            self._originals.setdefault(shown_form, page)
        return page

    def get(self, page: PageId) -> bytes | None:
        return self.contents.get(page)

    def original_of(self, text: PageId) -> bytes | None:
        page = self._originals.get(text)
        return None if page is None else self.contents.get(page)

    def exists(self, page: PageId) -> bool:
        return page in self.contents

    def find(self, handle: str) -> Sequence[PageId]:
        span = id_range(handle)
        return [] if span is None else sorted(page for page in self.contents if span[0] <= page < span[1])

    def listed(self, history: str) -> Sequence[PageId]:
        return list(self.histories.get(history, ()))

    def listings(self, history: str) -> Sequence[ListedPage]:
        entries = self.histories.get(history, {}).values()
        return [ListedPage(entry.page, entry.kind, entry.name, entry.first_put) for entry in entries]

    def hold(self, page: PageId, history: str) -> bool:
        self._held.setdefault(history, set()).add(page)
        return page in self.contents

    def release(self, history: str) -> None:
        self._held.pop(history, None)

    def collect(self, *, before: float | None = None, max_bytes: int | None = None) -> Collected:
        held = self._held_pages()
        total = sum(map(len, self.contents.values()))
        gone, freed = set[PageId](), 0
        for page in sorted(self.contents.keys() - held, key=lambda page: (self._times[page], page)):
            old = before is not None and self._times[page] < before
            if old or (max_bytes is not None and total - freed > max_bytes):
                freed += len(self.contents.pop(page))
                gone.add(page)
        self._times = {page: time for page, time in self._times.items() if page not in gone}
        self._originals = {text: page for text, page in self._originals.items() if page not in gone}
        for history, entries in self.histories.items():
            self.histories[history] = {page: entry for page, entry in entries.items() if page not in gone}
        waiting = len(self.unsent)
        self.unsent = {key: waits for key, waits in self.unsent.items() if key[1] not in gone}
        return Collected(len(gone), freed, len(held), waiting - len(self.unsent))

    def stats(self) -> StoreStats:
        length = sum(map(len, self.contents.values()))
        return StoreStats(
            len(self.contents), length, length, len(self._held_pages()), sum(map(bool, self.histories.values()))
        )

    def _held_pages(self) -> set[PageId]:
        return set().union(*self._held.values()) & self.contents.keys()


@dataclass(slots=True)
class _Waiting:
    sender: str
    tries: int = 0


@dataclass(slots=True)
class MemoryOutbox:
    _pages: MemoryPages
    store_id: str = "memory"

    def adopt(self) -> int:
        others = [waits for waits in self._pages.unsent.values() if waits.sender != self._pages.sender]
        for waits in others:
            waits.sender = self._pages.sender
        return len(others)

    def enqueue(self, session: str) -> int:
        keys = {(session, page) for page in self._pages.listed(session)} - self._pages.sent - self._pages.unsent.keys()
        self._pages.unsent.update({key: _Waiting(self._pages.sender) for key in keys})
        return len(keys)

    def next_batch(self, pages: int, length: int) -> Sequence[UnsentPage]:
        own = [(waits.tries, key) for key, waits in self._pages.unsent.items() if waits.sender == self._pages.sender]
        found = [(tries, UnsentPage(history, self._pages.histories[history][page])) for tries, (history, page) in own]
        batch: list[UnsentPage] = []
        for _, unsent in sorted(found, key=lambda item: (item[0], item[1].entry.place))[:pages]:
            length -= unsent.entry.bytes
            if batch and length < 0:
                break
            batch.append(unsent)
        return batch

    def mark_sent(self, batch: Sequence[UnsentPage]) -> None:
        for unsent in batch:
            self._pages.unsent.pop((unsent.session, unsent.entry.page), None)
            self.note_in_sink(unsent.session, [unsent.entry.page])

    def mark_tried(self, batch: Sequence[UnsentPage]) -> None:
        for unsent in batch:
            if waits := self._pages.unsent.get((unsent.session, unsent.entry.page)):
                waits.tries += 1

    def note_in_sink(self, session: str, pages: Sequence[PageId]) -> None:
        self._pages.sent.update((session, page) for page in pages)

    def find_sent(self, handle: str) -> Sequence[tuple[PageId, str]]:
        span = id_range(handle)
        return (
            [] if span is None else sorted((page, name) for name, page in self._pages.sent if span[0] <= page < span[1])
        )

    def backlog(self) -> tuple[int, int]:
        return len(self._pages.unsent), sum(len(self._pages.contents[page]) for _, page in self._pages.unsent)


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
        for page, content in self._pages.contents.items():
            lists = self._pages.histories.items()
            listed = [(entries[page], name) for name, entries in lists if page in entries and history in (None, name)]
            if listed:
                entry, where = max(listed, key=lambda item: item[0].place)
                yield page, Document.of(content, query, where, entry.kind, entry.name)
            elif history is None:
                yield page, Document.of(content, query, "", None, "")


class MemoryJournal(JournalBase):
    """The journal over a list of lines, which all owners share; `tokens` are those that were staged."""

    def __init__(
        self,
        rules: Rules,
        pages: PageStore,
        owner: str = "",
        lines: list[JournalLine] | None = None,
        tokens: dict[tuple[str, str], int] | None = None,
    ) -> None:
        super().__init__(rules, pages, owner, "memory")
        self._lines = [] if lines is None else lines
        self._tokens = {} if tokens is None else tokens

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


class MemoryStore:
    """All five parts in memory, gone with the process."""

    where = "memory"

    def __init__(self, sender: str = "") -> None:
        self.sender = sender
        self.pages = MemoryPages(sender)
        self.notes = NotesAsPages(self.pages)
        self.outbox = MemoryOutbox(self.pages)
        self.search_index = MemorySearch(self.pages)
        self.lines: list[JournalLine] = []
        self.tokens: dict[tuple[str, str], int] = {}

    def open_journal(self, rules: Rules, owner: str = "") -> MemoryJournal:
        return MemoryJournal(rules, self.pages, owner, self.lines, self.tokens)

    def close(self) -> None:
        pass
