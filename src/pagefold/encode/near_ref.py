"""near references: a body that differs from a shown one in a few plain fields, as one line.

`extract_delta` finds the fields and `render_near_ref_hint` says them. `hint_for` is for the one who sends the line: it
gives a hint only where `undo`, with the shown body, makes the new one of it again, down to the order of the keys and
the spelling of the numbers. Refused are nested changes, other keys, keys that stand twice and texts that are no strict
JSON objects; a hint also refuses null, a changed type and the signs it is written with. In doubt the answer is None.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pagefold.encode.notation.json_value import JsonValue, Members, Number, compact, parse

_DEEPEST = 64  # far from the interpreter's own limit, so that the answer does not depend on the caller's stack
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_FIELD = re.compile(r"([^,\]→]*?): ([^,\]→]*)→([^,\]→]*)")
_HINT = re.compile(rf"> \[near-ref: [^,\]]+((?:, {_FIELD.pattern})+)\]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST = 4_000
_LABEL = re.compile(r"> \[near-ref: ([^,\]\n]+)(?:, [^\n]*)?\]")


@dataclass(frozen=True, slots=True)
class NearRefConfig:
    """`max_delta_bytes` counts the fields as they are written, separators included; the body is the new one."""

    max_delta_bytes: int = 50
    min_body_bytes: int = 500


@dataclass(frozen=True, slots=True)
class DeltaField:
    """A field that changed. Null is the empty text, a string has no quotes, a number is spelled as it was."""

    key: str
    old: str
    new: str


def extract_delta(old: str, new: str, config: NearRefConfig | None = None) -> list[DeltaField] | None:
    """The fields that changed, in the order of the new body. None where there are none or it is not that simple."""
    config = config or NearRefConfig()
    if _bytes_of(new) < config.min_body_bytes:
        return None
    before, after = _fields(old), _fields(new)
    if before is None or after is None or before.keys() != after.keys():
        return None
    changed = [(key, before[key], value) for key, value in after.items() if before[key] != value]
    if not all(_has_one_reading(was, now) for _, was, now in changed):
        return None
    deltas = [DeltaField(key, _said(was), _said(now)) for key, was, now in changed]
    if _bytes_of(_payload(deltas)) > config.max_delta_bytes:
        return None
    return deltas or None


def render_near_ref_hint(id: str, deltas: Iterable[DeltaField]) -> str:
    return f"> [near-ref: {id}{_payload(deltas)}]"


def hint_for(label: str, old: str, new: str, config: NearRefConfig | None = None) -> str | None:
    """The line that stands for `new` where `old` is shown as `label`, or None where it would not say exactly that."""
    deltas = extract_delta(old, new, config)
    if deltas is None:
        return None
    hint = render_near_ref_hint(label, deltas)
    undone = undo(hint, old)
    return hint if undone is not None and parse(undone) == parse(new) else None


def hint_label(hint: str) -> str | None:
    """Whom a hint refers to, or None where it is none."""
    found = _LABEL.fullmatch(hint) if len(hint) <= _LONGEST else None
    return None if found is None else found[1]


def undo(hint: str, old: str) -> str | None:
    """The new body, as JSON without spaces. None where the hint is not one of ours, or not about this body."""
    found = _HINT.fullmatch(hint) if hint.isprintable() else None
    fields = _fields(old) if found else None
    if found is None or fields is None:
        return None
    told: set[str] = set()
    for part in found[1].split(", ")[1:]:
        field = _FIELD.fullmatch(part)
        assert field is not None
        key, was, now = field.groups()
        value = fields.get(key)
        changed = _read_as(value, now)
        if key in told or changed is None or _said(value) != was:
            return None
        told.add(key)
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


_decoder = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse, object_pairs_hook=Members)


def _fields(text: str) -> dict[str, JsonValue] | None:
    """The fields of a strict JSON object in order, or None where a text is no such object or a key stands twice."""
    try:
        value = _decoder.decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, Members) or not _is_shallow(value):
        return None
    fields = dict(value)
    return fields if len(fields) == len(value) else None


def _is_shallow(value: JsonValue) -> bool:
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return True
    return False


def _inside(value: Any) -> Sequence[Any]:
    if isinstance(value, Members):
        return [inner for _, inner in value]
    return value if isinstance(value, list) else ()


def _said(value: JsonValue) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str.__str__(value) if isinstance(value, str) else ""


def _has_one_reading(was: JsonValue, now: JsonValue) -> bool:
    """Whether a reader who has the old value knows the new one, and its type, from how it is written."""
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
    """A text as a value of the same type as another, None where it is none."""
    if type(value) is str:
        return text
    if isinstance(value, Number):
        return Number(text) if _NUMBER.fullmatch(text) else None
    if isinstance(value, bool):
        return {"true": True, "false": False}.get(text)
    return None
