"""json: writes JSON, lines of JSON, cut-off JSON and Python literals in the shorter notation of `notation`.

Inside an envelope the bytes have to come back, so there the header names the layout (compact, indented …) that a
serialiser used, checked to the byte. At the top of a result white space means nothing: there the values come back,
compact. Of a text that breaks off in mid-value, what was complete is written in the notation; the torn end follows.
"""

import ast
import json
import re
from collections.abc import Callable
from itertools import count

from pagefold.encode.codec import Codec, Inner, split_tail
from pagefold.encode.notation.bare_quotes import bare_quotes, escape_quotes
from pagefold.encode.notation.json_value import LAYOUTS, JsonValue, Layout, compact, container, parse, plain
from pagefold.encode.notation.read import read
from pagefold.encode.notation.write import MOST, write

_LAST_EMPTY = ", the last line empty"
_BARE = ", quotes in strings bare"
_LEAST = 24
_ROWS = 3
_DEEP = 64
_LOOKED = 8_000_000  # characters at most: every open level of a torn text is looked through once more
_MANY = 20_000  # and elements
_HELD = 20_000  # containers
_SPACE = re.compile(r"[ \t\n\r]*")
_LITERAL = 200_000
_decoder = json.JSONDecoder(strict=False)


class JsonCodec(Codec):
    """`exact` where the bytes have to come back, and not only the values."""

    name = "json"
    begins = re.compile(r"\s*[{\[]")
    header = re.compile(
        rf"\[(JSON|Python)((?: [a-z0-9]+)*)({_LAST_EMPTY})?(?:, cut off (\d+) deep before the last (\d+) lines)?"
        rf"({_BARE})?\]"
    )

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact

    def encode(self, text: str, inner: Inner) -> str | None:
        if not self.begins.match(text):
            return None
        if len(text) < _LEAST or (len(text) > _HELD and self._is_too_much(text)):
            return None
        value = container(text)
        if value is None:
            return _literal(text) or (_in_part(text) if text.count(",") <= _MANY else None)
        if not self.exact:
            return _form("JSON", write(value))
        whole = text.removesuffix("\n")
        layout = _layout(text, value, whole, lambda dumped: dumped == whole)
        last = "" if whole == text else _LAST_EMPTY
        return _form(f"JSON {layout.name}{last}", write(value)) if layout else None

    def _is_too_much(self, text: str) -> bool:
        return text.count(",") > (_MANY if self.exact else MOST) or text.count("[") + text.count("{") > _HELD

    def says(self, form: str, text: str) -> bool:
        """Whether a form of whole JSON has the values of a text: types, key order, lexemes and duplicates included."""
        return form.startswith("[JSON]\n") and read(form[7:]) == container(text)

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        body, tail = split_tail(body, int(header[5] or 0))
        value = read(body)
        if header[1] == "Python":
            return repr(plain(value))
        named = header[2].strip()
        layout = next((layout for layout in LAYOUTS if layout.name == named.removeprefix("lines ")), None)
        if layout is None:
            return compact(value)
        if named.startswith("lines ") and isinstance(value, list):
            return "\n".join([layout.dump(line) for line in value]) + ("\n" if header[3] else "")
        text = layout.dump(value) + ("\n" if header[3] else "")
        text = _without_closers(text, int(header[4])) if header[5] else text
        return (bare_quotes(text) if header[6] else text) + tail


def _form(header: str, body: str | None, tail: str = "") -> str | None:
    return None if body is None else f"[{header}]\n{body}{tail}"


def _layout(text: str, value: JsonValue, whole: str, fits: Callable[[str], bool]) -> Layout | None:
    """Returns the layout whose serialisation of a value `fits`. The first characters rule most layouts out.

    Python's own serialiser tries first, in a tenth of the time; it does not keep numbers such as 1.10.
    """
    head = text[:40]
    if "\n" in head:
        spaces = len(head.partition("\n")[2]) - len(head.partition("\n")[2].lstrip(" "))
        names = [f"indent {spaces}"]
    else:
        names = ["spaced", "compact"] if re.search(r'": |, ', text[:400]) else ["compact", "spaced"]
    # Only an escape tells a text that was escaped to ASCII from one that was not.
    likely = (
        layout
        for layout in LAYOUTS
        if layout.name in names or ("\\u" in text and layout.name.removesuffix(" ascii") in names)
    )
    try:
        loaded = json.loads(whole, strict=False)
    except ValueError:
        return None  # an integer of more digits than Python reads
    return next((it for it in likely if fits(it.quick(loaded)) or fits(it.dump(value))), None)


def _literal(text: str) -> str | None:
    """Encodes a Python literal that is its own repr, without what JSON has no word for, such as a tuple."""
    if len(text) > _LITERAL or ("'" not in text[:400] and "True" not in text and "None" not in text):
        return None
    try:
        value = ast.literal_eval(text)
        if repr(value) != text or not isinstance(value, dict | list):
            return None
        dumped = json.dumps(value, ensure_ascii=False)
        return _form("Python", write(parse(dumped))) if json.loads(dumped) == value else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _lines(text: str) -> str | None:
    """Encodes a text with a value on every line: together they are an array."""
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < _ROWS or not all(line.startswith(("{", "[")) for line in lines):
        return None
    whole = f"[{','.join(lines)}]"
    value = container(whole)
    if value is None:
        return None
    layout = _layout(whole, value, whole, lambda dumped: dumped in (whole, f"[{', '.join(lines)}]"))
    last = _LAST_EMPTY if text.endswith("\n") else ""
    return _form(f"JSON lines {layout.name}{last}", write(value)) if layout else None


def _in_part(text: str) -> str | None:
    """Encodes what is no JSON as a whole: a value on every line, a text that breaks off, strings with bare quotes."""
    mended = escape_quotes(text)
    return _torn(mended, text) if mended else _lines(text) or _torn(text, text)


def _torn(text: str, stood: str) -> str | None:
    """Encodes JSON that breaks off: what was complete in the notation, then the torn end. `stood` is the text as it
    stood, where quotes in its strings had to be escaped."""
    is_whole = text is not stood and container(text) is not None
    complete = (len(text), "") if is_whole else _complete(text)
    if complete is None:
        return None
    end, closers = complete
    kept, depth = text[:end], len(closers)
    tail = stood[end if text is stood else len(bare_quotes(kept)) :]
    value = parse(kept + closers)
    layout = _layout(text, value, kept + closers, lambda dumped: _without_closers(dumped, depth) == kept)
    if layout is None:
        return None
    cut = f", cut off {depth} deep before the last {tail.count(chr(10)) + 1} lines" if depth else ""
    bare = "" if text is stood else _BARE
    return _form(f"JSON {layout.name}{cut}{bare}", write(value), f"\n{tail}" if depth else "")


def _complete(text: str) -> tuple[int, str] | None:
    """Returns where the last complete element ends, and the brackets that would close what is open there."""
    last: tuple[int, str] | None = None
    closers, looked = "", 0
    at = _skip_space(text, 0)
    for depth in count(1):
        if at >= len(text) or text[at] not in "{[":
            return last
        if depth > _DEEP or depth * len(text) > _LOOKED:
            return None
        # Inside a container: pass what is complete, and open what is not.
        keyed = text[at] == "{"
        closers = ("}" if keyed else "]") + closers
        at = _skip_space(text, at + 1)
        while True:
            if keyed:
                at = _skip_key(text, at)
                if at < 0:
                    return last
            try:
                _, stop = _decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            if stop >= len(text):
                return last
            last, looked = (stop, closers), looked + 1
            at = _skip_space(text, stop)
            if at >= len(text) or text[at] != ",":
                return last
            if looked > _MANY:
                return None
            at = _skip_space(text, at + 1)
    raise AssertionError("unreachable")


def _skip_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _skip_key(text: str, at: int) -> int:
    """Returns the place behind a key and its colon, or -1 where they are not both there."""
    try:
        key, at = _decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return -1
    at = _skip_space(text, at)
    return _skip_space(text, at + 1) if isinstance(key, str) and text[at : at + 1] == ":" else -1


def _without_closers(text: str, depth: int) -> str:
    """Returns a serialised value without its last closing brackets."""
    for _ in range(depth):
        text = text.rstrip()[:-1]
    return text.rstrip()
