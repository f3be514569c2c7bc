"""The flags that several commands have, and what they lead to: settings, and the content of a file."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pagefold import config
from pagefold.adapters.protection import Protection, key_of, protection_of
from pagefold.cli.command_parser import tokens
from pagefold.errors import ConfigError
from pagefold.pages.scope import THIS_USER
from pagefold.settings.sections import Settings

if TYPE_CHECKING:  # imported where it is opened: most commands need no store
    from pagefold.access.store import AccessStore
    from pagefold.adapters.library import Library


def add_store(command: argparse.ArgumentParser) -> None:
    command.add_argument("--store", metavar="FILE", help="the store, or a postgresql:// address (default: a file)")


def add_policy(command: argparse.ArgumentParser) -> None:
    """Adds what a live proxy does with requests."""
    from pagefold.derive.policies import LIVE

    ours = ("identity", "lossless", "economic")
    others = ", ".join(name for name in LIVE if name not in ours)
    meaning = f"identity, lossless (default) or economic; to compare with: {others}"
    command.add_argument("--policy", metavar="NAME", help=meaning)
    command.add_argument("--observe", action="store_true", default=None, help="change nothing, count what passes")
    command.add_argument(
        "--trial", type=float, metavar="SHARE", help="leave this share of new sessions untouched: see pagefold trial"
    )
    add_window(command, "tokens a request may hold (default: by the model)")


def add_window(command: argparse.ArgumentParser, meaning: str) -> None:
    command.add_argument("--window", type=tokens, metavar="N", help=f"{meaning}, such as 64000 or 64k")


def load_settings(options: argparse.Namespace, flags: Mapping[str, object] | None = None) -> Settings:
    """Returns the settings that files, environment and flags lead to. Raises ConfigError.

    `flags` holds what else the user typed, by the name of the setting; None stands for a flag that was not typed.
    """
    return config.load(flags={"config": options.config, **config.store_flags(options.store), **(flags or {})}).settings


def add_all_projects(command: argparse.ArgumentParser) -> None:
    command.add_argument("--all-projects", action="store_true", help="look beyond this project (see store.projects)")


@contextmanager
def library_to_read(options: argparse.Namespace) -> Iterator["Library"]:
    """Opens the user's store and history sink while the block runs, for this project unless all are asked for; nothing
    is sent. Raises ConfigError and StoreError."""
    from pagefold.adapters.library import Library

    settings = load_settings(options)
    # Whoever names a history has said already what is looked at.
    beyond = getattr(options, "all_projects", True) or getattr(options, "history", None)
    scope = THIS_USER if beyond else config.project_scope(settings)
    path, protection = config.store_place(settings), protection_of(settings.store, settings.sink)
    with closing(Library.open(path, settings.sink, sending=False, scope=scope, protection=protection)) as library:
        yield library


def access_store(options: argparse.Namespace) -> "AccessStore":
    """Opens the access store that belongs to the store. Raises ConfigError and StoreError."""
    from pagefold.adapters.stores import open_access

    settings = load_settings(options)
    return open_access(config.store_place(settings), Protection(key_of(settings.store)))


def read_input(name: str) -> bytes:
    """Returns the content of a file, or of standard input where the name is `-`. Raises ConfigError."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from error
