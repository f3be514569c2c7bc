"""What teams have used, as a table or JSON: for `pagefold team use`, `pagefold stats --team` and `report --team`."""

import argparse
from contextlib import closing
from datetime import UTC, datetime, timedelta

from pagefold.access.team import MICRO, NO_USE, TeamUse, UseByAttribution
from pagefold.cli import output
from pagefold.cli.arguments import access_store
from pagefold.errors import ConfigError
from pagefold.number_format import share, short

_COLUMNS = ("team", "project", "agent", "model", "requests", "prompt", "from cache", "output", "saved", "cost", "saved")


def since_of(days: int) -> str:
    """The first of the last so many days, today among them."""
    return f"{datetime.now(tz=UTC) - timedelta(days=max(0, days - 1)):%Y-%m-%d}"


def print_team(options: argparse.Namespace, team: str) -> int:
    """Prints what one team has used. Raises ConfigError for one that there is not."""
    with closing(access_store(options)) as access:
        names = [known.name for known in access.teams()]
        if team not in names:
            raise ConfigError(f"--team = {team!r}: expected one of {', '.join(names) or '(there are no teams yet)'}")
        since = since_of(options.days) if options.days is not None else ""
        print_uses(options.json, {use: counts for use, counts in access.uses(since).items() if use.team == team})
    return 0


def print_uses(as_json: bool, uses: UseByAttribution) -> None:
    """Prints use by team, project, agent and model, all days together, and the sum."""
    by_key: dict[tuple[str, ...], TeamUse] = {}
    whole = NO_USE
    for use, counts in uses.items():
        key = (use.team, use.project, use.agent, use.model)
        by_key[key] = by_key.get(key, NO_USE) + counts
        whole = whole + counts
    columns = ("team", "project", "agent", "model")
    values = [{**dict(zip(columns, key, strict=True)), **counts.to_dict()} for key, counts in sorted(by_key.items())]
    rows = [_row(key, counts) for key, counts in sorted(by_key.items())]
    total = _row(("all", "", "", ""), whole)
    shown = output.table("What teams used, at list prices", _COLUMNS, rows, total=total)
    output.print_result(as_json, {"uses": values, "total": whole.to_dict()}, shown)


def _row(key: tuple[str, ...], counts: TeamUse) -> tuple[str, ...]:
    return (
        *key,
        f"{counts.requests:,}",
        short(counts.prompt),
        share(counts.cached, counts.prompt),
        short(counts.output),
        short(counts.saved),
        f"${counts.microusd / MICRO:,.2f}",
        f"${counts.microusd_saved / MICRO:,.2f}",
    )
