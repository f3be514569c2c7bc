"""Changes a client's file, keeps it as it was beside it, shows the change, and brings the file back.

Where nothing else was changed since, the very bytes come back.
"""

import difflib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pagefold.adapters.atomic_file import replacing
from pagefold.cli import output
from pagefold.errors import ConfigError, WireError
from pagefold.mcp_proxy.clients import Changed
from pagefold.wire import json_text

_BACKUP = ".before-pagefold"
_OURS = ("pagefold", "http://127.0.0.1:")
"""What a file says that still has something of pagefold's in it: then it is kept as it was before."""


@dataclass(frozen=True, slots=True)
class FileEdit:
    """What is done to one file: `put_in` and `take_out` return its new text. A file that `may_be_new` need not exist.
    One that is `shared` is of a project, and others may get it: it names no folder of this computer."""

    file: Path
    put_in: Callable[[str], Changed]
    take_out: Callable[[str], Changed]
    may_be_new: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file; `backup` is the file as it was, where it is kept."""

    file: Path
    made: Changed
    backup: Path | None


def change(edit: FileEdit, *, undo: bool, dry_run: bool, quiet: bool) -> Outcome:
    """Puts pagefold into a file, which is kept as it was beside it, or takes it out. Raises ConfigError."""
    before = "" if edit.may_be_new and not edit.file.is_file() else text_of(edit.file)
    backup = edit.file.with_name(edit.file.name + _BACKUP)
    made = (edit.take_out if undo else edit.put_in)(before)
    after = made.text
    kept = text_of(backup) if undo and backup.is_file() else None
    if kept is not None and after != before and (_means_the_same(kept, after) or edit.put_in(kept).text == before):
        after = kept
    if not quiet:
        show(edit.file, before, after, made)
    if after == before or dry_run:
        return Outcome(edit.file, made, backup if backup.is_file() else None)
    if before and not undo and not backup.exists():
        shutil.copy2(edit.file, backup)
    if after:
        replace(edit.file, after)
    else:
        edit.file.unlink()  # there was none before
    if undo and (after == kept or not any(word in after for word in _OURS)):
        backup.unlink(missing_ok=True)
    return Outcome(edit.file, made, backup if backup.is_file() else None)


def text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error


def show(file: Path, before: str, after: str, made: Changed) -> None:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(file), str(file), n=0, lineterm="")
    output.to_stdout("\n".join(lines) or f"{file}: nothing to change")
    for name, why in made.left.items():
        output.to_stdout(f"{name} {why}")


def replace(file: Path, text: str) -> None:
    """Replaces a file atomically and keeps its permissions; a new file is readable by its owner only."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(file) as fresh:
            Path(fresh.name).chmod(file.stat().st_mode if file.exists() else 0o600)
            fresh.write(text.encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from error


def _means_the_same(kept: str, after: str) -> bool:
    """Whether two JSON texts without comments hold the same: then only their spacing differs."""
    try:
        return bool(json_text.parse(kept) == json_text.parse(after))
    except WireError:
        return False
