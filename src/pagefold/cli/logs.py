"""What commands that read many recordings have in common: which files, at which prices, on which machines."""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from pagefold import config
from pagefold.adapters import recordings
from pagefold.analysis.engine import ENGINES, Engine
from pagefold.cli import output
from pagefold.derive.cost import Prices, prices_named
from pagefold.derive.learned import Learned, learned_of
from pagefold.errors import ConfigError
from pagefold.settings import Settings
from pagefold.tokens import counter
from pagefold.wire.transcripts import Format


class _Located(Protocol):
    @property
    def path(self) -> Path: ...


T = TypeVar("T", bound=_Located)


@dataclass(frozen=True, slots=True)
class Given:
    """The recordings and how they are reckoned."""

    paths: list[Path]
    settings: Settings
    prices: Prices
    tokens: str
    window: int
    format: Format | None
    max_line_bytes: int
    overhead: int
    learned: Learned
    engine: Engine
    strict: bool


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("paths", nargs="*", metavar="PATH", help="recordings: files, folders or globs")
    command.add_argument("--window", type=int, metavar="N", help="how many tokens a request may hold")
    command.add_argument("--prices", metavar="NAME", help="price table: anthropic, openai, … or one of your own")
    command.add_argument("--tokens", metavar="NAME", help="counter: o200k, cl100k, claude-3, claude-5")
    command.add_argument("--overhead", type=int, metavar="N", default=0, help="tokens before all messages")
    command.add_argument("--format", choices=list(map(str, Format)), help="do not detect the format")
    command.add_argument("--strict", action="store_true", default=None, help="exit 2 if anything was skipped or odd")
    add_engine(command)


def add_engine(command: argparse.ArgumentParser) -> None:
    command.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    command.add_argument("--engine", choices=ENGINES, default="local", help="where the work is done")
    command.add_argument("--resume", metavar="DIR", help="keep finished parts here, and go on from them")


def given(options: argparse.Namespace) -> Given:
    """Raises ConfigError."""
    flags = {name: getattr(options, name) for name in ("window", "prices", "tokens", "config")}
    flags |= {"replay.jobs": options.jobs, "replay.strict": options.strict}
    settings = config.load(flags={key: value for key, value in flags.items() if value is not None}).settings
    if options.overhead < 0:
        raise ConfigError(f"--overhead {options.overhead}: expected 0 tokens or more")
    return Given(
        recordings.find(options.paths) if options.paths else own_logs(),
        settings,
        prices_named(settings.prices, settings.prices_usd),
        counter(settings.tokens).name,
        settings.window,
        Format(options.format) if options.format else None,
        settings.replay.max_line_bytes,
        options.overhead,
        learned_of(settings),
        engine_of(options, settings),
        settings.replay.strict,
    )


def engine_of(options: argparse.Namespace, settings: Settings) -> Engine:
    return Engine(options.engine, settings.replay.jobs, Path(options.resume) if options.resume else None)


def own_logs() -> list[Path]:
    """Where agents keep their logs on this computer, or else the bundled example."""
    found: list[Path] = []
    for agent, folder, pattern in config.agent_logs():
        files = sorted(folder.rglob(pattern)) if folder.is_dir() else []
        output.to_stderr(f"{agent}: {len(files):,} logs in {folder}" if files else f"{agent}: no logs in {folder}")
        found += files
    if not found:
        output.to_stderr("Taking the bundled example session instead.")
        return [recordings.example()]
    return found


def numbered(found: Iterable[T]) -> Iterator[tuple[int, T]]:
    """Results with the number of files that were done before theirs."""
    done, path = -1, None
    for one in found:
        done, path = done + (one.path != path), one.path
        yield done, one


def write(path: Path, text: str) -> None:
    """Written beside it and moved in place. Raises ConfigError where that cannot be."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
