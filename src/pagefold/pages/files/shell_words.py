"""Which shell commands show and change files, as `commands.toml` beside this module lists them."""

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from pagefold.frozen import frozen
from pagefold.package_data import package_toml


@frozen
class ShellWords:
    """The lists of `commands.toml`, where each is explained."""

    git_changes_files: frozenset[str]
    formatters: frozenset[str]
    always_format: frozenset[str]
    format_options: frozenset[str]
    runners: frozenset[str]
    formatting_scripts: re.Pattern[str]
    writing_words: frozenset[str]
    wrappers: tuple[tuple[str, ...], ...]
    interpreters: frozenset[str]
    shells: frozenset[str]
    git_prints_diffs: frozenset[str]
    prints_files: frozenset[str]
    silent: frozenset[str]
    quiet: frozenset[str]
    speaking: frozenset[str]
    removes: frozenset[str]
    formatted: Mapping[str, tuple[str, ...]]


@cache
def shell_words() -> ShellWords:
    """The commands that ship with pagefold."""
    content = package_toml(__package__, "commands.toml")
    lists: dict[str, Any] = {item.name: frozenset(content[item.name]) for item in fields(ShellWords)}
    lists["formatted"] = {name: tuple(ends) for name, ends in content["formatted"].items()}
    lists["wrappers"] = tuple(tuple(words.split()) for words in content["wrappers"])
    words = "|".join(map(re.escape, content["formatting_scripts"]))
    return ShellWords(**lists | {"formatting_scripts": re.compile(rf"\b(?:{words})\b")})
