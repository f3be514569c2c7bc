"""Whose cost a session's cost is: every page's share, to the last token.

A message that stands from one request to another is written once and then read, unless the cache expired in between. A
digest belongs to the pages whose lines stand in it, by what they cost before they were folded; a handle alone costs its
page nothing. All shares together are the cost of the replay.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pagefold.derive.cost import Prices
from pagefold.derive.policy import Decision, Derived
from pagefold.pages.kinds import ResidencyLevel
from pagefold.wire.message import Message

HEAD = -1
"""Stands for what no page of the history brought: pins, and what was there before all messages."""


_Owners: TypeAlias = tuple[tuple[int, float], ...]


class _SentMessage(NamedTuple):
    """A message of the last request: its text's own spelling, its cost, since which request, and whose it is."""

    raw: str
    tokens: int
    since: int
    owners: _Owners


@dataclass(slots=True)
class CostShares:
    """Told every request of a session, in order. `cost` is complete after `end`.

    `places` says which message of the history a message of a request shows, by its id; `logged` the same for the places
    that a policy's decisions name, where that has repaired the history it was shown.
    """

    prices: Prices
    count: Callable[[Message], int]
    cold: frozenset[int]  # turns at which the cache had expired
    places: Mapping[int, int]
    logged: Sequence[int]
    cost: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    requests: Counter[int] = field(default_factory=Counter)  # in how many requests each page stood, in some form
    _standing: list[_SentMessage] = field(default_factory=list)
    _colds: list[int] = field(default_factory=lambda: [0])  # how many requests were cold, up to each
    _shown: dict[int, int] = field(default_factory=dict)

    def request(self, turn: int, derived: Derived) -> None:
        now = len(self._colds) - 1
        self._colds.append(self._colds[-1] + (turn in self.cold))
        old, same = self._standing[derived.keep :], 0
        for before, message in zip(old, derived.append, strict=False):
            if before.raw != message.raw:
                break
            same += 1
        for gone in old[same:]:
            self._close(gone, now)
        whose = self._owners(derived)[same:]
        fresh = derived.append[same:]
        self._standing[derived.keep + same :] = [
            _SentMessage(message.raw, self.count(message), now, owners)
            for message, owners in zip(fresh, whose, strict=True)
        ]

    def end(self) -> dict[int, float]:
        for standing in self._standing:
            self._close(standing, len(self._colds) - 1)
        self._standing.clear()
        return self.cost

    def _close(self, gone: _SentMessage, end: int) -> None:
        again = self._colds[end] - self._colds[gone.since + 1]
        reads = end - gone.since - 1 - again
        cost = self.prices.cost(gone.tokens * reads, gone.tokens * (1 + again))
        for place, share in gone.owners:
            self.cost[place] += cost * share
            self.requests[place] += end - gone.since

    def _owners(self, derived: Derived) -> list[_Owners]:
        """Whose each appended message is."""
        size = len(derived.append)
        if not derived.decisions or not derived.reason:
            # Only grown: what came since, each message its own.
            places = [self.places.get(id(message), HEAD) for message in derived.append]
            self._shown.update((place, self.count(one)) for place, one in zip(places, derived.append, strict=True))
            return [((place, 1.0),) for place in places]
        # A repair that is told along with a fold is about a place that the fold decides as well.
        decisions = list({decision.place: decision for decision in derived.decisions}.values())
        whole = self._folded(sorted(decisions, key=lambda one: one.place))
        missing = derived.keep + size - len(whole)
        if missing > 0:
            # What is pinned stands between the digests and the last exchanges.
            at = len(whole) - sum(one.level is ResidencyLevel.COMPRESSED for one in decisions)
            whole[at:at] = [((HEAD, 1.0),)] * missing
        return whole[derived.keep : derived.keep + size]

    def _place(self, decision: Decision) -> int:
        return self.logged[decision.place] if decision.place < len(self.logged) else HEAD

    def _folded(self, decisions: Sequence[Decision]) -> list[_Owners]:
        """Whose each message is after a fold: what stays is its own, a run of folded pages shares a digest."""
        found: list[_Owners] = []
        run: list[Decision] = []
        for decision in decisions:
            if decision.level in (ResidencyLevel.STRUCTURED, ResidencyLevel.POINTER):
                run.append(decision)
                continue
            if run:
                found.append(tuple(self._shared(run)))
                run = []
            found.append(((self._place(decision), 1.0),))
        if run:
            found.append(tuple(self._shared(run)))
        return found

    def _shared(self, run: Sequence[Decision]) -> Iterator[tuple[int, float]]:
        kept = [self._place(one) for one in run if one.level is ResidencyLevel.STRUCTURED]
        kept = kept or [self._place(one) for one in run]
        weights = [self._shown.get(place, 1) for place in kept]
        total = sum(weights)
        for place, weight in zip(kept, weights, strict=True):
            yield place, weight / total if total else 1 / len(kept)
