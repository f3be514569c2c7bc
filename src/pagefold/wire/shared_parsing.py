"""Parses what several wire formats have in common: roles, parts of content, tool results, cache marks and usage."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text
from pagefold.wire.message import Block, BlockKind, Message, Parse, Role, Usage

MARK, BREAKPOINT = "cache_control", "prompt_cache_breakpoint"
"""The keys by which clients tell a provider what to cache: Anthropic's, and OpenAI's."""
_MARKS = frozenset((MARK, BREAKPOINT))
_ROLES: Mapping[str, Role] = {role.value: role for role in Role}


def with_result_id(message: Message, key: str, parse: Parse, ids: Mapping[int, str]) -> Message | None:
    """A message that is one result, under another call id; None where it is to answer no call."""
    if not ids:
        return None
    raw = json_text.replaced(message.raw, (key,), ids[0])
    return parse(json_text.parse(raw), raw)


def role_of(value: Any) -> Role:
    """Returns the role of a message. Raises WireError where the value is no message or has no known role."""
    try:
        return _ROLES[value["role"]]
    except (TypeError, KeyError) as error:
        if not isinstance(value, dict):
            raise WireError(f"expected a message, found {json_text.dumps(value)[:40]}") from error
        role = json_text.dumps(value.get("role"))[:40]
        raise WireError(f"role {role}: expected one of {', '.join(Role)}") from error


def text_parts(content: Any, path: json_text.Path, part: Callable[[Any, json_text.Path], Block]) -> Iterator[Block]:
    """The blocks of content that is a string or a list of parts, each read by `part`."""
    if isinstance(content, str):
        yield Block(BlockKind.TEXT, content, path)
    elif isinstance(content, list):
        for index, value in enumerate(content):
            yield part(value, (*path, index))


def typed_part(value: Any, path: json_text.Path, texts: Mapping[str, str], media: Sequence[str]) -> Block:
    """A part of content by its type: `texts` maps types to the key of their text, `media` are types that hold none."""
    kind = value.get("type") if isinstance(value, dict) else None
    key = texts.get(kind) if isinstance(kind, str) else None
    if key is not None and isinstance(value.get(key), str):
        return Block(BlockKind.TEXT, value[key], (*path, key))
    return Block(BlockKind.MEDIA, "") if kind in media else Block(BlockKind.OTHER, json_text.dumps(value))


def unmarked(content: Any) -> Any:
    """Returns content without cache marks, also inside results, and a string as one text block. The arguments of calls
    are left as they are. Whether two messages are the same to a prompt cache is decided by this spelling."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return content
    blocks: list[Any] = []
    for block in content:
        kept = block
        if isinstance(block, dict):
            if MARK in block or BREAKPOINT in block:
                kept = {key: part for key, part in block.items() if key not in _MARKS}
            if block.get("type") == "tool_result" and "content" in block:
                kept = {**kept, "content": unmarked(block["content"])}
        blocks.append(kept)
    return blocks


def usage_of(prompt: Any, details: Any, output: Any) -> Usage:
    """Usage where the prompt's count holds the tokens read from the cache and written to it, which `details` tells."""
    told, total = json_text.as_object(details), json_text.as_count(prompt)
    cached, written = json_text.as_count(told.get("cached_tokens")), json_text.as_count(told.get("cache_write_tokens"))
    return Usage(max(0, total - cached - written), cached, written, json_text.as_count(output))


def as_result(content: Iterable[Block], call_id: str, name: str = "", *, failed: bool = False) -> list[Block]:
    """Returns a result's content as blocks of that result. Content without any text begins with an empty result."""
    found: list[Block] = []
    empty = True
    for block in content:
        if block.kind is BlockKind.TEXT:
            empty = False
            found.append(Block(BlockKind.RESULT, block.text, block.path, call_id, name, failed, block.within))
        else:
            found.append(Block(block.kind, block.text, block.path, call_id, name, block.failed))
    return [Block(BlockKind.RESULT, "", (), call_id, name, failed), *found] if empty else found
