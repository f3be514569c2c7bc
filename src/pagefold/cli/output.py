"""Prints what commands say: JSON, tables, a progress bar. Results go to stdout, everything else to stderr.

Whatever somebody else wrote (a session, a tool, a file's name) is shown by `printable`: it steers no terminal.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from pagefold.printable import CONTROL, printable


def console() -> Console:
    """Returns the console for stdout. In a file or a pipe, lines are 120 wide whatever the terminal's width is."""
    terminal = Console(highlight=False)
    return terminal if terminal.is_terminal else Console(highlight=False, width=120)


def to_stderr(text: str) -> None:
    print(printable(text), file=sys.stderr)


def to_stdout(text: str) -> None:
    print(printable(text))


def cell(text: str) -> str:
    """A text as a table of rich shows it: as it is written, with nothing that a terminal or rich would follow."""
    return escape(printable(text, keep="\n"))


def json_line(value: Any) -> str:
    """A value as JSON in one line; control and bidi characters are escaped as JSON escapes them."""
    text = json.dumps(value, ensure_ascii=False)
    return CONTROL.sub(lambda match: json.dumps(match[0])[1:-1], text)


def print_json(value: Any) -> None:
    print(json_line(value))


def print_result(as_json: bool, value: Any, shown: str | Table) -> None:
    """Prints a command's result: `value` as JSON where that was asked for, else `shown`."""
    if as_json:
        print_json(value)
    elif isinstance(shown, str):
        to_stdout(shown)
    else:
        console().print(shown)


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    total: Sequence[str] = (),
    left: bool = False,
) -> Table:
    """Returns a table with names aligned left and numbers right; with `left`, all columns are aligned left."""
    made = Table(
        title=cell(title), title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False
    )
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if left or index == 0 else "right", overflow="fold")
    for row in rows:
        made.add_row(*map(cell, row))
    if total:
        made.add_section()
        made.add_row(*map(cell, total), style="bold")
    return made


@contextmanager
def progress(what: str, total: int) -> Iterator[Progress]:
    """Shows a progress bar with the time left on stderr while the block runs; nothing if stderr is no terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        bar.add_task("", total=total)
        yield bar
