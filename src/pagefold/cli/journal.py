"""`pagefold journal`: prints what was written back, what was refused, and why.

Lines that are still staged or validated wait for their owner's next flush.

Examples:
  pagefold journal                              everything, oldest first
  pagefold journal --state rejected             what was refused, and why
  pagefold journal --scope project:site --json
"""

import argparse
import json
from contextlib import closing
from dataclasses import asdict
from typing import Any

from pagefold import config
from pagefold.adapters.protection import protection_of
from pagefold.adapters.stores import read_journal
from pagefold.cli import output
from pagefold.cli.arguments import add_store, load_settings
from pagefold.pages.journal import Journal, JournalLine, LineState
from pagefold.pages.page import handle_of
from pagefold.settings.sections import Settings

_SHOWN = 48


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--scope", metavar="SCOPE", help="only lines of this scope, such as session:3f2a")
    command.add_argument("--state", choices=list(map(str, LineState)), help="only lines in this state")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    with closing(_opened(load_settings(options))) as journal:
        lines = journal.lines(scope=options.scope, state=LineState(options.state) if options.state else None)
        is_empty = not lines and not journal.lines()
    if options.json:
        output.print_json({"path": journal.where, "lines": [_as_dict(line) for line in lines]})
        return 0
    if not lines:
        output.to_stderr(f"{journal.where}: " + ("nothing was written back yet" if is_empty else "no such lines"))
        return 0
    columns = ("line", "state", "op", "scope", "key", "version", "what it says, or why not")
    output.show(output.table(journal.where, columns, map(_row, lines), left=True), whole=True)
    return 0


def _row(line: JournalLine) -> tuple[str, ...]:
    entry = line.entry
    said = f"{line.reason}: {line.detail}" if line.reason else " ".join(entry.value.split())
    shown = said if line.reason or len(said) <= _SHOWN else f"{said[: _SHOWN - 1]}…"
    version = str(line.version) if line.version else "-"
    return str(line.number), line.state, entry.op, entry.scope, entry.key, version, shown


def _as_dict(line: JournalLine) -> dict[str, Any]:
    """Returns the line and its entry as one JSON object."""
    members = asdict(line)
    spelled = {
        "line": members.pop("number"),
        "value": _value(line.entry.value),
        "provenance": [handle_of(page) for page in line.entry.provenance],
        "version": line.version or None,
    }
    entry = members.pop("entry")
    entry["read"] = entry.pop("read_version")
    return {**entry, **members, **spelled}


def _value(text: str) -> Any:
    """What was refused need not be JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _opened(settings: Settings) -> Journal:
    return read_journal(config.store_place(settings), protection_of(settings.store, settings.sink))
