"""Helper for tests that read a page to its end."""

from collections.abc import Callable, Iterator

from pagefold.encode.cursor import Cursor
from pagefold.encode.page_pieces import Piece, piece


def pieces(text: str, cursor: Cursor | None, count: Callable[[str], int]) -> Iterator[Piece]:
    """Yields all pieces from a cursor on."""
    while cursor is not None:
        returned = piece(text, cursor, count)
        yield returned
        cursor = returned.cursor
