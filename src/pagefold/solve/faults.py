"""Damage that a context policy could do, planted on purpose: the instrument has to find each kind.

Every fault takes the messages of a request and returns them damaged. The last messages are spared, as they would be.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Messages = Sequence[Mapping[str, Any]]
_SPARED = 4  # messages at the end that every policy leaves alone
_INDENTED = re.compile(r"^[ ]*\d+\t    .*\n?", re.MULTILINE)


def lost_texts(messages: Messages) -> Messages:
    """The bodies of functions that were read are gone."""
    return _results(messages, lambda text, failed: (_INDENTED.sub("", text), failed))


def dangling_references(messages: Messages) -> Messages:
    """Results are replaced by references to what stands nowhere."""
    return _results(messages, lambda text, failed: (text if len(text) < 80 else "= lines 1-40 of R99", failed))


def refused_as_made(messages: Messages) -> Messages:
    """Edits that were refused or failed look made."""
    made = re.compile(r"^.*?(\S+\.py).*Nothing was changed\.$", re.MULTILINE)
    return _results(
        messages,
        lambda text, failed: (made.sub(r"The file \1 has been updated.", text), failed and not made.search(text)),
    )


def lost_antecedent(messages: Messages) -> Messages:
    """What the assistant has said is gone."""
    return [
        {**message, "content": [block for block in message["content"] if block.get("type") != "text"] or "…"}
        if message["role"] == "assistant"
        else message
        for message in messages
    ]


def stale_lines(messages: Messages) -> Messages:
    """Text that an edit has replaced stands behind what replaced it, as if it were there still."""
    old = [
        block["input"]["old_string"]
        for message in messages[:-_SPARED]
        for block in _blocks(message)
        if block.get("type") == "tool_use" and "old_string" in block["input"]
    ]
    if not old:
        return messages
    *before, last = messages
    view = {"type": "text", "text": "\n\n".join(old) + "\n"}
    return [*before, {**last, "content": [view, *_blocks(last)]}]


FAULTS: Mapping[str, Callable[[Messages], Messages]] = {
    "lost edit texts": lost_texts,
    "stale lines": stale_lines,
    "refused edits shown as made": refused_as_made,
    "lost antecedents": lost_antecedent,
    "dangling references": dangling_references,
}


def _results(messages: Messages, change: Callable[[str, bool], tuple[str, bool]]) -> Messages:
    """The messages with the results of all but the last ones changed."""
    return [*(_changed(message, change) for message in messages[:-_SPARED]), *messages[-_SPARED:]]


def _changed(message: Mapping[str, Any], change: Callable[[str, bool], tuple[str, bool]]) -> Mapping[str, Any]:
    blocks: list[Mapping[str, Any]] = []
    for block in _blocks(message):
        if block.get("type") == "tool_result":
            content = block.get("content")
            text, failed = change(
                content if isinstance(content, str) else json.dumps(content), bool(block.get("is_error"))
            )
            blocks.append({**block, "content": text, "is_error": failed})
        else:
            blocks.append(block)
    return {**message, "content": blocks}


def _blocks(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
