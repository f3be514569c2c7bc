"""Writes and reads the one-line hint that replaces a text identical to an earlier one in the request.

Reading a hint always gives its label back. A label or tag that could be confused with the words around it, or that
breaks the line, is refused with a ValueError: a reference to something else is worse than none.
"""

import re
from enum import StrEnum

_HINT = re.compile(r"> \[ref: (.+?)(?:, byte-identical(?:, from: [^,\]]+)?)?\]")
_LONGEST = 4_000


class Verbosity(StrEnum):
    TERSE = "terse"
    STANDARD = "standard"
    VERBOSE = "verbose"


def ref_hint(label: str, verbosity: Verbosity = Verbosity.STANDARD, tag: str = "") -> str:
    """Returns the line for a text that was shown as `label`. `tag` is where it came from; only verbose hints have it.
    Raises ValueError where reading the hint would not give the label back."""
    words = label
    if verbosity is not Verbosity.TERSE:
        words += ", byte-identical"
    if verbosity is Verbosity.VERBOSE and tag:
        words += f", from: {tag}"
    hint = f"> [ref: {words}]"
    if ref_label(hint) != label:
        raise ValueError(f"a reference cannot say the label {label!r} with the tag {tag!r}")
    return hint


def ref_label(hint: str) -> str | None:
    """Returns the label in a hint of any verbosity, or None where a text is no hint."""
    parts = _HINT.fullmatch(hint) if len(hint) <= _LONGEST and len(hint.splitlines()) == 1 else None
    return parts[1] if parts else None
