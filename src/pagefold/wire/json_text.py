"""Finds where each value is in a JSON text, so that one value can be replaced while every other byte stays.

Promises: spans are exact, duplicate keys are all seen, and numbers and lone surrogates keep their spelling, because
nothing outside a replaced span is written anew. Refuses, with WireError, what is not JSON and what is nested more
deeply than the interpreter can parse.

`text_of` turns bytes into text and `bytes_of` turns it back, without loss for any bytes, broken UTF-8 included.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import starmap
from operator import methodcaller
from typing import Any, AnyStr, NamedTuple, TypeAlias

from pagefold.errors import WireError

Path: TypeAlias = tuple[str | int, ...]

_SPACES = (" ", "\t", "\n", "\r")
_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN_KEY = re.compile(r'"([^"\\]*)"[ \t\n\r]*:[ \t\n\r]*')  # nothing in it is escaped, and so it says what it is
_BEHIND = re.compile(r"[ \t\n\r]*([,}])[ \t\n\r]*")  # what follows a member
_BEHIND_ELEMENT = re.compile(r"[ \t\n\r]*([,\]])[ \t\n\r]*")
_REPLACED, _REMEMBERED_CHARACTERS = 16, 1 << 18
_SURROGATE = re.compile("[\ud800-\udfff]")


text_of: Callable[[bytes], str] = methodcaller("decode", "utf-8", "surrogateescape")
"""The text of bytes. A byte order mark is kept: it is a byte that arrived."""

bytes_of: Callable[[str], bytes] = methodcaller("encode", "utf-8", "surrogateescape")


class Spot(NamedTuple):
    """One value inside a text: `text[start:end]` is its JSON, `value` the parsed value. Object members have `key`."""

    start: int
    end: int
    value: Any
    key: str = ""


# Integers stay text-sized: Python refuses to convert more than 4,300 digits, and nobody here does arithmetic on them.
def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < 4000 else digits


_NO_VALUE = (StopIteration, json.JSONDecodeError, RecursionError)
_decoder: Any = json.JSONDecoder(parse_int=_integer, strict=False)
_scan: Callable[[str, int], tuple[Any, int]] = _decoder.scan_once
_encoder: Any = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)


def _made_once(encoder: Any) -> Callable[[Any, int], Iterable[str]]:
    """Returns the function that an encoder makes anew for every value, which for short ones takes most of the time."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return lambda value, level: (encoder.encode(value),)
    spell: Any = json.encoder.encode_basestring
    made: Callable[[Any, int], Iterable[str]] = make(None, encoder.default, spell, None, ":", ",", False, False, True)
    return made


_encoded = _made_once(_encoder)
_spelled: Callable[[str], str] = json.encoder.encode_basestring


def parse(text: str) -> Any:
    """The value of a whole JSON text. Raises WireError."""
    value, end = _scanned(text, 0 if text.startswith(("{", "[")) else _after_space(text, 0))
    if end != len(text):
        _finish(text, end)
    return value


def top(text: str, listed: str = "") -> list[Spot]:
    """The members of the object that is the whole text. The value of an array under `listed` is the list of the spots
    of its elements. Raises WireError, also where more text follows the object."""
    found, end = _members(text, 0, listed=listed)
    _finish(text, end)
    return found


def members(text: str, start: int = 0) -> list[Spot]:
    """The members of the object at `start`, in order, duplicates included. Raises WireError."""
    return _members(text, start)[0]


def elements(text: str, start: int = 0) -> list[Spot]:
    """The elements of the array at `start`. Raises WireError."""
    return _elements(text, start)[0]


def following(text: str, at: int, path: tuple[str, ...] = ()) -> tuple[list[tuple[int, int, Any, str]], int]:
    """Returns the array elements after the one that ends at `at`, and where the array ends.

    Elements are tuples (start, end, value, ""), which is faster than making spots. They are `opened` along `path`.
    Raises WireError.
    """
    found: list[tuple[int, int, Any, str]] = []
    start = at
    try:
        while text[at] == "," or (text[at] in _SPACES and text[at := _after_space(text, at)] == ","):
            start = at + 1
            if text[start] in _SPACES:
                start = start + 1 if text[start + 1] == "{" else _after_space(text, start)
            value, at = _element(text, start, path) if path else _scan(text, start)
            found.append((start, at, value, ""))
    except _NO_VALUE as error:
        raise _refused(text, start, error) from error
    except IndexError as error:
        raise _unexpected(text, len(text), "]") from error
    return found, _expect(text, at, "]")


def opened(text: str, path: tuple[str, ...]) -> Spot:
    """Parses a whole text, with containers opened along `path`: the `value` of an opened one is the list of its spots.

    Each step of the path is a key. Where its member is an array, the objects in it are opened by the next step. Every
    character is read once. Raises WireError, also where more text follows the value.
    """
    start = _after_space(text, 0)
    value, end = _inside(text, start, path)
    _finish(text, end)
    return Spot(start, end, value)


def is_object(text: str, spot: Spot) -> bool:
    """Returns whether a spot is an object, opened or not."""
    return text.startswith("{", spot.start)


def is_array(text: str, spot: Spot) -> bool:
    return text.startswith("[", spot.start)


def value_at(text: str, at: int) -> Spot:
    """The value that begins at `at`. Raises WireError."""
    value, end = _scanned(text, at)
    return Spot(at, end, value)


def member(spots: Sequence[Spot], key: str) -> Spot | None:
    """Returns the member with this key. With duplicate keys it is the last, as in other parsers."""
    found: Spot | None = None
    for spot in spots:
        if spot.key == key:
            found = spot
    return found


def find(text: str, path: Path) -> tuple[int, int]:
    """The span of the value at `path`. Raises WireError where there is none."""
    start = _after_space(text, 0)
    end = _scanned(text, start)[1] if not path else start
    for step in path:
        spot = member(_members(text, start)[0], step) if isinstance(step, str) else _element_at(text, start, step)
        if spot is None:
            raise WireError(f"{place(text, start)}: no {step!r} in this JSON value")
        start, end = spot.start, spot.end
    return start, end


def replaced(text: str, path: Path, value: str) -> str:
    """`text` with the string at `path` saying `value`; every other byte as it was. Raises WireError where what lies
    there is not a string. The newest are remembered, unless they are long: what a policy changed is changed once more
    in the message as the client sent it."""
    return (_replaced if len(text) <= _REMEMBERED_CHARACTERS else _replaced.__wrapped__)(text, path, value)


@lru_cache(maxsize=_REPLACED)
def _replaced(text: str, path: Path, value: str) -> str:
    start, end = find(text, path)
    _expect(text, start, '"')
    return splice(text, [(start, end, dumps(value))])


def replaced_each(text: str, strings: Sequence[tuple[Path, str]]) -> str:
    """`text` with the string at each path saying another; every other byte as it was. However many they are, what is
    around them is read once. Raises WireError as `replaced` does."""
    return splice(text, sorted(_new_strings(text, Spot(_after_space(text, 0), 0, None), strings)))


def _new_strings(text: str, at: Spot, strings: Sequence[tuple[Path, str]]) -> Iterator[tuple[int, int, str]]:
    inside: dict[str | int, list[tuple[Path, str]]] = {}
    for path, value in strings:
        if path:
            inside.setdefault(path[0], []).append((path[1:], value))
        else:
            _expect(text, at.start, '"')
            yield at.start, at.end, dumps(value)
    if not inside:
        return
    spots: dict[str | int, Spot]
    if isinstance(next(iter(inside)), str):
        spots = {spot.key: spot for spot in _members(text, at.start)[0]}
    else:
        spots = dict(enumerate(_elements(text, at.start)[0]))
    for step, below in inside.items():
        if step not in spots:
            raise WireError(f"{place(text, at.start)}: no {step!r} in this JSON value")
        yield from _new_strings(text, spots[step], below)


def splice(text: AnyStr, changes: Iterable[tuple[int, int, AnyStr]]) -> AnyStr:
    """`text` with each span (start, end) replaced. Spans are ordered and do not overlap."""
    pieces: list[AnyStr] = []
    at = 0
    for start, end, new in changes:
        assert start >= at, "spans are ordered and do not overlap"
        pieces += (text[at:start], new)
        at = end
    pieces.append(text[at:])
    return text[:0].join(pieces)


def places_in_bytes(text: str, places: Sequence[int]) -> Sequence[int]:
    """Converts positions in a text, in ascending order, into positions in its bytes."""
    if text.isascii():
        return places
    found, at, size = list[int](), 0, 0
    for place in places:
        size += len(bytes_of(text[at:place]))
        found.append(size)
        at = place
    return found


def dumps(value: Any) -> str:
    """Compact JSON in the order given, writable as bytes. Raises WireError where it is nested too deeply."""
    try:
        text = _spelled(value) if type(value) is str else "".join(_encoded(value, 0))
    except RecursionError as error:
        raise WireError("a JSON value is nested too deeply to write") from error
    return text if text.isascii() else _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def indented(value: Any) -> str:
    """JSON for a file that people read."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def as_string(value: Any) -> str:
    """Returns a string as it is, "" for null, and the JSON of anything else."""
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value)


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def lines(text: str) -> Iterator[str]:
    """Yields the JSON lines that are not blank. Only a line feed ends one: U+2028 may be inside a string."""
    return (line for line in text.split("\n") if line.strip())


def place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


def _elements(text: str, start: int) -> tuple[list[Spot], int]:
    """The elements of the array at `start`, and where it ends."""
    at = _open(text, start, "[")
    if text.startswith("]", at):
        return [], at + 1
    value, end = _scanned(text, at)
    found, stop = following(text, end)
    return [Spot(at, end, value), *starmap(Spot, found)], stop


def _element_at(text: str, start: int, index: int) -> Spot | None:
    """The element of the array at `start` that has this index; what follows it is not read."""
    at = _open(text, start, "[")
    try:
        while not text.startswith("]", at):
            value, end = _scan(text, at)
            if index <= 0:
                return Spot(at, end, value) if not index else None
            behind = _BEHIND_ELEMENT.match(text, end)
            if behind is None:
                raise _unexpected(text, _after_space(text, end), ",")
            at, index = behind.end(), index - 1
            if behind[1] == "]":
                break
    except _NO_VALUE as error:
        raise _refused(text, at, error) from error
    return None


def _members(text: str, start: int, path: tuple[str, ...] = (), listed: str = "") -> tuple[list[Spot], int]:
    at = _open(text, start, "{")
    found: list[Spot] = []
    if text.startswith("}", at):
        return found, at + 1
    try:
        while True:
            if plain := _PLAIN_KEY.match(text, at):
                key, at = plain[1], plain.end()
            else:
                key, at = _escaped_key(text, at)
            if listed and key == listed and text.startswith("[", at):
                value, end = _elements(text, at)
            else:
                value, end = _inside(text, at, path[1:]) if path and path[0] == key else _scan(text, at)
            found.append(Spot(at, end, value, key))
            behind = _BEHIND.match(text, end)
            if behind is None:
                raise _unexpected(text, _after_space(text, end), ",")
            at = behind.end()
            if behind[1] == "}":
                return found, behind.end(1)
    except _NO_VALUE as error:
        raise _refused(text, at, error) from error


def _escaped_key(text: str, at: int) -> tuple[str, int]:
    """The key at `at`, and where its value begins."""
    key, end = _scanned(text, at)
    if not isinstance(key, str):
        raise WireError(f"{place(text, at)}: expected a key")
    return key, _after_space(text, _expect(text, _after_space(text, end), ":"))


def _inside(text: str, at: int, path: tuple[str, ...]) -> tuple[Any, int]:
    """Returns the value at `at`, opened along the path, and where it ends."""
    if path and text.startswith("{", at):
        return _members(text, at, path)
    if path and text.startswith("[", at):
        inside = _after_space(text, at + 1)
        if text.startswith("]", inside):
            return [], inside + 1
        value, at = _element(text, inside, path)
        found, end = following(text, at, path)
        return [Spot(inside, at, value), *starmap(Spot, found)], end
    return _scanned(text, at)


def _element(text: str, at: int, path: tuple[str, ...]) -> tuple[Any, int]:
    # An array in an array is not opened, so that calls here are never nested deeper than the path.
    return _members(text, at, path) if text.startswith("{", at) else _scanned(text, at)


def _after_space(text: str, at: int) -> int:
    if at == 0 and text.startswith("\ufeff"):
        at = 1
    if not text.startswith(_SPACES, at):  # as in nearly all of what programs write to each other
        return at
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _open(text: str, start: int, bracket: str) -> int:
    if not text.startswith(bracket, start):
        _expect(text, start := _after_space(text, start), bracket)
    return _after_space(text, start + 1) if text.startswith(_SPACES, start + 1) else start + 1


def _finish(text: str, at: int) -> None:
    end = _after_space(text, at)
    if end != len(text):
        raise WireError(f"{place(text, end)}: more text after the JSON value")


def _expect(text: str, at: int, wanted: str) -> int:
    if not text.startswith(wanted, at):
        raise _unexpected(text, at, wanted)
    return at + 1


def _unexpected(text: str, at: int, wanted: str) -> WireError:
    return WireError(f"{place(text, at)}: expected {wanted!r}, found {text[at : at + 1]!r}")


def _scanned(text: str, at: int) -> tuple[Any, int]:
    """The value at `at`, and where it ends."""
    try:
        return _scan(text, at)
    except _NO_VALUE as error:
        raise _refused(text, at, error) from error


def _refused(text: str, at: int, error: Exception) -> WireError:
    if isinstance(error, json.JSONDecodeError):
        return WireError(f"line {error.lineno}, column {error.colno}: {error.msg}")
    why = "Expecting value" if isinstance(error, StopIteration) else "nested too deeply to read"
    return WireError(f"{place(text, at)}: {why}")
