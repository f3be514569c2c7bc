"""`pagefold report`: what recorded sessions cost and what pagefold would have saved, as a page, Markdown or JSON.

PATH is a file, a folder or a glob, as for replay; without one, the logs that agents keep on this computer, or where
there are none the bundled example, whatever --days says. The page is one HTML file that loads nothing; it holds
excerpts of your logs unless you say --no-text.

Examples:
  pagefold report --days 30
  pagefold report ~/.claude/projects -o saved.html
  pagefold report logs/ --md | less
  pagefold report logs/ --json | jq .bill
  pagefold report --team research --days 30
"""

import argparse
import sys
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from pagefold import config
from pagefold.adapters import recordings
from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.recordings import LogPath
from pagefold.adapters.sqlite import session_rows
from pagefold.analysis.engine import sessions_of, size_of
from pagefold.analysis.report import EXAMPLE, SavingsReport
from pagefold.analysis.report.figures import figures_of, to_dict, warnings_of
from pagefold.analysis.report.html_page import page
from pagefold.analysis.report.markdown import markdown
from pagefold.analysis.session_report import ReportOptions, session_report
from pagefold.analysis.timeline import timeline
from pagefold.analysis.trial import compared
from pagefold.cli import logs, output, team_use
from pagefold.derive.session_row import SessionRow
from pagefold.errors import ConfigError, StoreError
from pagefold.number_format import several
from pagefold.printable import printable
from pagefold.settings.sections import Settings

_RIVALS = ("compaction", "clear", "masking", "fifo")
_SMALLER = 64_000
_SAMPLE_BYTES = 4_000_000  # of recordings that the picture of policies is drawn from
_AS_IT_CAME = ("", "identity", "as it came")
_PACKED = 6  # how much longer a compressed recording is than its file


def add_arguments(command: argparse.ArgumentParser) -> None:
    logs.add_arguments(command)
    command.add_argument("--team", metavar="NAME", help="what a team used and saved on a shared server, by --days")
    command.add_argument("--days", type=int, metavar="N", help="only the last N days, today among them (default: all)")
    command.add_argument("--store", metavar="FILE", help="with --team: the store, or a postgresql:// address")
    command.add_argument("-o", "--output", metavar="FILE", help="where to write (default: pagefold-report.html)")
    command.add_argument("--md", action="store_true", help="print Markdown")
    command.add_argument("--no-text", action="store_true", help="leave out excerpts and file names of your logs")


def run(options: argparse.Namespace) -> int:
    if options.team:
        return team_use.print_team(options, options.team)
    recorded = logs.recordings_of(options)
    window = recorded.job.window
    rivals = [(name, window) for name in _RIVALS] + [("economic", _SMALLER)] * (window > _SMALLER)
    rows = _rows(recorded.settings)
    behind = {row.session: row.policy for row in rows if row.policy not in _AS_IT_CAME}
    used = {row.session: (row.windows, row.weeks) for row in rows if row.windows or row.weeks}
    days = 0 if recorded.example else options.days or 0
    since = datetime.fromisoformat(f"{team_use.since_of(days)}T00:00Z").timestamp() if days else 0.0
    asked = ReportOptions(tuple(rivals), _every(recorded.paths), not options.no_text, behind, used, since)
    report = SavingsReport(recorded.job, asked, trial=compared(rows), example=recorded.example)
    for result in recorded.results("reading", partial(session_report, options=asked)):
        report.add(result)
    if report.longest is not None:
        (path,) = recordings.find([report.longest[1]], recorded.settings.sink)
        _add_timeline(report, path, report.longest[2])
    _write(options, report)
    return recorded.exit_code(report.problems.count, report.sessions)


def _rows(settings: Settings) -> list[SessionRow]:
    """The sessions that ran behind pagefold on this computer; none where nothing was noted or it cannot be read."""
    try:
        return session_rows.read(LocalFiles(config.store_path(settings)).counters)
    except (ConfigError, StoreError) as error:
        output.to_stderr(f"pagefold: which sessions ran behind pagefold is not known: {error}")
        return []


def _every(paths: list[LogPath]) -> int:
    """One session in how many also meets the rivals, so that a long report does not take long."""
    size = 0
    for path in paths:
        packed = path.name.endswith((".xz", ".gz", ".zst"))
        size += size_of(path) * (_PACKED if packed else 1)
    return max(1, round(size / _SAMPLE_BYTES))


def _add_timeline(report: SavingsReport, path: LogPath, name: str) -> None:
    """Replays one session once more, for its timeline."""
    job = report.job
    session = next((one for one in sessions_of([path], job) if one.id == name), None)
    if session is not None:
        own = job.of(session)
        report.timeline = timeline(session, own.terms("identity"), own.terms("economic"))
        if not report.options.excerpts:
            tracks = tuple(replace(track, label="page") for track in report.timeline.tracks)
            report.timeline = replace(report.timeline, tracks=tracks)


def _write(options: argparse.Namespace, report: SavingsReport) -> None:
    if options.json:
        output.print_json(to_dict(report))
    if options.md:
        print(printable(markdown(report)), end="")
    if options.output or not (options.json or options.md):
        path = Path(options.output or "pagefold-report.html")
        logs.write(path, page(report))
        print(_said(report, path), file=sys.stderr if options.json or options.md else sys.stdout)
        if report.problems.count:
            output.to_stderr(f"{report.problems.summary}: the page names them.")


def _said(report: SavingsReport, path: Path) -> str:
    """What was written, with the most important figures, one a line."""
    if not report.sessions:
        return f"{report.nothing} Wrote {path}."
    when = f", {report.period}" if report.period else ""
    figures = (f"  {figure.value} {figure.words.replace('`', '')}" for figure in figures_of(report)[:3])
    wrote = f"Wrote {path}: {several(report.sessions, 'session')}{when}."
    about = [EXAMPLE] if report.example else []
    return "\n".join(
        [
            wrote,
            *about,
            *figures,
            *(f"  ! {warning}" for warning in warnings_of(report)),
            "Open it in a browser: it says of every figure how it was got.",
        ]
    )
