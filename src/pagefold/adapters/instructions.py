"""Instruction files that somebody configured, as a policy is told them: their names and what they say."""

from collections.abc import Iterable
from pathlib import Path

from pagefold.errors import ConfigError


def instructions_in(files: Iterable[str | Path]) -> tuple[tuple[str, str], ...]:
    """Raises ConfigError where one cannot be read: a rule that silently does not hold is worse than no start."""
    found: list[tuple[str, str]] = []
    for file in files:
        try:
            found.append((str(file), Path(file).read_text(encoding="utf-8")))
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"instructions: {file} cannot be read ({error})") from error
    return tuple(found)
