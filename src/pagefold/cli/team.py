"""`pagefold team`: adds teams, sets what they may use, and shows what they used.

A team's name is whose its pages are, so it does not change. Budgets are in dollars at list prices, or in tokens as
providers count them, by the day and the month of UTC. What is not named stays as it is; 0 is no limit.

Examples:
  pagefold team set research --usd-day 200 --usd-month 3000 --requests-minute 600
  pagefold team set research --tokens-day 50m
  pagefold team list
  pagefold team use --days 7                    by team, project, agent and model
"""

import argparse
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, fields, replace

from pagefold.access.budget import Period, UsageReport
from pagefold.access.store import AccessStore
from pagefold.access.team import MICRO, AdministrativeAct, Team, TeamLimits, checked_name
from pagefold.cli import output
from pagefold.cli.arguments import access_store, add_store
from pagefold.cli.command_parser import tokens
from pagefold.cli.team_use import print_uses, since_of
from pagefold.config import whoami
from pagefold.errors import ConfigError
from pagefold.number_format import short

_LIMITS: dict[str, tuple[Callable[[str], float], str]] = {
    "usd_day": (float, "dollars a day"),
    "usd_month": (float, "dollars a month"),
    "tokens_day": (tokens, "tokens a day, such as 50m"),
    "tokens_month": (tokens, "tokens a month"),
    "requests_minute": (int, "requests a minute"),
}


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("action", choices=["set", "list", "use"])
    command.add_argument("name", nargs="?", default="", metavar="TEAM")
    for name, (kind, meaning) in _LIMITS.items():
        command.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=f"set: {meaning}; 0: no limit")
    command.add_argument("--days", type=int, default=30, metavar="N", help="use: of the last N days (default: 30)")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    with closing(access_store(options)) as access:
        if options.action == "set":
            return _set(options, access)
        if options.action == "use":
            uses = access.uses(since_of(options.days))
            print_uses(options.json, {use: counts for use, counts in uses.items() if options.name in ("", use.team)})
            return 0
        return _list(options, access)


def _set(options: argparse.Namespace, access: AccessStore) -> int:
    name = checked_name(options.name)
    given = {limit: value for limit in _LIMITS if (value := getattr(options, limit)) is not None}
    for limit, value in given.items():
        if not 0 <= value <= 1e15:
            raise ConfigError(f"--{limit.replace('_', '-')}: expected 0 or more, got {value:g}")
    known = next((team for team in access.teams() if team.name == name), None)
    team = replace(known, limits=replace(known.limits, **given)) if known else Team(name, TeamLimits(**given))
    detail = ", ".join(f"{limit} {value:,}" for limit, value in given.items())
    access.set_team(
        team, AdministrativeAct(time.time(), whoami(), "team changed" if known else "team added", name, detail)
    )
    output.print_result(options.json, {"name": name, **asdict(team.limits)}, f"team {name}: {_words(team.limits)}")
    return 0


def _list(options: argparse.Namespace, access: AccessStore) -> int:
    state = access.report(UsageReport("", 0), Period.at(time.time()))
    rows, values = [], []
    for name, team in sorted(state.teams.items()):
        spent = state.spent.get(name)
        day, month = (spent.day, spent.month) if spent else (None, None)
        used = [(f"${one.microusd / MICRO:,.2f}", short(one.tokens)) if one else ("$0.00", "0") for one in (day, month)]
        rows.append((name, _words(team.limits), *used[0], *used[1]))
        values.append(
            {
                "name": name,
                **asdict(team.limits),
                "day": day.to_dict() if day else {},
                "month": month.to_dict() if month else {},
            }
        )
    columns = ("team", "limits", "today", "tokens", "this month", "tokens")
    output.print_result(options.json, values, output.table("Teams", columns, rows, left=True))
    return 0


def _words(limits: TeamLimits) -> str:
    """Limits in words, or that there are none."""
    said = []
    for item in fields(limits):
        if value := getattr(limits, item.name):
            what, _, period = item.name.partition("_")
            amount = f"${value:,.2f}" if what == "usd" else f"{short(value)} {what}"
            said.append(f"{amount} a {period}")
    return ", ".join(said) or "no limits"
