"""`pagefold stats`: what the proxies have saved so far."""

import argparse
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

from pagefold import config
from pagefold.adapters import counters
from pagefold.cli import show

EXAMPLE = """\
Tokens of tool results as the servers sent them and as the agents read them, counted by the proxies as they worked. What
an agent then pays is these tokens times how often it reads them again.

Examples:
  pagefold stats
  pagefold stats --days 7 --json
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--days", type=int, metavar="N", help="only the last N days")
    command.add_argument("--store", metavar="FILE", help="the store (default: the user's)")


def run(options: argparse.Namespace) -> int:
    settings = config.load(flags={"store.path": options.store, "config": options.config}).settings
    since = ""
    if options.days is not None:
        since = f"{datetime.now(tz=UTC) - timedelta(days=max(0, options.days - 1)):%Y-%m-%d}"
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    days: dict[str, Counter[str]] = defaultdict(Counter)
    for one in counters.read(counters.beside(config.store_path(settings)), since):
        sums[one.surface][one.name] += one.count
        days[one.day][one.name] += one.count
    if options.json:
        show.as_json({surface: dict(counts) for surface, counts in sums.items()})
    elif not sums:
        print("Nothing has been counted yet: start a server behind `pagefold mcp`, or see `pagefold init --help`.")
    else:
        show.out().print(
            show.table(
                "Tool results, in tokens",
                ["", "calls", "as sent", "as read", "saved", "faults"],
                [_row(day, counts) for day, counts in sorted(days.items())],
                total=_row("all", sum(days.values(), Counter())),
            )
        )
    return 0


def _row(name: str, counts: Counter[str]) -> list[str]:
    before, after = counts["tokens before"], counts["tokens after"]
    return [
        name,
        f"{counts['calls']:,}",
        show.short(before),
        show.short(after),
        show.share(before - after, before),
        f"{counts['faults']:,}",
    ]
