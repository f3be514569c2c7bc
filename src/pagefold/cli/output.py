"""Prints what commands say: JSON, paragraphs, tables. Results go to stdout, everything else to stderr.

Whatever somebody else wrote (a session, a tool, a file's name) is shown by `printable`: it steers no terminal.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from pagefold.cli import terminal
from pagefold.cli.layout import BOLD, Span, Table, folded
from pagefold.printable import CONTROL, printable


def to_stderr(text: str) -> None:
    print(printable(text), file=sys.stderr)


def to_stdout(text: str) -> None:
    print(printable(text))


def show(shown: str | Table, *, lead: str = "", whole: bool = False) -> None:
    """Prints a paragraph or a table as wide as stdout is. A `lead` begins the paragraph and is bold where styles are
    shown; `whole` lines are broken nowhere."""
    room = sys.maxsize if whole else terminal.room(sys.stdout)
    for line in laid_out(shown, room, lead=lead, styles=terminal.has_styles(sys.stdout)):
        print(line)


def laid_out(shown: str | Table, room: int, *, lead: str = "", styles: bool = False) -> list[str]:
    """The lines of a paragraph or a table, none wider than the room."""
    if isinstance(shown, Table):
        return [terminal.painted(line, styles=styles) for line in shown.lines(room)]
    first = lead.lstrip("\n")
    made = folded(printable(lead + shown), room)
    if styles and first:
        at = lead.count("\n")
        made[at] = made[at].replace(first, terminal.painted((Span(first, BOLD),), styles=True), 1)
    return made


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
        show(shown)


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    total: Sequence[str] = (),
    left: bool = False,
) -> Table:
    """Returns a table with names aligned left and numbers right; with `left`, all columns are aligned left."""
    said = [[printable(cell, keep="\n") for cell in row] for row in (columns, *rows, total)]
    return Table(printable(title), said[0], said[1:-1], said[-1], left)
