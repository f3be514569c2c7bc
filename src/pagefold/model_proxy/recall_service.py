"""Stores the pages that requests name, and answers context tools, for the model proxy.

An answer is always text for the model, also when it is a refusal: a model that gets an error tries again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pagefold.adapters.library import Library
from pagefold.errors import StoreError
from pagefold.pages.exchanges import Work
from pagefold.pages.journal import Boundary
from pagefold.pages.page import Page
from pagefold.pages.pins import Pins
from pagefold.pages.writeback import Scopes, Writeback

_RECALL_TOKENS = 8_000


class PageKeeper:
    """Stores pages whose handles a conversation was given, and keeps them for as long as it lives."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def __call__(self, pages: Sequence[Page], *, history: str, now: float) -> None:
        """Raises StoreError."""
        self._library.put_held(pages, history=history, now=now)

    def write_back(self, pins: Pins, boundary: Boundary, *, history: str, now: float) -> None:
        """Commits the pins of a conversation before part of it is folded away. Raises StoreError."""

        def write() -> None:
            writer = Writeback(self._library.store, Scopes(history))
            try:
                writer.write(pins, boundary, now=now)
            finally:
                writer.close()

        self._library.run(write)


class RecallAnswers:
    """Answers calls of context tools out of one library. `alone`: where it is not known to which project a request
    belongs, a conversation recalls what it was shown itself and nothing else."""

    def __init__(self, library: Library, *, alone: bool = False) -> None:
        self._library, self._alone = library, alone

    def __call__(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        history: str | None = None,
        work: Callable[[], Work] | None = None,
    ) -> str:
        """`history` is the conversation that asks, and `work` gives what has been done in it."""
        try:
            how: dict[str, Any] = {"budget": _RECALL_TOKENS, "within": history, "alone": self._alone, "work": work}
            return self._library.answer_call(tool, arguments, **how)[0]
        except StoreError as error:
            return str(error)
