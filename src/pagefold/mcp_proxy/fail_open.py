"""Where the MCP proxy fails open, the one place: what is ours and raises is left, counted and told of once.

Whoever works inside `with fail_open:` has said before what is to happen otherwise: the bytes go on as they came.
"""

import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType


def to_stderr(text: str) -> None:
    sys.stderr.write(f"pagefold: {text}\n")


class FailOpen:
    """Counts every fault under "faults"; `report` gets one line for each kind, the first time it happens."""

    def __init__(self, counts: Counter[str], report: Callable[[str], None]) -> None:
        self._counts, self._report = counts, report
        self._reported: set[str] = set()

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._counts["faults"] += 1
        # Its own words may quote a client or a server: they are left out.
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        place = f"{type(error).__name__} at {Path(frame.f_code.co_filename).name}:{line}"
        if place not in self._reported:
            self._reported.add(place)
            self._report(f"a fault of pagefold itself, reported once, counted in pagefold stats: {place}")
        return True
