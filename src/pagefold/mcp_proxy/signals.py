"""The signals that ask a proxy to end: it ends its servers first, so none of them may simply kill it."""

import asyncio
import signal
from contextlib import suppress

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def asked_to_end() -> asyncio.Event:
    """Is set when any of them comes. Not every system has all of them."""
    asked, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in _SIGNALS:
        with suppress(NotImplementedError, AttributeError, ValueError):
            loop.add_signal_handler(getattr(signal, name), asked.set)
    return asked
