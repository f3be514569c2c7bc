"""What a recorded session cost as it happened, and what the same session would have cost under a policy.

What happened is the usage that the provider reported with each answer: it holds all that was sent, the system prompt,
tool schemas and thinking that a log may lack, and what the client itself compacted or cleared. A policy changes only
messages, so its bill is that usage with the difference in counted tokens, times a factor that is fitted on the session
itself. What of a prompt is read from the provider's cache is decided by the reported reading too: where the cache was
found warm, what a policy leaves in place is read, and where it was broken, nothing behind the break is.

Where an answer has no usage, a request is taken to be its messages after a head of a given size, written to a cache
that lives as long as the prices say.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from pagefold.analysis.replay import RequestSize, expired
from pagefold.derive.cost import Prices
from pagefold.wire.message import Usage
from pagefold.wire.transcripts import Session

_WARM = 0.9  # of what stands from the request before; providers round down to their blocks
_FITTED_FROM = 2_000  # tokens by which a session has to grow before it says how the provider counts
_LEAST_FACTOR, _MOST_FACTOR = 0.5, 2.5
_STEPS = 6  # from one request to the next, for what each of them adds to be told from what its messages count;
_SPREAD = 0.3  # and they have to differ so much from each other, as a share of their mean
EXTRA_ANSWER = 100
"""Tokens that a model writes to fetch again what it misses: a call and its arguments."""


class Money(NamedTuple):
    """USD for prompts and for what the model wrote."""

    prompt: float = 0.0
    output: float = 0.0

    def plus(self, other: "Money") -> "Money":
        return Money(self.prompt + other.prompt, self.output + other.output)

    @property
    def both(self) -> float:
        return self.prompt + self.output


NOTHING = Money()


@dataclass(frozen=True, slots=True)
class Happened:
    """The requests of a session as they were sent: their sizes in counted tokens and their usage. `factor` is how many
    of the provider's tokens a counted one is; `logged` says which of the usage was reported."""

    sizes: Sequence[RequestSize]
    usage: Sequence[Usage]
    logged: Sequence[bool]
    factor: float = 1.0

    def under(self, sizes: Sequence[RequestSize]) -> Iterator[Usage]:
        """What the provider would have reported had these requests been sent in place of those that were."""
        for was, size, usage in zip(self.sizes, sizes, self.usage, strict=True):
            around = usage.prompt - self.factor * was.prompt
            prompt = max(0, round(usage.prompt + self.factor * (size.prompt - was.prompt)))
            if usage.cache_read >= _WARM * (around + self.factor * was.kept):
                read = usage.cache_read + self.factor * (size.kept - was.kept)
            else:  # broken there, whatever stands behind it
                read = min(usage.cache_read, around + self.factor * size.kept)
            yield _parted(prompt, min(prompt, max(0, round(read))), usage)


def happened(session: Session, sizes: Sequence[RequestSize], prices: Prices, head: int = 0) -> Happened:
    """What was sent in a session, whose requests had these sizes. `head` is assumed where no usage is reported."""
    reported = [session.usage.get(size.turn) for size in sizes]
    logged = [usage is not None for usage in reported]
    factor, _ = _counted(sizes, reported)
    around = next(
        (usage.prompt - factor * size.prompt for usage, size in zip(reported, sizes, strict=True) if usage), float(head)
    )
    cold = frozenset(expired(session, prices.life))
    whole: list[Usage] = []
    for size, usage in zip(sizes, reported, strict=True):
        if usage is not None:
            around = usage.prompt - factor * size.prompt
        whole.append(usage or _assumed(size, around, factor, prices, cold=size.turn in cold or not whole))
    return Happened(sizes, whole, logged, factor)


def predicted(session: Session, sent: Happened, prices: Prices) -> list[Usage]:
    """The usage of all requests from the first one's and the messages alone, to be compared with what was reported. How
    the provider counts is learned from the first half of the session only, so that the second is a test of it."""
    if not sent.usage:
        return []
    half = (len(sent.usage) + 1) // 2
    seen = [usage if known else None for usage, known in zip(sent.usage[:half], sent.logged[:half], strict=True)]
    factor, more = _counted(sent.sizes[:half], seen)
    cold = frozenset(expired(session, prices.life))
    around = sent.usage[0].prompt - factor * sent.sizes[0].prompt
    later = [
        _assumed(size, around + place * more, factor, prices, cold=size.turn in cold, more=more)
        for place, size in enumerate(sent.sizes[1:], 1)
    ]
    return [sent.usage[0], *later]


def cost_of(usage: Sequence[Usage], prices: Prices) -> Money:
    """What this usage costs at these prices."""
    total = NOTHING
    for one in usage:
        total = total.plus(Money(*prices.billed(one)))
    return total


def cost_of_misses(sizes: Sequence[RequestSize], usage: Sequence[Usage], factor: float, prices: Prices) -> Money:
    """What it costs to fetch again what requests of these sizes lacked: each time one more round trip, which reads the
    whole prompt once more, and a short call. An edit whose text was gone is tried, refused and written again, too."""
    total = NOTHING
    for size, one in zip(sizes, usage, strict=True):
        if size.again:
            trip = Usage(0, one.prompt, round(factor * size.again), EXTRA_ANSWER)
            total = total.plus(Money(*prices.billed(trip)))
        if size.edits_gone:
            trip = Usage(0, one.prompt, 0, EXTRA_ANSWER + round(factor * size.written_again))
            total = total.plus(Money(*prices.billed(trip)))
    return total


def extra_turns(sizes: Sequence[RequestSize]) -> int:
    """How many more round trips what was missed would have taken."""
    return sum(bool(size.again) + bool(size.edits_gone) for size in sizes)


def _parted(prompt: int, read: int, like: Usage) -> Usage:
    """A prompt of so many tokens of which so many are read; the rest is written and fresh as in another's usage."""
    rest, other = prompt - read, like.fresh + like.cache_write
    written = round(rest * like.cache_write / other) if other else rest
    long = round(written * like.cache_write_long / like.cache_write) if like.cache_write else 0
    return Usage(rest - written, read, written, like.output, 0, long)


def _assumed(
    size: RequestSize, around: float, factor: float, prices: Prices, *, cold: bool, more: float = 0.0
) -> Usage:
    """The usage of a request that begins with so many tokens; `more` of them are new in it."""
    prompt = max(0, round(around + factor * size.prompt))
    read = 0 if cold else min(prompt, max(0, round(around - more + factor * size.kept)))
    written = prompt - read
    return Usage(0, read, written, 0, 0, written if prices.long else 0)


def _counted(sizes: Sequence[RequestSize], reported: Sequence[Usage | None]) -> tuple[float, float]:
    """How many of the provider's tokens a counted one is, and how many each request adds that are not counted, such as
    thinking and what stands around an answer: slope and intercept of reported over counted growth."""
    known = [(size.prompt, usage) for size, usage in zip(sizes, reported, strict=True) if usage]
    steps = [
        (counted - before, usage.prompt - was.prompt)
        for (before, was), (counted, usage) in pairwise(known)
        if counted > before and usage.prompt > was.prompt and not usage.cleared
    ]
    if sum(counted for counted, _ in steps) < _FITTED_FROM:
        return 1.0, 0.0
    slope, intercept = _line(steps) if len(steps) >= _STEPS else (0.0, -1.0)
    if intercept < 0 or not _LEAST_FACTOR <= slope <= _MOST_FACTOR:  # too little to tell the two apart
        slope, intercept = sum(grown for _, grown in steps) / sum(counted for counted, _ in steps), 0.0
    return min(_MOST_FACTOR, max(_LEAST_FACTOR, slope)), intercept


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The slope and intercept that fit these points best; a slope of 0 where they stand too close to each other."""
    across, up = fmean(x for x, _ in points), fmean(y for _, y in points)
    spread = sum((x - across) ** 2 for x, _ in points)
    if spread < len(points) * (_SPREAD * across) ** 2:
        return 0.0, 0.0
    slope = sum((x - across) * (y - up) for x, y in points) / spread
    return slope, up - slope * across
