"""The flags that several commands have, and what they lead to: settings, and the content of a file."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pagefold import config
from pagefold.errors import ConfigError
from pagefold.settings.sections import Settings

if TYPE_CHECKING:  # imported where it is opened: most commands need no store
    from pagefold.adapters.library import Library


def add_store(command: argparse.ArgumentParser) -> None:
    command.add_argument("--store", metavar="FILE", help="the store (default: in the user data directory)")


def load_settings(options: argparse.Namespace, flags: Mapping[str, object] | None = None) -> Settings:
    """Returns the settings that files, environment and flags lead to. Raises ConfigError.

    `flags` holds what else the user typed, by the name of the setting; None stands for a flag that was not typed.
    """
    return config.load(flags={"config": options.config, "store.path": options.store, **(flags or {})}).settings


@contextmanager
def library_to_read(options: argparse.Namespace) -> Iterator["Library"]:
    """Opens the user's store and history sink while the block runs; nothing is sent. Raises ConfigError, StoreError."""
    from pagefold.adapters.library import Library

    settings = load_settings(options)
    with closing(Library.open(config.store_path(settings), settings.sink, sending=False)) as library:
        yield library


def read_input(name: str) -> bytes:
    """Returns the content of a file, or of standard input where the name is `-`. Raises ConfigError."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from error
