"""The frames that harnesses put around what a command printed."""

import json
import re

_CODEX_FRAME = re.compile(r"\A(?:Chunk ID|Exit code|Wall time|Script completed)[^\n]*\n(?:[^\n]*\n){0,5}?Output:\n")
_BASH_FRAME = re.compile(r"\A<returncode>\d+</returncode>\s*<output>\n?(.*?)\n?</output>\s*\Z", re.DOTALL)
_SHELL_NOTE = re.compile(r"\n?Shell cwd was reset to [^\n]*\s*\Z")

_CUT = re.compile(r"<persisted-output>|truncated\b|<output_head>|</output_tail>|Output too large|output was too long")


def is_cut(text: str) -> bool:
    """Whether a harness says in a text that it left something out of it."""
    return _CUT.search(text) is not None


def is_framed(result: str) -> bool:
    """Whether a harness gave what a command printed inside a frame, and so all of it; others strip empty lines."""
    return bool(_CODEX_FRAME.match(result) or _BASH_FRAME.match(result)) or result.lstrip()[:1] in ("{", "[")


def opened(result: str) -> str:
    """A result without the frame that harnesses put around what a command printed."""
    if (frame := _CODEX_FRAME.match(result)) is not None:
        return result[frame.end() :].removeprefix("\n") if result.startswith("Script") else result[frame.end() :]
    if (frame := _BASH_FRAME.match(result)) is not None:
        return frame.group(1)
    if result.lstrip()[:1] in "{[" and len(result) < 1 << 20:
        try:
            value = json.loads(result)
        except (ValueError, RecursionError):
            return result
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        inner = (value.get("output") or value.get("text")) if isinstance(value, dict) else None
        return inner if isinstance(inner, str) else result
    return _SHELL_NOTE.sub("", result)
