r"""escapes: long lines that hold whole texts with their line breaks escaped, as reprs do. Shown with real line breaks.

    [long lines opened at their escaped line breaks]
    <<\n
    ### 1. Outcome
    Nothing was found.
    >>

What stood in one line stands between the marks, broken where the sign behind the first mark was. Now it can be read,
and lines that stand elsewhere can be referred to.
"""

import re
from collections import Counter

from pagefold.encode.codec import Inner

_HEADER = "[long lines opened at their escaped line breaks]"
_BREAK = re.compile(r"\\+n")
_OPEN = re.compile(r"<<(\\+n)")
_CLOSE = ">>"
_LONG = 400
_LEAST = 3
_MOST = 15_000


class EscapesCodec:
    name = "escapes"

    def owns(self, line: str) -> bool:
        return line == _HEADER

    def encode(self, text: str, inner: Inner) -> str | None:
        if len(text) < _LONG or not _LEAST <= text.count("\\n") <= _MOST:
            return None
        shown, opened = [_HEADER], 0
        for line in text.split("\n"):
            if line == _CLOSE or _OPEN.fullmatch(line):
                return None
            sign = _sign(line)
            if sign is None:
                shown.append(line)
                continue
            pieces = line.split(sign)
            if any(piece == _CLOSE or _OPEN.fullmatch(piece) for piece in pieces):
                return None
            shown += [f"<<{sign}", *pieces, _CLOSE]
            opened += 1
        return "\n".join(shown) if opened else None

    def decode(self, shown: str, inner: Inner) -> str:
        lines: list[str] = []
        pieces: list[str] | None = None
        sign = ""
        for line in shown.split("\n")[1:]:
            if pieces is not None and line == _CLOSE:
                lines.append(sign.join(pieces))
                pieces = None
            elif pieces is not None:
                pieces.append(line)
            elif found := _OPEN.fullmatch(line):
                sign, pieces = found[1], []
            else:
                lines.append(line)
        return "\n".join(lines)


def _sign(line: str) -> str | None:
    """The escaped line break that a long line holds most often, if it holds enough of them."""
    if len(line) < _LONG:
        return None
    signs = Counter(_BREAK.findall(line)).most_common(1)
    return signs[0][0] if signs and signs[0][1] >= _LEAST else None
