"""`pagefold trial`: whether pagefold works for you, by a trial on your own sessions.

Start agents by `pagefold run --trial 0.2` (or `serve --trial 0.2`, or set `serve.trial`): one new session in five then
goes on untouched, the others behind pagefold, and each is counted. This command compares the two groups: cost by the
provider's usage, turns, working time, tool errors, re-reads, failed edits and corrections, with intervals and a
verdict. docs/trial.md says how many sessions it takes.

Examples:
  pagefold run --trial 0.2 claude
  pagefold trial
  pagefold trial --json
"""

import argparse

from pagefold import config
from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.sqlite import session_rows
from pagefold.analysis.trial import MEASURES, Compared, TrialResult, compared
from pagefold.cli import output
from pagefold.cli.arguments import add_store, load_settings
from pagefold.number_format import money


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_store(command)


def run(options: argparse.Namespace) -> int:
    settings = load_settings(options)
    result = compared(session_rows.read(LocalFiles(config.store_path(settings)).counters))
    if options.json:
        output.print_json(result.to_dict())
    elif not result.treated and not result.held_out:
        print(
            "No session was in a trial yet: start an agent by `pagefold run --trial 0.2 claude`. Only what begins then "
            "is drawn; a session that went on from before is in no group."
        )
    else:
        _show(result)
    return 0


def _show(result: TrialResult) -> None:
    title = f"{result.treated:,} sessions behind pagefold ({', '.join(result.policies)}), {result.held_out:,} held out"
    columns = ["a session", "behind pagefold", "held out", "difference", "95 of 100", "sessions that show it"]
    output.show(output.table(title, columns, list(map(_row, result.measures))))
    output.show(result.verdict)
    if result.mixed:
        output.show(f"{result.mixed:,} sessions were in both groups, or partly outside the trial, and are left out.")


def _row(one: Compared) -> list[str]:
    shown = [one.name, *(_value(one.name, value) for value in (one.treated, one.held_out))]
    if not one.high:
        return [*shown, "-", "-", "-"]
    interval = f"{100 * (one.low - 1):+.0f} to {100 * (one.high - 1):+.0f} %"
    difference = "?" if one.ratio is None else f"{100 * (one.ratio - 1):+.0f} %"
    return [*shown, difference, interval, f"{one.needed:,}" if one.needed else "-"]


def _value(name: str, value: float) -> str:
    if name == "cost":
        return money(value)
    if name == "working time":
        return f"{value / 60:.1f} min"
    return f"{value:.1f}" if name in _MEANS else f"{100 * value:.1f} %"


_MEANS = frozenset(measure.name for measure in MEASURES if measure.per is None)
