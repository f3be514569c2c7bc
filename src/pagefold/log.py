"""`Log`, an immutable sequence that shares memory with the logs it grew from.

Appending returns a new log; the old one holds what it held. The first log that goes on from a point appends in place,
and another that goes on from the same point takes a copy, so that neither sees the other. Threads may share logs.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

from pagefold.lock import APPENDING

T = TypeVar("T")


class Log(Sequence[T]):
    """`length` is the same as `len`, four times as fast."""

    __slots__ = ("_items", "length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self.length = len(self._items)

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        length = self.length
        if isinstance(index, slice):
            start, stop, step = index.indices(length)
            return self._items[start:stop] if step == 1 else self._items[:length][index]
        if -length <= index < length:
            return self._items[index if index >= 0 else index + length]
        raise IndexError(index)

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self.length)

    def __reversed__(self) -> Iterator[T]:
        items = self._items
        return islice(reversed(items), len(items) - self.length, None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Log({list(self)!r})"

    def since(self, start: int) -> list[T]:
        """Returns the items from this place on."""
        return self._items[start : self.length]

    def extends(self, other: "Log[T]") -> bool:
        """Whether it begins with all items of the other. Logs that share memory are not compared."""
        theirs, length = other._items, other.length  # noqa: SLF001 - of this very type
        return length <= self.length and (self._items is theirs or self._items[:length] == theirs[:length])

    def upto(self, length: int) -> "Log[T]":
        """Returns its first items, in the same memory."""
        new: Log[T] = Log.__new__(Log)
        new._items, new.length = self._items, min(length, self.length)
        return new

    def with_items(self, items: Iterable[T], after: int | None = None) -> "Log[T]":
        """Returns its items, or its first `after` items, followed by these."""
        more = list(items)
        held, length = self._items, self.length if after is None else after
        with APPENDING:
            if len(held) != length:
                held = held[:length]
            held.extend(more)
        new: Log[T] = Log.__new__(Log)
        new._items, new.length = held, length + len(more)
        return new
