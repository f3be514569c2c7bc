"""Summaries that a model wrote, in place of digests: how they are asked for, checked and put to use. Pure.

A fold names, by the hash of what it folds, the stretches that it put a digest for. Whoever has a model may have them
summarised and ask again with the texts as a note, kept like every note under the hash of the history. What is empty,
far too short or longer than it may be is not used: then the digest stands, as it does without a model.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pagefold.derive.entry import counted, text_message
from pagefold.derive.fold import Folded
from pagefold.derive.policy import Derived, Notes
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import HANDLE, Page, handle_of
from pagefold.tokens import counter

INSTRUCTION = (
    "Summarise this part of a working session for the agent that goes on with it. Say what was asked, what was decided "
    "and why, which files, names, numbers and commands matter, which errors came up and how they were solved, and what "
    "is still open. Keep identifiers, paths and figures exactly as they are written. Plain sentences, no preamble."
)
_SMALL = 256  # tokens below which anything but nothing will do
_LEAST, _SHARE = 50, 1_000
_SLACK = 1.25


_BEFORE = re.compile(rf'\[the \d+ messages before these: context_recall\("({HANDLE.pattern})"\)\]\n')


@dataclass(frozen=True, slots=True)
class Wanted:
    """A stretch of history that may be summarised, and about how long the summary may be, in tokens."""

    page: Page
    tokens: int

    @property
    def before(self) -> str:
        """The handle of what came before, where the page is the record of a stretch that goes on."""
        found = _BEFORE.match(self.page.text)
        return found[1] if found else ""

    def source(self, known: Mapping[str, str]) -> str:
        """What a model is to summarise: the page, after what is known, by its handle, of what came before."""
        told = known.get(self.before, "")
        text = _BEFORE.sub("", self.page.text, count=1)
        return f"What came before, in short:\n{told}\n\n{text}" if told else text


def wanted(derived: Derived, tokens: int) -> tuple[Wanted, ...]:
    """What a request put digests for. `tokens` is about what one summary may cost."""
    return tuple(Wanted(page, tokens) for page in derived.pages if page.kind is PageKind.CONVERSATION)


def refused(text: str, source: str, most: int, tokens: str = "o200k") -> str:
    """Why a summary of a text is not used, or nothing where it is."""
    said, told = counter(tokens).count(text.strip()), counter(tokens).count(source)
    least = 1 if told < _SMALL else max(_LEAST, told // _SHARE)
    if said < least:
        return f"it has {said:,} tokens for {told:,}, where {least:,} are the least that can say something"
    if said > most * _SLACK:
        return f"it has {said:,} tokens where {most:,} are the most"
    return "it is no shorter than what it summarises" if said >= told else ""


def summarised(made: Folded, notes: Notes, *, head: int, most: int, tokens: str) -> Folded:
    """The fold with the summaries that the notes hold in place of its digests."""
    texts = {handle_of(page): text for page, text in notes.summaries}
    sources = {page.handle: page.text for page in made.pages if page.kind is PageKind.CONVERSATION}
    front = list(made.front)
    for at, message in enumerate(front if texts else ()):
        found = HANDLE.search(message.text.partition("\n")[0])
        handle = found[0] if found else ""
        if handle in texts and handle in sources and not refused(texts[handle], sources[handle], most, tokens):
            front[at] = text_message(_said(handle, texts[handle]))
    tail = sum(entry.tokens for entry in made.log[made.cut :])
    total = head + tail + sum(counted(message, tokens) for message in front)
    return replace(made, front=tuple(front), tokens=total) if front != list(made.front) else made


def _said(handle: str, text: str) -> str:
    return (
        "[Folded to save context: earlier messages of this session, summarised by a model. "
        f'context_recall("{handle}") gives all of it back.]\n{text.strip()}'
    )
