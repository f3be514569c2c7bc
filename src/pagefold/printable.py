"""Shows text that somebody else wrote so that it stays text: nothing in it moves the cursor, colours, hides or turns
around what stands beside it.

The one function for this: terminal output, logs, pages and pagefold's own lines in requests all use it.
"""

import re

CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 with ESC, DEL, C1 with CSI and OSC
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # joiners, separators, bidi
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # shorthand, music, tags
    "\ud800-\udfff]"  # half of a pair: no encoding can write it
)
"""Matches a character that a terminal or a reader would follow instead of showing it."""
_LINES = "\n\t"


def printable(text: str, keep: str = _LINES) -> str:
    """Returns the text with control, bidi and invisible characters as escapes, such as `\\x1b`. Those in `keep` stay,
    which are line ends and tabs unless something else is said; with `keep=""` the result is one line."""
    return CONTROL.sub(lambda match: match[0] if match[0] in keep else _escape(ord(match[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
