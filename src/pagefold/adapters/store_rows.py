"""The rows of a store as they stand in every database, so that one can be copied into another and both be compared.

A content is copied as it is packed. Not copied is what can be made again (the search index) and what belongs to one
database (its identity, its schema's version).
"""

import hashlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

Row: TypeAlias = tuple[Any, ...]


class Table(NamedTuple):
    """A table with the types of its columns, as Postgres calls them, and what its rows are sorted by."""

    name: str
    columns: dict[str, str]
    order: str

    @property
    def names(self) -> str:
        return ", ".join(self.columns)


PAGES = Table("pages", {"id": "text", "bytes": "int8", "last_put": "float8", "stored": "bytea"}, "id")
JOURNAL = Table(
    "journal_lines",
    {
        "number": "int8",
        "principal": "bytea",
        "owner": "bytea",
        "token": "bytea",
        "scope": "bytea",
        "key": "bytea",
        "entry": "text",
        "state": "text",
        "reason": "text",
        "detail": "bytea",
        "boundary": "text",
        "version": "int8",
        "staged_at": "float8",
    },
    "number",
)
# In this order, because rows name rows of the tables before.
TABLES: Sequence[Table] = (
    Table("scopes", {"number": "int4", "principal": "bytea", "project": "bytea"}, "number"),
    PAGES,
    Table(
        "listings",
        {
            "place": "int8",
            "scope": "int4",
            "history": "bytea",
            "page": "text",
            "kind": "text",
            "name": "bytea",
            "first_put": "float8",
        },
        "place",
    ),
    Table("holds", {"scope": "int4", "history": "bytea", "page": "text"}, "scope, history, page"),
    Table("turns", {"scope": "int4", "history": "bytea", "last": "float8"}, "scope, history"),
    Table("shown", {"principal": "bytea", "text": "text", "page": "text"}, "principal, text"),
    Table("redacted", {"original": "text", "page": "text", "kinds": "text"}, "original"),
    Table("sunk", {"scope": "int4", "page": "text", "history": "bytea"}, "scope, page, history"),
    Table("awaiting", {"place": "int8", "owner": "text", "tries": "int4"}, "place"),
    JOURNAL,
)


class StoreRows(Protocol):
    """The rows of one store. All may raise StoreError."""

    @property
    def where(self) -> str: ...

    def is_empty(self) -> bool:
        """Whether neither a page nor a line of the journal is there."""

    def read(self, table: Table) -> Generator[Row, None, None]:
        """All rows of a table, in its order. Whoever stops before the end closes it, before the store is closed."""

    def write(self, table: Table, rows: Iterable[Row]) -> None:
        """Writes the rows of a table of an empty store."""

    def finish(self) -> None:
        """Called after the last table: makes what was written count, all of it or nothing."""

    def close(self) -> None: ...


class Digest:
    """A hash over rows, and how many they were."""

    def __init__(self) -> None:
        self._hash, self.rows = hashlib.sha256(), 0

    def over(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows, each added to the hash on its way."""
        for row in rows:
            self._hash.update(repr(row).encode())
            self.rows += 1
            yield row

    @property
    def hex(self) -> str:
        return self._hash.hexdigest()
