"""Reads a Messages request as the provider does: a prompt of parts, each with its hash, tokens and cache mark.

What counts as content follows the documentation of preserved thinking: cache marks do not, a string is one text block,
messages of one role that follow each other are one turn. Where it says nothing the stricter reading is taken: the order
of an object's keys and of tools counts, and so does whether a tool result is a string or a list.

A message that was read before is not read again, so a growing conversation costs what is new in it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from pagefold.frozen import frozen
from pagefold.provider.signature import Bound, Summarized, bound_of, summarized_of
from pagefold.tokens import FRAME, Counter
from pagefold.wire import json_text
from pagefold.wire.json_text import as_list, as_object, as_string
from pagefold.wire.message import Message, Request

THINKING = ("thinking", "redacted_thinking")
_MARK = "cache_control"
_BILLING = "x-anthropic-billing-header"
_IMAGE_TOKENS = 1600
_MEMORY = 200_000


def hash_of(*pieces: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(pieces), digest_size=16).digest()


def hash_of_value(value: Any) -> bytes:
    return hash_of(json_text.bytes_of(json_text.dumps(value)))


@frozen
class ContentPart:
    """One content block, one tool, or one block of the system prompt.

    `life` is the cache mark's ("", "5m", "1h", or what else stands there). `bound` is what a thinking block's signature
    says, `summary` what a compaction block's says; `names` are the deferred tools that the part brings in.
    """

    kind: str
    content: bytes
    tokens: int
    life: str = ""
    call_id: str = ""
    name: str = ""
    empty: bool = False
    text: bytes = b""
    bound: Bound | None = None
    summary: Summarized | None = None
    names: tuple[str, ...] = ()


@frozen
class Turn:
    """One message. `also` is the hash of what it says besides role and content."""

    role: str
    parts: tuple[ContentPart, ...]
    also: bytes = b""
    plain: bool = False


@frozen
class Prompt:
    """One request: system, tools and turns as parts, and the other members of its body as they are."""

    model: str
    system: tuple[ContentPart, ...]
    tools: tuple[ContentPart, ...]
    turns: Sequence[Turn]
    members: Mapping[str, Any]
    betas: frozenset[str]
    stream: bool

    @property
    def thinking(self) -> Mapping[str, Any]:
        return as_object(self.members.get("thinking"))


class PromptReader:
    """Reads the messages of requests; those that it read lately are the same objects again."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], Turn] = {}
        self._heads: dict[tuple[str, str], tuple[ContentPart, ...]] = {}

    def read(self, request: Request, betas: frozenset[str], counter: Counter) -> Prompt:
        """Raises WireError."""
        members = {
            spot.key: json_text.parse(request.member(spot.key))
            for spot in request._around  # noqa: SLF001 - the members of this very body
            if spot.key not in ("system", "tools", request._tools_key)  # noqa: SLF001
        }
        system = self._head(request.member("system"), "system", counter)
        tools = self._head(request.member("tools"), "tools", counter)
        turns = [self._turn(message, counter) for message in request.messages]
        return Prompt(request.model, system, tools, turns, members, betas, request.stream)

    def _head(self, raw: str, kind: str, counter: Counter) -> tuple[ContentPart, ...]:
        if not raw:
            return ()
        key = raw, counter.name
        parts = self._heads.get(key)
        if parts is None:
            if len(self._heads) > 1000:
                self._heads.clear()
            value = json_text.parse(raw)
            listed = [{"type": "text", "text": value}] if isinstance(value, str) else as_list(value)
            if kind == "system":
                listed = [block for block in listed if not is_billing_line(block)]
            parts = tuple(_tool(tool, counter) if kind == "tools" else part_of(tool, counter) for tool in listed)
            self._heads[key] = parts
        return parts

    def _turn(self, message: Message, counter: Counter) -> Turn:
        key = message.raw, counter.name
        turn = self._turns.get(key)
        if turn is None:
            if len(self._turns) > _MEMORY:
                self._turns.clear()
            turn = self._turns[key] = turn_of(as_object(json_text.parse(message.raw)), counter)
        return turn


def is_billing_line(block: Any) -> bool:
    """Whether a system block is the line about billing that Claude Code writes first. It changes from request to
    request, and Claude Code's thinking stays valid, so it cannot be content."""
    return as_string(as_object(block).get("text")).startswith(_BILLING)


def turn_of(value: Mapping[str, Any], counter: Counter) -> Turn:
    content = value.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
    others = {key: member for key, member in value.items() if key not in ("role", "content", _MARK)}
    parts = tuple(part_of(block, counter) for block in blocks)
    return Turn(as_string(value.get("role")), parts, hash_of_value(others) if others else b"", isinstance(content, str))


def part_of(block: Any, counter: Counter) -> ContentPart:
    value = as_object(block)
    kind = as_string(value.get("type"))
    life = _life(value.get(_MARK))
    if kind in THINKING:
        signature = as_string(value.get("signature" if kind == "thinking" else "data"))
        bound, shown = bound_of(signature), hash_of(json_text.bytes_of(as_string(value.get("thinking"))))
        content = hash_of(json_text.bytes_of(signature))
        return ContentPart(kind, content, bound.tokens if bound else 0, life, text=shown, bound=bound)
    content = hash_of_value(_unmarked(value))
    if kind == "text":
        text = as_string(value.get("text"))
        return ContentPart(kind, content, counter.count(text), life, empty=not text.strip())
    if kind == "tool_use":
        tokens = counter.count(f"{value.get('name')} {json_text.dumps(value.get('input'))}") + FRAME
        return ContentPart(kind, content, tokens, life, as_string(value.get("id")), as_string(value.get("name")))
    if kind == "tool_result":
        tokens, names = _tokens(value.get("content"), counter), _references(value.get("content"))
        life = life or next((inner for inner in map(_inner_life, as_list(value.get("content"))) if inner), "")
        return ContentPart(kind, content, tokens + FRAME, life, as_string(value.get("tool_use_id")), names=names)
    if kind == "compaction":
        text = as_string(value.get("content"))
        summary = summarized_of(as_string(value.get("signature")), text)
        return ContentPart(kind, content, counter.count(text), life, summary=summary, empty=not value.get("signature"))
    if kind == "tool_addition":
        named = as_string(as_object(value.get("tool")).get("name"))
        return ContentPart(kind, content, _tokens(value, counter), life, names=(named,) if named else ())
    return ContentPart(kind, content, _tokens(block, counter), life)


def _tool(value: Any, counter: Counter) -> ContentPart:
    tool = _unmarked(as_object(value))
    kind = "deferred_tool" if tool.get("defer_loading") is True else "tool"
    tokens = counter.count(json_text.dumps(tool))
    return ContentPart(
        kind, hash_of_value(tool), tokens, _life(as_object(value).get(_MARK)), name=as_string(tool.get("name"))
    )


def _unmarked(value: Any) -> Any:
    """A block without cache marks, its own and those inside a tool result, and without members that are null."""
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if key != _MARK and part is not None}
        if isinstance(kept.get("content"), list):
            kept["content"] = [_unmarked(part) for part in kept["content"]]
        return kept
    return value


def _life(mark: Any) -> str:
    if not isinstance(mark, dict):
        return ""
    life = mark.get("ttl", "5m")
    return life if isinstance(life, str) else "?"


def _inner_life(block: Any) -> str:
    return _life(as_object(block).get(_MARK))


def _references(content: Any) -> tuple[str, ...]:
    blocks = [as_object(block) for block in as_list(content)]
    return tuple(as_string(block.get("tool_name")) for block in blocks if block.get("type") == "tool_reference")


def _tokens(content: Any, counter: Counter) -> int:
    if isinstance(content, str):
        return counter.count(content)
    if isinstance(content, list):
        return sum(_tokens(part, counter) for part in content)
    value = as_object(content)
    if value.get("type") == "text":
        return counter.count(as_string(value.get("text")))
    if value.get("type") in ("image", "document"):
        return _IMAGE_TOKENS
    return counter.count(json_text.dumps(content)) if content is not None else 0
