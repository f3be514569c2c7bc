"""The contents of what was folded: a page that lists in order what was said and done, each with the handle that recalls
it, and the files as they were known.

It is text for the agent, and it is what tells a recalled page its place: what was asked, and what came before and after
it. Every entry is one line, so nothing that was said can pass for another entry.
"""

import re
from collections.abc import Iterable, Sequence

from pagefold.frozen import frozen
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import HANDLE, Page
from pagefold.pages.search import LISTS
from pagefold.pages.store import PageStore
from pagefold.printable import printable

NAME = LISTS[0]
_ENTRY = re.compile(rf"(?:({HANDLE.pattern}) )?message (\d+), (.*)")
_FILE = re.compile(rf"({HANDLE.pattern}) file (.*), after message (\d+)(?:: (.*))?")
_USER, _YOU, _CALLED = "user: ", "you: ", "called "
_LONGEST = 160


@frozen
class ContentsEntry:
    """One thing that was said or done: the number of its message, what it is, and the handle that recalls it, if it is
    longer than this line."""

    number: int
    text: str
    handle: str = ""

    @property
    def line(self) -> str:
        return f"{self.handle} message {self.number}, {self.text}".lstrip()

    @property
    def is_user(self) -> bool:
        return self.text.startswith(_USER)

    @property
    def is_call(self) -> bool:
        return self.text.startswith(_CALLED)


@frozen
class FileEntry:
    """A file as it was known after a message: its name, and which of its lines were known."""

    handle: str
    name: str
    number: int
    spans: str = ""

    @property
    def line(self) -> str:
        spans = f": {self.spans}" if self.spans else ""
        return f"{self.handle} file {self.name}, after message {self.number}{spans}"


def called(line: str) -> str:
    """A call with its outcome as an entry: in words that no saying begins with."""
    return f"{_CALLED}{line}"


def said(user: bool, text: str) -> tuple[str, bool]:
    """What a message says, on one line, and whether that is all of it."""
    words = " ".join(text.split())
    short = words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
    return f"{_USER if user else _YOU}{printable(short)}", short == text.strip()


def contents_page(entries: Sequence[ContentsEntry], files: Iterable[FileEntry], before: str, messages: str) -> Page:
    """The page. `before` is the handle of the contents before these, `messages` that of the messages as they were."""
    lines = ["What was said and done here, in order. context_recall of a handle gives it whole."]
    if before:
        lines.append(f'What came before: context_recall("{before}").')
    lines.append(f'The messages as they were sent: context_recall("{messages}").')
    lines += [entry.line for entry in entries]
    lines += [file.line for file in files]
    return Page.of(PageKind.CONVERSATION, "\n".join(lines), NAME)


@frozen
class Contents:
    """What all contents pages of a history list, oldest first."""

    entries: tuple[ContentsEntry, ...] = ()
    files: tuple[FileEntry, ...] = ()


def contents_of(pages: PageStore, history: str) -> Contents:
    """The contents of a history, as far as it was folded. Raises StoreError."""
    entries: list[ContentsEntry] = []
    files: list[FileEntry] = []
    for listed in pages.listings(history):
        content = pages.get(listed.page) if listed.name == NAME and listed.kind is PageKind.CONVERSATION else None
        for line in content.decode("utf-8", "replace").split("\n") if content is not None else ():
            if match := _FILE.fullmatch(line):
                files.append(FileEntry(match[1], match[2], int(match[3]), match[4] or ""))
            elif match := _ENTRY.fullmatch(line):
                entries.append(ContentsEntry(int(match[2]), match[3], match[1] or ""))
    return Contents(tuple(entries), tuple(files))
