"""Keeps what the tools answered, so that it can be recalled and searched, and answers pagefold's own tools.

Pages are stored by a thread, so that no answer waits for a disk; where the disk is slower than the tools, pages are
dropped and counted. The store is opened when it is first needed. Where it cannot be used, that is reported and the
proxy goes on without it; the newest pages wait in memory, and are stored when it works again.
"""

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from pagefold.adapters.library import Library
from pagefold.errors import ConfigError, StoreError
from pagefold.mcp_proxy.fail_open import to_stderr
from pagefold.pages import context_calls
from pagefold.pages.context_calls import Answered, ResetAsked
from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import id_of
from pagefold.pages.pins import Pins
from pagefold.pages.store import RENEW_SECONDS
from pagefold.pages.writeback import Scopes, Writeback

_WAITING_PAGES = 256
_RECALL_TOKENS = 20_000  # some clients refuse longer results of a tool
_PAUSE_SECONDS = 0.02
_ASK_SECONDS = 0.25  # less than it takes a new model proxy to be asked and its model to call a tool
_READ = "pagefold stands before the model too: what a request holds already is referred to there."
_ALONE = (
    "This proxy stands before tools: it keeps this and tells it in context_status; requests carry it where pagefold "
    "stands before the model too."
)


class ResultStore:
    """The results of one client's conversation. `library` opens the store, and `is_read` says whether a model proxy
    works on it. `history` names the conversation; with "", a text is found only by the form that was shown for it.
    """

    def __init__(
        self,
        library: Callable[[], Library],
        history: str,
        counts: Counter[str],
        *,
        reset: Callable[[], None] = lambda: None,
        is_read: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ask_is_read, self._is_read, self._asked = is_read, False, -_ASK_SECONDS
        self._open, self.history, self._counts, self._reset = library, history, counts, reset
        self._library: Library | None = None
        self._opening = threading.Lock()
        self._pins = Pins()
        self._writeback: Writeback | None = None
        self._pages: queue.Queue[tuple[str, str] | None] = queue.Queue(_WAITING_PAGES)
        self._keeping: threading.Thread | None = None
        self._unsaved: deque[tuple[str, str]] = deque(maxlen=_WAITING_PAGES)
        self._reported, self._renewed = False, -RENEW_SECONDS
        self._closing = threading.Event()

    @property
    def is_read(self) -> bool:
        """Whether a model proxy works on the same store, or has done so before: then it may be back at any time."""
        if not self._is_read and (now := time.monotonic()) - self._asked >= _ASK_SECONDS:
            self._is_read, self._asked = self._ask_is_read(), now
        return self._is_read

    def keep(self, text: str, tool: str) -> None:
        """Stores what a tool answered, soon."""
        if self._keeping is None:
            self._keeping = threading.Thread(target=self._keep, daemon=True, name="pagefold keeps pages")
            self._keeping.start()
        try:
            self._pages.put_nowait((text, tool))
        except queue.Full:
            self._counts["pages not kept"] += 1

    def keep_now(self, text: str, tool: str, form: str = "") -> bool:
        """Stores a text before this returns: one that is cut may be recalled, and one shown as a form may be read, at
        once. Returns whether it is stored."""
        content = text.encode("utf-8", "surrogatepass")
        shown = id_of(form.encode("utf-8", "surrogatepass")) if form else None
        try:
            library, now = self._opened(), time.time()
            library.put(content, history=self.history, now=now, kind=PageKind.EVIDENCE, name=tool, shown_form=shown)
            if self.history and now - self._renewed >= RENEW_SECONDS:
                library.store.pages.renew(self.history, now)
                self._renewed = now
        except (StoreError, ConfigError) as error:
            self._report_once(error)
            return False
        return True

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """The text of an answer, and whether it is a failure."""
        try:
            match tool:
                case "context_recall" | "context_search":
                    library = self._opened()
                    return library.answer_call(tool, arguments, budget=_RECALL_TOKENS, within=self.history)
                case "context_status":
                    return self._status(), False
            return self._call(tool, arguments)
        except (StoreError, ConfigError) as error:
            return f"The store cannot be used: {error}", True

    def close(self) -> None:
        """Stores what still waits, within bounds, and closes the store."""
        if self._keeping is not None:
            self._closing.set()
            self._pages.put(None)
            self._keeping.join(2.0)
        if self._writeback is not None:
            try:
                self._writeback.write(self._pins, Boundary.SHUTDOWN, now=time.time())
            except StoreError as error:
                self._report_once(error)
            self._writeback.close()
        with self._opening:
            if self._library is not None:
                self._library.close()

    def _status(self) -> str:
        status = self._opened().status()
        self._pin_journal()
        before, after = self._counts["tokens before"], self._counts["tokens after"]
        saved = f"{before - after:,} of {before:,} tokens saved" if before else "nothing encoded yet"
        lines = [
            f"This connection: {self._counts['calls']:,} tool results, {saved}.",
            f"The store: {status.pages:,} pages, {status.bytes:,} bytes.",
            *([_READ] if self.is_read else []),
            *([self._pins.block] if self._pins.block else []),
        ]
        return "\n".join(lines)

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        journal, now = self._pin_journal(), time.time()
        answered = context_calls.answer(tool, arguments, self._pins)
        if not isinstance(answered, Answered | ResetAsked):
            return answered.text, True
        page = answered.page
        self._opened().put(page.content, history=self.history, now=now, kind=page.kind, name=tool)
        if isinstance(answered, Answered):
            self._pins = answered.pins
            journal.stage(self._pins, now=now)
        else:
            journal.write(self._pins, Boundary.RESET, now=now)
            self._reset()
        return f"{answered.text} {_ALONE}", False

    def _pin_journal(self) -> Writeback:
        """Where pins are written back to. When it is opened, what this conversation pinned before is held again."""
        if self._writeback is None:
            self._writeback = Writeback(self._opened().store, Scopes(self.history))
            self._pins = self._writeback.read().holding(*self._pins.held)
        return self._writeback

    def _keep(self) -> None:
        while (page := self._pages.get()) is not None:
            # Not at once: a client that was just answered is likely to ask again and should not have to wait.
            self._closing.wait(_PAUSE_SECONDS)
            if not self.keep_now(*page):
                self._counts["pages not kept"] += len(self._unsaved) == _WAITING_PAGES
                self._unsaved.append(page)

    def _keep_unsaved(self) -> None:
        """The store works again."""
        for _ in range(len(self._unsaved)):
            self.keep(*self._unsaved.popleft())

    def _report_once(self, error: Exception) -> None:
        # What a steady store reports itself is not reported twice.
        if not self._reported and not (self._library is not None and self._library.health.out):
            self._reported = True
            to_stderr(f"going on without the store: {error}")

    def _opened(self) -> Library:
        with self._opening:
            if self._library is None:
                self._library = self._open()
                self._library.when_back(self._keep_unsaved)
            return self._library
