"""What can be asked of the command line, read off its parser: every command, and every action or study of one."""

import argparse
from collections.abc import Iterator

from pagefold import cli


def leaves() -> Iterator[str]:
    """Every command with each word that it lets one choose first, such as `store verify`."""
    for name in cli.COMMANDS:
        (subcommands,) = (one for one in cli.parser(name)._actions if isinstance(one, argparse._SubParsersAction))
        yield from _of(subcommands.choices[name], name)


def _of(command: argparse.ArgumentParser, words: str) -> Iterator[str]:
    places = [action for action in command._actions if not action.option_strings]
    chosen = places[0].choices if places else None
    if not chosen:
        yield words
        return
    for word in chosen:
        yield from _of(chosen[word], f"{words} {word}") if isinstance(chosen, dict) else [f"{words} {word}"]
