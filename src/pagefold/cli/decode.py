"""`pagefold decode`: the original of a form that `pagefold encode` made.

The very bytes where the store has them, else what the form says: text byte for byte, JSON compact.

Example:
  pagefold encode issues.json > shown.txt && pagefold decode shown.txt
"""

import argparse
import sys
from contextlib import closing

from pagefold import config
from pagefold.adapters.protection import protection_of
from pagefold.adapters.stores import open_existing
from pagefold.cli import output
from pagefold.cli.arguments import add_store, load_settings, read_input
from pagefold.cli.encode import as_bytes, shown_as
from pagefold.encode import decode
from pagefold.errors import ConfigError, StoreError
from pagefold.settings.sections import Settings


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="a form, or - for standard input")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    settings = load_settings(options)
    form = read_input(options.file).decode("utf-8", "surrogateescape")
    kept = _kept(form, settings)
    try:
        content = kept if kept is not None else as_bytes(decode(form))
    except (ValueError, KeyError) as error:
        raise ConfigError(f"{options.file}: refers to what is not here: {error}") from error
    if kept is None and content == as_bytes(form):
        output.to_stderr(f"pagefold: {options.file}: there was nothing to decode; this is the text as it came")
    if options.json:
        output.print_json({"text": content.decode("utf-8", "replace"), "from": "store" if kept is not None else "form"})
    else:
        sys.stdout.buffer.write(content)
    return 0


def _kept(form: str, settings: Settings) -> bytes | None:
    try:
        store = open_existing(config.store_place(settings), protection_of(settings.store, settings.sink))
        if store is None:
            return None
        with closing(store):
            return store.notes.newest(shown_as(form))
    except StoreError as error:
        output.to_stderr(f"pagefold: going on without the store: {error}")
        return None
