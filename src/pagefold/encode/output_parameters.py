"""Adds the parameters format, budget and chunk to a tool's schema, and takes them out of a call's arguments.

They are never required. Where the tool has a parameter of the same name, ours gets one underscore more. The tool is
called with its own arguments only. A wrong value raises an error that says what was expected.
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
    """A wrong value of one of the three parameters."""


@dataclass(frozen=True, slots=True)
class OutputRequest:
    """How an agent wants its result, from the three parameters; None for each that it did not give."""

    format: str | None = None
    budget: int | None = None
    chunk: int | None = None


def with_parameters(schema: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns a tool's input schema with the three parameters, and their names there; none where it takes no object."""
    whole = dict(schema or {})
    own = whole.get("properties", {})
    if whole.setdefault("type", "object") != "object" or not isinstance(own, Mapping):
        return dict(schema or {}), {}
    names: dict[str, str] = {}
    properties = dict(own)
    for name, description in _DESCRIBED.items():
        free = name
        while free in properties:
            free += "_"
        names[name] = free
        properties[free] = dict(description)
    whole["properties"] = properties
    return whole, names


def split_arguments(arguments: Mapping[str, Any], names: Mapping[str, str]) -> tuple[dict[str, Any], OutputRequest]:
    """Returns (arguments for the tool, values of the three parameters). Raises ParameterError for a wrong value."""
    ours = {name: arguments[used] for name, used in names.items() if arguments.get(used) is not None}
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
