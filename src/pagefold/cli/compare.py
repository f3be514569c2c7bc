"""`pagefold compare`: policies and windows on the same recorded sessions, ranked.

Every policy is replayed with every window; the harness's own compaction is among them. Ranked are those that miss at
most 0.3 % of the facts that answers used. The history as it is, whatever the window, is what costs are relative to.

Examples:
  pagefold compare ~/.claude/projects
  pagefold compare logs/ --policies economic,compaction,clear --windows 200000,64000
  pagefold compare logs/ --json | jq '.ranked[0]'
"""

import argparse

from pagefold.analysis.compare import IDENTITY, MISSED, Comparison, Job, PolicyChoice, compared
from pagefold.analysis.engine import spread
from pagefold.cli import logs, output
from pagefold.derive.policies import policy_named
from pagefold.errors import ConfigError

_POLICIES = ("lossless", "economic", "compaction", "clear", "masking", "fifo")
_SMALLER = 64_000
_EXAMPLES = 10


def add_arguments(command: argparse.ArgumentParser) -> None:
    logs.add_arguments(command)
    command.add_argument("--policies", metavar="NAMES", default=",".join(_POLICIES), help="(default: %(default)s)")
    command.add_argument("--windows", metavar="LIST", help="in tokens (default: the window that is set, and 64000)")


def run(options: argparse.Namespace) -> int:
    found = logs.given(options)
    choices = _choices(options.policies, _windows(options.windows, found.window), found.window)
    job = Job(
        choices,
        found.prices,
        found.tokens,
        found.format,
        found.max_line_bytes,
        found.overhead,
        found.learned,
    )
    comparison = Comparison(choices)
    with output.progress("comparing", len(found.paths)) as bar:
        work = spread(found.paths, compared, job, engine=found.engine, given=job.format, max_bytes=job.max_line_bytes)
        for done, one in logs.numbered(work):
            bar.update(bar.task_ids[0], completed=done, description=one.path.name)
            comparison.add(one)
    if options.json:
        output.print_json(
            {
                "sessions": comparison.sessions,
                "most_missed": MISSED,
                "ranked": [one.to_dict() for one in comparison.ranked()],
                "verdict": comparison.verdict(),
                "problems": len(comparison.problems),
            }
        )
    else:
        _print(comparison)
    return 2 if found.strict and comparison.problems else 0


def _windows(text: str | None, window: int) -> list[int]:
    if text is None:
        return [window, _SMALLER] if window > _SMALLER else [window]
    found = [int(part) for part in text.split(",") if part.strip().isdecimal() and int(part) > 0]
    if not found or len(found) != len(text.split(",")):
        raise ConfigError(f"--windows {text}: expected numbers of tokens, separated by commas")
    return list(dict.fromkeys(found))


def _choices(text: str, windows: list[int], window: int) -> tuple[PolicyChoice, ...]:
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ConfigError(f"--policies {text}: expected names, separated by commas")
    found = [PolicyChoice(IDENTITY, window)]
    for name in names:
        policy_named(name, offline=True)  # an unknown one is refused before anything is read
        if name == IDENTITY:
            continue
        # A policy that never looks at the window is the same under each.
        found += [PolicyChoice(name, size) for size in (windows[:1] if name == "lossless" else windows)]
    return tuple(found)


def _print(comparison: Comparison) -> None:
    console = output.console()
    ranked = comparison.ranked()
    if comparison.sessions:
        rows = [
            [
                one.choice.policy,
                output.short(one.choice.window),
                f"{one.effective:.3f}",
                f"{one.low:.3f} - {one.high:.3f}" if one.high else "-",
                f"{one.cost:.3f}",
                f"{one.missed:.2%}" + ("" if one.eligible else " !"),
                f"{one.worst:.2f}" if one.worst else "-",
                f"{one.total.over:,}",
                f"{one.total.moved:,}",
            ]
            for one in ranked
        ]
        sessions = "1 session" if comparison.sessions == 1 else f"{comparison.sessions:,} sessions"
        columns = ["policy", "window", "with misses", "95 of 100", "cost", "missed", "worst", "over", "moved"]
        console.print(output.table(f"{sessions}, the history as it is = 1", columns, rows))
        console.print()
    console.print(comparison.verdict())
    if any(not one.eligible for one in ranked):
        console.print(f"! misses more than {MISSED:.1%}: shown, and not ranked.")
    for problem in comparison.problems[:_EXAMPLES]:
        output.to_stderr(f"  {problem}")
    if len(comparison.problems) > _EXAMPLES:
        output.to_stderr(f"  … and {len(comparison.problems) - _EXAMPLES:,} more")
