"""repeats and colours: replace repeated lines with a count, and terminal control sequences with single signs.

repeats writes a line, or a block of up to eight lines, once where it follows itself.

    [repeated lines said once]
    Traceback (most recent call last):
      File "a.py", line 7, in walk
        return walk(node.left)
    [the last 2 lines 12 times more]
    |[the line above 3 times more]

A line of the text that looks like a count has a bar before it. colours names each control sequence by one sign that
the text does not hold.

    [terminal codes: § is ESC[0m, ¶ is ESC[31m]
    ¶FAILED§ test_loans.py

Runs of one character stay: a rule of eighty signs is two or three tokens. Both hand the rest to the other codecs for
lines.
"""

import re
from collections import Counter
from collections.abc import Sequence

from pagefold.encode.codec import Codec, Inner

_HEADER = "[repeated lines said once]"
_COUNT = re.compile(r"\[the (?:line above|last ([2-8]) lines) ([1-9]\d{0,7}) times? more\]")
_BARRED = re.compile(rf"\|*(?:{_COUNT.pattern})")
_BLOCK = 8
_WORTH = 48

_ESCAPE = re.compile(r"\x1b(\[[\d;?]{0,24}[A-Za-z])")
_SIGNS = "§¶¤†‡¬¦µ¢£"
_LEAST = 4
_MOST = 30_000
_DATA = ("[JSON", "[Python", "[text in JSON", "[MCP text")


class RepeatsCodec(Codec):
    name = "repeats"
    header = re.compile(re.escape(_HEADER))

    def encode(self, text: str, inner: Inner) -> str | None:
        lines = text.split("\n")
        if len(lines) < 3:
            return None
        shown: list[str] = []
        start = folded = 0
        for at in _recurring(lines):
            block, times = _repeat(lines, at) if at >= start else (0, 0)
            if times:
                shown += _barred(lines[start : at + block])
                shown.append(_count(block, times))
                start = at + block * (times + 1)
                folded += 1
        if not folded:
            return None
        shown += _barred(lines[start:])
        return _below(_HEADER, inner("\n".join(shown)))

    def decode(self, form: str, inner: Inner) -> str:
        text: list[str] = []
        for line in inner(form[len(_HEADER) + 1 :]).split("\n"):
            count = _COUNT.fullmatch(line)
            if count is not None:
                text += text[-int(count[1] or 1) :] * int(count[2])
            else:
                text.append(line[1:] if line.startswith("|") and _BARRED.fullmatch(line) else line)
        return "\n".join(text)


class ColoursCodec(Codec):
    name = "colours"
    header = re.compile(r"\[terminal codes: (. is ESC\[[\d;?]*[A-Za-z](?:, . is ESC\[[\d;?]*[A-Za-z])*)\]")

    def encode(self, text: str, inner: Inner) -> str | None:
        if not _LEAST <= text.count("\x1b[") <= _MOST:
            return None
        common = [code for code, times in Counter(_ESCAPE.findall(text)).most_common(len(_SIGNS)) if times > 1]
        signs = dict(zip(common, (sign for sign in _SIGNS if sign not in text), strict=False))
        if not signs:
            return None
        legend = ", ".join(f"{sign} is ESC{code}" for code, sign in signs.items())
        shown = _ESCAPE.sub(lambda escape: signs.get(escape[1], escape[0]), text)
        return _below(f"[terminal codes: {legend}]", inner(shown))

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        codes: dict[str, str | int | None] = {
            entry[0]: f"\x1b{entry[len('x is ESC') :]}" for entry in header[1].split(", ")
        }
        return inner(body).translate(str.maketrans(codes))


def _below(header: str, form: str) -> str | None:
    """Returns a form of what is left, below a header that speaks of its lines. None where it has other lines: JSON."""
    return None if form.startswith(_DATA) else f"{header}\n{form}"


def _recurring(lines: Sequence[str]) -> list[int]:
    """Returns where lines stand that come again soon: only there can a repeated block begin."""
    soon: list[int] = []
    last: dict[str, int] = {}
    for at, line in enumerate(lines):
        if at - last.get(line, at - _BLOCK - 1) <= _BLOCK:
            soon.append(last[line])
        last[line] = at
    return sorted(soon)


def _repeat(lines: Sequence[str], at: int) -> tuple[int, int]:
    """Returns how many lines from here on follow themselves, and how often; (0, 0) where that saves too little."""
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
