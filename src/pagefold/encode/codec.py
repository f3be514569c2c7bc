"""What a codec is, and the gate it has to pass.

A codec says the same in fewer tokens and can take it back. The gate believes neither: a form is used only if decoding
it gives the same thing again and the counter finds it cheaper. A codec that does not apply returns None; one that
raises is skipped and counted.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

Inner = Callable[[str], str]
"""How the text inside a text is said, or taken back."""


class Codec(Protocol):
    """`encode` and `decode` hand what is inside on to `inner`, so that codecs compose without knowing each other."""

    @property
    def name(self) -> str: ...

    def owns(self, line: str) -> bool:
        """Whether a first line is this codec's own: so decoding finds its way, and plain text is told from forms.

        It begins with a bracket.
        """

    def encode(self, text: str, inner: Inner) -> str | None: ...

    def decode(self, shown: str, inner: Inner) -> str: ...


PLAIN = "[as it is]"
"""Before a text that would otherwise look like a form of ours."""


def first_line(text: str) -> str:
    end = text.find("\n")
    return text if end < 0 else text[:end]


def decode(shown: str, codecs: Sequence[Codec]) -> str:
    """The text that a self-contained form says. A text that no codec made is its own."""
    if not shown.startswith("["):
        return shown
    line = first_line(shown)
    if line == PLAIN:
        return shown[len(PLAIN) + 1 :]
    for codec in codecs:
        if codec.owns(line):
            return codec.decode(shown, lambda inside: decode(inside, codecs))
    return shown
