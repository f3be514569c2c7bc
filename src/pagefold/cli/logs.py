"""What commands that read recorded sessions share: their flags, which files they read, and progress while they work."""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pagefold import config
from pagefold.adapters import recordings
from pagefold.adapters.atomic_file import replacing
from pagefold.adapters.model_prices import ModelPrices
from pagefold.adapters.recordings import LogPath
from pagefold.analysis.engine import ENGINES, Engine, SessionResult, SessionWork, run_on_sessions
from pagefold.analysis.problems import FileProblem, ProblemCounts
from pagefold.analysis.replay_job import ReplayJob
from pagefold.cli import output
from pagefold.cli.arguments import add_window
from pagefold.cli.command_parser import tokens
from pagefold.cli.progress import progress
from pagefold.derive.cost import ASSUMED
from pagefold.derive.learned import learned_of
from pagefold.derive.policies import policy_named
from pagefold.errors import ConfigError
from pagefold.number_format import several
from pagefold.settings.sections import Settings
from pagefold.tokens import counter
from pagefold.wire.transcripts import Format

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recordings:
    """The files that a command reads, how it replays them, and where. `example` says that they are the bundled example,
    for no log was found."""

    paths: list[LogPath]
    job: ReplayJob
    engine: Engine
    settings: Settings
    example: bool = False

    def results(self, what: str, work: SessionWork[T]) -> Iterator[SessionResult[T] | FileProblem]:
        """Yields a result for every session, in order, with a progress bar that counts sessions."""
        sessions = 0
        with progress(what, self.expected_sessions()) as advance:
            for result in run_on_sessions(self.paths, work, self.job, self.engine):
                sessions += not isinstance(result, FileProblem)
                advance(sessions, result.path.name)
                yield result

    def expected_sessions(self) -> int:
        """Returns about how many sessions there are; 0 where nobody sees the progress bar that asks for it."""
        return sum(map(recordings.expected_sessions, self.paths)) if sys.stderr.isatty() else 0

    def exit_code(self, problems: int, sessions: int) -> int:
        """Returns 2 where no session was found in what the user named, or with --strict where anything was odd."""
        return 2 if not sessions or (self.settings.replay.strict and problems) else 0


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "paths", nargs="*", metavar="PATH", help="recordings: files, folders, globs or s3://BUCKET/KEY"
    )
    add_window(command, "how many tokens a request may hold")
    command.add_argument("--prices", metavar="NAME", help="the model whose prices count, or a table of your own")
    command.add_argument("--tokens", metavar="NAME", help="counter: o200k, cl100k, claude-3, claude-5")
    command.add_argument(
        "--overhead",
        type=tokens,
        metavar="N",
        default=0,
        help="tokens of system prompt and schemas that a recording lacks",
    )
    command.add_argument("--format", choices=list(map(str, Format)), help="do not detect the format")
    command.add_argument("--strict", action="store_true", default=None, help="exit 2 if anything was skipped or odd")
    command.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    command.add_argument("--engine", choices=ENGINES, default="local", help="where the work is done")
    command.add_argument("--resume", metavar="DIR", help="keep finished parts here, and go on from them")


def recordings_of(options: argparse.Namespace) -> Recordings:
    """Raises ConfigError."""
    names = ("policy", "window", "prices", "tokens", "config")
    flags = {name: getattr(options, name, None) for name in names}
    flags |= {"replay.jobs": options.jobs, "replay.strict": options.strict}
    loaded = config.load(flags={key: value for key, value in flags.items() if value is not None})
    settings = loaded.settings
    unset = (name for name in ("tokens", "window") if loaded.origins.get(name, config.DEFAULT) == config.DEFAULT)
    job = ReplayJob(
        ModelPrices(settings.prices_usd, settings.prices).prices(settings.prices) if settings.prices else ASSUMED,
        counter(settings.tokens).name,
        settings.window,
        Format(options.format) if options.format else None,
        settings.replay.max_line_bytes,
        options.overhead,
        learned_of(settings),
        by_model=not settings.prices,
        own=settings.prices_usd,
        fitted=frozenset(unset),
        storage=settings.sink,
    )
    engine = Engine(options.engine, settings.replay.jobs, Path(options.resume) if options.resume else None)
    paths = recordings.find(options.paths, settings.sink) if options.paths else own_logs()
    example = not options.paths and not paths
    if example:
        output.to_stderr("Taking the bundled example session instead.")
        paths = [recordings.example()]
    return Recordings(paths, job, engine, settings, example)


def policy_names(text: str) -> tuple[str, ...]:
    """Returns the policies that a flag names, each once. Raises ConfigError before anything is read."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ConfigError(f"--policies {text}: expected names, separated by commas")
    for name in names:
        policy_named(name, offline=True)
    return names


def tell_problems(problems: ProblemCounts) -> None:
    if problems.count:
        output.to_stderr(f"{problems.summary}:")
        for line in problems.lines:
            output.to_stderr(f"  {line}")


def own_logs() -> list[LogPath]:
    """The logs that agents keep on this computer."""
    paths: list[LogPath] = []
    for agent, folder, pattern in config.agent_logs():
        files = sorted(folder.rglob(pattern)) if folder.is_dir() else []
        output.to_stderr(
            f"{agent}: {several(len(files), 'log')} in {folder}" if files else f"{agent}: no logs in {folder}"
        )
        paths += files
    return paths


def write(path: Path, text: str) -> None:
    """Raises ConfigError where the file cannot be written."""
    try:
        with replacing(path) as file:
            file.write(text.encode(errors="replace"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
