"""A run of consecutive lines of a file, with the messages that showed and changed each of them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pagefold.frozen import frozen

_TELLING = 12  # visible characters that make a line say something of its own


@frozen
class Region:
    """`start` is the number of the first line, or None where it is not certain.

    For each line, `seen` is the place in the history of the message that showed or wrote it last, and `changed` that of
    the edit that wrote it, or -1.
    """

    start: int | None
    lines: tuple[str, ...]
    seen: tuple[int, ...]
    changed: tuple[int, ...]

    @classmethod
    def of(cls, start: int | None, lines: Sequence[str], seen: int, changed: int = -1) -> "Region":
        count = len(lines)
        return cls(start, tuple(lines), (seen,) * count, (changed,) * count)

    @property
    def end(self) -> int:
        """The number of the line behind the last one, where the region has numbers."""
        assert self.start is not None
        return self.start + len(self.lines)

    def part(self, begin: int, end: int) -> "Region":
        """The lines from index `begin` up to `end`."""
        start = None if self.start is None else self.start + begin
        return Region(start, self.lines[begin:end], self.seen[begin:end], self.changed[begin:end])

    def unnumbered(self) -> "Region":
        return self if self.start is None else replace(self, start=None)

    def moved(self, shift: int) -> "Region":
        return self if self.start is None or not shift else replace(self, start=self.start + shift)

    def spliced(self, begin: int, count: int, lines: Sequence[str], place: int) -> "Region":
        """The region with `count` lines from index `begin` replaced by others at a place in the history."""
        kept = _common_ends(self.lines[begin : begin + count], lines)
        begin, count, lines = begin + kept[0], count - sum(kept), lines[kept[0] : len(lines) - kept[1]]
        new, end = (place,) * len(lines), begin + count
        return Region(
            self.start,
            (*self.lines[:begin], *lines, *self.lines[end:]),
            (*self.seen[:begin], *new, *self.seen[end:]),
            (*self.changed[:begin], *new, *self.changed[end:]),
        )

    def joined(self, other: "Region") -> "Region":
        """This region and one that follows it directly."""
        return Region(self.start, self.lines + other.lines, self.seen + other.seen, self.changed + other.changed)

    def without(self, gone: Collection[str]) -> Iterator["Region"]:
        """The parts between lines that are gone."""
        begin = 0
        for index, line in enumerate(self.lines):
            if line in gone:
                if index > begin:
                    yield self.part(begin, index)
                begin = index + 1
        if begin < len(self.lines):
            yield self.part(begin, len(self.lines)) if begin else self

    def without_spans(self, begins: Collection[int], count: int) -> Iterator["Region"]:
        """The parts between spans of so many lines that begin at these indexes."""
        gone = {index for begin in begins for index in range(begin, begin + count)}
        begin = 0
        for index in [*sorted(gone), len(self.lines)]:
            if index > begin:
                yield self.part(begin, index) if gone else self
            begin = index + 1

    def places(self, sought: Sequence[str]) -> Iterator[int]:
        """The indexes at which a run of lines begins."""
        lines, wanted = self.lines, tuple(sought)
        first, count, index = wanted[0], len(wanted), -1
        end = len(lines) - count + 1
        # Searched by the tuple itself: every known run is looked for in every other whenever a file is shown.
        for _ in range(lines[: max(0, end)].count(first)):
            index = lines.index(first, index + 1)
            if lines[index : index + count] == wanted:
                yield index

    def times(self, text: str) -> int:
        """How often a text stands in the lines, overlapping places counted too."""
        whole, count = "\n".join(self.lines), 0
        at = whole.find(text)
        while at >= 0:
            count, at = count + 1, whole.find(text, at + 1)
        return count

    def split_by_age(self, place: int) -> Iterator["Region"]:
        """The runs of lines that were all seen before a place in the history, or all from there on."""
        if max(self.seen) < place or min(self.seen) >= place:
            yield self
            return
        begin = 0
        for index in range(1, len(self.lines)):
            if (self.seen[index] < place) is not (self.seen[begin] < place):
                yield self.part(begin, index)
                begin = index
        yield self.part(begin, len(self.lines)) if begin else self

    def holds(self, sought: Sequence[str]) -> bool:
        return any(True for _ in self.places(sought))


def is_telling(line: str) -> bool:
    """Whether a line says enough to be told from others."""
    return len(line.strip()) >= _TELLING


def _common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines two runs have in common at their beginning and at their end."""
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail
