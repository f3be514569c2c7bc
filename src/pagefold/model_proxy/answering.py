"""The model proxy's side of the library: pages that requests name are kept there, and context tools are answered.

An answer is always text for the model, a refusal too: a model that gets an error tries again.
"""

from collections.abc import Mapping
from typing import Any

from pagefold.adapters.library import Library
from pagefold.encode.cursor import Cursor, read_cursor
from pagefold.encode.pieces import piece
from pagefold.errors import RecallError, StoreError
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId
from pagefold.pages.recall import Recalled
from pagefold.tokens import counter

_RECALL_TOKENS = 8_000
_MOST = 20


class Keeper:
    """Puts pages whose handles a conversation was given, so that they are kept for as long as it lives."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def __call__(self, content: bytes, *, history: str, now: float, kind: PageKind, name: str) -> PageId:
        """Raises StoreError."""
        page = self._library.put(content, history=history, now=now, kind=kind, name=name)
        self._library.store.hold(page, history)
        return page


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
