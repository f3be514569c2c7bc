"""The decision trace as a file beside the store: one line an event, appended by whoever runs a proxy.

Writing never holds up a turn: `Writer.see` puts an event into a bounded queue and returns, and a thread writes. What
does not fit into the queue is dropped and counted; a disk that cannot be written is told once, counted, and tried again
later. The file is the user's alone (0600). When it is longer than it may be, it becomes the older one (`.1`), whose
predecessor goes. Many processes append to one file, each a batch of whole lines at a time.
"""

import contextlib
import os
import queue
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

try:
    import fcntl
except ImportError:  # Windows: two processes that end a file at the same moment may lose the older one
    fcntl = None  # type: ignore[assignment]


def beside(store: Path) -> Path:
    """The file of a store's trace."""
    return store.with_name(f"{store.stem}.trace.jsonl")


def older(path: Path) -> Path:
    return path.with_name(path.name + ".1")


class TraceWriter:
    """Appends events to the file at `path`. `counts` says how many were written, dropped, or met a broken disk.

    `also` gets every event that is written, on the writer's thread: spans are made there.
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
        self._told = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="pagefold traces")
        self._thread.start()

    def see(self, event: TraceEvent) -> None:
        if self._queue.qsize() >= self._waiting:
            self.counts["dropped"] += 1
        else:
            self._queue.put(event)

    def close(self) -> None:
        """Writes what waits, within bounds."""
        self._closing.set()
        self._queue.put(None)
        self._thread.join(_CLOSE_SECONDS)

    def _work(self) -> None:
        while True:
            batch, ended = self._next()
            if batch:
                self._write(batch)
                for event in batch if self._also else ():
                    self._tell(event)
            if ended:
                if self._file >= 0:
                    os.close(self._file)
                return
            # Not at once: a pause makes one write of many lines, and leaves the processor to whoever is served.
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

    def _tell(self, event: TraceEvent) -> None:
        assert self._also is not None
        try:
            self._also(event)
        except Exception as error:  # noqa: BLE001 - whatever a collector's library does, the trace goes on
            self.counts["unwritable"] += 1
            self._say(f"spans cannot be made ({type(error).__name__})")

    def _write(self, batch: list[TraceEvent]) -> None:
        if self._path is None:
            self.counts["written"] += len(batch)
            return
        data = "".join(line_of(event) + "\n" for event in batch).encode()
        try:
            os.write(self._opened(len(data)), data)
        except OSError as error:
            self.counts["unwritable"] += len(batch)
            self._say(f"the trace {self._path} cannot be written ({error.strerror}); the proxy goes on without it")
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
        else:
            self.counts["written"] += len(batch)

    def _say(self, words: str) -> None:
        if not self._told:
            self._told = True
            self._report(words)

    def _opened(self, more: int) -> int:
        """The file to append to: another one where this one has become the older one, or is now long enough."""
        assert self._path is not None
        if self._file >= 0 and not self._is_current():
            os.close(self._file)
            self._file = -1
        if self._file < 0:
            self._file = _open(self._path)
        if self._max_bytes and os.fstat(self._file).st_size + more > self._max_bytes and self._turn_over():
            os.close(self._file)
            self._file = _open(self._path)
        return self._file

    def _is_current(self) -> bool:
        assert self._path is not None
        try:
            there, mine = self._path.stat(), os.fstat(self._file)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def _turn_over(self) -> bool:
        """Under a lock on the file itself: whoever comes second finds that it is no longer the current one."""
        assert self._path is not None
        if os.fstat(self._file).st_size == 0:
            return False
        if fcntl is not None:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        if self._is_current():
            self._path.replace(older(self._path))
        return True


def _open(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class TraceReader:
    """Reads a trace from its beginning and then what is added to it. `damaged` counts lines that are no event."""

    def __init__(self, path: Path, *, most_bytes: int = 0, only: bytes = b"") -> None:
        """With `most_bytes` it begins that far from the end: what is older is not looked at. Lines that do not hold
        `only` are passed over unread."""
        self._path, self._at, self._rest, self._file = path, 0, b"", (0, 0)
        self._most, self._only = most_bytes, only
        self.damaged = 0

    def read(self) -> Iterator[TraceEvent]:
        """What was added since the last time. A file that is not there has nothing to say."""
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            found = os.fstat(file.fileno())
            if (found.st_dev, found.st_ino) != self._file or found.st_size < self._at:
                skipped = max(0, found.st_size - self._most) if self._most else 0
                self._file, self._at, self._rest = (found.st_dev, found.st_ino), skipped, b""
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


def read(path: Path) -> tuple[list[TraceEvent], int]:
    """All events of a trace, the older file first, and how many lines were damaged."""
    events: list[TraceEvent] = []
    damaged = 0
    for one in (older(path), path):
        reader = TraceReader(one)
        events += reader.read()
        damaged += reader.damaged
    return events, damaged
