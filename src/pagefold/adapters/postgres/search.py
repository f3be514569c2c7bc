"""Search over the pages in Postgres: which words a page and its names have, in an index of the database (GIN).

The index is brought up to date when it is searched, so that a put costs one row more and no reading. What the words
lead to is read and judged by its text, as in every store: exact names first, then the rarest words.
"""

import math
from collections.abc import Sequence
from typing import Any

from pagefold.adapters.columns import kind_of, read_back, spelled
from pagefold.adapters.postgres.bodies import KEY_OF
from pagefold.adapters.postgres.pages import PostgresPages
from pagefold.errors import StoreError
from pagefold.pages.page import PageId
from pagefold.pages.search import LIMIT, Document, Query, SearchHit, parse_query, pattern_of, ranked, words_in

_MATCHED = 5_000  # documents of which the best are chosen
_EXAMINED = 500
_AT_ONCE = 64
_LONGEST_WORD = 200

_UNINDEXED = """
    SELECT unindexed.place, listings.page, name, bytes,
        CASE WHEN NOT EXISTS (SELECT 1 FROM documents WHERE documents.page = id AND documents.place = 0)
            THEN stored END, {body}
    FROM unindexed JOIN listings USING (place) JOIN pages ON id = listings.page WHERE unindexed.place > %(after)s
    ORDER BY unindexed.place LIMIT %(at_once)s
""".replace("{body}", KEY_OF)
# From what is there still: a page that was collected meanwhile has no document.
_INDEX = """
    INSERT INTO documents (page, place, words) SELECT id, %s, %s::text[] FROM pages WHERE id = %s FOR KEY SHARE
    ON CONFLICT DO NOTHING
"""
_MATCHES = """
    SELECT documents.page, {having} FROM documents WHERE ({any}) AND CASE WHEN documents.place = 0
        THEN EXISTS (SELECT 1 FROM listings WHERE listings.page = documents.page AND {scope}
            AND (%(history)s::bytea IS NULL OR history = %(history)s))
        ELSE EXISTS (SELECT 1 FROM listings WHERE listings.place = documents.place AND {scope}
            AND (%(history)s::bytea IS NULL OR history = %(history)s)) END
    ORDER BY {count} DESC, cardinality(words), documents.page LIMIT %(limit)s
"""
# Where it is listed with a name goes before where it is kept without one.
_LISTED = """
    SELECT history, kind, name FROM listings WHERE page = %(page)s AND {scope}
    AND (%(history)s::bytea IS NULL OR history = %(history)s) ORDER BY history = '', place DESC LIMIT 1
"""


class PostgresSearch:
    """The index of the pages of one scope."""

    def __init__(self, pages: PostgresPages) -> None:
        self._pages = pages

    def search(self, query: str, *, history: str | None = None, limit: int = LIMIT) -> Sequence[SearchHit]:
        asked = parse_query(query)
        if not asked.terms or limit <= 0:
            return ()
        self.refresh()
        column = None if history is None else spelled(history)
        matches = self._matches(asked, column)
        rarity = _rarity(asked, matches)
        naming = {asked.terms.index(term) for term in asked.naming}

        def promise(page: PageId) -> float:
            return sum(rarity[term] for term in matches[page])

        order = sorted(matches, key=promise, reverse=True)
        named = [page for page in order if naming and naming <= matches[page]][:_EXAMINED]
        documents: dict[PageId, Document] = {}
        scores: dict[PageId, float] = {}
        whole = 0
        for page in dict.fromkeys((*named, *order[: 4 * limit])):
            if page in named and whole >= limit:
                continue
            if (document := self._document(page, asked, column)) is not None:
                if score := _score(document, asked, rarity):
                    documents[page], scores[page] = document, score
                whole += bool(naming) and document.exact == asked.naming
        return ranked(documents, scores, asked, limit)

    def refresh(self) -> int:
        """Brings the index up to date; returns how many listings that took. What object storage does not give now
        is left for the next time."""
        total, after = 0, -1
        while rows := self._pages.ask(_UNINDEXED, at_once=_AT_ONCE, after=after):
            found = {row[0]: self._documents(*row) for row in rows}
            documents = [document for of in found.values() for document in of or ()]
            places, after = [place for place, of in found.items() if of is not None], rows[-1][0]

            def step(db: Any, documents: Any = documents, places: Any = places) -> None:
                with db.transaction(), db.cursor() as cursor:
                    cursor.executemany(_INDEX, documents)
                    db.execute("DELETE FROM unindexed WHERE place = ANY(%s)", (places,))

            self._pages.server.run(step)
            total += len(places)
        return total

    def _documents(
        self, place: int, page: PageId, name: bytes, length: int, stored: bytes | None, key: str | None
    ) -> list[tuple[int, list[str], PageId]] | None:
        documents = [(place, _words(read_back(name)), page)] if name else []
        if stored is not None:
            try:
                text = self._pages.content(page, length, stored, key).decode("utf-8", "replace")
            except StoreError as error:
                if error.kind.startswith("objects"):
                    return None
                text = ""  # a damaged page is told when it is read
            documents.append((0, _words(text), page))
        return documents

    def _matches(self, asked: Query, history: bytes | None) -> dict[PageId, set[int]]:
        """The pages that have all words of a term, in their text or in one of their names, and of which terms."""
        words = {f"term{n}": _words(term) for n, term in enumerate(asked.terms)}
        having = [f"words @> %({name})s::text[]" for name in words]
        statement = _MATCHES.format(
            having=", ".join(having),
            any=" OR ".join(having),
            count=" + ".join(f"({test})::int" for test in having),
            scope=self._pages.clause.text,
        )
        found: dict[PageId, set[int]] = {}
        values = {**self._pages.clause.values, **words, "history": history, "limit": _MATCHED}
        for page, *has in self._pages.server.ask(statement, values):
            found.setdefault(PageId(page), set()).update(n for n, true in enumerate(has) if true)
        return found

    def _document(self, page: PageId, asked: Query, history: bytes | None) -> Document | None:
        content, rows = self._pages.get(page), self._pages.ask(_LISTED, page=page, history=history)
        if content is None or not rows:
            return None
        of, kind, name = rows[0]
        return Document.of(content, asked, read_back(of), kind_of(kind), read_back(name))


def _words(text: str) -> list[str]:
    """The words of a text, each once, as they are compared; of a name in one word also its parts."""
    words = {word[:_LONGEST_WORD].lower() for word in words_in(text)}
    return sorted(words - {""})


def _rarity(asked: Query, matches: dict[PageId, set[int]]) -> list[float]:
    counts = [sum(n in has for has in matches.values()) for n in range(len(asked.terms))]
    return [math.log(1 + (len(matches) + 1) / (count + 0.5)) for count in counts]


def _score(document: Document, asked: Query, rarity: Sequence[float]) -> float:
    """By how rare the terms are that stand there, their words in order; 0 where none does."""
    score = 0.0
    for term, weight in zip(asked.terms, rarity, strict=True):
        pattern = pattern_of(term)
        if pattern.search(document.text) or pattern.search(document.name):
            score += weight
    return score / (1 + math.log1p(len(document.text)) / 20)
