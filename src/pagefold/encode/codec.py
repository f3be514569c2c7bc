"""Defines what a codec is, and decodes a form with the codec whose header it carries.

A codec rewrites a text in fewer tokens and can restore it. Nobody trusts either: `choose` uses a form only if decoding
it gives the text again and the token counter finds it cheaper.
"""

import re
from collections.abc import Callable, Sequence

Inner = Callable[[str], str]
"""Encodes, or decodes, the text inside a text, so that codecs combine without knowing each other."""

PLAIN = "[as it is]"
"""The line before an unchanged text that would otherwise be taken for a form."""


class Codec:
    """Base class of the codecs. A form is a header line, which begins with a bracket, and the lines below it.

    A subclass sets `name` (the name in settings, traces and reports) and `header`, and writes `encode` and `decode`.
    """

    name: str
    header: re.Pattern[str]
    """Matches the first line of this codec's forms and of no other's."""
    begins: re.Pattern[str] = re.compile("")
    """Matches the beginning of every text that this codec can encode. Other texts are not offered to it."""
    least_saving: float = 0.0
    """The share of a text's characters that a form has to save. Lines that stay as they are can be found and quoted, so
    codecs that change lines an agent likes to quote ask for more."""

    def owns(self, line: str) -> bool:
        """Whether a first line is a header of this codec."""
        return self.header.fullmatch(line) is not None

    def opened(self, form: str) -> tuple[re.Match[str], str]:
        """Splits a form of this codec into its matched header and the text below it."""
        line, _, body = form.partition("\n")
        header = self.header.fullmatch(line)
        assert header is not None
        return header, body

    def encode(self, text: str, inner: Inner) -> str | None:
        """Returns the form of a text, or None where the codec does not apply. Whatever it raises counts as None."""
        raise NotImplementedError

    def decode(self, form: str, inner: Inner) -> str:
        """Returns the text of a form that `owns` recognised by its first line."""
        raise NotImplementedError


def first_line(text: str) -> str:
    end = text.find("\n")  # partition would copy the rest
    return text if end < 0 else text[:end]


def split_tail(text: str, lines: int) -> tuple[str, str]:
    """Splits off the last lines of a text: what stood behind the place where a value was cut off."""
    if not lines:
        return text, ""
    parts = text.rsplit("\n", lines)
    return parts[0], "\n".join(parts[1:])


def common_prefix(texts: Sequence[str]) -> str:
    """Returns what all texts begin with."""
    first, last = min(texts), max(texts)
    return next((first[:at] for at, sign in enumerate(first) if last[at : at + 1] != sign), first)


def decode(form: str, codecs: Sequence[Codec]) -> str:
    """Returns the text of a self-contained form. A text that carries no codec's header is returned unchanged."""
    if not form.startswith("["):
        return form
    line = first_line(form)
    if line == PLAIN:
        return form[len(PLAIN) + 1 :]
    for codec in codecs:
        if codec.owns(line):
            return codec.decode(form, lambda inside: decode(inside, codecs))
    return form
