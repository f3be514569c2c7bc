"""A page at each level it may stand at: the text, what it costs, and the way back to the whole.

Made when asked for and remembered by content, because no form here refers to anything else. A level that the page's
kind does not allow is refused with the reason. Lossy levels carry the page's handle.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from pagefold.derive.selection import Candidate, Offer
from pagefold.encode.choose import encode
from pagefold.encode.pointer import pointer
from pagefold.encode.trim import skeleton
from pagefold.pages.kinds import PageKind, ResidencyLevel, refusal
from pagefold.pages.page import Page
from pagefold.pages.producers import structured
from pagefold.tokens import counter

_REMEMBERED = 4096
_SHORT = 400
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_DECIDES = re.compile(
    r"\?$|\d|[_/`]|[a-z][A-Z]|\b(?:will|must|should|decided?|instead|because|failed|error|fixed|works?|done|never|always"
    r"|need|use|keep|change|now|next|first|so that)\b"
)


@dataclass(frozen=True, slots=True)
class Representation:
    level: ResidencyLevel
    text: str
    tokens: int


def represent(page: Page, level: ResidencyLevel, tokens: str = "o200k") -> Representation:
    """The page at a level. Raises ValueError, with the reason, where its kind does not allow it."""
    if reason := refusal(page.kind, level):
        raise ValueError(reason)
    return _represented(page.kind, page.content, page.name, level, tokens)


def candidate(page: Page, value: float, tokens: str = "o200k") -> Candidate:
    """What the selection is offered: every level of the page, dearest first, a level worth its share of the whole."""
    offers, least = list[Offer](), 1 << 60
    for share, level in zip(_SHARES, page.kind.degradation_path(), strict=False):
        cost = represent(page, level, tokens).tokens
        # A level that costs no less than the one above it says less for as much: no level at all.
        if cost < least or level is page.kind.min_fidelity():
            offers.append(Offer(level, min(cost, least), value * share))
            least = min(cost, least)
    return Candidate(page.id, page.kind, tuple(offers))


_SHARES = (1.0, 1.0, 0.6, 0.05)


@lru_cache(maxsize=_REMEMBERED)
def _represented(kind: PageKind, content: bytes, name: str, level: ResidencyLevel, tokens: str) -> Representation:
    page, count = Page(kind, content, name), counter(tokens).count
    text = page.text
    if level is ResidencyLevel.COMPRESSED:
        text = encode(text, tool=name, count=count).text
    elif level is ResidencyLevel.STRUCTURED:
        text = _structured(page)
    elif level is ResidencyLevel.POINTER:
        text = pointer(text, handle=page.handle, tool=name or str(kind), count=count)
    return Representation(level, text, count(text))


def _structured(page: Page) -> str:
    """What satisfies the kind's promise: a statement with scope and source, a goal and its step, what was decided and
    asked, the signatures of what was read."""
    held = structured(page)
    if held is not None:
        return held
    if page.kind is PageKind.CONVERSATION and len(page.text) > _SHORT:
        return _decided(page)
    return skeleton(page.text, handle=page.handle, tool=page.name) if len(page.text) > _SHORT else page.text


def _decided(page: Page) -> str:
    """Decisions, names, numbers, questions and outcomes of what was said, in its own words; never nothing."""
    sentences = [one.strip() for one in _SENTENCE.split(page.text) if one.strip()]
    kept = [index for index, one in enumerate(sentences) if index == 0 or _DECIDES.search(one)]
    lines: list[str] = []
    for at, index in enumerate(kept):
        if at and index != kept[at - 1] + 1:
            lines.append("…")
        lines.append(sentences[index])
    shown = "\n".join([f"[shortened; {page.handle} recalls all of it]", *lines])
    return shown if len(shown) < len(page.text) else page.text
