r"""escapes: breaks long lines at their escaped line breaks, as Python's repr writes them.

    [long lines opened at their escaped line breaks]
    <<\n
    ### 1. Outcome
    Nothing was found.
    >>

The lines between the marks were one line, joined by the sign behind the opening mark. Opened, they can be read, and
lines that occur elsewhere can be referred to.
"""

import re
from collections import Counter

from pagefold.encode.codec import Codec, Inner

_HEADER = "[long lines opened at their escaped line breaks]"
_BREAK = re.compile(r"\\+n")
_OPEN = re.compile(r"<<(\\+n)")
_CLOSE = ">>"
_LONG = 400
_LEAST = 3
_MOST = 15_000


class EscapesCodec(Codec):
    name = "escapes"
    header = re.compile(re.escape(_HEADER))

    def encode(self, text: str, inner: Inner) -> str | None:
        if len(text) < _LONG or not _LEAST <= text.count("\\n") <= _MOST:
            return None
        shown, opened = [_HEADER], 0
        for line in text.split("\n"):
            if line == _CLOSE or _OPEN.fullmatch(line):
                return None
            sign = _break_sign(line)
            if sign is None:
                shown.append(line)
                continue
            parts = line.split(sign)
            if any(part == _CLOSE or _OPEN.fullmatch(part) for part in parts):
                return None
            shown += [f"<<{sign}", *parts, _CLOSE]
            opened += 1
        return "\n".join(shown) if opened else None

    def decode(self, form: str, inner: Inner) -> str:
        lines: list[str] = []
        parts: list[str] | None = None
        sign = ""
        for line in form.split("\n")[1:]:
            if parts is not None and line == _CLOSE:
                lines.append(sign.join(parts))
                parts = None
            elif parts is not None:
                parts.append(line)
            elif opening := _OPEN.fullmatch(line):
                sign, parts = opening[1], []
            else:
                lines.append(line)
        return "\n".join(lines)


def _break_sign(line: str) -> str | None:
    """Returns the escaped line break that a long line holds most often, or None where it holds too few."""
    if len(line) < _LONG:
        return None
    signs = Counter(_BREAK.findall(line)).most_common(1)
    return signs[0][0] if signs and signs[0][1] >= _LEAST else None
