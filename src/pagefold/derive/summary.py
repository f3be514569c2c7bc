"""Summaries that a model wrote, in place of digests: how they are asked for, checked and put to use. Pure.

A fold names, by the hash of what it folds, the stretches that it put a digest for. Whoever has a model may have them
summarised and ask again with the texts as a note, kept like every note under the hash of the history. What is empty,
far too short or longer than it may be is not used: then the digest stands, as it does without a model.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pagefold.derive.entry import counted, text_message
from pagefold.derive.fold import Folded
from pagefold.derive.policy import Derived, Notes
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page, PageId
from pagefold.tokens import counter

INSTRUCTION = (
    "Summarise this part of a working session for the agent that goes on with it. Say what was asked, what was decided "
    "and why, which files, names, numbers and commands matter, which errors came up and how they were solved, and what "
    "is still open. Keep identifiers, paths and figures exactly as they are written. Plain sentences, no preamble."
)
_SMALL = 256  # tokens below which anything but nothing will do
_LEAST, _SHARE = 50, 1_000
_SLACK = 1.25


@dataclass(frozen=True, slots=True)
class Wanted:
    """A stretch of history that may be summarised: its page, and about how long the summary may be, in tokens."""

    page: Page
    tokens: int


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
    if said >= told:
        return "it is no shorter than what it summarises"
    return ""


def summarised(made: Folded, notes: Notes, *, head: int, most: int, tokens: str) -> Folded:
    """The fold with the summaries that the notes hold in place of its digests."""
    texts = dict(notes.summaries)
    used = dict(_used(made, texts, most, tokens))
    if not used:
        return made
    front = []
    for message in made.front:
        page = next((page for page in used if f'"{page.handle}"' in message.text.partition("\n")[0]), None)
        front.append(text_message(_said(page, used[page])) if page is not None else message)
    tail = sum(entry.tokens for entry in made.log.part(made.cut))
    total = head + tail + sum(counted(message, tokens) for message in front)
    return replace(made, front=tuple(front), tokens=total)


def _used(made: Folded, texts: dict[PageId, str], most: int, tokens: str) -> Iterator[tuple[Page, str]]:
    for page in made.pages if texts else ():
        text = texts.get(page.id, "")
        if page.kind is PageKind.CONVERSATION and text and not refused(text, page.text, most, tokens):
            yield page, text


def _said(page: Page, text: str) -> str:
    messages = page.text.count("\n") + 1
    return (
        f"[Folded to save context: {messages} earlier messages of this session, summarised by a model. "
        f'context_recall("{page.handle}") gives all of it back.]\n{text.strip()}'
    )
