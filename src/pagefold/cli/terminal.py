"""What this terminal can do: its size, whether it follows styles, and a screen of its own for a view that changes."""

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from pagefold import config
from pagefold.cli.layout import Line

if sys.platform == "win32":
    import ctypes

_FILE_WIDTH = 120
_ESCAPE = "\x1b["


def room(stream: TextIO) -> int:
    """The width of the lines. In a file or a pipe they are 120 wide, whatever the terminal's width is."""
    return shutil.get_terminal_size().columns if stream.isatty() else _FILE_WIDTH


def height() -> int:
    return shutil.get_terminal_size().lines


def follows_escapes(stream: TextIO) -> bool:
    """Whether what a stream is shown on follows escape codes."""
    return stream.isatty() and config.process_environment({}).get("TERM") != "dumb" and _console_follows_escapes()


def has_styles(stream: TextIO) -> bool:
    """Whether a stream shows bold, dim and colours: nobody has asked for none (NO_COLOR)."""
    return follows_escapes(stream) and not config.process_environment({}).get("NO_COLOR")


def painted(line: Line, *, styles: bool) -> str:
    """A line as it is written, with the codes of its styles where they are shown."""
    return "".join(
        f"{_ESCAPE}{span.style}m{span.text}{_ESCAPE}0m" if styles and span.style else span.text for span in line
    )


@contextmanager
def screen(stream: TextIO) -> Iterator[Callable[[Iterable[Line]], None]]:
    """Takes the whole terminal while the block runs, and gives it back as it was. The function shows lines in place of
    those before. What is no terminal gets the last lines at the end."""
    styles, last = has_styles(stream), list[str]()
    whole = follows_escapes(stream)

    def show(lines: Iterable[Line]) -> None:
        last[:] = [painted(line, styles=styles) for line in lines]
        if whole:
            seen = "".join(f"{line}{_ESCAPE}K\r\n" for line in last[: height() - 1])
            stream.write(f"{_ESCAPE}H{seen}{_ESCAPE}J")
            stream.flush()

    if whole:
        stream.write(f"{_ESCAPE}?1049h{_ESCAPE}?25l")
    try:
        yield show
    finally:
        if whole:
            stream.write(f"{_ESCAPE}?25h{_ESCAPE}?1049l")
        else:
            stream.writelines(f"{line}\n" for line in last)
        stream.flush()


def _console_follows_escapes() -> bool:
    """The console of Windows follows them when it is told to, from Windows 10 on; every other terminal does."""
    if sys.platform == "win32":
        console, mode = ctypes.windll.kernel32, ctypes.c_ulong()
        handle = console.GetStdHandle(-11)
        return bool(
            console.GetConsoleMode(handle, ctypes.byref(mode)) and console.SetConsoleMode(handle, mode.value | 4)
        )
    return True
