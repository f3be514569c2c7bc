"""`pagefold stats`: prints what the proxies have saved so far.

For MCP proxies and the hook: tokens of tool results as servers sent them and as agents read them. What an agent pays is
these tokens times how often it reads them again. For model proxies: prompt tokens as the providers counted them, and an
estimate of how many were saved; what they cost at list prices, what was saved, and both in percent of a
subscription's five-hour window where the provider reports it. Proxies add to these counts once a minute.

Examples:
  pagefold stats
  pagefold stats --days 7 --json
  pagefold stats --team research        by project, agent and model, from the database that instances share
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pagefold import config
from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.sqlite import counters
from pagefold.cli import output, team_use
from pagefold.cli.arguments import add_store, load_settings
from pagefold.cli.layout import Table
from pagefold.derive.quota import WindowWorth
from pagefold.number_format import money, share, short


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--team", metavar="NAME", help="what a team used of a shared server (see serve.teams)")
    command.add_argument("--days", type=int, metavar="N", help="only the last N days")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    if options.team:
        return team_use.print_team(options, options.team)
    settings = load_settings(options)
    since = ""
    if options.days is not None:
        since = f"{datetime.now(tz=UTC) - timedelta(days=max(0, options.days - 1)):%Y-%m-%d}"
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    days: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in counters.read(LocalFiles(config.store_path(settings)).counters, since):
        sums[one.surface][one.name] += one.count
        days["model" if one.surface == "model" else "results", one.day][one.name] += one.count
    if options.json:
        output.print_json({surface: dict(counts) for surface, counts in sums.items()})
    elif not sums:
        print("Nothing has been counted yet: start an agent by `pagefold run`, or see `pagefold init --help`.")
    else:
        for what, (title, columns, row) in _TABLES.items():
            counted = {day: counts for (kind, day), counts in sorted(days.items()) if kind == what}
            if counted:
                rows = [row(day, counts) for day, counts in counted.items()]
                total = row("all", sum(counted.values(), Counter()))
                output.show(_table(title, ["", *columns], rows, total))
    return 0


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], total: Sequence[str]) -> Table:
    """A table without the rarer columns that have nothing to say: all of them do not fit a terminal."""
    shown = [at for at, name in enumerate(columns) if name not in _RARE or total[at] not in ("-", "0")]
    cut = [[row[at] for at in shown] for row in (columns, *rows, total)]
    return output.table(title, cut[0], cut[1:-1], total=cut[-1])


def _requests(name: str, counts: Counter[str]) -> list[str]:
    prompt, usd, saved = counts["prompt tokens"], counts["microdollars"] / 1e6, counts["microdollars saved"] / 1e6
    windows = counts["millionths of a window"] / 1e6
    worth = WindowWorth(windows, usd)
    return [
        name,
        f"{counts['requests']:,}",
        f"{counts['failed']:,}",
        short(prompt),
        share(counts["cached tokens"], prompt),
        short(counts["saved tokens"]),
        money(usd),
        money(saved),
        _windows(windows),
        _windows(worth.share(saved) or 0.0),
        f"{counts['folds']:,}",
        f"{counts['reasoning dropped']:,}",
        f"{counts['faults']:,}",
    ]


def _windows(windows: float) -> str:
    """In percent of one five-hour window; nothing was reported where it is 0."""
    return f"{100 * windows:,.1f} %" if windows else "-"


def _results(name: str, counts: Counter[str]) -> list[str]:
    before, after = counts["tokens before"], counts["tokens after"]
    return [
        name,
        f"{counts['calls']:,}",
        short(before),
        short(after),
        share(before - after, before),
        f"{counts['faults']:,}",
    ]


_RARE = ("failed", "of 5 h", "saved of 5 h", "folds", "reasoning left out", "faults")
_TABLES = {
    "results": ("Tool results, in tokens", ["calls", "as sent", "as read", "saved", "faults"], _results),
    "model": (
        "Requests to models",
        [
            "requests",
            "failed",
            "prompt tokens",
            "from cache",
            "tokens saved",
            "cost",
            "saved",
            "of 5 h",
            "saved of 5 h",
            "folds",
            "reasoning left out",
            "faults",
        ],
        _requests,
    ),
}
