"""Catches the signals that ask a proxy to end, so that it can end its servers first."""

import asyncio
import signal
from contextlib import suppress

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


def asked_to_end() -> asyncio.Event:
    """An event that is set when a signal asks the proxy to end. Not every system has all of these signals."""
    asked, loop = asyncio.Event(), asyncio.get_running_loop()
    for name in _SIGNALS:
        with suppress(NotImplementedError, AttributeError, ValueError):
            loop.add_signal_handler(getattr(signal, name), asked.set)
    return asked
