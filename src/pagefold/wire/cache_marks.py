"""Removes the marks by which clients tell a provider what to cache, and writes content in one fixed spelling.

Whether two messages are the same to a prompt cache is decided by this spelling.
"""

from typing import Any

MARK = "cache_control"


def unmarked(content: Any) -> Any:
    """Returns content without cache marks, also inside results, and a string as one text block. The arguments of calls
    are left as they are."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_unmarked_block(block) for block in content] if isinstance(content, list) else content


def _unmarked_block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    kept = {key: part for key, part in block.items() if key != MARK}
    if block.get("type") == "tool_result" and "content" in kept:
        kept["content"] = unmarked(kept["content"])
    return kept
