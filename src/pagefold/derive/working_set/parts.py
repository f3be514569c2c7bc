"""A digest in parts: lines of pagefold's own, and lines that are quoted under them.

Pagefold's own lines begin with a tag that occurs in no quoted line, so nothing that was quoted can pass for one.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from pagefold.derive.working_set.record import Record
from pagefold.frozen import frozen

_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
_TAG_LENGTH = 4
OPENING = "pagefold wrote this message to save context."


@frozen
class Part:
    """`title` is a line of pagefold's, `lines` are quoted; None among them is a mark for lines that were left out."""

    title: str
    lines: tuple[str | None, ...] = ()

    @property
    def tokens(self) -> int:
        """About what it costs."""
        return len(self.title) // 4 + 4 + sum(len(line) // 4 + 1 for line in self.lines if line is not None)

    @property
    def text(self) -> str:
        return "\n".join([self.title, *(line for line in self.lines if line is not None)])


def rendered(parts: Sequence[Part], record: Record, count: int) -> str:
    """The digest's text. It stands for so many messages, which the record's handles recall."""
    tag = _tag(record.contents or record.handle, [part.text for part in parts])
    return "\n".join(_lines(parts, tag, record, count))


def _tag(seed: str, texts: Iterable[str]) -> str:
    """A short word, the same for the same seed, that stands nowhere in these texts."""
    everything = "\n".join(texts)
    number = int(hashlib.sha256(seed.encode()).hexdigest(), 16)
    length = _TAG_LENGTH
    while True:
        word = "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(length))
        if word not in everything:
            return word
        length += 1


def _lines(parts: Sequence[Part], tag: str, record: Record, count: int) -> Iterator[str]:
    recall = f'context_recall("{record.contents}") lists them, each with its own handle.'
    if not record.contents:
        recall = f'context_recall("{record.handle}") returns the messages themselves.'
    yield (
        f"[{tag}] {OPENING} It stands for the {count} messages before it. Lines "
        f"that begin with [{tag}] are pagefold's; all others are quoted from those messages or from files. "
        f"[{tag}] … marks lines that were left out. {recall}"
    )
    for part in parts:
        yield f"[{tag}] {part.title}"
        for line in part.lines:
            yield f"[{tag}] …" if line is None else line
