"""Known file text in chunks that can be shown or left out one by one, and how likely each is needed next."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from math import exp, log1p

from pagefold.derive.selection import Candidate, Offer
from pagefold.derive.working_set.attention import Attention
from pagefold.frozen import frozen
from pagefold.pages.facts import lines_with_facts
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.paths import is_temporary
from pagefold.pages.files.region import Region
from pagefold.pages.kinds import ResidencyLevel

_LONGEST = 32  # lines of a chunk
_SHORTEST = 8  # lines below which a chunk does not end, unless the region does
_CLOSES = re.compile(r"^(?:[)\]}]|end\b|else\b|elif\b|except\b|finally\b|case\b|default\b)")
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


def chunks_of(
    files: Mapping[str, KnownFile], now: Attention, asked_for: Collection[str] = frozenset()
) -> Iterator[Chunk]:
    """The chunks of all files that do not stand in the last exchanges already. Of what nobody has seen for long only
    short files have one, and those that were asked for."""
    oldest = now.oldest
    spans = [span for key, file in files.items() for span in _spans(key, file, now, -1 if key in asked_for else oldest)]
    held = Counter[str]()
    for span in spans:
        held.update(span.words)
    spare = throw_away(files)
    spoken_of = {key: _is_named(key, files[key], now.text) for key in dict.fromkeys(span.key for span in spans)}
    for span in spans:
        file, region = files[span.key], span.region
        seen = region.seen[span.begin : span.end]
        lines = region.lines[span.begin : span.end]
        doubted = file.text.is_doubted(min(seen))
        shared = sum([1 / held[word] for word in span.words])
        need = _need(span, file, now, shared, spoken_of=spoken_of[span.key])
        need *= (_DOUBTED if doubted else 1.0) * (_SPARE if span.key in spare else 1.0)
        whole = len(lines) == file.text.length
        yield Chunk(span.key, span.index, span.begin, span.end, _tokens(lines), need, max(seen), lines, doubted, whole)


@frozen
class _Span:
    """Lines of a region that may become a chunk, with the words in them that the work is about."""

    key: str
    index: int
    region: Region
    begin: int
    end: int
    words: tuple[str, ...]


def _spans(key: str, file: KnownFile, now: Attention, oldest: int) -> Iterator[_Span]:
    length = file.text.length
    if file.touched < oldest and (length is None or length > _SMALL):
        return
    for index, region in enumerate(file.text.regions):
        count = len(region.lines)
        if (count < _LEAST or max(region.seen) < oldest) and count != length:
            continue
        bounds = _bounds(region.lines)
        words: list[list[str]] = [[] for _ in bounds]
        held = lines_with_facts(region.lines) if now.words else {}
        ends = [end for _, end in bounds]
        for word in sorted(held.keys() & now.words):
            for at in {bisect_right(ends, line) for line in held[word]}:
                words[at].append(word)
        for (begin, end), in_it in zip(bounds, words, strict=True):
            if min(region.seen[begin:end]) < now.cut:
                yield _Span(key, index, region, begin, end, tuple(in_it))


def throw_away(keys: Iterable[str]) -> frozenset[str]:
    """The files in folders for temporary ones that have the name of another file, which is the one at work."""
    files = list(keys)
    spare = [key for key in files if is_temporary(key)]
    at_work = {key.rpartition("/")[2] for key in files if not is_temporary(key)} if spare else set()
    return frozenset(key for key in spare if key.rpartition("/")[2] in at_work)


def _is_named(key: str, file: KnownFile, text: str) -> bool:
    """Whether a text names a file, by the last part of its path."""
    return file.name.rpartition("/")[2] in text or key.rpartition("/")[2] in text


def _need(span: _Span, file: KnownFile, now: Attention, shared: float, *, spoken_of: bool) -> float:
    """The probability that an edit soon replaces some of these lines. The weights are fitted on recorded sessions.
    `shared` are the words in them that the work is about, each by how few other chunks hold it; `spoken_of`: the last
    words name the file."""
    region, begin, end = span.region, span.begin, span.end
    turns, last, tokens = now.turns, len(now.turns) - 1, _tokens(region.lines[begin:end])
    odds = -3.1 - 0.44 * log1p(now.turn - turns[min(max(region.seen[begin:end]), last)])
    changed = max(region.changed[begin:end])
    if changed >= 0:
        odds += 0.75 - 0.07 * log1p(now.turn - turns[min(changed, last)])
    else:
        odds -= 0.42
    odds -= 0.35 * bool(file.edits) + 0.08 * log1p(now.turn - turns[min(file.touched, last)])
    odds += 0.74 * (log1p(tokens) - 4.0) + 0.7 * log1p(shared)
    odds += 0.8 * spoken_of
    return 1.0 / (1.0 + exp(-odds))


def _tokens(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) // 3 + 2 * len(lines)


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
