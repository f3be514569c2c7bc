"""What can be recalled of folded messages: pages of the exchanges, of longer sayings and of files, and one that lists
them all in order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from pagefold.derive.entry import Entry
from pagefold.derive.working_set.file_views import known_text, span_of
from pagefold.derive.working_set.record import Record
from pagefold.derive.working_set.said import words_of_message
from pagefold.frozen import frozen
from pagefold.pages.contents import ContentsEntry, FileEntry, called, contents_page, said
from pagefold.pages.exchange_page import exchange_page
from pagefold.pages.exchanges import Exchange, Work, result_of
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.region import Region
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.wire.message import Block, BlockKind, Message, Role, arguments_of

_WORTH_A_HANDLE = 600  # characters of a result that a digest names by its handle
_SPANS = 6
_LEAST = 3  # lines in a row that make a view


@frozen
class Remembered:
    """The pages of folded messages, the record that names the newest contents, and the handles of exchanges with longer
    results, by their calls."""

    record: Record
    pages: tuple[Page, ...] = ()
    handles: Mapping[str, str] = field(default_factory=dict)


def remembered(entries: Sequence[Entry], work: Work, cut: int, record: Record) -> Remembered:
    """What can be recalled of the messages before the cut; those that an earlier fold has listed are named by that."""
    start = record.listed
    if start >= cut:
        return Remembered(record)
    pages: list[Page] = []
    listed: list[tuple[int, ContentsEntry]] = []
    handles: dict[str, str] = {}
    for exchange, call, result in _exchanges(entries, work, start, cut):
        page = exchange_page(exchange, arguments_of(call), result.text)
        pages.append(page)
        listed.append((exchange.answered, ContentsEntry(exchange.answered + 1, called(exchange.line), page.handle)))
        if len(result.text) >= _WORTH_A_HANDLE:
            handles[exchange.call_id] = page.handle
    for place in range(start, cut):
        if saying := said_page(entries[place].message):
            line, whole = said(entries[place].message.role is Role.USER, saying.text)
            pages += [] if whole else [saying]
            listed.append((place, ContentsEntry(place + 1, line, "" if whole else saying.handle)))
    known = [file for file in work.files.files.values() if file.touched >= start and _is_view(file)]
    files = [(file, Page.of(PageKind.EVIDENCE, known_text(file), file.name)) for file in known]
    listed.sort(key=lambda item: item[0])  # stable: the exchanges of one message stay in their order
    names = [FileEntry(page.handle, _one_line(file.name), file.touched + 1, _spans(file)) for file, page in files]
    contents = contents_page([entry for _, entry in listed], names, record.contents, record.handle)
    pages += [page for _, page in files]
    return Remembered(record._replace(contents=contents.handle, listed=cut), (*pages, contents), handles)


def said_page(message: Message) -> Page | None:
    """The page of what user or agent said in a message, if anything."""
    text = words_of_message(message) if message.role in (Role.USER, Role.ASSISTANT) else ""
    return Page.of(PageKind.CONVERSATION, text, said(message.role is Role.USER, text)[0]) if text else None


def _exchanges(entries: Sequence[Entry], work: Work, start: int, cut: int) -> Iterator[tuple[Exchange, Block, Block]]:
    """The exchanges whose results came between these places, each with its call and its result."""
    for exchange in work.answered_between(start, cut):
        call = _call(entries[exchange.called].message, exchange.call_id)
        result = result_of(entries[exchange.answered].message, exchange.call_id)
        if call is not None and result is not None:
            yield exchange, call, result


def _call(message: Message, call_id: str) -> Block | None:
    return next((one for one in message.blocks if one.kind is BlockKind.CALL and one.call_id == call_id), None)


def _is_view(file: KnownFile) -> bool:
    """Whether more is known of a file than lines that a search found."""
    return any(len(region.lines) >= _LEAST or len(region.lines) == file.text.length for region in file.text.regions)


def _spans(file: KnownFile) -> str:
    spans = [_span(region) for region in file.text.regions if region.start is not None]
    more = f" and {len(spans) - _SPANS} more" if len(spans) > _SPANS else ""
    length = f" of {file.text.length}" if file.text.length is not None else ""
    return f"lines {', '.join(spans[:_SPANS])}{more}{length}" if spans else ""


def _span(region: Region) -> str:
    return str(region.start) if len(region.lines) == 1 else span_of(region)


def _one_line(name: str) -> str:
    return " ".join(name.split("\n"))
