"""What is done to what passes: texts of tools encoded and kept, our own tools answered.

Made once a process. What it needs is imported when a greeting has gone by: the codecs and the vocabulary take a tenth
of a second and 90 MB, and a client that waits for its server should not.
"""

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from pagefold.adapters.gc_tuning import tune_gc
from pagefold.mcp_proxy.commands import AnswerOwnTool, Shorten
from pagefold.mcp_proxy.session import Early

# The first text of a kind costs a tenth of a second: patterns are compiled, the vocabulary is loaded.
_SAMPLES = (
    '[{"id": 1, "name": "one", "tags": ["a"]}, {"id": 2, "name": "two", "tags": ["b"]}]',
    "\n".join(f"2026-11-16T10:00:{second:02} INFO started worker {second} of 12" for second in range(12)),
    "\n".join(f"src/a/b{number}.py:{number}: def name_{number}():" for number in range(12)),
)


class ResultKeeper(Protocol):
    """What is kept of a conversation; `result_store.ResultStore` is one."""

    @property
    def is_read(self) -> bool:
        """Whether a model proxy on the same store reads what was shown."""

    def keep(self, text: str, tool: str) -> None: ...

    def keep_now(self, text: str, tool: str, form: str = "") -> bool: ...

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str, bool]: ...

    def close(self) -> None: ...


class ResultProcessor:
    """`context` makes what keeps texts and answers our tools, when it is first needed. Where no `tools` are offered,
    it only tells a model proxy on the same store what was shown.

    `untouched` says whether the results of a server's tool pass as they come. With `references` earlier results of
    the connection may be referred to until `forget` says that the model sees them no more; where a model proxy reads
    along, it makes the references, since it knows.
    """

    def __init__(
        self,
        *,
        context: Callable[[Callable[[], None]], ResultKeeper] | None = None,
        tools: bool = True,
        untouched: Callable[[str, str], bool] = lambda server, tool: False,
        references: bool = False,
        early: Callable[[], Early] | None = None,
        budget: int = 0,
    ) -> None:
        self.warm = False
        self.early: Early | None = None
        self._make_early, self._budget = early, budget
        self._context, self._untouched, self._references = context, untouched, references
        self._tools = tools
        self._begun = False
        self._loading, self._showing = threading.Lock(), threading.Lock()
        self._result: Any = None
        self._known: ResultKeeper | None = None
        self._ledger: Any = None

    def begin(self) -> None:
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._load, daemon=True, name="pagefold loads").start()

    @property
    def may_wait(self) -> bool:
        """Whether shortening waits for what is still loading, or for a disk."""
        return not self.warm or (self._known is not None and self._known.is_read)

    def shorten(self, command: Shorten) -> tuple[bytes, Callable[[], Mapping[str, int]]]:
        """What the client gets, and what is left to do once it has it: that says what was counted."""
        if self._untouched(command.server, command.tool):
            return command.data, lambda: {"passed untouched": 1}
        result = self._load()
        is_read = self._known is not None and self._known.is_read
        keep = self._known.keep_now if self._known is not None and self._tools else None
        if is_read or self._ledger is None:
            done = result.shortened(command, budget=self._budget, keep=keep)
        else:
            with self._showing:  # of two texts at once both would have the same label
                done = result.shortened(command, ledger=self._ledger, budget=self._budget, keep=keep)
                self._ledger = done.ledger
        forms = [original for original in done.originals if is_read and original.form]
        for text, form in forms:  # before the client has them, and so before the model proxy reads them
            assert self._known is not None
            self._known.keep_now(text, command.tool, form)
        return done.data, partial(self._noted, done, command.tool, forms)

    def _noted(self, done: Any, tool: str, forms: Sequence[Any]) -> Mapping[str, int]:
        if self._known is not None and self._tools:
            for original in done.originals:
                if original not in forms:
                    self._known.keep(original.text, tool)
        return {
            "texts": done.texts,
            "tokens before": done.before,
            "tokens after": done.after,
            "codecs skipped": done.skipped,
            "twins left out": done.twins,
            "texts cut": done.cut,
            "texts noted": len(forms),
        }

    def answer(self, command: AnswerOwnTool) -> tuple[str, bool]:
        self._load()
        if self._known is None or not self._tools:
            return f"There is no tool {command.tool} here.", True
        return self._known.answer(command.tool, command.arguments)

    def forget(self) -> None:
        """The model sees nothing of what was shown before."""
        if self._references:
            fresh = self._load().Ledger()
            with self._showing:  # what is being shown now was asked for before
                self._ledger = fresh

    def close(self) -> None:
        if self._known is not None:
            self._known.close()

    def _load(self) -> Any:
        if self.warm:
            return self._result
        with self._loading:
            if not self.warm:
                self._result = importlib.import_module("pagefold.mcp_proxy.shorten")
                for sample in _SAMPLES:
                    self._result.choose.encode(sample)
                if self._context is not None:
                    self._known = self._context(self.forget)
                if self._references:
                    self._ledger = self._result.Ledger()
                if self._make_early is not None:
                    self.early = self._make_early()
                tune_gc()
                self.warm = True
        return self._result
