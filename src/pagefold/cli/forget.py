"""`pagefold forget`: removes sessions, with everything that was kept of them and that no other session has.

They go from the store with its log, from the search index, the journal and the history sink. What another session has
too stays for that one. A session that still goes on is stored again by its next turn. The files are written anew, which
takes seconds for a large store. Backups, and versions that a bucket keeps of deleted objects, are yours to delete.

Exit codes: 0 forgotten (with --dry-run: there is something to forget), 1 there was nothing to forget, or not everything
could be removed: then do the same again.

Examples:
  pagefold forget --before 2026-01-01 --dry-run    what would go, by session
  pagefold forget 3f2a…                            one session
  pagefold forget --project                        everything of the project of this folder
  pagefold forget --project ~/old --before 90d     what is older than 90 days, of that project
"""

import argparse
import re
import time
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from pagefold import config
from pagefold.adapters.library import Library
from pagefold.adapters.protection import protection_of
from pagefold.cli import output
from pagefold.cli.arguments import add_store, load_settings
from pagefold.errors import ConfigError
from pagefold.number_format import several, short
from pagefold.pages.forgetting import Choice, Forgotten
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.settings.sections import Settings

_DAY = 86_400.0
_SHOWN = 20


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("session", nargs="?", metavar="SESSION", help="one session, by its whole name")
    meaning = "all sessions of a project (default: the one of this folder)"
    command.add_argument("--project", nargs="?", const="", metavar="FOLDER", help=meaning)
    meaning = "sessions that ended before: 2026-01-31, 2026-01-31T12:00, or so many days ago, as 90d"
    command.add_argument("--before", type=_time, metavar="DATE", help=meaning)
    command.add_argument("--dry-run", action="store_true", help="only say what would go")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    if options.session is None and options.project is None and options.before is None:
        raise ConfigError("pagefold forget: expected a SESSION, --project or --before DATE")
    if options.session is not None and (options.project is not None or options.before is not None):
        raise ConfigError("pagefold forget: a SESSION goes whole: expected it without --project and --before")
    settings = load_settings(options)
    place, protection = config.store_place(settings), protection_of(settings.store, settings.sink)
    scope = THIS_USER if options.project is None else _project(settings, options.project)
    choice = Choice(options.session, options.before)
    with closing(Library.open(place, settings.sink, sending=False, scope=scope, protection=protection)) as library:
        forgotten, objects = library.forget(choice, dry_run=options.dry_run)
    beside = place.parent.glob(f"{place.name}.damaged-*") if isinstance(place, Path) else ()
    copies = sorted(map(str, beside))
    members = asdict(forgotten) | {"objects": objects, "dry_run": options.dry_run, "copies": copies}
    output.print_result(options.json, members, _words(forgotten, objects, copies, options.dry_run))
    return 1 if forgotten.is_nothing and not objects else 0


def _project(settings: Settings, folder: str) -> StoreScope:
    scope = config.project_scope(settings, Path(folder).expanduser() if folder else None)
    if scope.project is None:
        raise ConfigError(
            "--project: store.projects is \"joined\", so nothing tells one project's sessions from another's"
        )
    return scope


def _time(text: str) -> float:
    """Reads a point in time; a date alone is its beginning, in the time of this computer."""
    if days := re.fullmatch(r"(\d+)d", text):
        return time.time() - int(days[1]) * _DAY
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a date such as 2026-01-31, or 90d") from None


def _words(forgotten: Forgotten, objects: int, copies: list[str], dry_run: bool) -> str:
    if forgotten.is_nothing and not objects:
        words = "there is nothing to forget"
    else:
        parts = [
            several(len(forgotten.sessions), "session"),
            f"{several(forgotten.pages, 'page')}, {short(forgotten.bytes)} bytes",
            f"{forgotten.notes:,} notes",
            f"{forgotten.journal_lines:,} lines of the journal",
            f"{objects:,} objects of the history sink",
        ]
        words = ("would go: " if dry_run else "forgotten: ") + "; ".join(parts)
        words += f"\n{several(forgotten.kept, 'page')} stay, because others have them too" if forgotten.kept else ""
    if dry_run:
        more = len(forgotten.sessions) - _SHOWN
        shown = [*forgotten.sessions[:_SHOWN], *([f"and {more:,} more; --json lists all"] if more > 0 else [])]
        words = "\n  ".join([words, *shown])
    if copies:
        words += "\nnot looked into, delete them yourself: " + ", ".join(copies)
    return words
