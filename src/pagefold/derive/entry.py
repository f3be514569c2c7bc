"""A message as it enters the context: every tool result in its cheapest lossless form, and what the fold knows of it.

A form may refer to texts above it in the same request, which the ledger knows. What a fold may quote of a message is
worked out when a fold asks for it, not when the message arrives: most messages are never folded.
"""

from dataclasses import field, replace
from typing import Any

from pagefold.derive.learned import AS_IT_COMES, Forms
from pagefold.derive.quotable import Passage, passages
from pagefold.encode.choose import encode, plain
from pagefold.frozen import frozen
from pagefold.pages.facts import find_facts
from pagefold.pages.ledger import Ledger, LedgerEntry
from pagefold.tokens import FRAME, counter
from pagefold.wire.message import Block, BlockKind, Message, Role, arguments_of

_ARGUMENT = 40
_CALLS = 64
_LINES = 4  # that an argument has at least for a reference to it


@frozen
class Standings:
    """What the model can see: the ledger of texts shown, and the last calls as pairs of id and label.

    Of calls that have no result yet, `sources` are id, tool and whole first argument, and `written` the arguments of
    several lines: id, name and text.
    """

    ledger: Ledger = field(default_factory=Ledger)
    calls: tuple[tuple[str, str], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    written: tuple[tuple[str, str, str], ...] = ()


@frozen
class Arrived:
    """A message as it is shown. `alone`: no form in it refers to texts above; `codecs` made its forms. `labels` are how
    the model knows its results, in order."""

    message: Message
    standings: Standings
    alone: bool = True
    codecs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@frozen
class Entry:
    """One message of a history as the fold knows it. `tokens` is what it costs as it is shown, `turn` how many answers
    came before it, `labels` are those of its results, `codecs` made its forms."""

    message: Message
    shown: Message
    tokens: int
    turn: int
    labels: tuple[str, ...] = ()
    codecs: tuple[str, ...] = ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        """What may be quoted of it, word for word."""
        return passages(self.message, self.labels, written=self.message.place < 0)

    @property
    def facts(self) -> frozenset[str]:
        quotable = self.passages
        facts = frozenset[str]().union(*[passage.where for passage in quotable])
        keys = " ".join([key for passage in quotable for key in passage.keys])
        return facts.union(find_facts(keys)) if keys else facts

    @property
    def fixed(self) -> bool:
        """Whether it may not be folded: what the system says, in mid-conversation too."""
        return self.message.role in (Role.SYSTEM, Role.DEVELOPER)

    @property
    def opens(self) -> bool:
        """Whether a request can begin here: it answers nothing that came before."""
        return not any(block.kind is BlockKind.RESULT for block in self.message.blocks)

    @property
    def own(self) -> bool:
        return self.message.role is Role.ASSISTANT


def enter(
    standings: Standings, message: Message, turn: int, tokens: str, forms: Forms = AS_IT_COMES
) -> tuple[Standings, Entry]:
    """The next message of a history."""
    arrived = arrive(standings, message, forms=forms)
    shown = arrived.message
    entry = Entry(message, shown, counted(shown, tokens), turn, arrived.labels, arrived.codecs)
    return arrived.standings, entry


def again(standings: Standings, entry: Entry, tokens: str, forms: Forms = AS_IT_COMES) -> tuple[Standings, Entry]:
    """The same message where something else stands above it."""
    arrived = arrive(standings, entry.message, forms=forms)
    if arrived.message.raw == entry.shown.raw:
        return arrived.standings, entry
    return arrived.standings, replace(entry, shown=arrived.message, tokens=counted(arrived.message, tokens))


def as_it_came(message: Message) -> Message:
    """The message with no form in it: each result as the tool gave it, below `[as it is]` where a line of it could be
    taken for one of pagefold's."""
    for index, block in enumerate(message.blocks):
        if block.kind is BlockKind.RESULT and block.path and (text := plain(block.text)) != block.text:
            message = message.with_text(index, text)
    return message


def counted(message: Message, tokens: str) -> int:
    return counter(tokens).count(message.text) + FRAME


def arrive(
    standings: Standings, message: Message, without: frozenset[str] = frozenset(), forms: Forms = AS_IT_COMES
) -> Arrived:
    """Returns the message as it is shown, and what the model can see afterwards. `without` names codecs to leave out,
    `forms` those to leave out for single tools."""
    ledger, calls, references = standings.ledger, standings.calls, 0
    sources, written = standings.sources, standings.written
    codecs, labels = tuple[str, ...](), list[str]()
    for index, block in enumerate(message.blocks):
        if block.kind is BlockKind.CALL:
            arguments = arguments_of(block)
            first = _first_text(arguments)
            calls = with_call(calls, block.call_id, _label(block.name, first))
            sources = (*sources[1 - _CALLS :], (block.call_id, f"{block.name} {first}"))
            lines = _written(block.call_id, arguments) if "\\n" in block.text else ()  # JSON escapes the end of a line
            written = (*written[-_CALLS:], *lines)
        elif block.kind is BlockKind.RESULT:
            name = result_label(block, calls)
            labels.append(name)
            if not block.path:
                continue
            # Not every API names the tool in a result; the call does.
            left_out = without | forms.left_out(block.name or name.partition(" ")[0]) if forms.without else without
            title = ledger.next_title
            own = [it for it in written if it[0] == block.call_id] if written and not block.failed else ()
            seen = ledger
            for _, argument, text in own:
                seen = seen.with_text(LedgerEntry(f"the {argument} you wrote for {title}", tuple(text.split("\n"))))
            shown = encode(
                block.text,
                tool=name,
                ledger=seen,
                failed=block.failed,
                without=left_out,
                floor=forms.floor,
                title=title if own else "",
                source=dict(sources).get(block.call_id, ""),
            )
            references += shown.references
            entries = shown.ledger_entries
            ledger = seen if entries and entries[0].label == title else ledger
            written = tuple([it for it in written if it[0] != block.call_id]) if written else ()
            sources = tuple([it for it in sources if it[0] != block.call_id])
            for entry in entries:
                ledger = ledger.with_text(entry)
            if shown.text != block.text:
                message = message.with_text(index, shown.text)
                codecs = (*codecs, *shown.codecs)
    if ledger is not standings.ledger or calls is not standings.calls:
        standings = Standings(ledger, calls, sources, written)
    return Arrived(message, standings, not references, codecs, tuple(labels))


def with_call(calls: tuple[tuple[str, str], ...], call_id: str, label: str) -> tuple[tuple[str, str], ...]:
    """The last calls, with one more."""
    return (*calls[1 - _CALLS :], (call_id, label))


def label_of(call: Block) -> str:
    """Returns the label of a call for the model: the tool, and its first text argument."""
    return _label(call.name, _first_text(arguments_of(call)))


def result_label(result: Block, calls: tuple[tuple[str, str], ...]) -> str:
    """Returns the label of a result: that of its call, among the last calls."""
    for call_id, name in reversed(calls):
        if call_id == result.call_id:
            return name
    return result.name or "result"


def _label(name: str, first: str) -> str:
    word = first.replace("\\", "/").rstrip("/").rpartition("/")[2] if "/" in first and " " not in first else first
    return f"{name} {' '.join(word.split())[:_ARGUMENT]}".strip()


def _first_text(arguments: dict[str, Any]) -> str:
    for value in arguments.values():
        if isinstance(value, str):
            return value
    return ""


def _written(call_id: str, arguments: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Returns the arguments of several lines: what the assistant wrote itself stands in its call."""
    return [
        (call_id, name, value)
        for name, value in arguments.items()
        if name.isidentifier() and isinstance(value, str) and value.count("\n") >= _LINES
    ]
