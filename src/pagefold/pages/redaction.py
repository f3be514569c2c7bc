"""Takes secrets out of what is stored, and leaves a mark that says so.

Only what is kept is changed: a request's own bytes stay as they are. The secret itself is nowhere kept, so a recall
shows the mark. This is the one exception to "nothing is lost"; docs/decisions.md has the reasons.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pagefold.pages.secret_formats import CARD_NUMBER, SECRET_FORMATS, SecretFormat

_OWN = "your pattern"
_IN_WORDS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-+/=:"
_WORDS = bytes(byte if byte in _IN_WORDS else ord(" ") for byte in range(256))
_LONG = 16  # no token is shorter
_DIGITS = bytes(ord("0") if byte in b"0123456789" else byte for byte in range(256))
_CARD = b"0" * 15  # no card number has fewer digits


@dataclass(frozen=True, slots=True)
class Redacted:
    """A content as it may be stored, and the kind of every secret that was taken out of it, in order."""

    content: bytes
    kinds: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return redaction_words(self.kinds)


def redaction_words(kinds: Sequence[str]) -> str:
    """Says for the reader of a recalled page what is missing in it; nothing where nothing is."""
    if not kinds:
        return ""
    count = "1 secret was" if len(kinds) == 1 else f"{len(kinds)} secrets were"
    names = ", ".join(dict.fromkeys(kinds))
    return (
        f"[pagefold: {count} taken out of this page before it was stored ({names}), and cannot be recalled. "
        "Do not write the marks into a file; read the source again if you need the value.]"
    )


def redacted_page(redactor: "Redactor | None", content: bytes, name: str) -> tuple[Redacted, str]:
    """A page's content and name as a store may keep them; both as they are where the store has no redactor."""
    if redactor is None:
        return Redacted(content), name
    return redactor.redact(content), redactor.redact_text(name)


class Redactor:
    """Takes out what has the format of a secret, and what the `patterns` of the user match.

    In a pattern a group named `secret` is what is taken out; without one it is the whole match. A text without secrets
    comes back as it is.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._own = [SecretFormat(_OWN, (), re.compile(pattern.encode())) for pattern in patterns]

    def redact(self, content: bytes) -> Redacted:
        places = [place for known in self._possible(content) for place in _secrets(known, content)]
        if not places:
            return Redacted(content)
        pieces: list[bytes] = []
        kinds: list[str] = []
        done = 0
        for start, end, kind in sorted(places, key=lambda place: (place[0], -place[1])):
            if start < done:  # inside a secret that was taken out already
                continue
            pieces += [content[done:start], mark_of(kind)]
            kinds.append(kind)
            done = end
        return Redacted(b"".join([*pieces, content[done:]]), tuple(kinds))

    def finds(self, content: bytes) -> bool:
        """Whether a secret stands in a content, or in a text of the JSON that it is: there line ends are escaped, and a
        pattern that begins at one would not find its line."""
        if self.redact(content).kinds:
            return True
        try:
            value = json.loads(content) if content[:1] in (b"{", b"[") else None
        except (ValueError, RecursionError):
            return False
        return bool(self.redact_value(value) != value)

    def redact_text(self, text: str) -> str:
        content = text.encode("utf-8", "surrogatepass")
        redacted = self.redact(content)
        return redacted.content.decode("utf-8", "replace") if redacted.kinds else text

    def redact_value(self, value: Any) -> Any:
        """The same in every text of a JSON value."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, list):
            return [self.redact_value(item) for item in value]
        if isinstance(value, dict):
            return {key: self.redact_value(item) for key, item in value.items()}
        return value

    def _possible(self, content: bytes) -> Iterator[SecretFormat]:
        """The formats of which a secret may be in this text."""
        long_words = b" ".join([word for word in content.translate(_WORDS).split() if len(word) >= _LONG])
        small = content.lower()
        for known in SECRET_FORMATS:
            looked_in = small if known.in_context else long_words
            if any(beginning in looked_in for beginning in known.beginnings):
                yield known
        if _CARD in content.translate(_DIGITS, b" -"):
            yield CARD_NUMBER
        yield from self._own


def _secrets(known: SecretFormat, content: bytes) -> Iterator[tuple[int, int, str]]:
    group = "secret" if "secret" in known.pattern.groupindex else 0
    for match in known.pattern.finditer(content):
        start, end = match.span(group)
        if start < end and known.holds(match[group]):
            yield start, end, known.kind


def mark_of(kind: str) -> bytes:
    return f"[redacted by pagefold: {kind}]".encode()
