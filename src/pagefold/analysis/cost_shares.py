"""Divides the cost of a replayed session among its pages, to the last token.

A message that stays from one request to the next is written to the cache once and then read, unless the cache expired
in between. The cost of a digest belongs to the pages whose lines it quotes, in proportion to what they cost before they
were folded; a page of which only a handle is left costs nothing. All shares together are the cost of the replay.
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
"""The owner of what no page of the history brought: pins, and what is sent before all messages."""


_Owners: TypeAlias = tuple[tuple[int, float], ...]
"""The places of the pages that share a message, and the share of each."""


class _SentMessage(NamedTuple):
    """A message of the last request: its JSON text, its tokens, the first request that held it, and its owners."""

    raw: str
    tokens: int
    since: int
    owners: _Owners


@dataclass(slots=True)
class CostShares:
    """Takes every request of a session, in order. `cost` is complete after `end`.

    `places` maps the id of a message in a request to the place in the history of the message it shows. `logged` maps
    the places that a policy's decisions name to places in the history; they differ where the policy repaired the
    history. Requests before the turn `since` cost nothing: they were paid for in another session.
    """

    prices: Prices
    count: Callable[[Message], int]
    cold: frozenset[int]  # turns at which the cache had expired
    places: Mapping[int, int]
    logged: Sequence[int]
    since: int = 0
    cost: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    requests: Counter[int] = field(default_factory=Counter)  # how many requests held each page in some form
    _sent: list[_SentMessage] = field(default_factory=list)
    # What a token cost that stood in all requests up to each: to read it, or write it anew where the cache was cold.
    _rates: list[float] = field(default_factory=lambda: [0.0])
    _written: list[float] = field(default_factory=list)  # what a token cost that was new in each request
    _tokens: dict[int, int] = field(default_factory=dict)  # of each page before it was folded

    def request(self, turn: int, derived: Derived, prompt: int) -> None:
        """Takes the next request, of so many tokens: a longer prompt may be dearer."""
        number = len(self._written)
        read, write = self.prices.ratios(prompt) if turn >= self.since else (0.0, 0.0)
        self._rates.append(self._rates[-1] + (write if turn in self.cold else read))
        self._written.append(write)
        old, same = self._sent[derived.keep :], 0
        for before, message in zip(old, derived.append, strict=False):
            if before.raw != message.raw:
                break
            same += 1
        for dropped in old[same:]:
            self._charge(dropped, number)
        owners = self._owners(derived)[same:]
        fresh = derived.append[same:]
        self._sent[derived.keep + same :] = [
            _SentMessage(message.raw, self.count(message), number, owner)
            for message, owner in zip(fresh, owners, strict=True)
        ]

    def end(self) -> dict[int, float]:
        """Charges what the last request held, and returns the cost of each page by its place."""
        for message in self._sent:
            self._charge(message, len(self._written))
        self._sent.clear()
        return self.cost

    def _charge(self, message: _SentMessage, end: int) -> None:
        """Charges a message to its owners for the requests from its first up to `end`, which no longer holds it."""
        cost = message.tokens * (self._written[message.since] + self._rates[end] - self._rates[message.since + 1])
        for place, share in message.owners:
            self.cost[place] += cost * share
            self.requests[place] += end - message.since

    def _owners(self, derived: Derived) -> list[_Owners]:
        """Returns the owners of each appended message."""
        size = len(derived.append)
        if not derived.decisions or not derived.reason:
            # No fold: every new message belongs to its own page.
            places = [self.places.get(id(message), HEAD) for message in derived.append]
            self._tokens.update(zip(places, map(self.count, derived.append), strict=True))
            return [((place, 1.0),) for place in places]
        # A repair that comes with a fold is about a place that the fold decides as well.
        decisions = list({decision.place: decision for decision in derived.decisions}.values())
        owners = self._after_fold(sorted(decisions, key=lambda decision: decision.place), derived.keep + size)
        return owners[derived.keep : derived.keep + size]

    def _place(self, decision: Decision) -> int:
        return self.logged[decision.place] if decision.place < len(self.logged) else HEAD

    def _after_fold(self, decisions: Sequence[Decision], size: int) -> list[_Owners]:
        """Returns the owners of each message after a fold: what stays, the digest of all that is folded, what is held
        and is no page of the history, and the last exchanges."""
        folded = [one for one in decisions if one.level in (ResidencyLevel.STRUCTURED, ResidencyLevel.POINTER)]
        cut = folded[-1].place if folded else -1
        whole = [one for one in decisions if one.level not in (ResidencyLevel.STRUCTURED, ResidencyLevel.POINTER)]
        stays: list[_Owners] = [((self._place(one), 1.0),) for one in whole if one.place < cut]
        last: list[_Owners] = [((self._place(one), 1.0),) for one in whole if one.place > cut]
        digest: list[_Owners] = [tuple(self._digest_shares(folded))] if folded else []
        held = size - len(stays) - len(digest) - len(last)
        return [*stays, *digest, *[((HEAD, 1.0),)] * held, *last]

    def _digest_shares(self, run: Sequence[Decision]) -> Iterator[tuple[int, float]]:
        quoted = [self._place(one) for one in run if one.level is ResidencyLevel.STRUCTURED]
        quoted = quoted or [self._place(one) for one in run]
        weights = [self._tokens.get(place, 1) for place in quoted]
        total = sum(weights)
        for place, weight in zip(quoted, weights, strict=True):
            yield place, weight / total if total else 1 / len(quoted)
