"""Steps that run in threads beside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


async def finished(step: Future[Any]) -> Callable[[], Any]:
    """Waits for a step in a thread. Returns a callable that gives its result or raises its exception."""
    waited = asyncio.wrap_future(step)
    waited.add_done_callback(_retrieved)
    await asyncio.wait([waited])
    return step.result


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
