"""A progress bar on stderr with the time left, for commands that take long; none where stderr is no terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeAlias

from pagefold.cli import terminal
from pagefold.cli.layout import fitting
from pagefold.printable import printable

Advance: TypeAlias = Callable[[int, str], None]
"""Takes how many are done, and what is being worked on."""
_BAR = 40
_SECONDS = 0.1  # between two drawings


@contextmanager
def progress(what: str, total: int) -> Iterator[Advance]:
    """Shows the bar while the block runs, and takes it away at the end."""
    stream, began, drawn = sys.stderr, time.monotonic(), -_SECONDS
    shown = terminal.follows_escapes(stream)

    def advance(done: int, name: str) -> None:
        nonlocal drawn
        seconds = time.monotonic() - began
        if shown and seconds - drawn >= _SECONDS:
            drawn = seconds
            line = bar(what, done, total, seconds, name)
            stream.write(f"\r{fitting(line, terminal.room(stream) - 1)}\x1b[K")
            stream.flush()

    try:
        advance(0, "")
        yield advance
    finally:
        if shown:
            stream.write("\r\x1b[K")
            stream.flush()


def bar(what: str, done: int, total: int, seconds: float, name: str) -> str:
    """The line of a bar. How many there are may be more than was expected."""
    part = min(1.0, done / total) if total else 0.0
    filled = round(_BAR * part)
    left = f" left {_clock(seconds / part - seconds)}" if part else ""
    line = f"{what} {'━' * filled}{'─' * (_BAR - filled)} {done}/{max(done, total)} {_clock(seconds)}{left}"
    return f"{line} {printable(name, keep='')}".rstrip()


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
