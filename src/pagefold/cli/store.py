"""`pagefold store`: shows what the store holds, adds a file, sends a session to the sink, or removes old pages.

Examples:
  pagefold store                        what it holds
  pagefold store put notes.txt          keep a file; prints the handle that recalls it
  pagefold store send 3f2a…             have a session sent to the history sink, and what else waits
  pagefold store collect                remove what is older or larger than the settings allow, and shrink the file
  pagefold store verify                 check every page and the files; exit code 1 where something is damaged
  pagefold store copy FROM TO           copy all of a store, a file or postgresql://…, into an empty one, and compare
  pagefold store migrate                bring a store of an earlier version up to date
  pagefold store backup copy.sqlite3    copy store and journal while they are used, and check the copy
  pagefold store restore copy.sqlite3   put a copy in the place of the store, which is renamed
  pagefold store encrypt                encrypt a store that is not, with the key that the settings give
"""

import argparse
import time
from contextlib import closing
from dataclasses import asdict

from pagefold import config
from pagefold.adapters.library import Library, Status
from pagefold.adapters.protection import key_of, protection_of
from pagefold.adapters.retention import collect
from pagefold.adapters.stores import limits_of
from pagefold.cli import output, store_files, store_places
from pagefold.cli.arguments import add_store, load_settings, read_input
from pagefold.errors import ConfigError
from pagefold.number_format import several, short
from pagefold.pages.page import handle_of
from pagefold.pages.scope import THIS_USER


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "action",
        nargs="?",
        choices=["status", "stats", "put", "send", "collect", *store_places.ACTIONS, *store_files.ACTIONS],
        default="status",
        help="default: status, which stats is too",
    )
    command.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="put: a file, or - for standard input; send: a session; backup, restore: a copy; copy: the store to copy",
    )
    command.add_argument("to", nargs="?", metavar="TO", help="copy: the empty store to copy into")
    command.add_argument("--history", default="", metavar="ID", help="put it under this history")
    add_store(command)
    command.add_argument("--max-age-days", type=int, metavar="N", help="collect: what was put longer ago; 0 for never")
    command.add_argument(
        "--max-bytes", type=int, metavar="N", help="collect: the oldest above this size; 0 for no bound"
    )


def run(options: argparse.Namespace) -> int:
    flags = {"store.max_age_days": options.max_age_days, "store.max_bytes": options.max_bytes}
    settings = load_settings(options, flags)
    if whole := store_places.ACTIONS.get(options.action):
        return whole(options, settings)
    if action := store_files.ACTIONS.get(options.action):
        if settings.store.url:
            raise ConfigError(f"pagefold store {options.action}: it is for files; of a database use pg_dump")
        return action(options, config.store_path(settings), key_of(settings.store))
    sending = options.action == "send" or (options.action == "put" and bool(options.history))
    scope = config.project_scope(settings) if options.action == "put" else THIS_USER
    place, protection = config.store_place(settings), protection_of(settings.store, settings.sink)
    with closing(Library.open(place, settings.sink, sending=sending, scope=scope, protection=protection)) as library:
        if options.action == "put":
            return _put(library, options)
        if options.action == "send":
            return _send(library, options)
        if options.action == "collect":
            gone = collect(library.store.pages, limits_of(settings.store), time.time(), anew=True)
            words = f"{several(gone.pages, 'page')}, {short(gone.bytes)} bytes removed; {gone.held:,} held pages stay, "
            words += "and all that conversations of the last days have"
            lost = f"; {gone.unsent:,} of them had not been sent to the history sink" if gone.unsent else ""
            output.print_result(options.json, asdict(gone), words + lost)
            return 0
        status = library.status()
        output.print_result(options.json, asdict(status), _words(status))
        return 0


def _put(library: Library, options: argparse.Namespace) -> int:
    if not options.file:
        raise ConfigError("pagefold store put: expected a FILE, or - for standard input")
    content = read_input(options.file)
    page = library.put(content, history=options.history, now=time.time(), name=options.file)
    output.print_result(options.json, {"handle": handle_of(page), "page": page, "bytes": len(content)}, handle_of(page))
    return 0


def _send(library: Library, options: argparse.Namespace) -> int:
    """Exit code 1 where something is still waiting when the time is up."""
    added = library.send(options.file) if options.file else 0
    done = library.close()
    words = "everything has been sent" if done else "not everything could be sent in time; the rest waits"
    output.print_result(options.json, {"added": added, "sent": done}, f"{several(added, 'page')} added; {words}")
    return 0 if done else 1


def _words(status: Status) -> str:
    size = f"{short(status.bytes)} bytes in {short(status.stored_bytes)}"
    pages, sessions = several(status.pages, "page"), several(status.sessions, "session")
    words = f"{status.path}: {pages}, {size}, {status.held:,} held, {sessions}"
    if status.sink is None:
        return words
    waiting, length = status.sink.waiting, short(status.sink.waiting_bytes)
    return f"{words}\n{status.sink.where}: {several(waiting, 'page')}, {length} bytes wait to be sent"
