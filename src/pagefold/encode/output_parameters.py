"""Three parameters that a tool gets on its way to an agent and loses on its way back: format, budget and chunk.

They are added to the tool's own schema and never required; where the tool has a parameter of that name, ours gets one
underscore, then two. What comes back is taken out again, so that the tool is called with what it knows. A value that is
none gets a plain answer that says what was expected.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pagefold.errors import RecallError

FORMATS = ("auto", "json", "toon")
LEAST, MOST = 100, 100_000
_DESCRIBED: Mapping[str, dict[str, Any]] = {
    "format": {
        "type": "string",
        "enum": list(FORMATS),
        "description": "How to write the result; auto is the shortest.",
    },
    "budget": {
        "type": "integer",
        "minimum": LEAST,
        "maximum": MOST,
        "description": "Most tokens the result may have; the rest is kept and can be asked for by chunk.",
    },
    "chunk": {"type": "integer", "minimum": 1, "description": "Which chunk of a result that was too large, from 1."},
}


class ParameterError(RecallError):
    """A value that none of the three parameters can have."""


@dataclass(frozen=True, slots=True)
class OutputRequest:
    """What an agent asked for beside the tool's own arguments; None where it did not."""

    format: str | None = None
    budget: int | None = None
    chunk: int | None = None


def with_parameters(schema: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, str]]:
    """A tool's input schema with the three in it, and the name that each has there; none where it takes no object."""
    whole = dict(schema or {})
    known = whole.get("properties", {})
    if whole.setdefault("type", "object") != "object" or not isinstance(known, Mapping):
        return dict(schema or {}), {}
    names: dict[str, str] = {}
    properties = dict(known)
    for name, description in _DESCRIBED.items():
        given = name
        while given in properties:
            given += "_"
        names[name] = given
        properties[given] = dict(description)
    whole["properties"] = properties
    return whole, names


def taken_out(arguments: Mapping[str, Any], names: Mapping[str, str]) -> tuple[dict[str, Any], OutputRequest]:
    """The tool's own arguments, and what was asked of us. Raises ParameterError for a value that cannot be."""
    ours = {own: arguments[given] for own, given in names.items() if arguments.get(given) is not None}
    rest = {key: value for key, value in arguments.items() if key not in set(names.values())}
    chosen = ours.get("format")
    if chosen is not None and chosen not in FORMATS:
        raise ParameterError(f"{names['format']} = {chosen!r}: expected one of {', '.join(FORMATS)}")
    budget = _number(ours.get("budget"), names.get("budget", ""), LEAST, MOST)
    chunk = _number(ours.get("chunk"), names.get("chunk", ""), 1, None)
    return rest, OutputRequest(chosen, budget, chunk)


def _number(value: Any, name: str, least: int, most: int | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and value.isdecimal():
        value = int(value)  # agents write numbers as strings now and then
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or value < least or (most is not None and value > most):
        span = f"from {least} to {most}" if most is not None else f"of {least} or more"
        raise ParameterError(f"{name} = {value!r}: expected a whole number {span}")
    return value
