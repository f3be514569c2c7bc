"""Writes and reads the decision trace: a file beside the store, to which proxies append one line per event.

Writing never delays a turn: `TraceWriter.see` puts an event into a bounded queue and returns, and a thread writes. An
event that does not fit into the queue is dropped and counted. A disk that cannot be written is reported once, counted,
and tried again later. Only the user can read the file (mode 0600). A file that has reached its size limit is renamed to
`.1` and replaces the one before. Several processes append to one file, each a batch of whole lines at a time.
"""

import contextlib
import os
import queue
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from pagefold.telemetry.events import TraceEvent, line_of, parse

_WAITING = 10_000
_BATCH = 500
_PAUSE_SECONDS = 0.05
_CLOSE_SECONDS = 5.0
_PIECE = 1 << 20
_LINE = 1 << 20

if sys.platform != "win32":  # there, two processes that end a file at the same moment may lose the older one
    import fcntl


def older(path: Path) -> Path:
    return path.with_name(path.name + ".1")


class TraceWriter:
    """Appends events to the file at `path`. `counts` says how many were written, dropped, or could not be written.

    `also` is called with every event on the writer's thread; spans are made there. `report` gets the first failure.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        max_bytes: int = 0,
        waiting: int = _WAITING,
        report: Callable[[str], None] = lambda line: None,
        also: Callable[[TraceEvent], None] | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter(written=0, dropped=0, unwritable=0)
        self._path, self._max_bytes, self._report, self._also = path, max_bytes, report, also
        self._queue: queue.SimpleQueue[TraceEvent | None] = queue.SimpleQueue()
        self._waiting = waiting
        self._file = -1
        self._reported = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="pagefold traces")
        self._thread.start()

    def see(self, event: TraceEvent) -> None:
        if self._queue.qsize() >= self._waiting:
            self.counts["dropped"] += 1
        else:
            self._queue.put(event)

    def close(self) -> None:
        """Writes what is in the queue, for a few seconds at most, and ends the thread."""
        self._closing.set()
        self._queue.put(None)
        self._thread.join(_CLOSE_SECONDS)

    def _work(self) -> None:
        while True:
            batch, ended = self._next()
            if batch:
                self._write(batch)
                if self._also is not None:
                    self._pass_on(batch, self._also)
            if ended:
                self._close_file()
                return
            # The pause makes one write of many lines, and leaves the processor to the requests being served.
            self._closing.wait(_PAUSE_SECONDS)

    def _next(self) -> tuple[list[TraceEvent], bool]:
        batch: list[TraceEvent] = []
        event = self._queue.get()
        while event is not None:
            batch.append(event)
            if len(batch) >= _BATCH or self._queue.empty():
                return batch, False
            event = self._queue.get()
        return batch, True

    def _pass_on(self, batch: list[TraceEvent], also: Callable[[TraceEvent], None]) -> None:
        for event in batch:
            try:
                also(event)
            except Exception as error:  # noqa: BLE001 - the trace goes on whatever a collector's library raises
                self.counts["unwritable"] += 1
                self._report_once(f"spans cannot be made ({type(error).__name__})")

    def _write(self, batch: list[TraceEvent]) -> None:
        try:
            if self._path is not None:
                data = "".join(line_of(event) + "\n" for event in batch).encode()
                os.write(self._opened(self._path, len(data)), data)
            self.counts["written"] += len(batch)
        except OSError as error:
            self.counts["unwritable"] += len(batch)
            why = f"the trace {self._path} cannot be written ({error.strerror})"
            self._report_once(f"{why}; the proxy goes on without it")
            self._close_file()

    def _report_once(self, words: str) -> None:
        if not self._reported:
            self._reported = True
            self._report(words)

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _opened(self, path: Path, more: int) -> int:
        """Returns the file to append to: a new one if another process renamed this one, or if it is full."""
        if self._file >= 0 and not self._is_current(path):
            self._close_file()
        if self._file < 0:
            self._file = _open(path)
        if self._max_bytes and os.fstat(self._file).st_size + more > self._max_bytes and self._rotate(path):
            self._close_file()
            self._file = _open(path)
        return self._file

    def _is_current(self, path: Path) -> bool:
        try:
            there, mine = path.stat(), os.fstat(self._file)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def _rotate(self, path: Path) -> bool:
        """Renames a full file under a lock: a second process then finds that it is no longer the current one."""
        if os.fstat(self._file).st_size == 0:
            return False
        if sys.platform != "win32":
            fcntl.flock(self._file, fcntl.LOCK_EX)
        if self._is_current(path):
            path.replace(older(path))
        return True


def _open(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class TraceReader:
    """Reads a trace from its beginning, then what is added to it. `damaged` counts lines that are no event."""

    def __init__(self, path: Path, *, most_bytes: int = 0, only: bytes = b"") -> None:
        """`most_bytes` makes it begin that far from the end of the file. Lines without `only` are skipped unread."""
        self._path, self._at, self._rest, self._file = path, 0, b"", (0, 0)
        self._most, self._only = most_bytes, only
        self.damaged = 0

    def read(self) -> Iterator[TraceEvent]:
        """Yields the events that were added since the last call; none if there is no file."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            stat = os.fstat(file.fileno())
            if (stat.st_dev, stat.st_ino) != self._file or stat.st_size < self._at:
                skipped = max(0, stat.st_size - self._most) if self._most else 0
                self._file, self._at, self._rest = (stat.st_dev, stat.st_ino), skipped, b""
                if skipped:
                    file.seek(skipped)
                    self._at += len(file.readline(_LINE))
            file.seek(self._at)
            while piece := file.read(_PIECE):
                self._at += len(piece)
                *lines, self._rest = (self._rest + piece).split(b"\n")
                yield from self._events(lines)
                if len(self._rest) > _LINE:
                    self._rest, self.damaged = b"", self.damaged + 1

    def _events(self, lines: list[bytes]) -> Iterator[TraceEvent]:
        for line in lines:
            if self._only not in line or not line.strip():
                continue
            event = parse(line)
            if event is None:
                self.damaged += 1
            else:
                yield event
