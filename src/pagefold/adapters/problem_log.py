"""Tells problems, a line each, and each kind no more than once a minute: a broken disk must not fill another one.

A line is a sentence, or on demand a JSON object. No line holds what a client, a server or a model wrote.
"""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

_EVERY_SECONDS = 60.0


def to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


class ProblemLog:
    """`counts` are the problems so far, by kind, those that were not told too. For any thread."""

    def __init__(
        self,
        write: Callable[[str], None] = to_stderr,
        *,
        as_json: bool = False,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._write, self._as_json, self._clock, self._wall_clock = write, as_json, clock, wall_clock
        self._told: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()

    def __call__(self, kind: str, sentence: str) -> None:
        with self._lock:
            self.counts[kind] += 1
            now = self._clock()
            if kind in self._told and now - self._told[kind] < _EVERY_SECONDS:
                self._left_out[kind] += 1
                return
            self._told[kind], left_out = now, self._left_out.pop(kind, 0)
        self._write(self._line(kind, sentence, left_out))

    def _line(self, kind: str, sentence: str, left_out: int) -> str:
        if self._as_json:
            at = datetime.fromtimestamp(self._wall_clock(), UTC).isoformat(timespec="milliseconds")
            fields = {"at": at, "program": "pagefold", "problem": kind, "text": sentence, "left_out": left_out}
            return json.dumps(fields, ensure_ascii=False)
        more = f" ({left_out:,} more like this were not told)" if left_out else ""
        return f"pagefold: {sentence}{more}"
