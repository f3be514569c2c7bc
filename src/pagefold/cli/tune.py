"""`pagefold tune`: settings learned from recorded sessions; `tune show`: those in force.

What is learned on two sessions in three is judged by the third, and so for each third: a change is taken only if it is
cheaper on sessions that had no part in it. Few logs change little. With -o the settings are written into a file,
between two marks, and replace what was learned before; without, they are printed. `show` lists what is in force.

Examples:
  pagefold tune ~/.claude/projects
  pagefold tune logs/ -o ~/.config/pagefold/pagefold.toml
  pagefold tune logs/ --dry-run
  pagefold tune show
"""

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from pagefold import config
from pagefold.adapters.recordings import LogPath
from pagefold.analysis.engine import sessions_of
from pagefold.analysis.follow_up_links import LearnedLinks, follow_ups
from pagefold.analysis.learned_settings import learned_lines, with_learned
from pagefold.analysis.tune import Tuned, tune
from pagefold.cli import logs, output, telemetry_setup
from pagefold.cli.progress import progress
from pagefold.derive.learned import SHIPPED, learned_of
from pagefold.errors import ConfigError
from pagefold.number_format import change, rate, several
from pagefold.tools.from_settings import registry_of

_SHOW = "show"
_TELLING = 0.0001  # of the bill; a change of less says nothing
_LINKED_FILES = 2_000  # files from which follow-ups are learned


def add_arguments(command: argparse.ArgumentParser) -> None:
    logs.add_arguments(command)
    command.add_argument("-o", "--output", metavar="FILE", help="the settings file to write into")
    command.add_argument("--dry-run", action="store_true", help="write nothing, only say what would change")


def run(options: argparse.Namespace) -> int:
    if options.paths == [_SHOW] and not Path(_SHOW).exists():
        return _shown(options)
    recorded = logs.recordings_of(options)
    # What was learned before is learned anew: from what ships, and never from itself.
    before = _own_text(options.output)
    with progress("tuning", recorded.expected_sessions()) as advance:
        done: Counter[str] = Counter()

        def told(what: str, path: LogPath) -> None:
            done[what] += 1
            advance(done[what], f"{what} {path.name}")

        lengths = telemetry_setup.session_lengths(recorded.settings)
        job, engine = replace(recorded.job, learned=SHIPPED), recorded.engine
        tuned = tune(recorded.paths, job, engine=engine, lengths=lengths, progress=told)
    sessions = sessions_of(recorded.paths[:_LINKED_FILES], job)
    linked = follow_ups(sessions, registry_of(recorded.settings), recorded.settings.prefetch.hosts)
    block = learned_lines(tuned.learned, linked.links if linked.taken else {})
    text = with_learned(before, block)
    if options.json:
        output.print_json(_as_data(tuned, linked, block) | {"traced": len(lengths)})
    else:
        if lengths:
            output.show(f"{several(len(lengths), 'session')} of the decision trace: how long sessions last.")
        _print(tuned, linked, block, written=bool(options.output))
        if tuned.problems:
            output.to_stderr(f"{tuned.problems:,} skipped, or odd but kept: pagefold replay names them.")
    if options.output and not options.dry_run and text != before:
        logs.write(Path(options.output), text)
        output.to_stderr(f"Wrote {options.output}.")
    return recorded.exit_code(tuned.problems, tuned.sessions)


def _own_text(name: str | None) -> str:
    if name is None or not Path(name).exists():
        return ""
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"-o {name}: cannot be read: {error}") from error


def _as_data(tuned: Tuned, linked: LearnedLinks, block: str) -> dict[str, Any]:
    return {
        "sessions": tuned.sessions,
        "judged": tuned.judged,
        "ratio": {"before": round(tuned.before, 5), "after": round(tuned.after, 5)},
        "missed": {"before": round(tuned.missed_before, 6), "after": round(tuned.missed_after, 6)},
        "changes": [change._asdict() for change in tuned.changes],
        "follow_ups": {
            "taken": linked.taken,
            "effect": linked.effect,
            "links": [
                {"after": one.after, "tool": one.link.tool, "probability": one.link.probability, "tries": one.tries}
                for one in linked.fitted
            ],
        },
        "settings": block,
        "problems": tuned.problems,
    }


def _print(tuned: Tuned, linked: LearnedLinks, block: str, *, written: bool) -> None:
    if not tuned.sessions:
        output.show("No session was found in these recordings.")
        return
    output.show(f"{several(tuned.sessions, 'session')} fitted, {tuned.judged:,} judged, each while it was held back.")
    if not tuned.judged:
        output.show("Too few to fit on some and to judge on others: nothing changes.")
        return
    telling = [one for one in tuned.changes if one.taken or abs(one.gain) >= _TELLING]
    rows = [
        ["yes" if one.taken else "no", one.what, one.before, one.after, one.evidence, one.effect]
        for one in sorted(telling, key=lambda one: not one.taken)
    ]
    if rows:
        columns = ["taken", "what", "from", "to", "evidence", "effect where it was judged"]
        output.show(output.table("Changes", columns, rows, left=True))
    if silent := len(tuned.changes) - len(telling):
        output.show(f"{several(silent, 'setting')}{' more' if rows else ''} tried: less than 0.01 % of the bill each.")
    for one in linked.fitted if linked.taken else ():
        output.show(f"  {one.after} -> {one.link.tool}: {one.link.probability:g}, {one.used} of {one.tries} used")
    output.show(f"Follow-ups: {'taken' if linked.taken else 'left as they are'}; {linked.effect}.")
    missed = f"{rate(tuned.missed_before)} and {rate(tuned.missed_after)} missed"
    output.show(
        "On sessions while they were held back, against the history as it is, misses priced in: "
        f"{change(tuned.before)} before, {change(tuned.after)} after ({missed})."
    )
    if not block:
        output.show("What ships is as good as anything that was learned: nothing to write.")
    elif not written:
        output.show("")
        output.show(block, whole=True)


def _shown(options: argparse.Namespace) -> int:
    loaded = config.load(flags={"config": options.config})
    tables = ("values.", "lasting.", "folds.", "references.", "learned.")
    rows = [one for one in config.setting_rows(loaded) if one.key.startswith(tables)]
    learned = learned_of(loaded.settings)
    if options.json:
        settings = [{"key": one.key, "value": one.value, "origin": one.origin} for one in rows]
        output.print_json({"learned": learned != SHIPPED, "settings": settings})
        return 0
    changed = [one for one in rows if one.origin != config.DEFAULT]
    if not changed:
        output.show("Nothing was learned yet: everything is as shipped.")
    cells = [[one.key, one.value, one.origin] for one in (changed or rows)]
    output.show(output.table("What economic goes by", ["setting", "value", "from"], cells, left=True))
    return 0
