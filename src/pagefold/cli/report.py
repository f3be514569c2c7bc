"""`pagefold report`: what pagefold would have saved on recorded sessions, as a page, Markdown or JSON.

PATH is a file, a folder or a glob, as for replay; without one, the logs that agents keep on this computer. The page is
one HTML file that loads nothing; it holds excerpts of your logs unless you say --no-text.

Examples:
  pagefold report
  pagefold report ~/.claude/projects -o saved.html
  pagefold report logs/ --md | less
  pagefold report logs/ --json | jq .saved
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from pagefold.analysis.engine import spread
from pagefold.analysis.replay import Terms
from pagefold.analysis.report import SavingsReport
from pagefold.analysis.report.html_page import page
from pagefold.analysis.report.markdown import markdown
from pagefold.analysis.session_report import Job, report_batches, sessions_of
from pagefold.analysis.timeline import timeline
from pagefold.cli import logs, output
from pagefold.derive.policies import policy_named
from pagefold.number_format import money, several, share
from pagefold.tokens import counter

_RIVALS = ("compaction", "clear", "masking", "fifo")
_SMALLER = 64_000
_SAMPLE_BYTES = 4_000_000  # of recordings that the picture of policies is drawn from
_PACKED = 6  # how much longer a compressed recording is than its file


def add_arguments(command: argparse.ArgumentParser) -> None:
    logs.add_arguments(command)
    command.add_argument("-o", "--output", metavar="FILE", help="where to write (default: pagefold-report.html)")
    command.add_argument("--md", action="store_true", help="print Markdown")
    command.add_argument("--no-text", action="store_true", help="leave out excerpts and file names of your logs")


def run(options: argparse.Namespace) -> int:
    found = logs.given(options)
    job = Job(
        found.prices,
        found.tokens,
        found.window,
        found.format,
        found.max_line_bytes,
        found.overhead,
        tuple((name, found.window) for name in _RIVALS) + (("economic", _SMALLER),) * (found.window > _SMALLER),
        _every(found.paths),
        found.learned,
        not options.no_text,
    )
    report = SavingsReport(job)
    with output.progress("reading", len(found.paths)) as bar:
        work = spread(
            found.paths, report_batches, job, engine=found.engine, given=job.format, max_bytes=job.max_line_bytes
        )
        for done, one in logs.numbered(work):
            bar.update(bar.task_ids[0], completed=done, description=one.path.name)
            report.add(one)
    if report.longest is not None:
        _tell_one(report, Path(report.longest[1]), report.longest[2])
    _write(options, report)
    return 2 if found.strict and report.tallies["identity"].problems else 0


def _every(paths: list[Path]) -> int:
    """One session in how many also meets the rivals, so that a long report does not take long."""
    size = 0
    for path in paths:
        if path.exists():
            packed = path.suffix in (".xz", ".gz", ".zst")
            size += path.stat().st_size * (_PACKED if packed else 1)
    return max(1, round(size / _SAMPLE_BYTES))


def _tell_one(report: SavingsReport, path: Path, name: str) -> None:
    job = report.job
    for session in sessions_of(path, job):
        if session.id == name:
            plain = Terms(policy_named("identity"), job.prices, counter(job.tokens), job.window, job.overhead)
            policy = policy_named(
                "economic", window=job.window, prices=job.prices, tokens=job.tokens, learned=job.learned
            )
            report.timeline = timeline(session, plain, replace(plain, policy=policy))
            if not job.excerpts:
                tracks = tuple(replace(track, label="page") for track in report.timeline.tracks)
                report.timeline = replace(report.timeline, tracks=tracks)
            return


def _write(options: argparse.Namespace, report: SavingsReport) -> None:
    if options.json:
        output.print_json(report.to_dict())
    if options.md:
        print(markdown(report), end="")
    if options.output or not (options.json or options.md):
        path = Path(options.output or "pagefold-report.html")
        logs.write(path, page(report))
        before, after = report.before, report.after
        saved = f", {share(before.cost - after.cost, before.cost)} of {money(report.usd(before.cost))} saved"
        told = f"Wrote {path}: {several(report.sessions, 'session')}{saved if report.sessions else ''}."
        print(told, file=sys.stderr if options.json or options.md else sys.stdout)
        if (tally := report.tallies["identity"]).problems:
            odd = tally.problems - tally.skipped
            output.to_stderr(f"{tally.skipped:,} skipped, {odd:,} odd but kept: the page names them.")
