"""The flags that several commands have, and what they lead to: settings, and the content of a file."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from pagefold import config
from pagefold.errors import ConfigError
from pagefold.settings.sections import Settings


def add_store(command: argparse.ArgumentParser) -> None:
    command.add_argument("--store", metavar="FILE", help="the store (default: in the user data directory)")


def load_settings(options: argparse.Namespace, flags: Mapping[str, object] | None = None) -> Settings:
    """Returns the settings that files, environment and flags lead to. Raises ConfigError.

    `flags` holds what else the user typed, by the name of the setting; None stands for a flag that was not typed.
    """
    return config.load(flags={"config": options.config, "store.path": options.store, **(flags or {})}).settings


def read_input(name: str) -> bytes:
    """Returns the content of a file, or of standard input where the name is `-`. Raises ConfigError."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from error
