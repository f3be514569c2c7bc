"""Escapes the quotes inside strings of indented JSON whose writer, or whoever passed it on, did not.

    "price_html": "<span class="amount">$5</span>",

A string begins behind the key and ends at the end of its line, so all quotes between are its own. A text with a line
that could be read in another way is refused: what looks like a second member must not become part of a string.
"""

import re

_STRING = re.compile(r'( *(?:"(?:[^"\\]|\\.)*": )?")(.*)(",?)')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEMBERS = ('": ', '", "')


def escape_quotes(text: str) -> str | None:
    """Returns the JSON that a text means. None where no quote is bare, others are escaped, or a line is not clear."""
    if text[1:2] != "\n" or '\\"' in text:
        return None
    lines = text.split("\n")
    mended = False
    for at, line in enumerate(lines):
        string = _STRING.fullmatch(line) if line.count('"') > 2 else None
        if string is None or '"' not in string[2]:
            continue
        if any(sign in string[2] for sign in _MEMBERS):
            return None
        lines[at] = string[1] + string[2].replace('"', '\\"') + string[3]
        mended = True
    return "\n".join(lines) if mended else None


def bare_quotes(text: str) -> str:
    """Undoes it: the JSON with the quotes inside its strings as they stood."""
    return _ESCAPE.sub(lambda escape: '"' if escape[1] == '"' else escape[0], text)
