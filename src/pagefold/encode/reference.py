"""references: a text that stands in the request already, byte for byte, as one line that says where.

A hint always gives its label back. A label or a tag that could not be told from the words around it, or that breaks the
line, is refused with a ValueError: a reference that points at something else is worse than none.
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
    """The line that stands for a text shown as `label`. `tag` is where it came from; without one verbose says no more
    than standard. Raises ValueError where the label would not come back."""
    said = label
    if verbosity is not Verbosity.TERSE:
        said += ", byte-identical"
    if verbosity is Verbosity.VERBOSE and tag:
        said += f", from: {tag}"
    hint = f"> [ref: {said}]"
    if ref_label(hint) != label:
        raise ValueError(f"a reference cannot say the label {label!r} with the tag {tag!r}")
    return hint


def ref_label(hint: str) -> str | None:
    """The label that a hint of any verbosity points at, None where it is no hint."""
    found = _HINT.fullmatch(hint) if len(hint) <= _LONGEST and len(hint.splitlines()) == 1 else None
    return found[1] if found else None
