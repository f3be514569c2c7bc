"""`pagefold config`: prints every setting with its value and where that comes from.

Settings come from the shipped defaults, the user's pagefold.toml, the project's, the environment and flags; the last
of these wins. Secrets are masked.

Examples:
  pagefold config
  PAGEFOLD_SERVE_PORT=9000 pagefold config --json
"""

import argparse

from pagefold import config
from pagefold.cli import output


def add_arguments(command: argparse.ArgumentParser) -> None:
    del command  # it has no flags of its own


def run(options: argparse.Namespace) -> int:
    rows = list(config.setting_rows(config.load(flags={"config": options.config})))
    columns = ["setting", "value", "from", "meaning"]
    table = output.table("Settings", columns, [list(map(str, row)) for row in rows], left=True)
    output.print_result(options.json, [row._asdict() for row in rows], table)
    return 0
