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


@frozen
class Standings:
    """What the model can see: the ledger of texts shown, and the last calls as pairs of id and label."""

    ledger: Ledger = field(default_factory=Ledger)
    calls: tuple[tuple[str, str], ...] = ()

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
    codecs: tuple[str, ...] = ()
    for index, block in enumerate(message.blocks):
        if block.kind is BlockKind.CALL:
            name = label_of(block)
            calls = (*calls[1 - _CALLS :], (block.call_id, name))
            for text in _written(block):
                ledger = ledger.with_text(LedgerEntry(ledger.label_for(f"your {name}"), tuple(text.split("\n"))))
        elif block.kind is BlockKind.RESULT and block.path:
            name = Standings(ledger, calls).label(block)
            # Not every API names the tool in a result; the call does.
            left_out = without | forms.left_out(block.name or name.partition(" ")[0]) if forms.without else without
            shown = encode(
                block.text, tool=name, ledger=ledger, failed=block.failed, without=left_out, floor=forms.floor
            )
            references += shown.references
            for entry in shown.ledger_entries:
                ledger = ledger.with_text(entry)
            if shown.text != block.text:
                message = message.with_text(index, shown.text)
                codecs = (*codecs, *shown.codecs)
    if ledger is not standings.ledger or calls is not standings.calls:
        standings = Standings(ledger, calls)
    return Arrived(message, standings, not references, codecs)


def label_of(call: Block) -> str:
    """Returns the label of a call for the model: the tool, and its first text argument."""
    said = next((value for value in arguments_of(call).values() if isinstance(value, str)), "")
    word = said.replace("\\", "/").rstrip("/").rpartition("/")[2] if "/" in said and " " not in said else said
    return f"{call.name} {' '.join(word.split())[:_ARGUMENT]}".strip()


def _written(call: Block) -> list[str]:
    """Returns the arguments of several lines: what the assistant wrote itself stands in its call."""
    if "\\" not in call.text:  # in JSON the end of a line is escaped
        return []
    return [value for value in arguments_of(call).values() if isinstance(value, str) and "\n" in value]


def arguments_of(call: Block) -> dict[str, Any]:
    try:
        arguments = json.loads(call.text)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}
