"""Copies a store into an empty one of any kind, whole, and compares both by a hash over all their rows."""

from contextlib import closing
from dataclasses import dataclass

from pagefold import zstd
from pagefold.adapters.sqlite.packing import Packing
from pagefold.adapters.store_rows import PAGES, TABLES, Digest, Row, StoreRows
from pagefold.errors import StoreError
from pagefold.pages.page import PageId


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied, by table, and the hash that both stores have."""

    rows: dict[str, int]
    bytes: int
    digest: str


def copy_store(source: StoreRows, target: StoreRows) -> Copied:
    """Copies all rows. Raises StoreError where the target is not empty, where a page of the source is damaged, and
    where the target does not read back as the source was read: then nothing counts."""
    if not target.is_empty():
        raise StoreError(f"{target.where} is not empty: name a store that holds nothing yet")
    packing, digests, length = Packing(), {}, 0

    def checked(row: Row) -> Row:
        nonlocal length
        try:
            content = packing.unpacked(PageId(row[0]), row[1], row[3])
        except zstd.ZstdError:
            content = None
        if content is None:
            raise StoreError(f"{source.where}: page {row[0]} is damaged, and nothing was copied: verify it first")
        length += len(content)
        return row

    for table in TABLES:
        digest = digests[table.name] = Digest()
        with closing(source.read(table)) as read:
            rows = digest.over(read)
            target.write(table, map(checked, rows) if table is PAGES else rows)
    for table in TABLES:
        again = Digest()
        for _ in again.over(target.read(table)):
            pass
        if again.hex != digests[table.name].hex:
            raise StoreError(f"{target.where}: its {table.name} are not what {source.where} has; nothing was copied")
    target.finish()
    whole = Digest()
    for _ in whole.over((name, digest.hex) for name, digest in digests.items()):
        pass
    return Copied({name: digest.rows for name, digest in digests.items()}, length, whole.hex)
