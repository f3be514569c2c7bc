"""The command line's parser: suggests names for mistyped ones, shows help in groups, reads numbers such as 64k."""

import argparse
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from pagefold.number_format import whole_number

_UNKNOWN_OPTION = re.compile(r"unrecognized arguments: (.*)")
_UNKNOWN_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")


class CommandParser(argparse.ArgumentParser):
    """An argparse parser whose refusals suggest the nearest name, and whose help may list commands in groups."""

    def __init__(self, *arguments: Any, groups: Mapping[str, Mapping[str, str]] | None = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.groups = groups

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """As argparse does it, but an unknown option is refused by the command that was asked for it."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            getattr(options, "parser", self).error(f"unrecognized arguments: {' '.join(unknown)}")
        return options

    def error(self, message: str) -> NoReturn:
        """One sentence; the usage of some commands fills a screen, and hides it."""
        self.exit(2, f"{self.prog}: error: {message}{self._suggestion(message)}\n")

    def _suggestion(self, message: str) -> str:
        if match := _UNKNOWN_OPTION.search(message):
            typed = next((word for word in match[1].split() if word.startswith("-")), "")
            return nearest(typed.partition("=")[0], self._option_string_actions)
        if match := _UNKNOWN_CHOICE.search(message):
            return nearest(match[1], (name.strip(" '") for name in match[2].split(",")))
        return ""

    def format_help(self) -> str:
        if self.groups is None:
            return super().format_help()
        width = max(len(name) for group in self.groups.values() for name in group)
        lines = [f"usage: {self.prog} COMMAND …", "", str(self.description)]
        for title, commands in self.groups.items():
            lines += ["", f"{title}:", *(f"  {name:{width}}  {summary}" for name, summary in commands.items())]
        return "\n".join([*lines, "", str(self.epilog), ""])


def nearest(typed: str, names: Iterable[str]) -> str:
    """Returns a question that names what `typed` may have meant; empty where nothing is near."""
    near = difflib.get_close_matches(typed, list(names), n=2, cutoff=0.6) if typed else []
    return f"; did you mean {' or '.join(near)}?" if near else ""


def tokens(text: str) -> int:
    """Reads a number of tokens; k and m stand for thousands and millions."""
    number = whole_number(text)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number of tokens, such as 64000, 64k or 1m")
    return number
