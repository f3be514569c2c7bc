"""Steps that run in threads beside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any


async def finished(step: Future[Any]) -> Callable[[], Any]:
    """Waits for a step in a thread. Returns a callable that gives its result or raises its exception."""
    waited = asyncio.wrap_future(step)
    waited.add_done_callback(_retrieved)
    await asyncio.wait([waited])
    return step.result


async def is_done(step: Future[Any], seconds: float) -> bool:
    """Waits for a step in a thread, for at most so long. Returns whether it is done."""
    if step.done():
        return True
    loop = asyncio.get_running_loop()
    known = loop.create_future()

    def tell(answer: bool) -> None:
        if not known.done():
            known.set_result(answer)

    def wake(done: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            loop.call_soon_threadsafe(tell, True)

    step.add_done_callback(wake)
    timer = loop.call_later(seconds, tell, False)
    try:
        return bool(await known)
    finally:
        timer.cancel()


def told(step: Callable[[], None], fault: Callable[[Exception], None]) -> None:
    """Runs a step for which nobody waits; `fault` is told of what it raises."""
    try:
        step()
    except Exception as error:  # noqa: BLE001 - as in `steps`: what is done aside may not stop the proxy
        fault(error)


def _retrieved(done: asyncio.Future[Any]) -> None:
    """Retrieves an exception: asyncio would write one that is not retrieved to stderr, with a client's words."""
    if not done.cancelled():
        done.exception()
