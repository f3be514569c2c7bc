"""What a setting may be: rules in the words of an error message, and the metadata that ties one to a field."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class ValueRule:
    """What a setting may be. `words` completes "expected …"; `holds` is asked of values of the type `of` only.

    Lists and tables have a `made`, which turns what a file gives into the tuple that is kept; their `holds` is asked of
    anything.
    """

    of: type
    words: str
    holds: Callable[[Any], bool] = lambda _: True
    is_file: bool = False
    made: Callable[[Any], object] | None = None

    def admits(self, value: object) -> bool:
        if self.made is not None:
            return self.holds(value)
        # To Python True is the number 1; to whoever wrote `port = true` it is a mistake.
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


def number(least: float) -> ValueRule:
    largest = sys.float_info.max
    return ValueRule(float, f"a number of at least {least:g}", lambda value: bool(least <= value <= largest))


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
    return isinstance(value, list | tuple) and all(isinstance(one, str) and one.strip() for one in value)


NAMES = ValueRule(tuple, "a list of names", are_names, made=tuple)


def _are_turns(value: Any) -> bool:
    right = isinstance(value, list | tuple) and len(value) in (0, 6)
    return right and all(type(one) is int and one > 0 for one in value)


TURNS = ValueRule(tuple, "six whole numbers of at least 1, or none", _are_turns, made=tuple)
WEIGHT = ValueRule(float, "a number from -20 to 20", lambda value: bool(-20 <= value <= 20))


def about(
    meaning: str, rule: ValueRule, *, flag: str = "", own: bool | Callable[[Any], bool] = False
) -> Mapping[str, object]:
    """The metadata of one setting. `flag` is its name on the command line where that is not its own.

    `own` settings decide who gets the user's keys, or what is run unasked: a project's file, which somebody else may
    have written, sets none. Where only some values are the user's own, `own` tells which.
    """
    return {"meaning": meaning, "rule": rule, "flag": flag, "own": own}
