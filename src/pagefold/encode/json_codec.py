"""json: whole and cut-off JSON, lines of JSON and Python literals, in the notation.

Where bytes count (inside a frame) the layout is one of those that serialisers write, checked to the byte; the header
names it. At the top of a result white space says nothing and is not kept: there the values are what comes back. A text
that breaks off in mid-value keeps all that was complete; the torn end follows as it came.
"""

import ast
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from pagefold.encode.codec import Inner
from pagefold.encode.notation.json_value import LAYOUTS, JsonValue, Layout, Members, compact, parse, plain
from pagefold.encode.notation.read import read
from pagefold.encode.notation.write import MOST, write

_LEAST = 24
_ROWS = 3
_DEEP = 64
_LOOKED = 8_000_000  # characters at most: every open level of a torn text is looked through once more
_MANY = 20_000  # and elements
_HELD = 20_000  # containers
_SPACE = re.compile(r"[ \t\n\r]*")
_LITERAL = 200_000
_HEADER = re.compile(
    r"\[(JSON|Python)((?: [a-z0-9]+)*)(, the last empty)?(?:, cut off (\d+) deep before the last (\d+) lines)?\]"
)
_decoder = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class JsonCodec:
    """`exact` where the bytes have to come back, and not only the values."""

    exact: bool
    name: str = "json"

    def owns(self, line: str) -> bool:
        return _HEADER.fullmatch(line) is not None

    def encode(self, text: str, inner: Inner) -> str | None:
        if text[:1] not in ("{", "[") and text.lstrip()[:1] not in ("{", "["):
            return None
        if len(text) < _LEAST or (len(text) > _HELD and self._is_too_much(text)):
            return None
        try:
            value = parse(text)
        except (ValueError, RecursionError):
            return _literal(text) or (_lines(text) or _torn(text) if text.count(",") <= _MANY else None)
        if not isinstance(value, Members | list):
            return None
        layout = None
        if self.exact:
            layout = _layout(text, value, text, lambda dumped: dumped == text)
            if layout is None:
                return None
        body = write(value)
        if body is None:
            return None
        return f"[JSON {layout.name}]\n{body}" if layout else f"[JSON]\n{body}"

    def _is_too_much(self, text: str) -> bool:
        return text.count(",") > (_MANY if self.exact else MOST) or text.count("[") + text.count("{") > _HELD

    def says(self, shown: str, text: str) -> bool:
        """Whether a form of whole JSON says the values of a text: types, key order, lexemes and duplicates included."""
        return shown.startswith("[JSON]\n") and read(shown[7:]) == parse(text)

    def decode(self, shown: str, inner: Inner) -> str:
        header, _, rest = shown.partition("\n")
        found = _HEADER.fullmatch(header)
        assert found is not None
        tail = ""
        if found[5]:
            lines = rest.split("\n")
            split = len(lines) - int(found[5])
            rest, tail = "\n".join(lines[:split]), "\n".join(lines[split:])
        value = read(rest)
        if found[1] == "Python":
            return repr(plain(value))
        named = found[2].strip()
        layout = next((layout for layout in LAYOUTS if layout.name == named.removeprefix("lines ")), None)
        if layout is None:
            return compact(value)
        if named.startswith("lines ") and isinstance(value, list):
            return "\n".join([layout.dump(line) for line in value]) + ("\n" if found[3] else "")
        text = layout.dump(value)
        return _opened(text, int(found[4])) + tail if found[5] else text


def _layout(text: str, value: JsonValue, whole: str, fits: Callable[[str], bool]) -> Layout | None:
    """The layout that gives these bytes of a value. The first characters rule most of them out.

    Python's own serialiser tries first, in a tenth of the time; it does not know numbers such as 1.10.
    """
    head = text[:40]
    if "\n" in head:
        spaces = len(head.partition("\n")[2]) - len(head.partition("\n")[2].lstrip(" "))
        names = [f"indent {spaces}"]
    else:
        names = ["spaced", "compact"] if re.search(r'": |, ', text[:400]) else ["compact", "spaced"]
    # Nothing but an escape tells a text that was escaped to ASCII from one that was not.
    likely = (
        layout
        for layout in LAYOUTS
        if layout.name in names or ("\\u" in text and layout.name.removesuffix(" ascii") in names)
    )
    try:
        known = json.loads(whole, strict=False)
    except ValueError:
        return None  # an integer of more digits than Python reads
    return next((it for it in likely if fits(it.quick(known)) or fits(it.dump(value))), None)


def _literal(text: str) -> str | None:
    """A Python literal that is its own repr."""
    if len(text) > _LITERAL or ("'" not in text[:400] and "True" not in text and "None" not in text):
        return None
    try:
        value = ast.literal_eval(text)
        if repr(value) != text or not isinstance(value, dict | list):
            return None
        body = write(parse(json.dumps(value, ensure_ascii=False)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return None if body is None else f"[Python]\n{body}"


def _lines(text: str) -> str | None:
    """A value on every line: together they are an array."""
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < _ROWS or not all(line.startswith(("{", "[")) for line in lines):
        return None
    whole = f"[{','.join(lines)}]"
    try:
        value = parse(whole)
    except (ValueError, RecursionError):
        return None
    layout = _layout(whole, value, whole, lambda dumped: dumped in (whole, f"[{', '.join(lines)}]"))
    body = write(value) if layout else None
    if layout is None or body is None:
        return None
    return f"[JSON lines {layout.name}{', the last empty' if text.endswith(chr(10)) else ''}]\n{body}"


def _torn(text: str) -> str | None:
    """JSON that breaks off: what was complete in the notation, then the torn end."""
    found = _complete(text)
    if found is None:
        return None
    end, depth = found
    closers = _closers(text, end)
    if closers is None or len(closers) != depth:
        return None
    kept = text[:end]
    value = parse(kept + closers)
    layout = _layout(text, value, kept + closers, lambda dumped: _opened(dumped, depth) == kept)
    if layout is None:
        return None
    body = write(value)
    if body is None:
        return None
    tail = text[end:]
    lines = tail.count("\n") + 1
    return f"[JSON {layout.name}, cut off {depth} deep before the last {lines} lines]\n{body}\n{tail}"


def _complete(text: str) -> tuple[int, int] | None:
    """Where the last complete element ends, and in how many open containers it lies."""
    end, end_depth, looked = 0, 0, 0
    at = _past(text, 0)
    for depth in count(1):
        if at >= len(text) or text[at] not in "{[":
            return (end, end_depth) if end else None
        if depth > _DEEP or depth * len(text) > _LOOKED:
            return None
        # Inside a container: take what is complete, and open what is not.
        keyed = text[at] == "{"
        at = _past(text, at + 1)
        while True:
            if keyed:
                at = _key(text, at)
                if at < 0:
                    return (end, end_depth) if end else None
            try:
                _, stop = _decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            if stop >= len(text):
                return (end, end_depth) if end else None
            end, end_depth, looked = stop, depth, looked + 1
            at = _past(text, stop)
            if at >= len(text) or text[at] != ",":
                return end, end_depth
            if looked > _MANY:
                return None
            at = _past(text, at + 1)
    raise AssertionError("unreachable")


def _past(text: str, at: int) -> int:
    """Past white space."""
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _key(text: str, at: int) -> int:
    """Past a key and its colon, or -1 where they are not both there."""
    try:
        key, at = _decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return -1
    at = _past(text, at)
    return _past(text, at + 1) if isinstance(key, str) and text[at : at + 1] == ":" else -1


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')


def _closers(text: str, end: int) -> str | None:
    stack: list[str] = []
    for found in _TOKEN.finditer(text, 0, end):
        sign = found[0]
        if sign in "{[":
            stack.append("}" if sign == "{" else "]")
        elif sign in "}]" and (not stack or stack.pop() != sign):
            return None
    return "".join(reversed(stack))


def _opened(text: str, depth: int) -> str:
    """A serialised value without its last closing brackets."""
    for _ in range(depth):
        text = text.rstrip()[:-1]
    return text.rstrip()
