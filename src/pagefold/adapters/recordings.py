"""Reads recorded sessions: finds them by path, folder or glob, or in a bucket, and reads them in bounded memory.

A line longer than the bound is skipped without being held. Compression is recognised by the first bytes. What cannot be
read is a Problem with its place, never an exception in the middle of a run.
"""

import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from pagefold import zstd
from pagefold.adapters import bucket_logs, parquet_logs
from pagefold.adapters.bucket_logs import ObjectPath
from pagefold.errors import ConfigError, WireError
from pagefold.settings.sections import SinkSettings
from pagefold.wire import json_text, transcripts
from pagefold.wire.transcripts import Format, Problem, Session

SUFFIXES = (".jsonl", ".json", ".jsonl.xz", ".jsonl.gz", ".jsonl.zst", ".json.xz", ".json.gz", ".json.zst")
LogPath: TypeAlias = Path | ObjectPath
NOWHERE = SinkSettings()
_EXPORTED = re.compile(r"(?:sessions|decisions)-\d{5}\.parquet")  # pagefold's own tables
_PIECE = 1 << 20
_BATCH_BYTES = 4 << 20
_TRIED = 50  # logs may begin with records that only name a session
_DAMAGED = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, zstd.ZstdError)


@dataclass(frozen=True, slots=True)
class LogBatch:
    """A piece of work: whole lines of a chat JSONL, rows of a Parquet file, or one file of another format."""

    path: LogPath
    format: Format | None
    lines: tuple[tuple[int, bytes], ...] | None = None
    problems: tuple[Problem, ...] = ()
    rows: range | None = None


def find(patterns: Iterable[str], storage: SinkSettings = NOWHERE) -> list[LogPath]:
    """Returns the files that paths, folders, globs and addresses in a bucket name, each once, in order. Raises
    ConfigError for none. `storage` is where buckets are."""
    names: dict[LogPath, None] = {}
    for pattern in patterns:
        if pattern.startswith(bucket_logs.SCHEME):
            objects = bucket_logs.find(pattern, storage, lambda name: name.endswith(SUFFIXES))
            if not objects:
                raise ConfigError(f"{pattern}: no recording there (they end in {', '.join(SUFFIXES[:3])} …)")
            names.update(dict.fromkeys(objects))
            continue
        path = Path(pattern).expanduser()
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if _is_log(file.name) and file.is_file())
        elif path.exists():
            files = [path]
        else:
            anchor = Path(path.anchor)
            files = sorted(file for file in anchor.glob(str(path.relative_to(anchor))) if file.is_file())
        if not files:
            what = "a folder without recordings" if path.is_dir() else "no such file, folder or glob"
            raise ConfigError(f"{pattern}: {what} (recordings end in {', '.join(SUFFIXES[:3])} …)")
        names.update(dict.fromkeys(files))
    return list(names)


def _is_log(name: str) -> bool:
    return name.endswith(SUFFIXES) or (name.endswith(parquet_logs.SUFFIX) and not _EXPORTED.fullmatch(name))


def expected_sessions(path: LogPath) -> int:
    """Returns about how many sessions a file holds, for a progress bar: a chat recording has one a line, any other
    file one. What is no ordinary file is not read: a pipe gives its content only once."""
    if isinstance(path, ObjectPath) or not path.is_file():
        return 1
    try:
        if path.name.endswith(parquet_logs.SUFFIX):
            return sum(map(len, parquet_logs.batches(path)))
        with opened(path) as file:
            first = file.readline(_PIECE)
            if _detect(path, first, NOWHERE) is not Format.CHAT or _is_document(first):
                return 1
            return 1 + sum(piece.count(b"\n") for piece in iter(lambda: file.read(_PIECE), b""))
    except (OSError, *_DAMAGED):
        return 1  # the reader says what is wrong with it


def example() -> Path:
    """The recorded session that comes with the package."""
    return Path(__file__).parent.parent / "examples" / "session.jsonl"


@contextmanager
def opened(path: LogPath, storage: SinkSettings = NOWHERE) -> Iterator[BinaryIO]:
    with bucket_logs.opened(path, storage) if isinstance(path, ObjectPath) else path.open("rb") as file:
        magic = file.peek(6)
        if magic.startswith(b"\xfd7zXZ\x00"):
            with lzma.open(file) as inner:
                yield cast(BinaryIO, inner)
        elif magic.startswith(b"\x1f\x8b"):
            with gzip.open(file) as inner:
                yield cast(BinaryIO, inner)
        elif magic.startswith(b"\x28\xb5\x2f\xfd"):
            with zstd.open(file) as inner:
                yield cast(BinaryIO, inner)
        else:
            yield file


def lines_of(file: BinaryIO, *, max_bytes: int) -> Iterator[tuple[int, bytes | Problem]]:
    """Numbered lines that say something; a Problem in place of one that is too long, or where the file breaks off."""
    number, rest, dropped = 1, bytearray(), 0
    # As much as is at hand: a compressed file that breaks off would take with it what a larger read had gathered.
    take: Callable[[int], bytes] = getattr(file, "read1", file.read)
    try:
        while piece := take(_PIECE):
            *whole, last = piece.split(b"\n")
            for line in whole:
                rest += line
                if dropped or len(rest) > max_bytes:
                    yield number, _too_long(number, dropped + len(rest), max_bytes)
                elif not rest.isspace() and rest:
                    yield number, bytes(rest)
                number, dropped = number + 1, 0
                rest.clear()
            rest += last
            if len(rest) > max_bytes:
                dropped += len(rest)
                rest.clear()
    except _DAMAGED as error:
        yield number, Problem(number, f"the compressed file is damaged or cut off here ({error})")
        return
    if dropped:
        yield number, _too_long(number, dropped + len(rest), max_bytes)
    elif rest and not rest.isspace():
        yield number, bytes(rest)


def batches(
    path: LogPath, *, given: Format | None, max_bytes: int, storage: SinkSettings = NOWHERE
) -> Iterator[LogBatch]:
    """The work in one file. A file nobody can read or recognise is one batch with a Problem."""
    try:
        if isinstance(path, Path) and path.name.endswith(parquet_logs.SUFFIX):
            yield from (LogBatch(path, Format.CHAT, rows=rows) for rows in parquet_logs.batches(path))
            return
        with opened(path, storage) as file:
            yield from _batches(path, lines_of(file, max_bytes=max_bytes), given, storage)
    except OSError as error:
        yield LogBatch(path, None, problems=(Problem(0, f"cannot be read: {error.strerror or error}"),))


def sessions(batch: LogBatch, *, max_bytes: int, storage: SinkSettings = NOWHERE) -> Iterator[Session | Problem]:
    """What a batch holds. Rows, and the file of a record log, are read here, in whichever process does the work."""
    yield from batch.problems
    if batch.format is None:
        return
    try:
        yield from _sessions(batch, batch.format, max_bytes, storage)
    except OSError as error:
        yield Problem(0, f"cannot be read: {error.strerror or error}")


def _sessions(batch: LogBatch, kind: Format, max_bytes: int, storage: SinkSettings) -> Iterator[Session | Problem]:
    name = batch.path.name.partition(".")[0]
    if batch.lines is not None:
        yield from _chat(batch.lines, name)
        return
    if batch.rows is not None and isinstance(batch.path, Path):
        yield from _chat(parquet_logs.lines(batch.path, batch.rows), name)
        return
    with opened(batch.path, storage) as file:
        if kind in (Format.CLAUDE_CODE, Format.CODEX):
            problems: list[Problem] = []
            yield from transcripts.read_records(kind, _texts(lines_of(file, max_bytes=max_bytes), problems), name=name)
            yield from problems
        else:
            text = json_text.text_of(file.read(max_bytes + 1))
            if len(text) > max_bytes:
                yield _too_long(1, len(text), max_bytes)
            else:
                yield from transcripts.read_document(kind, text, name=name)


def _batches(
    path: LogPath, lines: Iterator[tuple[int, bytes | Problem]], given: Format | None, storage: SinkSettings
) -> Iterator[LogBatch]:
    kind, problems, held, size = given, list[Problem](), list[tuple[int, bytes]](), 0
    for number, line in lines:
        if isinstance(line, Problem):
            problems.append(line)
            continue
        kind = kind or _detect(path, line, storage)
        if kind not in (None, Format.CHAT) or (kind and not held and _is_document(line)):
            # Such a file is read whole where the work is done, so what was met so far is met there again.
            yield LogBatch(path, kind)
            return
        held.append((number, line))
        size += len(line)
        if kind is None and len(held) >= _TRIED:
            break
        if kind and size >= _BATCH_BYTES:
            yield LogBatch(path, kind, tuple(held), tuple(problems))
            held, size, problems = [], 0, []
    if kind is None and held:
        problems.append(Problem(held[0][0], _unrecognised(held[0][1])))
    elif kind is None and not problems:
        problems.append(Problem(0, "empty"))
    if problems or held:
        yield LogBatch(path, kind, tuple(held), tuple(problems))


def _detect(path: LogPath, line: bytes, storage: SinkSettings) -> Format | None:
    """From one line, or, where that only opens a document, from the document's beginning."""
    try:
        return transcripts.detect(json_text.parse(json_text.text_of(line.removeprefix(b"\xef\xbb\xbf"))))
    except WireError:
        if line.strip() not in (b"{", b"\xef\xbb\xbf{"):
            return None
    with opened(path, storage) as file:
        head = json_text.text_of(file.read(_PIECE))
    if '"info": {' in head:
        return Format.OPENCODE
    return Format.CHAT if '"messages": [' in head else None


def _is_document(line: bytes) -> bool:
    """A line that opens an object and does not close it: the file is one JSON document, not one a line."""
    return not line.rstrip().endswith(b"}")


def _chat(lines: Iterable[tuple[int, bytes]], name: str) -> Iterator[Session | Problem]:
    for number, line in lines:
        try:
            session = transcripts.parse_line(_utf8(line), name=f"{name}:{number}")
        except WireError as error:
            yield Problem(number, str(error))
            continue
        yield from (Problem(number, what, skipped=False) for what in transcripts.unanswered(session))
        yield session


def _texts(lines: Iterator[tuple[int, bytes | Problem]], problems: list[Problem]) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        if isinstance(line, Problem):
            problems.append(line)
            continue
        try:
            yield number, _utf8(line)
        except WireError as error:
            problems.append(Problem(number, str(error)))


def _utf8(line: bytes) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WireError(f"not UTF-8: byte {line[error.start]:#04x} at column {error.start + 1}") from error


def _unrecognised(line: bytes) -> str:
    if b"\x00" in line[:4096]:
        return (
            "binary, not a recording" if not line.startswith((b"\xff\xfe", b"\xfe\xff")) else "UTF-16: expected UTF-8"
        )
    start = line[:40].decode("utf-8", "replace")
    return f"not a recording: expected chat JSONL, a Claude Code, Codex or OpenCode log, found {start!r}"


def _too_long(number: int, size: int, bound: int) -> Problem:
    return Problem(number, f"{size:,} bytes in one line, more than the bound of {bound:,} (replay.max_line_bytes)")
