"""Known file text in chunks that can be shown or left out one by one, and how likely each is needed next."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from math import exp, log1p

from pagefold.derive.selection import Candidate, Offer
from pagefold.frozen import frozen
from pagefold.pages.facts import lines_with_facts
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.region import Region
from pagefold.pages.kinds import ResidencyLevel

_LONGEST = 32  # lines of a chunk
_SHORTEST = 8  # lines below which a chunk does not end, unless the region does
_TEMPORARY = re.compile(r"(?:/private)?(?:/var)?/te?mp/|[a-z]:/(?:.*/)?te?mp/", re.IGNORECASE)
_CLOSES = re.compile(r"^(?:[)\]}]|end\b|else\b|elif\b|except\b|finally\b|case\b|default\b)")
LONG_AGO = 600  # turns: lines that nobody has seen for longer are not shown, unless they were asked for by name
_LEAST = 3  # lines below which a region is no view: a search found them
_DOUBTED = 0.8  # of their need, for lines that something may have changed since
_SPARE = 0.25  # of their need, for lines of throw-away files
_OVERHEAD = 100  # tokens: small chunks must not win by being small
_SMALL = 60  # tokens of a whole file that is cheaper to keep than the turn in which it is read again
_MISSED = 1.0  # the worth of a token that was asked for by name; of others it is less than a hundredth


@frozen
class Chunk:
    """Lines of one region of a file. `tokens` is about what they cost; `need` how likely they are needed next."""

    key: str
    region: int
    begin: int
    end: int
    tokens: int
    need: float
    seen: int
    lines: tuple[str, ...] = field(repr=False)
    doubted: bool = False
    whole: bool = False

    @property
    def small(self) -> bool:
        """Whether it is all of a file, so short that the turn in which it is read again costs more than its text."""
        return self.whole and self.tokens <= _SMALL

    def candidate(self, *, asked_for: bool) -> Candidate:
        """Shown or not. Its worth is its need, less for lines of a large file, whose title costs as much, and more for
        a small file. Nothing is worth more than what was `asked_for` by name."""
        share = self.tokens / (self.tokens + _OVERHEAD)
        value = _MISSED * self.tokens if asked_for else self.need / share if self.small else self.need * share
        return Candidate(self, (Offer(ResidencyLevel.STRUCTURED, self.tokens, value),))


@frozen
class Attention:
    """What the work is about now: the turn, the place the last exchanges begin at, names in the latest words, and the
    turn of every message by its place."""

    turn: int
    cut: int
    words: frozenset[str]
    text: str
    turns: Sequence[int]

    @property
    def oldest(self) -> int:
        """The first place that was not long ago."""
        return bisect_left(self.turns, self.turn - LONG_AGO)


def chunks_of(key: str, file: KnownFile, now: Attention, oldest: int = -1, *, spare: bool = False) -> Iterator[Chunk]:
    """The chunks of a file that do not stand in the last exchanges already, and of which something was seen at the
    `oldest` place or later, or that are all of a short file. `spare`: it is a throw-away copy beside the file that is
    worked on."""
    text = file.text
    if file.touched < oldest and (text.length is None or text.length > _SMALL):
        return
    named = file.name.rpartition("/")[2] in now.text or key.rpartition("/")[2] in now.text
    for index, region in enumerate(text.regions):
        count = len(region.lines)
        if (count < _LEAST or max(region.seen) < oldest) and count != text.length:
            continue
        held = lines_with_facts(region.lines) if now.words else {}
        places = [held[word] for word in held.keys() & now.words]
        for begin, end in _bounds(region.lines):
            seen = max(region.seen[begin:end])
            if min(region.seen[begin:end]) >= now.cut:
                continue
            lines = region.lines[begin:end]
            need = _need(region, begin, end, file, now, named=named, shared=_shared(places, begin, end))
            doubted = text.is_doubted(min(region.seen[begin:end]))
            need *= (_DOUBTED if doubted else 1.0) * (_SPARE if spare else 1.0)
            whole = len(lines) == text.length
            yield Chunk(key, index, begin, end, _tokens(lines), need, seen, lines, doubted, whole)


def throw_away(keys: Iterable[str]) -> frozenset[str]:
    """The files in folders for temporary ones that have the name of another file, which is the one at work."""
    files = list(keys)
    spare = [key for key in files if _TEMPORARY.match(key)]
    at_work = {key.rpartition("/")[2] for key in files if not _TEMPORARY.match(key)} if spare else set()
    return frozenset(key for key in spare if key.rpartition("/")[2] in at_work)


def _need(region: Region, begin: int, end: int, file: KnownFile, now: Attention, *, named: bool, shared: int) -> float:
    """The probability that an edit soon replaces some of these lines. The weights are fitted on recorded sessions."""
    turns, last, tokens = now.turns, len(now.turns) - 1, _tokens(region.lines[begin:end])
    odds = -3.1 - 0.44 * log1p(now.turn - turns[min(max(region.seen[begin:end]), last)])
    changed = max(region.changed[begin:end])
    if changed >= 0:
        odds += 0.75 - 0.07 * log1p(now.turn - turns[min(changed, last)])
    else:
        odds -= 0.42
    odds += 0.65 * bool(file.edits) - 0.08 * log1p(now.turn - turns[min(file.touched, last)])
    odds += 0.74 * (log1p(tokens) - 4.0) + 0.2 * named
    odds += 0.05 * min(6, shared)
    return 1.0 / (1.0 + exp(-odds))


def _tokens(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) // 3 + 2 * len(lines)


def _shared(places: Iterable[Sequence[int]], begin: int, end: int) -> int:
    """How many of the words stand in these lines that stand at these places."""
    return sum(1 for indexes in places if any(begin <= index < end for index in indexes))


@lru_cache(maxsize=1 << 12)
def _bounds(lines: tuple[str, ...]) -> Sequence[tuple[int, int]]:
    """Where chunks begin and end: before a line at the margin that begins something, else at an empty line."""
    return tuple(_divided(lines))


def _divided(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    begin, empty = 0, -1
    for index in range(1, len(lines)):
        line = lines[index]
        length = index - begin
        if not line.strip():
            empty = index
        starts = bool(line) and not line[0].isspace() and not _CLOSES.match(line) and not lines[index - 1].strip()
        if length >= _LONGEST or (starts and length >= _SHORTEST):
            end = empty + 1 if length >= _LONGEST and empty - begin >= _SHORTEST else index
            yield begin, end
            begin = end
    if begin < len(lines):
        yield begin, len(lines)
