"""repeats: lines or blocks of up to eight lines that come again at once, said once with a count.

    [repeated lines said once]
    Traceback (most recent call last):
      File "a.py", line 7, in walk
        return walk(node.left)
    [the last 2 lines 12 times more]
    |[the line above 3 times more]

A line of the text that looks like a count has a bar before it. Also colours: the control sequences of a terminal, each
named by one sign that the text does not have.

    [terminal codes: § is ESC[0m, ¶ is ESC[31m]
    ¶FAILED§ test_loans.py

Runs of one character stay: a rule of eighty signs is two or three tokens. What is left goes on to the other codecs.
"""

import re
from collections import Counter
from collections.abc import Sequence

from pagefold.encode.codec import Inner

_HEADER = "[repeated lines said once]"
_COUNT = re.compile(r"\[the (?:line above|last ([2-8]) lines) ([1-9]\d{0,7}) times? more\]")
_BARRED = re.compile(rf"\|*(?:{_COUNT.pattern})")
_BLOCK = 8
_WORTH = 48

_CODES = re.compile(r"\[terminal codes: (. is ESC\[[\d;?]*[A-Za-z](?:, . is ESC\[[\d;?]*[A-Za-z])*)\]")
_ESCAPE = re.compile(r"\x1b(\[[\d;?]{0,24}[A-Za-z])")
_SIGNS = "§¶¤†‡¬¦µ¢£"
_LEAST = 4
_MOST = 30_000


class RepeatsCodec:
    name = "repeats"

    def owns(self, line: str) -> bool:
        return line == _HEADER

    def encode(self, text: str, inner: Inner) -> str | None:
        lines = text.split("\n")
        if len(lines) < 3:
            return None
        shown: list[str] = []
        start = folded = 0
        for at in _coming_again(lines):
            block, times = _repeat(lines, at) if at >= start else (0, 0)
            if times:
                shown += _barred(lines[start : at + block])
                shown.append(_count(block, times))
                start = at + block * (times + 1)
                folded += 1
        if not folded:
            return None
        shown += _barred(lines[start:])
        return f"{_HEADER}\n{inner(chr(10).join(shown))}"

    def decode(self, shown: str, inner: Inner) -> str:
        text: list[str] = []
        for line in inner(shown[len(_HEADER) + 1 :]).split("\n"):
            found = _COUNT.fullmatch(line)
            if found is not None:
                text += text[-int(found[1] or 1) :] * int(found[2])
            else:
                text.append(line[1:] if line.startswith("|") and _BARRED.fullmatch(line) else line)
        return "\n".join(text)


class ColoursCodec:
    name = "colours"

    def owns(self, line: str) -> bool:
        return _CODES.fullmatch(line) is not None

    def encode(self, text: str, inner: Inner) -> str | None:
        if not _LEAST <= text.count("\x1b[") <= _MOST:
            return None
        common = [code for code, times in Counter(_ESCAPE.findall(text)).most_common(len(_SIGNS)) if times > 1]
        signs = dict(zip(common, (sign for sign in _SIGNS if sign not in text), strict=False))
        if not signs:
            return None
        said = ", ".join(f"{sign} is ESC{code}" for code, sign in signs.items())
        shown = _ESCAPE.sub(lambda found: signs.get(found[1], found[0]), text)
        return f"[terminal codes: {said}]\n{inner(shown)}"

    def decode(self, shown: str, inner: Inner) -> str:
        header, _, rest = shown.partition("\n")
        found = _CODES.fullmatch(header)
        assert found is not None
        codes: dict[str, str | int | None] = {
            said[0]: f"\x1b{said[len('x is ESC') :]}" for said in found[1].split(", ")
        }
        return inner(rest).translate(str.maketrans(codes))


def _coming_again(lines: Sequence[str]) -> list[int]:
    """Where a line stands that comes again soon: only there a repeated block can begin."""
    soon: list[int] = []
    last: dict[str, int] = {}
    for at, line in enumerate(lines):
        if at - last.get(line, at - _BLOCK - 1) <= _BLOCK:
            soon.append(last[line])
        last[line] = at
    return sorted(soon)


def _repeat(lines: Sequence[str], at: int) -> tuple[int, int]:
    """How many lines from here on come again at once, and how often: not at all where that saves too little."""
    best = (0, 0)
    worth = _WORTH
    first = lines[at]
    for block in range(1, min(_BLOCK, (len(lines) - at) // 2) + 1):
        if lines[at + block] != first or lines[at : at + block] != lines[at + block : at + 2 * block]:
            continue
        end = at + 2 * block
        while lines[end : end + block] == lines[at : at + block]:
            end += block
        times = (end - at) // block - 1
        saved = times * sum(len(line.strip()) + 1 for line in lines[at : at + block])
        if saved > worth:
            best, worth = (block, times), saved
    return best


def _count(block: int, times: int) -> str:
    which = "line above" if block == 1 else f"last {block} lines"
    return f"[the {which} {times} {'time' if times == 1 else 'times'} more]"


def _barred(lines: Sequence[str]) -> list[str]:
    return [f"|{line}" if line[:1] in ("[", "|") and _BARRED.fullmatch(line) else line for line in lines]
