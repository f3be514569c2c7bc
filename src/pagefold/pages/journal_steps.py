"""The steps of a journal that are the same in every store: how a line is validated and committed.

A store's journal adds how lines are kept: `_changing` gives a transaction in which nobody else changes the journal, and
the other three read and replace within it.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import replace

from pagefold.pages.journal import Boundary, JournalLine, JournalRecord, LineState, Resolves, Rules, rejection
from pagefold.pages.store import PageStore


class JournalBase(ABC):
    """A journal as one owner writes it. Lines belong to their owner, and its next process goes on with them.

    `pages` keeps the pages that entries come from; those of a committed line are held there. `where` names the journal
    in errors and holds.
    """

    def __init__(self, rules: Rules, pages: PageStore, owner: str, where: str) -> None:
        self.rules, self.owner, self.where = rules, owner, where
        self._pages = pages

    def validate(self, number: int) -> JournalLine:
        with self._changing():
            line = self._existing(number)
            if line.state is LineState.STAGED:
                record = self._record(line.entry.scope, line.entry.key)
                line = self._judged(line, record, self._pages.exists)
                self._replace(line)
            return line

    def commit(self, number: int, boundary: Boundary) -> JournalLine:
        with self._changing():
            line = self._existing(number)
        if line.state is LineState.COMMITTED:
            return line
        if line.state is not LineState.VALIDATED:
            raise ValueError(f"line {number} is {line.state}: only a validated line can be committed")
        # Held before the line is committed: a page that is there now stays for as long as the line does.
        hold = f"journal {self.where} {number}"
        held = {page: self._pages.hold(page, hold) for page in line.entry.provenance}
        with self._changing():
            line = self._existing(number)
            if line.state is LineState.VALIDATED:
                # What was committed since it was validated may still reject it.
                record = self._record(line.entry.scope, line.entry.key)
                line = replace(self._judged(line, record, held.__getitem__), boundary=boundary)
                if line.state is LineState.VALIDATED:
                    version = 1 + (record.version if record else 0)
                    line = replace(line, state=LineState.COMMITTED, version=version)
                self._replace(line)
        if line.state is LineState.REJECTED:
            self._pages.release(hold)
        return line

    def _existing(self, number: int) -> JournalLine:
        line = self._own_line(number)
        if line is None:
            raise ValueError(f"the journal {self.where} has no line {number} of {self.owner!r}")
        return line

    def _judged(self, line: JournalLine, record: JournalRecord | None, resolves: Resolves) -> JournalLine:
        against = rejection(line.entry, record, self.rules, resolves)
        if against is None:
            return replace(line, state=LineState.VALIDATED)
        return replace(line, state=LineState.REJECTED, reason=against.reason, detail=against.detail)

    @abstractmethod
    def _changing(self) -> AbstractContextManager[None]: ...

    @abstractmethod
    def _own_line(self, number: int) -> JournalLine | None: ...

    @abstractmethod
    def _record(self, scope: str, key: str) -> JournalRecord | None: ...

    @abstractmethod
    def _replace(self, line: JournalLine) -> None: ...
