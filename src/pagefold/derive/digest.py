"""The digest: what stands in place of a stretch of history that was folded.

It is made of the session's own words and nothing else: lines as they stood, in their order, with their numbers, each
under who said it or what was called. Gaps are announced. What was left out is recalled by the handles it names.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from pagefold.derive.json_lines import value_of
from pagefold.derive.quotable import Line, Passage, Speaker
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.wire.message import Message, user_text

_WORTH_A_HANDLE = 600


class Kept(NamedTuple):
    """What of one passage is kept: the indexes of its lines, in order. `whole` where all of it stands."""

    passage: Passage
    indexes: Sequence[int] = ()

    @property
    def whole(self) -> bool:
        return len(self.indexes) == len(self.passage.lines)

    @property
    def lines(self) -> list[Line]:
        lines = self.passage.lines
        return [lines[index] for index in self.indexes]


class Record(NamedTuple):
    """Where the first `messages` of a stretch are kept whole, and the pages of results in it that have a handle."""

    messages: int
    handle: str
    results: Mapping[str, Page] = {}


@dataclass(frozen=True, slots=True)
class Digest:
    """The message that stands for a stretch of history, and the pages its handles recall."""

    message: Message
    pages: tuple[Page, ...]
    record: Record


def digest(stretch: Sequence[Message], kept: Iterable[Kept], before: Record | None = None) -> Digest:
    """`stretch` is what was folded, whole; `kept` says, in order, what of it stays.

    `before` is the record of the beginning of the same stretch, where an earlier fold made one: what it holds is told
    by its handle, so that a long history is not written again at every fold.
    """
    known = before if before is not None and before.messages <= len(stretch) else None
    if known is not None and known.messages == len(stretch):
        handle, pages = known.handle, list[Page]()
    else:
        lines = [message.raw for message in stretch[known.messages if known else 0 :]]
        if known is not None:
            lines.insert(0, f'[the {known.messages} messages before these: context_recall("{known.handle}")]')
        record = Page.of(PageKind.CONVERSATION, "\n".join(lines), "folded messages")
        handle, pages = record.handle, [record]
    entries = list(kept)
    body = list(_tools(entry.passage for entry in entries))
    known_results, results = known.results if known else {}, dict[str, Page]()
    for shown in _entries(entries, known_results, results):
        body += shown
    head = (
        f"[Folded to save context: {len(stretch)} earlier messages of this session. Lines below are quoted from them "
        f"word for word (JSON by path, lists by column), in order, with their line numbers; … is what was left out. "
        f'context_recall("{handle}") gives the messages back, the handle beside a result that result.]'
    )
    message = user_text("\n".join([head, *body]))
    return Digest(message, (*pages, *results.values()), Record(len(stretch), handle, results))


def _tools(passages: Iterable[Passage]) -> Iterator[str]:
    """Which tools were called, how often, and with which arguments."""
    called: dict[str, list[tuple[str, ...]]] = {}
    for passage in passages:
        if passage.speaker is Speaker.CALL:
            called.setdefault(_tool(passage), []).append(passage.keys)
    if called:
        said = (f"{name}({', '.join(dict.fromkeys(chain(*keys)))}) x {len(keys)}" for name, keys in called.items())
        yield f"Called: {'; '.join(said)}"


def _entries(kept: Sequence[Kept], known: Mapping[str, Page], results: dict[str, Page]) -> Iterator[list[str]]:
    """Passage by passage, what is shown; `results` gets the pages it names. A result stands under its call."""
    shows = {entry.passage.call_id for entry in kept if entry.indexes}
    left: dict[str, int] = {}
    calls: dict[str, Passage] = {}
    said = ""
    for entry in kept:
        passage = entry.passage
        if passage.speaker is Speaker.CALL:
            calls[passage.call_id] = passage
            if passage.call_id not in shows:
                name = _tool(passage)
                left[name] = left.get(name, 0) + 1
        if not entry.indexes:
            continue
        call = calls.get(passage.call_id) if passage.call_id else None
        title = _title(entry, call, known, results)
        gap = [f"… {_named(left)}"] if left else []
        left.clear()
        shown = [*gap, title, *_quoted(entry)]
        if call is not None and said == call.call_id and passage.speaker is Speaker.RESULT:
            shown[len(gap)] = "=> " + title.removeprefix(f"# {call.label}").strip()
        said = call.call_id if call is not None else ""
        yield shown
    if left:
        yield [f"… {_named(left)}"]


def _named(left: Mapping[str, int]) -> str:
    return ", ".join(f"{name} x {times}" if times > 1 else name for name, times in left.items())


def _tool(call: Passage) -> str:
    return call.label.partition(" ")[0]


def _title(entry: Kept, call: Passage | None, known: Mapping[str, Page], results: dict[str, Page]) -> str:
    passage = entry.passage
    if passage.speaker is Speaker.USER:
        return "# user:"
    if passage.speaker is Speaker.ASSISTANT:
        return "# you:"
    label = call.label if call is not None else passage.label
    if passage.speaker is Speaker.CALL or entry.whole or len(passage.text) < _WORTH_A_HANDLE:
        return f"# {label}"
    page = results.get(passage.text) or known.get(passage.text) or Page.of(PageKind.EVIDENCE, passage.text, label)
    results[passage.text] = page
    return f"# {label} ({page.handle})"


def _quoted(entry: Kept) -> Iterator[str]:
    """The kept lines with their numbers; a run is numbered at its first line, and … is what lies between runs."""
    previous, piece_before = -1, 0
    pieces: list[str] = []
    # The first line of a call is its title.
    titled = entry.passage.speaker is Speaker.CALL and entry.indexes[0] == 0
    for text, at, number, piece in entry.lines[titled:]:
        if at == previous:
            pieces.append(_joined(text, number, follows=piece == piece_before + 1))
            piece_before = piece
            continue
        if pieces:
            yield "".join(pieces)
        follows = at == previous + 1 and previous >= 0
        if number is None and previous >= 0 and not follows:
            yield "…"
        pieces = [_begun(text, number, follows=follows)]
        previous, piece_before = at, piece
    if pieces:
        yield "".join(pieces)


def _begun(text: str, number: int | str | None, *, follows: bool) -> str:
    if isinstance(number, str):
        return f"{number}: {text}"
    return text if number is None or follows else f"{number}\t{text}"


def _joined(text: str, column: int | str | None, *, follows: bool) -> str:
    """One more piece of a line. A value that follows the one before it in its column needs no place of its own."""
    if isinstance(column, str):
        return f" | {value_of(text)}" if follows else f" {text}"
    return text if follows else f" … {text}"
