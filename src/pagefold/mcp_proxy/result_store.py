"""The tools of our own as they are answered, and what the client was shown, kept so that it can be recalled and found.

Pages are put by a thread of their own: no answer waits for a disk, and where the disk is slower than the tools, what is
not yet kept is let go and counted. The store is opened when something is to be put or asked for, and where it cannot be
used, that is said once and the proxy goes on without it.
"""

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from pagefold.adapters.library import Library
from pagefold.errors import ConfigError, StoreError
from pagefold.mcp_proxy.fail_open import to_stderr
from pagefold.pages import context_calls
from pagefold.pages.context_calls import Answered, ResetAsked
from pagefold.pages.context_tools import PARTS
from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import id_of
from pagefold.pages.pins import Pins
from pagefold.pages.search import SearchFailed
from pagefold.pages.writeback import Scopes, Writeback

_WAITING_PAGES = 256
_RECALL_TOKENS = 20_000  # more than that some clients refuse to take from a tool
_PAUSE_SECONDS = 0.02
_ASK_SECONDS = 0.25  # no client has its model answer, and calls a tool, within so short a time of the proxy's start
_READ = "pagefold stands before the model too: what a request holds already is referred to there."
_ALONE = (
    "This proxy stands before tools: it keeps this and tells it in context_status; requests carry it where pagefold "
    "stands before the model too."
)


class ResultStore:
    """What is known about one client's conversation. `library` opens the store; `is_read` says whether a model proxy
    works on it; `history` is "" where texts are to be found by nothing but what was shown for them."""

    def __init__(
        self,
        library: Callable[[], Library],
        history: str,
        counts: Counter[str],
        *,
        reset: Callable[[], None] = lambda: None,
        is_read: Callable[[], bool] = lambda: False,
        report: Callable[[str], None] = to_stderr,
    ) -> None:
        self._report, self._asks = report, is_read
        self._read, self._asked = False, -_ASK_SECONDS
        self._open, self.history, self._counts, self._reset = library, history, counts, reset
        self._library: Library | None = None
        self._opening = threading.Lock()
        self._pins = Pins()
        self._writeback: Writeback | None = None
        self._pages: queue.Queue[tuple[bytes, PageKind, str] | None] = queue.Queue(_WAITING_PAGES)
        self._keeping: threading.Thread | None = None
        self._said = False
        self._closing = threading.Event()

    @property
    def is_read(self) -> bool:
        """Whether a model proxy reads along; once it has, it may be back at any time."""
        if not self._read and (now := time.monotonic()) - self._asked >= _ASK_SECONDS:
            self._read, self._asked = self._asks(), now
        return self._read

    def keep(self, text: str, tool: str) -> None:
        """Puts what a tool said into the store, soon."""
        if self._keeping is None:
            self._keeping = threading.Thread(target=self._keep, daemon=True, name="pagefold keeps pages")
            self._keeping.start()
        try:
            self._pages.put_nowait((text.encode("utf-8", "surrogatepass"), PageKind.EVIDENCE, tool))
        except queue.Full:
            self._counts["pages not kept"] += 1

    def keep_now(self, text: str, tool: str, form: str = "") -> bool:
        """Puts it before this returns: what is cut has to be there when it is asked for, and what stands behind a form
        when the form is read."""
        content = text.encode("utf-8", "surrogatepass")
        shown = id_of(form.encode("utf-8", "surrogatepass")) if form else None
        try:
            library, now = self._at_hand(), time.time()
            library.put(content, history=self.history, now=now, kind=PageKind.EVIDENCE, name=tool, shown_form=shown)
        except (StoreError, ConfigError) as error:
            self._say_once(error)
            return False
        return True

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """The text of an answer, and whether it is a failure."""
        try:
            match tool:
                case "context_recall":
                    return self._recall(arguments)
                case "context_search":
                    return self._search(str(arguments.get("query", "")), arguments.get("limit"))
                case "context_status":
                    return self._status(), False
            return self._call(tool, arguments)
        except (StoreError, ConfigError) as error:
            return f"The store cannot be used: {error}", True

    def close(self) -> None:
        """Puts what still waits, within bounds, and lets the store go."""
        if self._keeping is not None:
            self._closing.set()
            self._pages.put(None)
            self._keeping.join(2.0)
        if self._writeback is not None:
            try:
                self._writeback.write(self._pins, Boundary.SHUTDOWN, now=time.time())
            except StoreError as error:
                self._say_once(error)
            self._writeback.close()
        with self._opening:
            if self._library is not None:
                self._library.close()

    def _recall(self, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        part = {name: str(arguments.get(name) or "") for name in PARTS}
        found = self._at_hand().answer(str(arguments.get("handle", "")), **part, budget=_RECALL_TOKENS)
        return found.text, found.page is None

    def _search(self, query: str, limit: object) -> tuple[str, bool]:
        most = limit if isinstance(limit, int) and 0 < limit <= 20 else 5
        found = self._at_hand().search(query, within=self.history, limit=most)
        return found.text, isinstance(found, SearchFailed)

    def _status(self) -> str:
        status = self._at_hand().status()
        self._held()
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
        held, now = self._held(), time.time()
        answered = context_calls.answer(tool, arguments, self._pins)
        if not isinstance(answered, Answered | ResetAsked):
            return answered.text, True
        page = answered.page
        self._at_hand().put(page.content, history=self.history, now=now, kind=page.kind, name=tool)
        if isinstance(answered, Answered):
            self._pins = answered.pins
            held.stage(self._pins, now=now)
        else:
            held.write(self._pins, Boundary.RESET, now=now)
            self._reset()
        return f"{answered.text} {_ALONE}", False

    def _held(self) -> Writeback:
        """Where what is held is written back; what was held before in this conversation is held again."""
        if self._writeback is None:
            self._writeback = Writeback(self._at_hand().store, Scopes(self.history))
            self._pins = self._writeback.read().holding(*self._pins.held)
        return self._writeback

    def _keep(self) -> None:
        while (page := self._pages.get()) is not None:
            # Not at once: whoever was just answered is likely to ask again, and should not find us busy.
            self._closing.wait(_PAUSE_SECONDS)
            content, kind, name = page
            try:
                self._at_hand().put(content, history=self.history, now=time.time(), kind=kind, name=name)
            except (StoreError, ConfigError) as error:
                self._counts["pages not kept"] += 1
                self._say_once(error)

    def _say_once(self, error: Exception) -> None:
        if not self._said:
            self._said = True
            self._report(f"going on without the store: {error}")

    def _at_hand(self) -> Library:
        with self._opening:
            if self._library is None:
                self._library = self._open()
            return self._library
