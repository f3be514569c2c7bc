"""Sessions in Parquet files: a row is a session, with its messages in the column `messages`, as a list or as JSON.

Rows are read where the work on them is done, a batch at a time, and written nowhere. DuckDB reads them, which comes
with the extra `analysis`. Members without a value are left out: a column has those of all rows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pagefold.adapters.parquet import duckdb, in_memory
from pagefold.errors import WireError
from pagefold.wire import json_text

SUFFIX = ".parquet"
_MESSAGES = "messages"
_BATCH_BYTES = 4 << 20
_GROUPS = f"""
    SELECT any_value(row_group_num_rows), sum(total_uncompressed_size),
           bool_or(split_part(path_in_schema, ',', 1) = '{_MESSAGES}')
    FROM parquet_metadata(?) GROUP BY row_group_id ORDER BY row_group_id"""  # noqa: S608
_ROWS = """
    SELECT line.file_row_number + 1, CAST(to_json(line) AS VARCHAR)
    FROM (SELECT * FROM read_parquet(?, file_row_number = true) WHERE file_row_number BETWEEN ? AND ?) AS line
    ORDER BY 1"""


def batches(path: Path) -> list[range]:
    """The rows of each batch. Raises OSError where the file cannot be read or holds no sessions, ConfigError where the
    extra is not installed."""
    found, first = list[range](), 0
    for rows, size, holds in _asked(_GROUPS, [str(path)]):
        if not holds:
            raise OSError(f"no column {_MESSAGES!r} in it, which holds a session's messages")
        step = max(1, int(rows) * _BATCH_BYTES // max(1, int(size)))
        found += [range(first + at, first + min(at + step, int(rows))) for at in range(0, int(rows), step)]
        first += int(rows)
    return found


def lines(path: Path, rows: range) -> Iterator[tuple[int, bytes]]:
    """Sessions as numbered lines of JSON. Raises OSError."""
    for number, row in _asked(_ROWS, [str(path), rows.start, rows.stop - 1]):
        yield number, _line(row)


def _line(row: str) -> bytes:
    value = json_text.as_object(json_text.parse(row))
    value.pop("file_row_number", None)
    if isinstance(value.get(_MESSAGES), str):
        try:
            value[_MESSAGES] = json_text.parse(value[_MESSAGES])
        except WireError:
            return row.encode()  # the reader says what is wrong with it
    return json_text.bytes_of(json_text.dumps(_with_values(value)))


def _with_values(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_values(part) for key, part in value.items() if part is not None}
    return [_with_values(part) for part in value] if isinstance(value, list) else value


def _asked(sql: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    with in_memory() as database, _as_unreadable():
        found = database.execute(sql, values)
        while rows := found.fetchmany(16):
            yield from rows


@contextmanager
def _as_unreadable() -> Iterator[None]:
    try:
        yield
    except duckdb().Error as error:
        raise OSError(str(error).partition("\n")[0]) from error
