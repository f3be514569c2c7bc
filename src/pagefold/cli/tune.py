"""`pagefold tune`."""

import argparse

EXAMPLE = """\
Examples:
  pagefold tune logs/
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("paths", nargs="*")


def run(options: argparse.Namespace) -> int:
    return 0
