"""How foreign text stands in a column of a database: as bytes, because not every str is a database's text."""

from pagefold.pages.kinds import PageKind


def spelled(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def read_back(column: bytes) -> str:
    return column.decode("utf-8", "surrogatepass")


def kind_of(column: str) -> PageKind | None:
    return PageKind(column) if column in PageKind.__members__.values() else None
