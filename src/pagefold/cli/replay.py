"""`pagefold replay`: recorded sessions under a policy, as tables or JSON.

PATH is a file, a folder or a glob: chat JSONL (plain, gz, xz, zst), Claude Code, Codex or OpenCode logs. Without one,
the logs that Claude Code and Codex keep on this computer are replayed, or else a bundled example.

Examples:
  pagefold replay ~/.claude/projects
  pagefold replay sessions.jsonl.xz --policy identity --emit derived.jsonl
  pagefold replay logs/ --json | jq .total.cost_usd
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pagefold import config
from pagefold.adapters import recordings
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_totals import ReplayTotals
from pagefold.analysis.runs import Job, Outcome, outcomes
from pagefold.cli import logs, output
from pagefold.derive.cost import prices_named
from pagefold.derive.learned import learned_of
from pagefold.derive.policies import NAMES, policy_named
from pagefold.errors import ConfigError
from pagefold.tokens import counter
from pagefold.wire.transcripts import Format

_TOOLS = 10


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("paths", nargs="*", metavar="PATH", help="recordings: files, folders or globs")
    command.add_argument(
        "--policy", metavar="NAME", help=f"what would have been sent: {', '.join(NAMES)} (default: identity)"
    )
    command.add_argument("--window", type=int, metavar="N", help="what a request may hold; those above are counted")
    command.add_argument(
        "--overhead",
        type=int,
        default=0,
        metavar="N",
        help="tokens of system prompt and schemas that a recording lacks",
    )
    command.add_argument("--prices", metavar="NAME", help="price table: anthropic, openai, … or one of your own")
    command.add_argument("--tokens", metavar="NAME", help="counter: o200k, cl100k, claude-3, claude-5")
    command.add_argument("--format", choices=list(map(str, Format)), help="do not detect the format")
    command.add_argument("--emit", metavar="FILE", help="write every request, as a difference, as JSONL")
    logs.add_engine(command)
    command.add_argument("--strict", action="store_true", default=None, help="exit 2 if anything was skipped or odd")


def run(options: argparse.Namespace) -> int:
    if options.overhead < 0:
        raise ConfigError(f"--overhead = {options.overhead}: expected a whole number of at least 0")
    flags = {name: getattr(options, name) for name in ("policy", "window", "prices", "tokens", "config")}
    flags |= {"replay.jobs": options.jobs, "replay.strict": options.strict}
    settings = config.load(flags={key: value for key, value in flags.items() if value is not None}).settings
    job = Job(
        policy=policy_named(settings.policy, offline=True).name,
        prices=prices_named(settings.prices, settings.prices_usd),
        tokens=counter(settings.tokens).name,
        window=settings.window,
        format=Format(options.format) if options.format else None,
        max_line_bytes=settings.replay.max_line_bytes,
        emit=options.emit is not None,
        overhead=options.overhead,
        learned=learned_of(settings),
    )
    paths = recordings.find(options.paths) if options.paths else logs.own_logs()
    report = ReplayPrinter(ReplayTotals(job.prices), job, as_json=options.json)
    with _emitting(options.emit) as emitted, output.progress("replaying", len(paths)) as bar:
        for done, outcome in logs.numbered(outcomes(paths, job, engine=logs.engine_of(options, settings))):
            bar.update(bar.task_ids[0], completed=done, description=outcome.path.name)
            report.add(outcome)
            if emitted:
                emitted.write(outcome.emitted)
    report.finish()
    return 2 if settings.replay.strict and report.tally.problems else 0


@dataclass(slots=True)
class ReplayPrinter:
    """What the user sees. As JSON, sessions are printed as they come, so that none has to be kept."""

    tally: ReplayTotals
    job: Job
    as_json: bool

    def add(self, outcome: Outcome) -> None:
        if self.as_json and outcome.problem is None:
            row = {"id": outcome.id, "source": outcome.source, "path": str(outcome.path)}
            start = '{"sessions": [' if not self.tally.total.sessions else ","
            print(f"{start}\n{json.dumps(row | self.tally.priced(outcome.figures), ensure_ascii=False)}", end="")
        self.tally.add(outcome)

    def finish(self) -> None:
        if self.as_json:
            start = "" if self.tally.total.sessions else '{"sessions": ['
            rest = {"policy": self.job.policy, "tokens": counter(self.job.tokens).label} | self.tally.to_dict()
            print(f"{start}], {json.dumps(rest, ensure_ascii=False)[1:]}")
            return
        self._tables()
        if self.tally.problems:
            self._warn()

    def _sent(self, name: str, figures: ReplayFigures) -> list[str]:
        return [
            name,
            output.short(figures.requests),
            output.short(figures.tokens),
            f"{figures.reads:.1f}",
            output.share(figures.cached_tokens, figures.tokens),
            output.short(figures.cost),
            f"${self.job.prices.usd(figures.cost):,.2f}",
            output.short(figures.peak),
        ]

    def _held(self, name: str, figures: ReplayFigures) -> list[str]:
        repeats = sum(tool.repeated_tokens for tool in figures.tools.values())
        return [
            name,
            output.share(figures.result_tokens, figures.history_tokens),
            output.share(repeats, figures.result_tokens),
            output.share(figures.repeated_chars, figures.result_chars),
            output.share(figures.missed, figures.demanded) if figures.demanded else "0",
            f"{figures.over:,}",
            f"{figures.moved:,}",
        ]

    def _tables(self) -> None:
        console, job, total = output.console(), self.job, self.tally.total
        if not total.sessions:
            console.print("No session was found in these recordings.")
            return
        sources = sorted(self.tally.sources.items())
        sessions = "1 session" if total.sessions == 1 else f"{total.sessions:,} sessions"
        sent = ["requests", "tokens sent", "times read", "cached", "cost", "in money", "peak"]
        held = ["tool results", "repeats", "lines again", "missed", f"over {output.short(job.window)}", "moved"]
        for title, columns, row in (
            (f"What was sent: {sessions}, policy {job.policy}", sent, self._sent),
            ("What it held", held, self._held),
        ):
            last = row("all", total) if len(sources) > 1 else ()
            console.print(output.table(title, ["source", *columns], [row(*source) for source in sources], total=last))
            console.print()
        if total.sessions > 1:
            rows = [self._sent(*session) for session in self.tally.costliest()]
            console.print(output.table(f"The {len(rows)} costliest sessions", ["session", *sent], rows))
            console.print()
        self._tools(console)
        self._notes(console)

    def _notes(self, console: Any) -> None:
        job, total = self.job, self.tally.total
        console.print(
            f"Tokens: {counter(job.tokens).label}. Cost: in fresh input tokens, a cached prompt read at "
            f"{job.prices.read_ratio:g} and written at {job.prices.write_ratio:g}. Money: {job.prices.source}."
        )
        if total.head_tokens:
            console.print("System prompts and tool schemas are not in these figures: no policy changes them.")
        if total.logged_requests:
            logged = total.logged
            console.print(
                f"The providers reported {output.short(logged.prompt)} prompt tokens for {total.logged_requests:,} "
                f"requests, {output.share(logged.cache_read, logged.prompt)} of them read from cache."
            )

    def _tools(self, console: Any) -> None:
        tools = sorted(self.tally.total.tools.items(), key=lambda item: -item[1].tokens)[:_TOOLS]
        if not tools:
            return
        rows = [
            [
                name,
                output.short(tool.results),
                output.short(tool.tokens),
                output.share(tool.tokens, self.tally.total.result_tokens),
                output.share(tool.repeated_results, tool.results),
            ]
            for name, tool in tools
        ]
        columns = ["tool", "results", "tokens", "share", "repeated"]
        console.print(output.table("Where tool results come from", columns, rows))
        console.print()

    def _warn(self) -> None:
        tally = self.tally
        output.to_stderr(f"{tally.skipped:,} skipped, {tally.problems - tally.skipped:,} odd but kept:")
        for example in tally.examples:
            output.to_stderr(f"  {example}")
        if tally.problems > len(tally.examples):
            output.to_stderr(f"  … and {tally.problems - len(tally.examples):,} more")


@contextmanager
def _emitting(name: str | None) -> Iterator[BinaryIO | None]:
    """The file that --emit names, written beside it and moved in place when all of it is there."""
    if name is None:
        yield None
        return
    path = Path(name)
    part = path.with_name(f"{path.name}.part")
    try:
        try:
            file = part.open("wb")
        except OSError as error:
            raise ConfigError(f"--emit {path}: cannot be written: {error.strerror}") from error
        with file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
