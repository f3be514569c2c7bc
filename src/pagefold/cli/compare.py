"""`pagefold compare`: policies and windows on the same recorded sessions, ranked.

Every policy is replayed with every window; the harness's own compaction is among them. Ranked are those that miss at
most 0.3 % of the facts that answers used. The history as it is, whatever the window, is what costs are relative to.

Examples:
  pagefold compare ~/.claude/projects
  pagefold compare logs/ --policies economic,compaction,clear --windows 200k,64k
  pagefold compare logs/ --json | jq '.ranked[0]'
"""

import argparse
from functools import partial

from pagefold.analysis.compare import IDENTITY, MISSED, Comparison, PolicyChoice, compare_session
from pagefold.cli import logs, output
from pagefold.cli.command_parser import tokens
from pagefold.errors import ConfigError
from pagefold.number_format import change, rate, several, short

_POLICIES = ("lossless", "economic", "compaction", "clear", "masking", "fifo")
_SMALLER = 64_000


def add_arguments(command: argparse.ArgumentParser) -> None:
    logs.add_arguments(command)
    command.add_argument("--policies", metavar="NAMES", default=",".join(_POLICIES), help="(default: %(default)s)")
    command.add_argument("--windows", metavar="LIST", help="in tokens (default: the window that is set, and 64000)")


def run(options: argparse.Namespace) -> int:
    recorded = logs.recordings_of(options)
    window = recorded.job.window
    choices = _choices(options.policies, _windows(options.windows, window), window)
    comparison = Comparison(choices)
    for result in recorded.results("comparing", partial(compare_session, choices=choices)):
        comparison.add(result)
    if options.json:
        output.print_json(
            {
                "sessions": comparison.sessions,
                "most_missed": MISSED,
                "ranked": [one.to_dict() for one in comparison.ranked()],
                "verdict": comparison.verdict(),
                "problems": comparison.problems.count,
            }
        )
    else:
        _print(comparison)
    return recorded.exit_code(comparison.problems.count, comparison.sessions)


def _windows(text: str | None, window: int) -> list[int]:
    if text is None:
        return [window, _SMALLER] if window > _SMALLER else [window]
    try:
        sizes = [tokens(part.strip()) for part in text.split(",")]
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"--windows {text}: {error}") from error
    if 0 in sizes:
        raise ConfigError(f"--windows {text}: expected windows of more than 0 tokens")
    return list(dict.fromkeys(sizes))


def _choices(text: str, windows: list[int], window: int) -> tuple[PolicyChoice, ...]:
    choices = [PolicyChoice(IDENTITY, window)]
    for name in logs.policy_names(text):
        if name != IDENTITY:
            # A policy that never looks at the window is the same under each.
            choices += [PolicyChoice(name, size) for size in (windows[:1] if name == "lossless" else windows)]
    return tuple(choices)


def _print(comparison: Comparison) -> None:
    ranked = comparison.ranked()
    if comparison.sessions:
        rows = [
            [
                one.choice.policy,
                short(one.choice.window),
                change(one.effective),
                f"{change(one.low)} to {change(one.high)}" if one.high else "-",
                change(one.cost),
                rate(one.missed) + ("" if one.eligible else " !"),
                change(one.worst) if one.worst else "-",
                f"{one.total.over:,}",
                f"{one.total.moved:,}",
            ]
            for one in ranked
        ]
        sessions = several(comparison.sessions, "session")
        columns = ["policy", "window", "with misses", "95 of 100", "without", "missed", "worst", "over", "moved"]
        output.show(output.table(f"{sessions}: the bill for prompts, against the history as it is", columns, rows))
        output.show("")
    output.show(comparison.verdict())
    if any(not one.eligible for one in ranked):
        output.show(f"! misses more than {rate(MISSED)}: shown, and not ranked.")
    logs.tell_problems(comparison.problems)
