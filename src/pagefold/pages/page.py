"""A page: one thing the agent was shown or told to hold. Immutable, typed, named by the hash of its content.

`text` and `Page.of` undo each other for any string, lone surrogates included. Kind and name say how the page is used
and are not part of its identity.
"""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from typing import NewType

from pagefold.pages.kinds import PageKind

PageId = NewType("PageId", str)

HANDLE = re.compile(r"pf-[a-z2-7]{10}")
_HANDLE_BITS = 50
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]


def id_of(content: bytes) -> PageId:
    return PageId(hashlib.sha256(content).hexdigest())


def handle_of(page: PageId) -> str:
    """Returns the short name by which an agent recalls a page: the first 50 bits of its id, in base 32."""
    bits = int(page[:13], 16) >> 2  # 13 digits are 52 bits
    return "pf-" + "".join([_PAIRS[bits >> shift & 1023] for shift in (40, 30, 20, 10, 0)])


def id_range(handle: str) -> tuple[str, str] | None:
    """Returns the ids a handle may name, as (first, one past the last), or None where it is no handle."""
    if not HANDLE.fullmatch(handle):
        return None
    padded = base64.b32decode(handle[3:].upper() + "AAAAAA")
    first = int.from_bytes(padded) >> (len(padded) * 8 - _HANDLE_BITS)
    shift = 256 - _HANDLE_BITS
    # After the last handle of all comes what sorts after every id.
    end = f"{first + 1 << shift:064x}" if (first + 1) >> _HANDLE_BITS == 0 else "g"
    return f"{first << shift:064x}", end


@dataclass(frozen=True, slots=True)
class Page:
    """`name` is what the model knows it by: the tool and its argument."""

    kind: PageKind
    content: bytes
    name: str = ""
    id: PageId = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", id_of(self.content))

    @classmethod
    def of(cls, kind: PageKind, text: str, name: str = "") -> "Page":
        return cls(kind, text.encode("utf-8", "surrogatepass"), name)

    @property
    def text(self) -> str:
        """The content as a model reads it; bytes that are no text show as replacement characters."""
        try:
            return self.content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return self.content.decode("utf-8", "replace")

    @property
    def handle(self) -> str:
        return handle_of(self.id)
