"""A thread of its own for calls that may hang: whoever calls waits no longer than a deadline.

Calls are done one after another. One that nobody waits for any more is skipped, unless it has begun. Between calls the
thread does its rounds, once in a second or so.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from pagefold.errors import StoreError

T = TypeVar("T")
ROUND_SECONDS = 1.0
_END_SECONDS = 2.0


class Pending(NamedTuple):
    """A step under way in a thread. Whoever waits does so for at most so many `seconds`, and calls `give_up` where that
    was too short."""

    step: "Future[Any]"
    seconds: float
    give_up: Callable[[], None]


def _done() -> Pending:
    done: Future[Any] = Future()
    done.set_result(None)
    return Pending(done, 0.0, lambda: None)


DONE = _done()


def at_once(step: Callable[[], object]) -> Pending:
    """Does a step here."""
    step()
    return DONE


class _Job:
    """A call, and the lock that is released when it is done. A lock, because it costs a tenth of an Event."""

    __slots__ = ("done", "dropped", "error", "result", "step")

    def __init__(self, step: Callable[[], Any]) -> None:
        self.step, self.dropped = step, False
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            self.result = self.step()
        except BaseException as error:  # noqa: BLE001 - raised where somebody waits for it
            self.error = error
        self.done.release()


class StoreThread:
    """`rounds` is called once in `seconds`, and must not raise."""

    def __init__(self, rounds: Callable[[], None], seconds: float = ROUND_SECONDS) -> None:
        self._rounds, self._seconds = rounds, seconds
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="pagefold-store", daemon=True)
        self._thread.start()

    def call(self, step: Callable[[], T], seconds: float) -> T:
        """Returns what the step returns, or raises what it raises; StoreError of the kind "late" after the deadline."""
        if threading.current_thread() is self._thread:
            return step()
        job = _Job(step)
        self._jobs.put(job)
        if not job.done.acquire(timeout=seconds):
            job.dropped = True
            raise StoreError(f"no answer within {1000 * seconds:.0f} ms", kind="late")
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def submit(self, step: Callable[[], T]) -> "Future[T]":
        """Has a step done; whoever wants to know how it ended looks at the future. Cancelled before it begins, it is
        not done."""
        done: Future[T] = Future()

        def run() -> None:
            if done.set_running_or_notify_cancel():
                try:
                    result = step()
                except BaseException as error:  # noqa: BLE001 - raised where somebody waits for it
                    done.set_exception(error)
                else:
                    done.set_result(result)

        self.later(run)
        return done

    def later(self, step: Callable[[], object]) -> None:
        """Has a step done soon; nobody waits for it, and what it raises is dropped."""
        self._jobs.put(_Job(step))

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return self._jobs.qsize()

    def close(self) -> None:
        """Does what waits, for as long as two seconds."""
        self._jobs.put(None)
        self._thread.join(_END_SECONDS)

    def _work(self) -> None:
        due = time.monotonic() + self._seconds
        while True:
            try:
                job = self._jobs.get(timeout=max(0.0, due - time.monotonic()))
            except Empty:
                job = _Job(self._rounds)
            if job is None:
                return
            if not job.dropped:
                job.run()
            if time.monotonic() >= due:
                if job.step is not self._rounds:
                    self._rounds()
                due = time.monotonic() + self._seconds
