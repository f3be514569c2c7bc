"""Work on many recordings, wherever it runs: in this process, on all cores, or on a Ray cluster. Results come in order.

A task is a partition of sessions: one function on a few batches. It gets everything it needs in values, so that the
same task gives the same result anywhere and sums over the results are the same bytes. With a folder to resume from, the
result of every task is kept there under a hash of what it was asked, and a run that was broken off goes on from there.

A cluster sends lines of chat recordings along with a task; logs in other formats are opened where the task runs, so
those have to lie on storage that every node sees under the same name.
"""

import hashlib
import importlib
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Generic, TypeVar

from pagefold import __version__
from pagefold.adapters import recordings
from pagefold.adapters.recordings import LogBatch
from pagefold.errors import ConfigError
from pagefold.wire.transcripts import Format

T = TypeVar("T")
J = TypeVar("J")

ENGINES = ("local", "ray")
_SMALL_BYTES = 2_000_000
_AHEAD = 3
_PART_BYTES = 4 << 20
_PART_FILES = 64


@dataclass(frozen=True, slots=True)
class Engine:
    """Where tasks run. `jobs` processes on this computer, 0 for one a core; `resume` is a folder of finished tasks."""

    name: str = "local"
    jobs: int = 0
    resume: Path | None = None
    address: str = "auto"

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ConfigError(f"--engine {self.name}: expected one of {', '.join(ENGINES)}")


@dataclass(frozen=True, slots=True)
class Task(Generic[J, T]):
    """`job` is what the function is told besides its batches."""

    function: Callable[[tuple[LogBatch, ...], J], list[T]]
    batches: tuple[LogBatch, ...]
    job: J

    def run(self) -> list[T]:
        return self.function(self.batches, self.job)

    @property
    def key(self) -> str:
        """A hash of all that decides the result; of a file that is read later, also its size and time."""
        asked = hashlib.sha256(f"{__version__} {self.function.__module__}.{self.function.__qualname__}".encode())
        asked.update(pickle.dumps((self.job, self.batches)))
        for batch in self.batches:
            if batch.lines is None and batch.path.exists():
                found = batch.path.stat()
                asked.update(f"{batch.path}:{found.st_size}:{found.st_mtime_ns}".encode())
        return asked.hexdigest()


def spread(
    paths: Sequence[Path],
    function: Callable[[tuple[LogBatch, ...], J], list[T]],
    job: J,
    *,
    engine: Engine,
    given: Format | None,
    max_bytes: int,
) -> Iterator[T]:
    """What the function says of every batch of every file, in order."""
    batches = (batch for path in paths for batch in recordings.batches(path, given=given, max_bytes=max_bytes))
    tasks = (Task(function, part, job) for part in partitions(batches))
    small = sum(path.stat().st_size for path in paths if path.exists()) < _SMALL_BYTES
    for found in _results(tasks, engine, small=small):
        yield from found


def partitions(batches: Iterable[LogBatch]) -> Iterator[tuple[LogBatch, ...]]:
    """Neighbouring batches together, as many as make a task worth starting. The same files give the same partitions."""
    part, size = list[LogBatch](), 0
    for batch in batches:
        part.append(batch)
        size += sum(len(line) for _, line in batch.lines) if batch.lines is not None else _size(batch.path)
        if size >= _PART_BYTES or len(part) >= _PART_FILES:
            yield tuple(part)
            part, size = [], 0
    if part:
        yield tuple(part)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _results(tasks: Iterator[Task[J, T]], engine: Engine, *, small: bool) -> Iterator[list[T]]:
    if engine.name == "ray":
        yield from _in_order(tasks, _Cluster(engine.address), engine.resume)
        return
    workers = engine.jobs or os.cpu_count() or 1
    if workers == 1 or small:
        for task in tasks:
            yield _kept(task, engine.resume)
        return
    # Spawned, not forked: a progress display runs in a thread of this process.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from _in_order(tasks, _Local(pool, workers * _AHEAD), engine.resume)


@dataclass(slots=True)
class _Local:
    pool: ProcessPoolExecutor
    most: int

    def start(self, task: Task[Any, Any]) -> Any:
        return self.pool.submit(task.run)

    def result(self, started: Any) -> Any:
        return started.result()


class _Cluster:
    """An existing Ray cluster. A task whose worker dies is run again elsewhere, by Ray itself."""

    def __init__(self, address: str) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise ConfigError("--engine ray needs the extra: pip install 'pagefold[ray]'") from error
        if not self._ray.is_initialized():
            try:
                self._ray.init(address=address, logging_level="error", log_to_driver=False)
            except (ConnectionError, RuntimeError, ValueError) as error:
                said = str(error).partition("\n")[0]
                raise ConfigError(
                    f"--engine ray: no cluster at {address!r} ({said}); start one by ray start"
                ) from error
        self._run = self._ray.remote(_run)
        self.most = max(2, int(self._ray.cluster_resources().get("CPU", 1))) * _AHEAD

    def start(self, task: Task[Any, Any]) -> Any:
        return self._run.options(max_retries=5).remote(task)

    def result(self, started: Any) -> Any:
        return self._ray.get(started)


def _run(task: Task[Any, Any]) -> Any:
    return task.run()


def _in_order(tasks: Iterator[Task[J, T]], where: _Local | _Cluster, resume: Path | None) -> Iterator[list[T]]:
    """A bounded number of tasks under way; each result is kept as soon as it is taken."""
    waiting: deque[tuple[Task[J, T], Any, list[T] | None]] = deque()

    def taken() -> list[T]:
        task, started, known = waiting.popleft()
        return known if known is not None else _keep(task, where.result(started), resume)

    for task in tasks:
        known = _known(task, resume)
        waiting.append((task, where.start(task) if known is None else None, known))
        if len(waiting) >= where.most:
            yield taken()
    while waiting:
        yield taken()


def _kept(task: Task[J, T], resume: Path | None) -> list[T]:
    known = _known(task, resume)
    return known if known is not None else _keep(task, task.run(), resume)


def _known(task: Task[J, T], resume: Path | None) -> list[T] | None:
    if resume is None:
        return None
    try:
        found: list[T] = pickle.loads((resume / f"{task.key}.task").read_bytes())  # noqa: S301 - our own file
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
    return found


def _keep(task: Task[J, T], found: list[T], resume: Path | None) -> list[T]:
    """Written beside and moved in place, so that a run that is killed leaves no half of a result."""
    if resume is not None:
        try:
            resume.mkdir(parents=True, exist_ok=True)
            part = resume / f"{task.key}.{os.getpid()}.part"
            part.write_bytes(pickle.dumps(found))
            part.replace(resume / f"{task.key}.task")
        except OSError as error:
            raise ConfigError(f"--resume {resume}: cannot be written: {error.strerror}") from error
    return found
