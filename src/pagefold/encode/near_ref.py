"""Writes and reads the one-line hint for a JSON object that differs from an earlier one in a few plain fields.

`extract_delta` finds the fields and `render_near_ref_hint` writes them. `hint_for` returns a hint only where `undo`
restores the new object from the old one, down to the order of keys and the spelling of numbers. Nested changes, other
keys, duplicate keys and texts that are no strict JSON objects are refused; a hint also refuses null, a changed type and
the signs it is written with. In doubt the answer is None.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from pagefold.encode.notation.json_value import JsonValue, Members, Number, compact, container, parse

_DEEPEST = 64  # far from the interpreter's own limit, so that the answer does not depend on the caller's stack
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_FIELD = re.compile(r"([^,\]→]*?): ([^,\]→]*)→([^,\]→]*)")
_HINT = re.compile(rf"> \[near-ref: [^,\]]+((?:, {_FIELD.pattern})+)\]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST = 4_000
_LABEL = re.compile(r"> \[near-ref: ([^,\]\n]+)(?:, [^\n]*)?\]")


@dataclass(frozen=True, slots=True)
class NearRefConfig:
    """`max_delta_bytes` bounds the fields as they are written, with separators; `min_body_bytes` the new object."""

    max_delta_bytes: int = 50
    min_body_bytes: int = 500


@dataclass(frozen=True, slots=True)
class DeltaField:
    """A field that changed. Null is written as the empty text, a string without quotes, a number as it was spelled."""

    key: str
    old: str
    new: str


def extract_delta(old: str, new: str, config: NearRefConfig | None = None) -> list[DeltaField] | None:
    """Returns the fields that changed, in the order of the new object. None where there are none, or more changed."""
    config = config or NearRefConfig()
    if _bytes_of(new) < config.min_body_bytes:
        return None
    before, after = _fields(old), _fields(new)
    if before is None or after is None or before.keys() != after.keys():
        return None
    changed = [(key, before[key], value) for key, value in after.items() if before[key] != value]
    if not all(_has_one_reading(was, now) for _, was, now in changed):
        return None
    deltas = [DeltaField(key, _written(was), _written(now)) for key, was, now in changed]
    if _bytes_of(_payload(deltas)) > config.max_delta_bytes:
        return None
    return deltas or None


def render_near_ref_hint(id: str, deltas: Iterable[DeltaField]) -> str:
    return f"> [near-ref: {id}{_payload(deltas)}]"


def hint_for(label: str, old: str, new: str, config: NearRefConfig | None = None) -> str | None:
    """Returns the hint for `new` where `old` was shown as `label`, or None where it would not restore `new`."""
    deltas = extract_delta(old, new, config)
    if deltas is None:
        return None
    hint = render_near_ref_hint(label, deltas)
    undone = undo(hint, old)
    return hint if undone is not None and parse(undone) == container(new) else None


def hint_label(hint: str) -> str | None:
    """Returns the label that a hint refers to, or None where a text is no hint."""
    parts = _LABEL.fullmatch(hint) if len(hint) <= _LONGEST else None
    return None if parts is None else parts[1]


def undo(hint: str, old: str) -> str | None:
    """Returns the new object as compact JSON, or None where a text is no hint, or no hint about this object."""
    hinted = _HINT.fullmatch(hint) if hint.isprintable() else None
    fields = _fields(old) if hinted else None
    if hinted is None or fields is None:
        return None
    done: set[str] = set()
    for part in hinted[1].split(", ")[1:]:
        field = _FIELD.fullmatch(part)
        assert field is not None
        key, was, now = field.groups()
        value = fields.get(key)
        changed = _read_as(value, now)
        if key in done or changed is None or _written(value) != was:
            return None
        done.add(key)
        fields[key] = changed
    text = compact(Members(fields.items()))
    # JSON can spell half a character, UTF-8 cannot.
    return None if _LONE_SURROGATE.search(text) else text


def _payload(deltas: Iterable[DeltaField]) -> str:
    return "".join(f", {delta.key}: {delta.old}→{delta.new}" for delta in deltas)


def _bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_strict = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse)
_DOUBTFUL = re.compile(r"[\x00-\x1f]|NaN|Infinity")


def _is_strict(text: str) -> bool:
    """Whether a text that `container` reads is JSON by the letter; most texts need no second parse for that."""
    if _DOUBTFUL.search(text):
        try:
            _strict.decode(text)
        except ValueError:
            return False
    return True


def _fields(text: str) -> dict[str, JsonValue] | None:
    """Returns the fields of a strict JSON object in order, or None where a text is none or has a duplicate key."""
    value = container(text)
    if not isinstance(value, Members) or not _is_strict(text) or not _is_shallow(value):
        return None
    fields = dict(value)
    return fields if len(fields) == len(value) else None


def _is_shallow(value: JsonValue, levels: int = _DEEPEST) -> bool:
    inside = [inner for _, inner in value] if isinstance(value, Members) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(inner, levels - 1) for inner in inside)


def _written(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str.__str__(value) if isinstance(value, str) else ""


def _has_one_reading(was: JsonValue, now: JsonValue) -> bool:
    """Whether the new value and its type are clear from how it is written, given the old value."""
    if isinstance(was, list | Members) or isinstance(now, list | Members):
        return False
    if type(was) is type(now):
        return True
    # After a string everything reads as a string; after anything else a string must not look like a literal.
    return type(was) is not str and not (type(now) is str and _looks_literal(now))


def _looks_literal(text: str) -> bool:
    bare = text.strip()
    return bare in ("", "null", "true", "false") or _NUMBER.fullmatch(bare) is not None


def _read_as(value: JsonValue, text: str) -> JsonValue:
    """Returns a text as a value of the same type as another, or None where it is none."""
    if type(value) is str:
        return text
    if isinstance(value, Number):
        return Number(text) if _NUMBER.fullmatch(text) else None
    if isinstance(value, bool):
        return {"true": True, "false": False}.get(text)
    return None
