"""Encodes and keeps the results that pass, and answers the calls of pagefold's own tools.

Made once for each connection. What it needs is imported after the client has been greeted: the codecs and the
vocabulary take a tenth of a second and 90 MB, and a client that waits for its server should not wait for them.
"""

import importlib
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pagefold.adapters.gc_tuning import tune_gc
from pagefold.mcp_proxy.commands import AnswerOwnTool, Quote, Shorten
from pagefold.mcp_proxy.replies import may_pose

if TYPE_CHECKING:  # both are imported when they are needed
    from pagefold.mcp_proxy.prefetch_driver import PrefetchDriver
    from pagefold.mcp_proxy.result_store import ResultStore

# The first text of each kind takes a tenth of a second: patterns are compiled, the vocabulary is loaded.
_SAMPLES = (
    '[{"id": 1, "name": "one", "tags": ["a"]}, {"id": 2, "name": "two", "tags": ["b"]}]',
    "\n".join(f"2026-11-16T10:00:{second:02} INFO started worker {second} of 12" for second in range(12)),
    "\n".join(f"src/a/b{number}.py:{number}: def name_{number}():" for number in range(12)),
)


class ResultProcessor:
    """`open_store` makes what keeps results and answers pagefold's tools, and `open_prefetch` what answers early, both
    when first needed. Where no `tools` are offered, the store only tells a model proxy that reads it what was shown.

    `untouched` says whether the results of a server's tool pass as they come. With `references`, earlier results of
    the connection may be referred to until `forget` says that the model no longer sees them. Where a model proxy reads
    the same store, that proxy makes the references, since it knows what the model sees.
    """

    def __init__(
        self,
        *,
        open_store: "Callable[[Callable[[], None]], ResultStore] | None" = None,
        tools: bool = True,
        untouched: Callable[[str, str], bool] = lambda server, tool: False,
        references: bool = False,
        open_prefetch: "Callable[[], PrefetchDriver] | None" = None,
        budget: int = 0,
    ) -> None:
        self.prefetch: PrefetchDriver | None = None
        self._open_store, self._open_prefetch = open_store, open_prefetch
        self._tools, self._untouched, self._references, self._budget = tools, untouched, references, budget
        self._begun = self._loaded = False
        self._loading, self._showing = threading.Lock(), threading.Lock()
        self._shorten: Any = None
        self._store: ResultStore | None = None
        self._ledger: Any = None

    def begin(self) -> None:
        """Loads what is needed in a thread: the client has been greeted, so there is time."""
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._load, daemon=True, name="pagefold loads").start()

    @property
    def may_wait(self) -> bool:
        """Whether shortening waits for what is still loading, or for a disk."""
        return not self._loaded or (self._store is not None and self._store.is_read)

    def shorten(self, command: Shorten) -> tuple[bytes, Callable[[], Mapping[str, int]]]:
        """What the client gets, and what is left to do once it has it, which returns the counts."""
        if self._untouched(command.call.server, command.call.tool):
            data = command.result.data
            if may_pose(data):
                data = self._load().as_it_came(command.result)
            return data, lambda: {"passed untouched": 1}
        module = self._load()
        is_read = self._store is not None and self._store.is_read
        keep = self._store.keep_now if self._store is not None and self._tools else None
        if is_read or self._ledger is None:
            done = module.shortened(command, budget=self._budget, keep=keep)
        else:
            with self._showing:  # two texts at once would get the same label
                done = module.shortened(command, ledger=self._ledger, budget=self._budget, keep=keep)
                self._ledger = done.ledger
        forms = [original for original in done.originals if is_read and original.form]
        for text, form in forms:  # before the client has them, and so before the model proxy reads them
            assert self._store is not None
            self._store.keep_now(text, command.call.tool, form)
        return done.data, partial(self._keep, done, command.call.tool, forms)

    def quote(self, command: Quote) -> bytes:
        """What the client gets of an answer that is no result."""
        data: bytes = self._load().quoted_lines(command.data)
        return data

    def _keep(self, done: Any, tool: str, forms: Sequence[Any]) -> Mapping[str, int]:
        if self._store is not None and self._tools:
            for original in done.originals:
                if original not in forms:
                    self._store.keep(original.text, tool)
        return {
            "texts": len(done.originals),
            "tokens before": done.before,
            "tokens after": done.after,
            "codecs skipped": done.skipped,
            "twins left out": done.twins,
            "texts cut": done.cut,
            "texts noted": len(forms),
        }

    def answer(self, command: AnswerOwnTool) -> tuple[str, bool]:
        """The text of the answer, and whether it is a failure."""
        self._load()
        if self._store is None or not self._tools:
            return f"There is no tool {command.call.tool} here.", True
        return self._store.answer(command.call.tool, command.call.arguments)

    def forget(self) -> None:
        """The model no longer sees what was shown before."""
        if self._references:
            fresh = self._load().Ledger()
            with self._showing:  # what is being shown now was asked for before
                self._ledger = fresh

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    def _load(self) -> Any:
        """The module `shorten`, loaded with all that results need."""
        if self._loaded:
            return self._shorten
        with self._loading:
            if not self._loaded:
                self._shorten = importlib.import_module("pagefold.mcp_proxy.shorten")
                for sample in _SAMPLES:
                    self._shorten.choose.encode(sample)
                if self._open_store is not None:
                    self._store = self._open_store(self.forget)
                if self._references:
                    self._ledger = self._shorten.Ledger()
                if self._open_prefetch is not None:
                    self.prefetch = self._open_prefetch()
                tune_gc()
                self._loaded = True
        return self._shorten
