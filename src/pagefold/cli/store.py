"""`pagefold store`: what the store holds, put a file into it, collect what is old."""

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

from pagefold import config
from pagefold.adapters.sqlite import SqliteStore
from pagefold.cli import show
from pagefold.errors import ConfigError
from pagefold.pages.page import handle_of

EXAMPLE = """\
Examples:
  pagefold store                      what it holds
  pagefold store put notes.txt        keep a file; prints the handle that recalls it
  pagefold store collect              remove what is older or larger than the settings allow
"""

_DAY = 86_400


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "action", nargs="?", choices=["status", "put", "collect"], default="status", help="default: status"
    )
    command.add_argument("file", nargs="?", metavar="FILE", help="what to put: a file, or - for standard input")
    command.add_argument("--history", default="", metavar="ID", help="put it under this history")
    command.add_argument("--store", metavar="FILE", help="the store (default: the user's)")
    command.add_argument("--max-age-days", type=int, metavar="N", help="collect: what was put longer ago; 0 for never")
    command.add_argument(
        "--max-bytes", type=int, metavar="N", help="collect: the oldest above this size; 0 for no bound"
    )


def run(options: argparse.Namespace) -> int:
    flags = {
        "config": options.config,
        "store.path": options.store,
        "store.max_age_days": options.max_age_days,
        "store.max_bytes": options.max_bytes,
    }
    settings = config.load(flags=flags).settings
    path = config.store_path(settings)
    store = SqliteStore(path)
    try:
        if options.action == "put":
            return _put(store, options)
        if options.action == "collect":
            age, size = settings.store.max_age_days, settings.store.max_bytes
            gone = store.collect(before=time.time() - age * _DAY if age else None, max_bytes=size or None)
            words = f"{gone.pages:,} pages, {show.short(gone.bytes)} bytes removed; {gone.held:,} held pages stay"
            _say(options.json, asdict(gone), words)
            return 0
        held = store.stats()
        words = f"{path}: {held.pages:,} pages, {show.short(held.bytes)} bytes in {show.short(held.stored_bytes)}"
        _say(options.json, {"path": str(path)} | asdict(held), f"{words}, {held.held:,} held")
        return 0
    finally:
        store.close()


def _put(store: SqliteStore, options: argparse.Namespace) -> int:
    if not options.file:
        raise ConfigError("pagefold store put: expected a FILE, or - for standard input")
    try:
        content = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{options.file}: cannot be read: {error.strerror}") from error
    page = store.put(content, history=options.history, now=time.time())
    _say(options.json, {"handle": handle_of(page), "page": page, "bytes": len(content)}, handle_of(page))
    return 0


def _say(as_json: bool, value: object, words: str) -> None:
    if as_json:
        show.as_json(value)
    else:
        print(words)
