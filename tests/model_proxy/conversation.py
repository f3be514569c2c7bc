"""Conversations as clients send them, and policies that fold them early."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pagefold.derive.policies import policy_named
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policy import NOTHING, Abilities, Derived, Notes, Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.wire.api import Api
from pagefold.wire.apis import MESSAGES
from pagefold.wire.message import BlockKind, Message

MARK = {"cache_control": {"type": "ephemeral"}}


FILE = "\n".join(
    f"{number:6}\tdef function_{number % 7}(self, page: Page) -> None:  # see line" for number in range(1, 60)
)


@dataclass(frozen=True)
class Folding:
    """Folds old results to a word whenever more than `window` messages stand, or when a note says so."""

    window: int = 7
    prices: object = None
    tokens: str = "o200k"
    name: str = "folding"

    abilities: ClassVar[Abilities] = Abilities(folds=True)

    def begin(self, head: int = 0) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
        return (), ()

    def step(self, state: Any, message: Message) -> Any:
        return (state[0], (*state[1], message))

    def request(self, state: Any, notes: Notes = NOTHING) -> tuple[Any, Derived]:
        sent, waiting = state
        stands = (*sent, *waiting)
        full = sum(len(message.text) > 100 for message in stands)
        if full <= self.window and not notes.cold and not notes.smaller:
            return (stands, ()), Derived(len(sent), waiting)
        folded = tuple(map(self._folded, stands[:-1])) + stands[-1:]
        same = next((at for at, (a, b) in enumerate(zip(sent, folded, strict=False)) if a.raw != b.raw), len(sent))
        return (folded, ()), Derived(same, folded[same:], "too much")

    @staticmethod
    def _folded(message: Message) -> Message:
        for index, block in enumerate(message.blocks):
            if block.kind is BlockKind.RESULT and len(block.text) > 100:
                message = message.with_text(index, "[folded]")
        return message


POLICIES: dict[str, Callable[[], Policy]] = {
    "identity": lambda: policy_named("identity"),
    "lossless": lambda: policy_named("lossless"),
    "folding": Folding,
    "economic": lambda: Economic(window=9_000),
}


def turn(number: int, text: str = FILE) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"path": f"{number}.py"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def history(turns: int, *, first: str = "Go.") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "user", "content": first}]
    for number in range(turns):
        found += turn(number, FILE.replace("function", f"function{number // 2}"))
    return found


def marked(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """As a client sends it: a mark on the last block of the last message, which is then a list."""
    *before, last = messages
    content = last["content"]
    blocks: list[dict[str, Any]]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [dict(block) for block in content]
    blocks[-1] |= MARK
    return [*before, {**last, "content": blocks}]


def body(messages: Sequence[Any], **more: Any) -> bytes:
    rest = {"system": "s", "tools": [{"name": "Read"}], "stream": True, **more}
    return json.dumps({"model": "claude-sonnet-4-5", "messages": list(messages), **rest}).encode()


def sent(conversations: Conversations, data: bytes, api: Api = MESSAGES, wish: str = "") -> bytes:
    """What goes upstream for this body."""
    exchange = Exchange("POST", api.path, data, conversations, wish=wish)
    return (exchange.derive() if exchange.derives and exchange.read() else None) or data


def canonical_messages(data: bytes) -> list[Any]:
    found = json.loads(data)["messages"]
    for message in found:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        for block in message["content"]:
            block.pop("cache_control", None)
    return list(found)


@dataclass(frozen=True)
class Paging(Folding):
    """Folds, and says which page its handle recalls."""

    def request(self, state: Any, notes: Notes = NOTHING) -> tuple[Any, Derived]:
        state, derived = super().request(state, notes)
        pages = (Page.of(PageKind.EVIDENCE, FILE),) if derived.reason else ()
        return state, Derived(derived.keep, derived.append, derived.reason, pages)
