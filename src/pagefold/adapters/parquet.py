"""Tables as Parquet files in a folder, written and added up by DuckDB, which comes with the extra `analysis`.

A table is `NAME-00001.parquet` and so on. Rows are handed over as lines of JSON, so that whoever makes them needs no
DuckDB; a part is written beside and moved in place. Nothing else of the folder is touched.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pagefold.errors import ConfigError

_PART_BYTES = 256 << 20


def duckdb() -> Any:
    """Raises ConfigError where the extra is not installed."""
    try:
        return importlib.import_module("duckdb")
    except ImportError as error:
        raise ConfigError("this needs the extra: pip install 'pagefold[analysis]'") from error


@dataclass(slots=True)
class ParquetTable:
    """One table being written. `columns` are its names and their DuckDB types."""

    folder: Path
    name: str
    columns: Mapping[str, str]
    part_bytes: int = _PART_BYTES
    rows: int = 0
    parts: int = 0
    _waiting: IO[bytes] | None = field(default=None, repr=False)

    def add(self, lines: bytes) -> None:
        """Lines of JSON, each with its line end."""
        if not lines:
            return
        if self._waiting is None:
            self._waiting = (self.folder / f".{self.name}.jsonl").open("wb")
        self._waiting.write(lines)
        self.rows += lines.count(b"\n")
        if self._waiting.tell() >= self.part_bytes:
            self.flush()

    def flush(self) -> None:
        if self._waiting is None:
            return
        self._waiting.close()
        source, self._waiting = Path(self._waiting.name), None
        self.parts += 1
        target = self.folder / f"{self.name}-{self.parts:05}.parquet"
        part = target.with_suffix(".part")
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in self.columns.items())
        reader = f"read_json(?, format = 'newline_delimited', columns = {{{columns}}})"
        with in_memory() as database:
            database.execute(
                f"COPY (SELECT * FROM {reader}) TO '{_quoted(part)}' (FORMAT parquet, COMPRESSION zstd)",  # noqa: S608
                [str(source)],
            )
        part.replace(target)
        source.unlink()


@contextmanager
def tables(folder: Path, **columns: Mapping[str, str]) -> Iterator[dict[str, ParquetTable]]:
    """New tables in a folder, in place of those of the same names. Raises ConfigError."""
    duckdb()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in columns:
            for old in folder.glob(f"{name}-*.parquet"):
                old.unlink()
        made = {name: ParquetTable(folder, name, kinds) for name, kinds in columns.items()}
        yield made
        for table in made.values():
            table.flush()
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {error.strerror}") from error
    finally:
        for name in columns:
            (folder / f".{name}.jsonl").unlink(missing_ok=True)


def query(folder: Path, sql: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of a query over the tables of a folder, by their names. Raises ConfigError where one is not there."""
    with in_memory() as database:
        for name in names:
            if not any(folder.glob(f"{name}-*.parquet")):
                raise ConfigError(f"{folder}: no {name}-*.parquet there (pagefold export writes them)")
            source = _quoted(folder / f"{name}-*.parquet")
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{source}')")  # noqa: S608
        found = database.execute(sql)
        columns = [one[0] for one in found.description]
        return [dict(zip(columns, row, strict=True)) for row in found.fetchall()]


@contextmanager
def in_memory() -> Iterator[Any]:
    """A database in memory that loads nothing from the network."""
    made = duckdb().connect(":memory:")
    try:
        made.execute("SET autoinstall_known_extensions = false")
        yield made
    finally:
        made.close()


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
