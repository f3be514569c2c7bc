"""`pagefold export`: sessions and decisions as Parquet, and what they add up to.

Writes sessions-*.parquet (what each session cost under each policy) and decisions-*.parquet (at which level each page
stood, and why) into a folder: figures and names of tools, no text of your logs. Needs the extra `analysis`.

Examples:
  pagefold export ~/.claude/projects -o exported
  pagefold export --read exported
  pagefold export --read exported --sql 'SELECT level, count(*) FROM decisions GROUP BY level'
"""

import argparse
from pathlib import Path
from typing import Any

from pagefold.adapters import parquet
from pagefold.analysis.engine import spread
from pagefold.analysis.export import BY_LEVEL, BY_POLICY, BY_TOOL, DECISIONS, SESSIONS, Job, exported
from pagefold.cli import logs, output
from pagefold.derive.policies import policy_named
from pagefold.errors import ConfigError

_POLICIES = ("identity", "economic")
_TOOLS = 12
_EXAMPLES = 10


def add_arguments(command: argparse.ArgumentParser) -> None:
    logs.add_arguments(command)
    command.add_argument("-o", "--output", metavar="DIR", default="pagefold-export", help="(default: %(default)s)")
    command.add_argument("--policies", metavar="NAMES", default=",".join(_POLICIES), help="(default: %(default)s)")
    command.add_argument("--read", metavar="DIR", help="add up what was exported before")
    command.add_argument("--sql", metavar="QUERY", help="ask the tables sessions and decisions something else")


def run(options: argparse.Namespace) -> int:
    if options.read:
        return _sum(Path(options.read), options)
    found = logs.given(options)
    names = tuple(dict.fromkeys(name.strip() for name in options.policies.split(",") if name.strip()))
    for name in names:
        policy_named(name, offline=True)
    if not names:
        raise ConfigError(f"--policies {options.policies}: expected names, separated by commas")
    job = Job(
        names,
        found.prices,
        found.tokens,
        found.window,
        found.format,
        found.max_line_bytes,
        found.overhead,
        found.learned,
    )
    folder, problems = Path(options.output), list[str]()
    with (
        parquet.tables(folder, sessions=SESSIONS, decisions=DECISIONS) as tables,
        output.progress("exporting", len(found.paths)) as bar,
    ):
        work = spread(found.paths, exported, job, engine=found.engine, given=job.format, max_bytes=job.max_line_bytes)
        for done, one in logs.numbered(work):
            bar.update(bar.task_ids[0], completed=done, description=one.path.name)
            if one.problem is not None:
                problems.append(f"{one.path}:{one.problem.line}: {one.problem.what}")
            tables["sessions"].add(one.sessions)
            tables["decisions"].add(one.decisions)
    output.to_stderr(
        f"Wrote {tables['sessions'].rows:,} sessions and {tables['decisions'].rows:,} decisions to {folder}."
    )
    for problem in problems[:_EXAMPLES]:
        output.to_stderr(f"  {problem}")
    if len(problems) > _EXAMPLES:
        output.to_stderr(f"  … and {len(problems) - _EXAMPLES:,} more")
    code = 2 if found.strict and problems else 0
    if not tables["sessions"].rows:
        _nothing(options)
        return code
    return _sum(folder, options) or code


def _nothing(options: argparse.Namespace) -> None:
    if options.json:
        output.print_json({"policies": [], "tools": [], "levels": []})
    else:
        output.console().print("No session was found in these recordings.")


def _sum(folder: Path, options: argparse.Namespace) -> int:
    if options.sql:
        rows = _asked(folder, options.sql, ("sessions", "decisions"))
        if options.json:
            output.print_json([{key: _plain(value) for key, value in row.items()} for row in rows])
        elif rows:
            cells = [[str(value) for value in row.values()] for row in rows]
            output.console().print(output.table("", list(rows[0]), cells))
        return 0
    policies = _asked(folder, BY_POLICY, ("sessions",))
    tools = _asked(folder, BY_TOOL, ("decisions",))
    levels = _asked(folder, BY_LEVEL, ("decisions",))
    if options.json:
        output.print_json({"policies": policies, "tools": tools, "levels": levels})
        return 0
    out = output.console()
    columns = ["policy", "sessions", "requests", "tokens", "cost", "in money", "missed"]
    cells = [
        [
            row["policy"],
            f"{row['sessions']:,}",
            output.short(row["requests"]),
            output.short(row["tokens"]),
            output.short(row["cost"]),
            f"${row['cost_usd']:,.2f}",
            output.share(row["missed"], row["demanded"]) if row["demanded"] else "0",
        ]
        for row in policies
    ]
    out.print(output.table("By policy", columns, cells))
    cells = [
        [row["policy"], row["level"], "at folds" if row["fold"] else "on arrival", output.short(row["decisions"])]
        for row in levels
    ]
    out.print(output.table("Decisions", ["policy", "level", "", "pages"], cells))
    last = [row for row in tools if row["policy"] != "identity"][:_TOOLS]
    cells = [
        [
            row["tool"] or "unnamed",
            output.short(row["results"]),
            output.short(row["tokens"] or 0),
            output.share((row["tokens"] or 0) - (row["shown_tokens"] or 0), row["tokens"] or 0),
            output.short(row["kept_in_lines"]),
            output.short(row["handles"]),
        ]
        for row in last
    ]
    columns = ["tool", "results", "tokens", "saved on arrival", "kept in lines", "handle only"]
    out.print(output.table("By tool", columns, cells))
    return 0


def _asked(folder: Path, sql: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    try:
        return parquet.query(folder, sql, names)
    except parquet.duckdb().Error as error:
        said = str(error).partition("\n")[0]
        raise ConfigError(f"--sql: {said}") from error


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
