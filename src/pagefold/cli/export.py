"""`pagefold export`: sessions and decisions as Parquet, and what they add up to.

Writes sessions-*.parquet (what each session cost under each policy) and decisions-*.parquet (at which level each page
stood, and why) into a folder: figures and names of tools, no text of your logs. Needs the extra `analysis`.

Examples:
  pagefold export ~/.claude/projects -o exported
  pagefold export --read exported
  pagefold export --read exported --sql 'SELECT level, count(*) FROM decisions GROUP BY level'
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from pagefold.adapters import parquet
from pagefold.analysis.export import BY_LEVEL, BY_POLICY, BY_TOOL, DECISIONS, SESSIONS, export_session, session_rows
from pagefold.analysis.problems import FileProblem, ProblemCounts
from pagefold.cli import logs, output
from pagefold.errors import ConfigError
from pagefold.number_format import several, share, short

_POLICIES = ("identity", "economic")
_TOOLS = 12


def add_arguments(command: argparse.ArgumentParser) -> None:
    logs.add_arguments(command)
    command.add_argument("-o", "--output", metavar="DIR", default="pagefold-export", help="(default: %(default)s)")
    command.add_argument("--policies", metavar="NAMES", default=",".join(_POLICIES), help="(default: %(default)s)")
    command.add_argument("--read", metavar="DIR", help="add up what was exported before")
    command.add_argument("--sql", metavar="QUERY", help="ask the tables sessions and decisions something else")


def run(options: argparse.Namespace) -> int:
    if options.read:
        _print_sums(Path(options.read), options)
        return 0
    recorded = logs.recordings_of(options)
    work = partial(export_session, policies=logs.policy_names(options.policies))
    folder, problems = Path(options.output), ProblemCounts()
    with parquet.tables(folder, sessions=SESSIONS, decisions=DECISIONS) as tables:
        for result in recorded.results("exporting", work):
            if isinstance(result, FileProblem):
                problems.add(result)
            else:
                tables["sessions"].add(session_rows(result, recorded.job))
                tables["decisions"].add(result.value.decisions)
    sessions, decisions = tables["sessions"].rows, tables["decisions"].rows
    output.to_stderr(f"Wrote {several(sessions, 'session')} and {several(decisions, 'decision')} to {folder}.")
    logs.tell_problems(problems)
    if sessions:
        _print_sums(folder, options)
    elif options.json:
        output.print_json({"policies": [], "tools": [], "levels": []})
    else:
        output.show("No session was found in these recordings.")
    return recorded.exit_code(problems.count, sessions)


def _print_sums(folder: Path, options: argparse.Namespace) -> None:
    if options.sql:
        rows = _asked(folder, options.sql, ("sessions", "decisions"))
        if options.json:
            output.print_json([{key: _plain(value) for key, value in row.items()} for row in rows])
        elif rows:
            cells = [[str(value) for value in row.values()] for row in rows]
            output.show(output.table("", list(rows[0]), cells))
        return
    policies = _asked(folder, BY_POLICY, ("sessions",))
    tools = _asked(folder, BY_TOOL, ("decisions",))
    levels = _asked(folder, BY_LEVEL, ("decisions",))
    if options.json:
        output.print_json({"policies": policies, "tools": tools, "levels": levels})
        return
    columns = ["policy", "sessions", "requests", "tokens", "cost", "in money", "missed"]
    cells = [
        [
            row["policy"],
            f"{row['sessions']:,}",
            short(row["requests"]),
            short(row["tokens"]),
            short(row["cost"]),
            f"${row['cost_usd']:,.2f}",
            share(row["missed"], row["demanded"]) if row["demanded"] else "0",
        ]
        for row in policies
    ]
    output.show(output.table("By policy", columns, cells))
    cells = [
        [row["policy"], row["level"], "at folds" if row["fold"] else "on arrival", short(row["decisions"])]
        for row in levels
    ]
    output.show(output.table("Decisions", ["policy", "level", "", "pages"], cells))
    last = [row for row in tools if row["policy"] != "identity"][:_TOOLS]
    cells = [
        [
            row["tool"] or "unnamed",
            short(row["results"]),
            short(row["tokens"] or 0),
            share((row["tokens"] or 0) - (row["shown_tokens"] or 0), row["tokens"] or 0),
            short(row["kept_in_lines"]),
            short(row["handles"]),
        ]
        for row in last
    ]
    columns = ["tool", "results", "tokens", "saved on arrival", "kept in lines", "handle only"]
    output.show(output.table("By tool", columns, cells))


def _asked(folder: Path, sql: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    try:
        return parquet.query(folder, sql, names)
    except parquet.duckdb().Error as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"--sql: {reason}") from error


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
