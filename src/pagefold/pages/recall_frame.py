"""Where a recalled page belongs in its conversation: what was asked, what came before and after it, and of a file
whether it is still as it was."""

from collections.abc import Callable, Collection, Iterator, Sequence

from pagefold.frozen import frozen
from pagefold.pages.contents import Contents, ContentsEntry, FileEntry, contents_of
from pagefold.pages.exchanges import Exchange, Work
from pagefold.pages.files.changes import Act
from pagefold.pages.files.paths import identity, normal
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import handle_of
from pagefold.pages.search import LISTS
from pagefold.pages.store import PageStore

_TOLD = 3  # changes of a file since then that are named


@frozen
class PageFrame:
    """The lines that go before a page. `own`: pagefold wrote the page, as a list or as a call with its result."""

    text: str = ""
    own: bool = False


def frame_of(pages: PageStore, handle: str, history: str | None, work: Callable[[], Work] | None = None) -> PageFrame:
    """The frame of a page that was folded in this history; nothing for other pages, which are what a tool returned.
    `work` gives what has been done up to now, where that is known. Raises StoreError.
    """
    contents = contents_of(pages, history) if history else Contents()
    for index, entry in enumerate(contents.entries):
        if entry.handle == handle:
            return PageFrame("\n".join(_of_entry(contents.entries, index)), entry.is_call)
    of_file = [file for file in contents.files if file.handle == handle]
    if of_file:
        return PageFrame("\n".join(_of_file(of_file[-1], contents, work)), own=True)
    for listed in pages.listings(history) if history else ():
        if listed.name in LISTS and listed.kind is PageKind.CONVERSATION and handle_of(listed.page) == handle:
            return PageFrame(f"[pagefold's record of this conversation: {listed.name}]", own=True)
    return PageFrame()


def _of_entry(entries: Sequence[ContentsEntry], index: int) -> Iterator[str]:
    entry = entries[index]
    asks = [other for other in entries[:index] if other.is_user]
    asked = f"; it was done for {asks[-1].line}" if asks and not entry.is_user else ""
    whose = "a call and its result" if entry.is_call else f"said by {'the user' if entry.is_user else 'you'}"
    yield f"[message {entry.number} of this conversation, {whose}{asked}]"
    for where, at in (("before it", index - 1), ("after it", index + 1)):
        if 0 <= at < len(entries):
            yield f"[{where}: {entries[at].line}]"


def _of_file(file: FileEntry, contents: Contents, work: Callable[[], Work] | None) -> Iterator[str]:
    spans = f", {file.spans}" if file.spans else ""
    yield f"[file {file.name} as it was known after message {file.number}{spans}]"
    if work is not None:
        yield from _since(file, work())
    others = [other for other in contents.files if other.name == file.name and other.handle != file.handle]
    yield from (f"[the same file: {other.line}]" for other in others[-_TOLD:])


def _since(file: FileEntry, work: Work) -> Iterator[str]:
    """What became of a file since a message, in one line."""
    files = work.files.files
    key = identity(normal(file.name), files)
    if key not in files:
        yield "[it is no longer known under this name: it was removed or moved since]"
        return
    changes = [exchange for exchange in work.exchanges if _changed(exchange, key, file.number, files.keys())]
    text, last = files[key].text, file.number - 1
    doubts = (
        *((doubt.place, doubt.last) for doubt in text.doubts[-_TOLD:]),
        (text.reformatted_at, text.reformatted_by),
    )
    told = [f"message {exchange.answered + 1}, {exchange.line}" for exchange in changes[-_TOLD:]]
    told += [f"`{doubt}` in message {at + 1} may have changed it" for at, doubt in doubts if at > last]
    yield f"[changed since: {'; '.join(told)}]" if told else "[nothing has changed it since, as far as is known]"


def _changed(exchange: Exchange, key: str, number: int, files: Collection[str]) -> bool:
    if exchange.act is not Act.CHANGED or exchange.answered + 1 <= number:
        return False
    return any(identity(normal(path), files) == key for path in exchange.paths)
