"""Declares settings: `setting` makes the field, and a rule says which values it takes, in the words of a refusal."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ValueRule:
    """Which values a setting takes. `words` completes "expected …" in a refusal.

    `of` is the type; `holds` is asked only about values of that type. Rules for lists and tables have `made`, which
    turns what a file gives into the tuple that the settings keep; their `holds` is asked about any value.
    """

    of: type
    words: str
    holds: Callable[[Any], bool] = lambda _: True
    is_file: bool = False
    made: Callable[[Any], object] | None = None

    def admits(self, value: object) -> bool:
        if self.made is not None:
            return self.holds(value)
        # In Python True is a number; in a file, `port = true` is a mistake.
        if isinstance(value, bool) is not (self.of is bool):
            return False
        return isinstance(value, int | float if self.of is float else self.of) and self.holds(value)

    def kept(self, value: Any) -> object:
        """Returns an admitted value as the settings keep it: a whole number as a float where that is the type, a list
        as a tuple."""
        return (self.made or self.of)(value)


def whole(least: int, most: int | None = None) -> ValueRule:
    if most is None:
        return ValueRule(int, f"a whole number of at least {least}", lambda value: bool(value >= least))
    return ValueRule(int, f"a whole number from {least} to {most}", lambda value: bool(least <= value <= most))


def number(least: float, most: float = sys.float_info.max) -> ValueRule:
    bounds = f"of at least {least:g}" if most == sys.float_info.max else f"from {least:g} to {most:g}"
    return ValueRule(float, f"a number {bounds}", lambda value: bool(least <= value <= most))


def one_of(*choices: str) -> ValueRule:
    return ValueRule(str, "one of " + ", ".join(choices), choices.__contains__)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    plain = text.isprintable() and not any(mark in text for mark in " @?#")
    return named and plain and parts.scheme in ("http", "https")


TEXT = ValueRule(str, "text")
NAMED = ValueRule(str, "a name that is not empty", lambda value: bool(value.strip()))
FILE = ValueRule(str, "the name of a file", lambda value: "\0" not in value, is_file=True)
ADDRESS = ValueRule(str, "an http or https address without user, query or fragment", _is_address)
MAYBE_ADDRESS = ValueRule(str, f"{ADDRESS.words}, or nothing", lambda value: value == "" or _is_address(value))
FOLDER_OF_KEYS = ValueRule(
    str,
    "letters, digits, . _ - and / that end with /, or nothing",
    lambda value: bool(re.fullmatch(r"(?:(?!\.{1,2}/)[\w.-]+/)*", value, re.ASCII)),
)
SWITCH = ValueRule(bool, "true or false")


def are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) and name.strip() for name in value)


NAMES = ValueRule(tuple, "a list of names", are_names, made=tuple)


def _are_patterns(value: Any) -> bool:
    try:
        return isinstance(value, list | tuple) and all(isinstance(text, str) and re.compile(text) for text in value)
    except re.error:
        return False


PATTERNS = ValueRule(tuple, "a list of regular expressions", _are_patterns, made=tuple)
PATHS = ValueRule(
    tuple,
    "paths that begin with /, as a list",
    lambda value: are_names(value) and all(path.startswith("/") and path.isascii() for path in value),
    made=lambda value: tuple(path.rstrip("/") for path in value),
)


def _are_turns(value: Any) -> bool:
    right = isinstance(value, list | tuple) and len(value) in (0, 6)
    return right and all(type(turns) is int and turns > 0 for turns in value)


TURNS = ValueRule(tuple, "six whole numbers of at least 1, or none", _are_turns, made=tuple)
SHARE = ValueRule(float, "a number from 0 to 1", lambda value: bool(0 <= value <= 1))
WEIGHT = ValueRule(float, "a number from -20 to 20", lambda value: bool(-20 <= value <= 20))


def setting(
    default: T,
    meaning: str,
    rule: ValueRule,
    *,
    flag: str = "",
    secret: bool = False,
) -> T:
    """Declares one setting as a field of a section.

    `flag` is its name on the command line where that is not the field's own. The value of a `secret` is masked wherever
    settings are shown. Whether a project's file may set it is decided in `config.project_file`.
    """
    return field(default=default, repr=not secret, metadata={"meaning": meaning, "rule": rule, "flag": flag})
