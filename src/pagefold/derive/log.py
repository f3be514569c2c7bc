"""A log that only grows: appending gives a new one, and the old one still holds exactly what it held.

Two histories that share their beginning share its memory. The first to go on appends in place; another that goes on
from the same point takes a copy, so neither ever sees the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Log(Generic[T]):
    _items: list[T] = field(default_factory=list)
    _length: int = 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> T:
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._items[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.part(0, self._length))

    def part(self, start: int, end: int | None = None) -> list[T]:
        """The items from `start` up to `end`, or to the end of this log."""
        return self._items[start : self._length if end is None else min(end, self._length)]

    def with_item(self, item: T) -> "Log[T]":
        items = self._items if len(self._items) == self._length else self._items[: self._length]
        items.append(item)
        return Log(items, self._length + 1)
