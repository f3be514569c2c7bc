"""lossless: every new tool result enters in its cheapest lossless form; nothing that was sent is touched again."""

import json
from dataclasses import dataclass, field
from typing import Any

from pagefold.derive.policy import Derived
from pagefold.encode.choose import encode
from pagefold.pages.ledger import Ledger, Standing
from pagefold.wire.message import Block, BlockKind, Message

_ARGUMENT = 40


@dataclass(frozen=True, slots=True)
class State:
    sent: int = 0
    waiting: tuple[Message, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Lossless:
    """`without` names codecs to leave out: how each one's worth is measured."""

    name: str = "lossless"
    without: frozenset[str] = frozenset()

    def begin(self) -> State:
        return State()

    def step(self, state: State, message: Message) -> State:
        ledger, calls = state.ledger, state.calls
        for index, block in enumerate(message.blocks):
            if block.kind is BlockKind.CALL:
                name = label_of(block)
                calls = (*calls[-63:], (block.call_id, name))
                ledger = _written(ledger, block, name)
            elif block.kind is BlockKind.RESULT and block.path:
                name = next((name for call, name in reversed(calls) if call == block.call_id), block.name or "result")
                shown = encode(block.text, tool=name, ledger=ledger, failed=block.failed, without=self.without)
                for standing in shown.standing:
                    ledger = ledger.with_text(standing)
                if shown.text != block.text:
                    message = message.with_text(index, shown.text)
        return State(state.sent, (*state.waiting, message), ledger, calls)

    def request(self, state: State) -> tuple[State, Derived]:
        sent = State(state.sent + len(state.waiting), (), state.ledger, state.calls)
        return sent, Derived(state.sent, state.waiting)


def label_of(call: Block) -> str:
    """How the model knows a call: the tool, and the first thing it was told."""
    said = next((value for value in _arguments(call).values() if isinstance(value, str)), "")
    word = said.replace("\\", "/").rstrip("/").rpartition("/")[2] if "/" in said and " " not in said else said
    return f"{call.name} {' '.join(word.split())[:_ARGUMENT]}".strip()


def _written(ledger: Ledger, call: Block, name: str) -> Ledger:
    """What the assistant wrote itself stands in its call."""
    for value in _arguments(call).values():
        if isinstance(value, str) and "\n" in value:
            label = ledger.label_for(f"your {name}")
            ledger = ledger.with_text(Standing(label, tuple(value.split("\n"))))
    return ledger


def _arguments(call: Block) -> dict[str, Any]:
    try:
        arguments = json.loads(call.text)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}
