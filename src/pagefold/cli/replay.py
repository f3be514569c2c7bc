"""`pagefold replay`: recorded sessions under a policy, as tables or JSON.

PATH is a file, a folder or a glob: chat JSONL (plain, gz, xz, zst), Claude Code, Codex or OpenCode logs. Without one,
the logs that Claude Code and Codex keep on this computer are replayed, or else a bundled example.

Examples:
  pagefold replay ~/.claude/projects
  pagefold replay sessions.jsonl.xz --policy identity --emit derived.jsonl
  pagefold replay logs/ --json | jq .total.cost_usd
"""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO

from pagefold.adapters.atomic_file import replacing
from pagefold.analysis.engine import SessionResult
from pagefold.analysis.problems import FileProblem
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayedSession, ReplayJob, replay_session
from pagefold.analysis.replay_totals import ReplayTotals
from pagefold.cli import logs, output
from pagefold.derive.policies import NAMES, policy_named
from pagefold.errors import ConfigError
from pagefold.number_format import several, share, short
from pagefold.tokens import counter

_TOOLS = 10


def add_arguments(command: argparse.ArgumentParser) -> None:
    logs.add_arguments(command)
    command.add_argument(
        "--policy", metavar="NAME", help=f"what would have been sent: {', '.join(NAMES)} (default: identity)"
    )
    command.add_argument("--emit", metavar="FILE", help="write every request, as a difference, as JSONL")


def run(options: argparse.Namespace) -> int:
    recorded = logs.recordings_of(options)
    policy = policy_named(recorded.settings.policy, offline=True).name
    printer = ReplayPrinter(recorded.job, policy, as_json=options.json)
    work = partial(replay_session, policy=policy, emit=options.emit is not None)
    with _emitting(options.emit) if options.emit else nullcontext() as emitted:
        for result in recorded.results("replaying", work):
            printer.add(result)
            if emitted and not isinstance(result, FileProblem):
                emitted.write(result.value.emitted)
    printer.finish()
    return recorded.exit_code(printer.totals.problems.count, printer.totals.total.sessions)


@dataclass(slots=True)
class ReplayPrinter:
    """What the user sees. As JSON, sessions are printed as they come, so that none has to be kept."""

    job: ReplayJob
    policy: str
    as_json: bool
    totals: ReplayTotals = field(init=False)

    def __post_init__(self) -> None:
        self.totals = ReplayTotals(self.job.prices)

    def add(self, result: SessionResult[ReplayedSession] | FileProblem) -> None:
        if isinstance(result, FileProblem):
            self.totals.problems.add(result)
            return
        figures = result.value.figures
        if self.as_json:
            row = {"id": result.id, "source": result.source, "path": str(result.path)}
            start = '{"sessions": [' if not self.totals.total.sessions else ","
            print(f"{start}\n{output.json_line(row | self.totals.priced(figures))}", end="")
        self.totals.add(result, figures)

    def finish(self) -> None:
        if self.as_json:
            start = "" if self.totals.total.sessions else '{"sessions": ['
            rest = {"policy": self.policy, "tokens": counter(self.job.tokens).label} | self.totals.to_dict()
            print(f"{start}], {output.json_line(rest)[1:]}")
            return
        self._tables()
        logs.tell_problems(self.totals.problems)

    def _sent(self, name: str, figures: ReplayFigures) -> list[str]:
        return [
            name,
            short(figures.requests),
            short(figures.tokens),
            f"{figures.reads:.1f}",
            share(figures.cached_tokens, figures.tokens),
            short(figures.cost),
            f"${self.job.prices.usd(figures.cost):,.2f}",
            short(figures.peak),
        ]

    def _held(self, name: str, figures: ReplayFigures) -> list[str]:
        repeats = sum(tool.repeated_tokens for tool in figures.tools.values())
        return [
            name,
            share(figures.result_tokens, figures.history_tokens),
            share(repeats, figures.result_tokens),
            share(figures.repeated_chars, figures.result_chars),
            share(figures.missed, figures.demanded) if figures.demanded else "0",
            f"{figures.over:,}",
            f"{figures.moved:,}",
        ]

    def _tables(self) -> None:
        job, total = self.job, self.totals.total
        if not total.sessions:
            output.show("No session was found in these recordings.")
            return
        sources = sorted(self.totals.sources.items())
        sessions = several(total.sessions, "session")
        sent = ["requests", "tokens sent", "times read", "cached", "cost", "in money", "peak"]
        held = ["tool results", "repeats", "lines again", "missed", f"over {short(job.window)}", "moved"]
        for title, columns, row in (
            (f"What was sent: {sessions}, policy {self.policy}", sent, self._sent),
            ("What it held", held, self._held),
        ):
            last = row("all", total) if len(sources) > 1 else ()
            output.show(output.table(title, ["source", *columns], [row(*source) for source in sources], total=last))
            output.show("")
        if total.sessions > 1:
            rows = [self._sent(*session) for session in self.totals.costliest()]
            output.show(output.table(f"The {len(rows)} costliest sessions", ["session", *sent], rows))
            output.show("")
        self._tools()
        self._notes()

    def _notes(self) -> None:
        job, total = self.job, self.totals.total
        prices = job.prices
        priced = prices.source if prices.assumed else f"of {prices.name}, {prices.source}"
        if job.by_model:
            priced = "at the prices of the model of each session, where it is known"
        output.show(f"Tokens: {counter(job.tokens).label}. Cost: in fresh input tokens, {priced}.")
        if total.head_tokens:
            output.show("System prompts and tool schemas are not in these figures: no policy changes them.")
        if total.logged_requests:
            logged = total.logged
            output.show(
                f"The providers reported {short(logged.prompt)} prompt tokens for {total.logged_requests:,} "
                f"requests, {share(logged.cache_read, logged.prompt)} of them read from cache."
            )

    def _tools(self) -> None:
        tools = sorted(self.totals.total.tools.items(), key=lambda item: -item[1].tokens)[:_TOOLS]
        if not tools:
            return
        rows = [
            [
                name,
                short(tool.results),
                short(tool.tokens),
                share(tool.tokens, self.totals.total.result_tokens),
                share(tool.repeated_results, tool.results),
            ]
            for name, tool in tools
        ]
        columns = ["tool", "results", "tokens", "share", "repeated"]
        output.show(output.table("Where tool results come from", columns, rows))
        output.show("")


@contextmanager
def _emitting(name: str) -> Iterator[BinaryIO]:
    """Opens the file that --emit names; it is in its place once all of it is there. Raises ConfigError."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(replacing(Path(name)))
        except OSError as error:
            raise ConfigError(f"--emit {name}: cannot be written: {error.strerror}") from error
        yield file
