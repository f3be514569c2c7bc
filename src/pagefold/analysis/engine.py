"""Runs a function on every session of many recordings: in this process, on all cores, or on a Ray cluster.

Results come in order, whatever runs where. A task is the function on a few batches of sessions. It gets everything it
needs in values, so that the same task gives the same result anywhere. With a folder to resume from, the result of every
task is kept there under a hash of the task, and a run that was interrupted goes on from there.

A cluster sends lines of chat recordings along with a task; rows of Parquet files and logs in other formats are read
where the task runs, so those have to lie in a bucket, or on storage that every node sees under the same name.
"""

import hashlib
import importlib
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from pagefold import __version__
from pagefold.adapters import recordings
from pagefold.adapters.atomic_file import replacing
from pagefold.adapters.recordings import LogBatch, LogPath
from pagefold.analysis.problems import FileProblem
from pagefold.analysis.replay_job import ReplayJob
from pagefold.errors import ConfigError
from pagefold.wire.transcripts import Problem, Session

T = TypeVar("T")

ENGINES = ("local", "ray")
_SMALL_BYTES = 2_000_000
_AHEAD = 3
_PART_BYTES = 4 << 20
_PART_FILES = 64

SessionWork: TypeAlias = Callable[[Session, ReplayJob], T | None]
"""A function of a module, or a `functools.partial` of one. None leaves the session out of the results."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Where tasks run. `jobs` processes on this computer, 0 for one a core; `resume` is a folder of finished tasks."""

    name: str = "local"
    jobs: int = 0
    resume: Path | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise ConfigError(f"--engine {self.name}: expected one of {', '.join(ENGINES)}")


@dataclass(frozen=True, slots=True)
class SessionResult(Generic[T]):
    """What the function returned for one session."""

    path: LogPath
    id: str
    source: str
    value: T


@dataclass(frozen=True, slots=True)
class SessionTask(Generic[T]):
    work: SessionWork[T]
    job: ReplayJob
    batches: tuple[LogBatch, ...]

    def run(self) -> list[SessionResult[T] | FileProblem]:
        return [result for batch in self.batches for result in self._results(batch)]

    def _results(self, batch: LogBatch) -> Iterator[SessionResult[T] | FileProblem]:
        for item in recordings.sessions(batch, max_bytes=self.job.max_line_bytes, storage=self.job.storage):
            if isinstance(item, Problem):
                yield FileProblem(batch.path, item)
            elif (value := self.work(item, self.job)) is not None:
                yield SessionResult(batch.path, item.id, item.source or batch.path.name.partition(".")[0], value)

    @property
    def key(self) -> str:
        """A hash of all that decides the result; of a file that is read later, also its size and time."""
        asked = hashlib.sha256(__version__.encode())
        job = replace(self.job, storage=recordings.NOWHERE)  # new keys ask for the same
        asked.update(pickle.dumps((self.work, job, self.batches)))
        for batch in self.batches:
            if batch.lines is None and isinstance(batch.path, Path) and batch.path.exists():
                file = batch.path.stat()
                asked.update(f"{batch.path}:{file.st_size}:{file.st_mtime_ns}".encode())
        return asked.hexdigest()


def run_on_sessions(
    paths: Sequence[LogPath], work: SessionWork[T], job: ReplayJob, engine: Engine
) -> Iterator[SessionResult[T] | FileProblem]:
    """Yields a result for every session of every file, and every problem, in order."""
    tasks = (SessionTask(work, job, part) for part in _partitions(_batches(paths, job)))
    if engine.name == "ray":
        yield from _in_order(tasks, _cluster(), engine.resume)
        return
    workers = engine.jobs or os.cpu_count() or 1
    if workers == 1 or sum(map(size_of, paths)) < _SMALL_BYTES:
        yield from _in_order(tasks, _Workers(1, lambda task: task, SessionTask.run), engine.resume)
        return
    with _processes(workers) as pool:
        local = _Workers(workers * _AHEAD, lambda task: _submitted(pool, task), Future.result)
        yield from _in_order(tasks, local, engine.resume)


def sessions_of(paths: Iterable[LogPath], job: ReplayJob) -> Iterator[Session]:
    """Yields the sessions of some files, read in this process. Problems are passed over."""
    for batch in _batches(paths, job):
        for item in recordings.sessions(batch, max_bytes=job.max_line_bytes, storage=job.storage):
            if isinstance(item, Session):
                yield item


def _batches(paths: Iterable[LogPath], job: ReplayJob) -> Iterator[LogBatch]:
    for path in paths:
        yield from recordings.batches(path, given=job.format, max_bytes=job.max_line_bytes, storage=job.storage)


def _partitions(batches: Iterable[LogBatch]) -> Iterator[tuple[LogBatch, ...]]:
    """Neighbouring batches together, as many as make a task worth starting. The same files give the same partitions."""
    part, size = list[LogBatch](), 0
    for batch in batches:
        part.append(batch)
        size += sum(len(line) for _, line in batch.lines) if batch.lines is not None else size_of(batch.path)
        if size >= _PART_BYTES or len(part) >= _PART_FILES:
            yield tuple(part)
            part, size = [], 0
    if part:
        yield tuple(part)


def size_of(path: LogPath) -> int:
    if not isinstance(path, Path):
        return path.size
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool that is gone at once when the caller is interrupted: nobody waits for tasks that are under way."""
    others = set(active_children())
    # Spawned, not forked: a progress display runs in a thread of this process.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_die_when_interrupted)
    try:
        yield pool
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        # The pool's own thread ends with its processes. Were it left to the interpreter's exit, that would write to a
        # pipe which the thread may be closing.
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _submitted(pool: ProcessPoolExecutor, task: SessionTask[Any]) -> Future[Any]:
    """Hands a task to the pool. A worker that this starts is deaf to Ctrl-C until it can die of it without a word."""
    if sys.platform == "win32":
        return pool.submit(task.run)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(task.run)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _die_when_interrupted() -> None:
    """Ctrl-C reaches the workers too; by default each would print a traceback and take the next task."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class _Workers(NamedTuple):
    """Where tasks run: how many may be under way, how one is started, and how its result is got."""

    most: int
    start: Callable[[SessionTask[Any]], Any]
    result: Callable[[Any], Any]


def _cluster() -> _Workers:
    """An existing Ray cluster. A task whose worker dies is run again elsewhere, by Ray itself."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise ConfigError("--engine ray needs the extra: pip install 'pagefold[ray]'") from error
    if not ray.is_initialized():
        try:
            ray.init(address="auto", logging_level="error", log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise ConfigError(f"--engine ray: no cluster at 'auto' ({reason}); start one by ray start") from error
    cores = int(ray.cluster_resources().get("CPU", 1))
    return _Workers(max(2, cores) * _AHEAD, ray.remote(_run).options(max_retries=5).remote, ray.get)


def _run(task: SessionTask[Any]) -> Any:
    return task.run()


def _in_order(
    tasks: Iterator[SessionTask[T]], workers: _Workers, resume: Path | None
) -> Iterator[SessionResult[T] | FileProblem]:
    """A bounded number of tasks under way; each result is kept as soon as it is taken."""
    waiting: deque[tuple[SessionTask[T], Any, list[SessionResult[T] | FileProblem] | None]] = deque()

    def taken() -> list[SessionResult[T] | FileProblem]:
        task, started, kept = waiting.popleft()
        return kept if kept is not None else _keep(task, workers.result(started), resume)

    for task in tasks:
        kept = _kept(task, resume)
        waiting.append((task, workers.start(task) if kept is None else None, kept))
        if len(waiting) >= workers.most:
            yield from taken()
    while waiting:
        yield from taken()


def _kept(task: SessionTask[Any], resume: Path | None) -> Any:
    """Returns what an earlier run kept of this task, or None."""
    if resume is None:
        return None
    try:
        return pickle.loads((resume / f"{task.key}.task").read_bytes())  # noqa: S301 - our own file
    except (OSError, EOFError, pickle.UnpicklingError):
        return None


def _keep(task: SessionTask[Any], result: Any, resume: Path | None) -> Any:
    """Returns the result, which is written into the folder if there is one."""
    if resume is not None:
        try:
            resume.mkdir(parents=True, exist_ok=True)
            with replacing(resume / f"{task.key}.task") as file:
                pickle.dump(result, file)
        except OSError as error:
            raise ConfigError(f"--resume {resume}: cannot be written: {error.strerror}") from error
    return result
