"""Encodes a message that enters the context: every tool result in its cheapest lossless form.

A form may refer to texts above it in the same request, which the ledger knows.
"""

import json
from dataclasses import field
from typing import Any

from pagefold.derive.learned import AS_IT_COMES, Forms
from pagefold.encode.choose import encode
from pagefold.frozen import frozen
from pagefold.pages.ledger import Ledger, LedgerEntry
from pagefold.wire.message import Block, BlockKind, Message

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

    def label(self, result: Block) -> str:
        for call_id, name in reversed(self.calls):
            if call_id == result.call_id:
                return name
        return result.name or "result"


@frozen
class Arrived:
    """A message as it is shown. `alone`: no form in it refers to texts above; `codecs` made its forms."""

    message: Message
    standings: Standings
    alone: bool = True
    codecs: tuple[str, ...] = ()


def arrive(
    standings: Standings, message: Message, without: frozenset[str] = frozenset(), forms: Forms = AS_IT_COMES
) -> Arrived:
    """Returns the message as it is shown, and what the model can see afterwards. `without` names codecs to leave out,
    `forms` those to leave out for single tools."""
    ledger, calls, references = standings.ledger, standings.calls, 0
    sources, written = standings.sources, standings.written
    codecs: tuple[str, ...] = ()
    for index, block in enumerate(message.blocks):
        if block.kind is BlockKind.CALL:
            name = label_of(block)
            calls = (*calls[1 - _CALLS :], (block.call_id, name))
            sources = (*sources[1 - _CALLS :], (block.call_id, f"{block.name} {_first_text(block)}"))
            written = (*written[-_CALLS:], *_written(block))
        elif block.kind is BlockKind.RESULT and block.path:
            name = Standings(ledger, calls).label(block)
            # Not every API names the tool in a result; the call does.
            left_out = without | forms.left_out(block.name or name.partition(" ")[0]) if forms.without else without
            title = ledger.next_title
            own = () if block.failed else [it for it in written if it[0] == block.call_id]
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
            written = tuple(it for it in written if it[0] != block.call_id)
            sources = tuple(it for it in sources if it[0] != block.call_id)
            for entry in entries:
                ledger = ledger.with_text(entry)
            if shown.text != block.text:
                message = message.with_text(index, shown.text)
                codecs = (*codecs, *shown.codecs)
    if ledger is not standings.ledger or calls is not standings.calls:
        standings = Standings(ledger, calls, sources, written)
    return Arrived(message, standings, not references, codecs)


def label_of(call: Block) -> str:
    """Returns the label of a call for the model: the tool, and its first text argument."""
    said = _first_text(call)
    word = said.replace("\\", "/").rstrip("/").rpartition("/")[2] if "/" in said and " " not in said else said
    return f"{call.name} {' '.join(word.split())[:_ARGUMENT]}".strip()


def _first_text(call: Block) -> str:
    return next((value for value in arguments_of(call).values() if isinstance(value, str)), "")


def _written(call: Block) -> list[tuple[str, str, str]]:
    """Returns the arguments of several lines: what the assistant wrote itself stands in its call."""
    if "\\n" not in call.text:  # in JSON the end of a line is escaped
        return []
    return [
        (call.call_id, name, value)
        for name, value in arguments_of(call).items()
        if name.isidentifier() and isinstance(value, str) and value.count("\n") >= _LINES
    ]


def arguments_of(call: Block) -> dict[str, Any]:
    try:
        arguments = json.loads(call.text)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}
