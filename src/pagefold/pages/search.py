"""Search over stored pages: what a query asks for, the index protocol, and how hits are shown.

A term that names something (`load_config`, `src/app.py`, `E0308`, a quoted phrase) counts most where it stands as it
was typed; then a term that stands in what a page is called, which for an exchange is its tool, its call and how it
ended; ordinary words rank the rest. Names are found by their parts too: `load config` finds `loadConfig` and
`load_config`. Finding nothing is an answer and not an error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId, handle_of
from pagefold.printable import printable

LIMIT = 10
_EXCERPT = 240
_TERM = re.compile(r'"([^"]+)"|(\S+)')
_AROUND = ",;()[]{}<>'\"`!?"
_NAMING = re.compile(r"\d|[^\W\d_][A-Z]|\w[^\w\s]+\w|_|^[^\w\s]+\w")
_HUMP = r"(?<=[^\W_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
_HUMPS = re.compile(_HUMP)
_HUMPED = re.compile(r"\b[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z])[A-Za-z0-9]*\b")
LISTS = ("what was said and done", "folded messages")
"""The names of pages that list or repeat what others hold."""
_SPEAKS = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Query:
    """The terms as they were typed, each once; `naming` are those that name something."""

    terms: tuple[str, ...]
    naming: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A page, what of the query stands in it as typed, and a few lines of it from line `line` on."""

    page: PageId
    name: str
    kind: PageKind | None
    history: str
    exact: tuple[str, ...]
    score: float
    line: int
    excerpt: str

    @property
    def handle(self) -> str:
        return handle_of(self.page)


@dataclass(frozen=True, slots=True)
class SearchResults:
    """What was found, the best first; nothing is a final answer."""

    query: str
    found: tuple[SearchHit, ...]

    @property
    def text(self) -> str:
        if not self.found:
            return f"No page speaks of {self.query!r}."
        return "\n\n".join(f"{number}. {_shown(hit)}" for number, hit in enumerate(self.found, 1))


@dataclass(frozen=True, slots=True)
class SearchFailed:
    """The store could not answer; trying again later may help."""

    query: str
    reason: str

    @property
    def text(self) -> str:
        return f"The pages could not be searched for {self.query!r}: {self.reason}"


SearchAnswer: TypeAlias = SearchResults | SearchFailed


class SearchIndex(Protocol):
    def search(self, query: str, *, history: str | None = None, limit: int = LIMIT) -> Sequence[SearchHit]:
        """Returns the pages that match, best first, of one history or of all. Raises StoreError."""


@dataclass(frozen=True, slots=True)
class Document:
    """A page as a search reads it: its text, where it is listed, and the naming terms it has as they were typed."""

    text: str
    history: str
    kind: PageKind | None
    name: str
    exact: tuple[str, ...]

    @classmethod
    def of(cls, content: bytes, query: Query, history: str, kind: PageKind | None, name: str) -> "Document":
        text = content.decode("utf-8", "replace")
        exact = tuple(term for term in query.naming if stands_in(term, text) or stands_in(term, name))
        return cls(text, history, kind, name, exact)


def ranked(
    documents: Mapping[PageId, Document], scores: Mapping[PageId, float], query: Query, limit: int
) -> list[SearchHit]:
    """The best documents: most naming terms as typed first, however common the words in them are, then most terms in
    what a page is called, then by score. Pages that only list or repeat others come last."""
    patterns = [pattern_of(term) for term in query.terms]

    def rank(page: PageId) -> tuple[bool, int, int, float, PageId]:
        document = documents[page]
        called = sum(1 for pattern in patterns if pattern.search(document.name))
        return document.name in LISTS, -len(document.exact), -called, -scores[page], page

    best = sorted(documents, key=rank)
    hits = []
    for page in best[:limit]:
        document = documents[page]
        line, cut = excerpt(document.text, query)
        about = (document.name, document.kind, document.history, document.exact)
        hits.append(SearchHit(page, *about, scores[page], line, cut))
    return hits


def parse_query(text: str) -> Query:
    """The terms of what was typed: marks around a word are not part of it, and what has no letter or digit is none."""
    terms: dict[str, bool] = {}
    for match in _TERM.finditer(text):
        phrase, word = match.groups()
        term = phrase.strip() if phrase else _bare(word)
        if _SPEAKS.search(term):
            terms[term] = terms.get(term, False) or bool(phrase) or bool(_NAMING.search(term))
    return Query(tuple(terms), tuple(term for term, naming in terms.items() if naming))


def stands_in(term: str, text: str) -> bool:
    """Whether the text has the term as it was typed, and not as a part of a longer word."""
    at = text.find(term)
    while at >= 0:
        end = at + len(term)
        longer = (at > 0 and _joins(text[at - 1], term[0])) or (end < len(text) and _joins(term[-1], text[end]))
        if not longer:
            return True
        at = text.find(term, at + 1)
    return False


def excerpt(text: str, query: Query, length: int = _EXCERPT) -> tuple[int, str]:
    """The line, counted from one, and the text around the first term that is there; naming terms go before others."""
    at = _place(text, query)
    start = max(text.rfind("\n", 0, at) + 1, at - length // 2)
    # A lone line says little: the one before it comes along where it is short.
    before = text.rfind("\n", 0, max(0, start - 1)) + 1
    if 0 < start - before <= length // 3 and text[start - 1] == "\n":
        start = before
    end = min(len(text), start + length)
    if (line_end := text.rfind("\n", at, end)) > at and end < len(text):
        end = line_end
    cut = text[start:end].rstrip("\n")
    opening = "…" if start and text[start - 1] != "\n" else ""
    closing = "…" if end < len(text) and text[end] != "\n" else ""
    return text.count("\n", 0, start) + 1, f"{opening}{cut}{closing}"


def pattern_of(term: str, *, part_of_word: bool = False) -> re.Pattern[str]:
    """Finds the words of a term in their order, whatever their case and whatever marks stand between them; a name in
    one word, as loadConfig, counts as its words."""
    words = r"[\W_]*".join(f"(?i:{re.escape(word)})" for word in words_in(term))
    if part_of_word:
        return re.compile(words)
    return re.compile(rf"(?:(?<![^\W_])|{_HUMP}){words}(?:(?![^\W_])|{_HUMP})")


def words_in(term: str) -> list[str]:
    """The words of a name: of `loadConfig`, `load_config` and `load-config` the same two."""
    return [word for part in re.findall(r"[^\W_]+", term) for word in _HUMPS.split(part)]


def split_names(text: str) -> str:
    """The words of all names in a text that are written in one, as loadConfig; each name once."""
    return " ".join(dict.fromkeys(" ".join(_HUMPS.split(name)) for name in _HUMPED.findall(text)))


def _bare(word: str) -> str:
    return word.strip(_AROUND).rstrip(".:") or word


def _joins(left: str, right: str) -> bool:
    return (left.isalnum() or left == "_") and (right.isalnum() or right == "_")


def _place(text: str, query: Query) -> int:
    ordered = (*query.naming, *(term for term in query.terms if term not in query.naming))
    for term in ordered:
        if stands_in(term, text):
            return text.index(term)
    for term in ordered:
        if match := pattern_of(term, part_of_word=True).search(text):
            return match.start()
    return 0


def _shown(hit: SearchHit) -> str:
    """A hit in words: whose it is, then its excerpt, indented so that none of its lines can pass for another hit."""
    whose = "" if hit.kind is PageKind.CONVERSATION else "from "
    excerpt = "\n".join(f"    {line}" for line in printable(hit.excerpt).split("\n"))
    return f"{hit.handle} {whose}{printable(hit.name or 'a text', keep='')} (from line {hit.line})\n{excerpt}"
