"""The one place where the MCP proxy fails open: an exception of pagefold's own code is dropped, counted, reported once.

The code after `with fail_open:` does what is right without pagefold: it passes the bytes on as they came.
"""

import sys
import traceback
from collections import Counter
from pathlib import Path
from types import TracebackType

from pagefold.printable import printable


def to_stderr(text: str) -> None:
    sys.stderr.write(f"pagefold: {printable(text)}\n")


class FailOpen:
    """Counts every fault under "faults" and writes one line for each kind to stderr, the first time it happens."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._reported: set[str] = set()

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._counts["faults"] += 1
        # The text of an exception may quote a client or a server, so it is left out.
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        place = f"{type(error).__name__} at {Path(frame.f_code.co_filename).name}:{line}"
        if place not in self._reported:
            self._reported.add(place)
            to_stderr(f"a fault of pagefold itself, reported once, counted in pagefold stats: {place}")
        return True
