"""The text in an MCP content envelope: `{"type": "text", "text": "…"}`, or a list of such."""

import json

_MOST = 1 << 20  # characters of an envelope that is opened


def text_in(result: str) -> str:
    """The text in an envelope, its parts one behind another; the result itself where it is none."""
    if result[:1] not in ("{", "[") or '"type"' not in result[:40] or len(result) > _MOST:
        return result
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return result
    parts = value if isinstance(value, list) else [value]
    said = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    texts = [text for text in said if isinstance(text, str)]
    return "".join(texts) if len(texts) == len(parts) else result
