"""The context tools that the proxy answers inside a turn, from the library.

An answer is always text for the model, a refusal too: a model that gets an error tries again.
"""

from collections.abc import Mapping
from typing import Any

from pagefold.adapters.library import Library
from pagefold.encode.cursor import Cursor, read_cursor
from pagefold.encode.pieces import piece
from pagefold.errors import RecallError, StoreError
from pagefold.pages.recall import Recalled
from pagefold.tokens import counter

_RECALL_TOKENS = 8_000
_MOST = 20


class Answers:
    """Answers calls out of one library."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> str:
        try:
            if tool == "context_search":
                return self._search(str(arguments.get("query", "")), arguments.get("limit"))
            return self._recall(str(arguments.get("handle", "")), arguments.get("cursor"))
        except (StoreError, RecallError) as error:
            return str(error)

    def _recall(self, handle: str, cursor: object) -> str:
        found = self._library.recall(handle)
        if not isinstance(found, Recalled):
            return found.text
        text = found.content.decode("utf-8", "replace")
        count = counter("o200k").count
        if not cursor and count(text) <= _RECALL_TOKENS:
            return text
        at = read_cursor(str(cursor), found.page, len(text)) if cursor else Cursor(found.page, 0, _RECALL_TOKENS)
        return piece(text, at, count).text

    def _search(self, query: str, limit: object) -> str:
        most = limit if isinstance(limit, int) and 0 < limit <= _MOST else 5
        return self._library.search(query, limit=most).text
