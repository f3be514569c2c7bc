"""`pagefold export`."""

import argparse

EXAMPLE = """\
Examples:
  pagefold export logs/
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("paths", nargs="*")


def run(options: argparse.Namespace) -> int:
    return 0
