"""What requests cost in tokens, reckoned beforehand, and held against what the provider says they cost.

An estimate is made from the messages by the counter nearest to the model, and drawn towards the truth by the usage of
earlier replies: `Calibration`. Where the provider should have read a prefix from its cache and did not, the cache was
cold. Times come in as values.
"""

from collections.abc import Callable, Sequence

from pagefold import tokens
from pagefold.derive.cost import Prices
from pagefold.frozen import frozen
from pagefold.model_proxy.reading import Reading
from pagefold.model_proxy.totals import Prefix, Reckoned
from pagefold.wire.message import BlockKind, Message, Role, Usage

_REMEMBERED = 20_000
_NAMES = {role: role.value for role in Role}
_LEAST_CACHED = 1024
"""Providers cache no prefix shorter than about this."""
_WEIGHT = 0.2
_SAMPLES, _SAMPLE = 20, 5_000
_MODELS = 200


def parts_of(messages: Sequence[Message], count: tokens.Counter) -> dict[str, int]:
    """Tokens by what they are spent on: results, and the other words of each role. Media are left out."""
    parts: dict[str, int] = {}
    for message in messages:
        role = _NAMES[message.role]
        parts[role] = parts.get(role, 0) + tokens.FRAME
        for block in message.blocks:
            part = "results" if block.kind is BlockKind.RESULT else role
            counted = _tokens(block.text, count) + (count.count(block.name) if block.name else 0)
            parts[part] = parts.get(part, 0) + counted
    return parts


def _tokens(text: str, counter: tokens.Counter) -> int:
    """A very long text is judged by samples: nobody should wait until all of it is counted."""
    if len(text) <= _SAMPLES * _SAMPLE:
        return counter.count(text)
    places = range(0, len(text), -(-len(text) // _SAMPLES))
    sampled = [text[at : at + _SAMPLE] for at in places]
    return round(sum(map(counter.count, sampled)) * len(text) / sum(map(len, sampled)))


def _sum(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    summed = dict(one)
    for part, count in other.items():
        summed[part] = summed.get(part, 0) + count
    return summed


class Counts:
    """Estimates of whole histories. What was counted is remembered by link: a new turn costs its new messages."""

    def __init__(self, most: int = _REMEMBERED) -> None:
        self._most = most
        self._known: dict[tuple[str, bytes], dict[str, int]] = {}

    def of(self, reading: Reading, upto: int | None = None) -> dict[str, int]:
        """Tokens of the head and of the first `upto` messages, by what they are spent on."""
        request = reading.request
        counter = tokens.counter_for(request.model)
        length = len(reading.links) if upto is None else upto
        at, known, links = length, dict[str, int](), reading.links
        while at and not (known := self._known.get((counter.name, links[at - 1]), known)):
            at -= 1
        if at < length:
            known = _sum(known, parts_of(request.messages[at:length], counter))
            self._put((counter.name, links[length - 1]), known)
        return _sum(known, self._head(reading, counter))

    def head(self, reading: Reading) -> int:
        """Tokens of what stands before the messages."""
        return sum(self._head(reading, tokens.counter_for(reading.request.model)).values())

    def _head(self, reading: Reading, counter: tokens.Counter) -> dict[str, int]:
        found = self._known.get((counter.name, reading.head))
        if found is None:
            found = parts_of(reading.request.head, counter)
            if reading.request.tools:
                found["tools"] = sum(map(counter.count, reading.request.tools))
            self._put((counter.name, reading.head), found)
        return found

    def _put(self, key: tuple[str, bytes], counted: dict[str, int]) -> None:
        self._known[key] = counted
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]


@frozen
class _Last:
    """The request that a history was last sent as: its tokens as estimated, and when."""

    estimated: int
    at: float


class Calibration:
    """How far estimates are from the truth, by model: what to multiply them with."""

    def __init__(self) -> None:
        self.factors: dict[str, float] = {}

    def factor(self, model: str) -> float:
        return self.factors.get(model, 1.0)

    def learn(self, model: str, estimated: int, real: int) -> None:
        if estimated < _LEAST_CACHED or real < _LEAST_CACHED:
            return
        ratio = real / estimated
        known = self.factors.get(model, ratio)
        if model in self.factors or len(self.factors) < _MODELS:
            self.factors[model] = known + _WEIGHT * (ratio - known)


class Reckoner:
    """Predicts what a request costs, and compares."""

    def __init__(self, prices: Callable[[str, str], Prices]) -> None:
        """`prices` are those of an API and a model."""
        self.counts, self.calibration = Counts(), Calibration()
        self._prices = prices
        self._last: dict[bytes, _Last] = {}

    def is_cold(self, reading: Reading, now: float) -> bool:
        """Whether the provider's cache has expired since this history was last sent. Not where nothing is known."""
        seconds = self._table(reading).ttl_seconds
        for link in reversed(reading.links):
            if last := self._last.get(link):
                return bool(seconds) and now - last.at > seconds
        return False

    def _table(self, reading: Reading) -> Prices:
        return self._prices(reading.api.name, reading.request.model)

    def reckon(
        self, reading: Reading, prefix: Prefix, usage: Usage | None, *, saved: int, moved: bool, now: float
    ) -> tuple[dict[str, int], Reckoned]:
        """The estimate by parts of what went upstream, and its cost predicted and real. `moved` is a fold point."""
        parts = self.counts.of(reading)
        if saved:
            parts["results"] = parts.get("results", 0) - saved
        estimated = sum(parts.values())
        model, links = reading.request.model, reading.links
        prices = self._table(reading)
        before = self._last.get(links[prefix.kept - 1]) if prefix.kept and not moved else None
        warm = before is not None and (not prices.ttl_seconds or now - before.at <= prices.ttl_seconds)
        cached = before.estimated if before and warm and not prefix.heads_moved else 0
        factor = self.calibration.factor(model)
        reckoned = Reckoned()
        if usage is not None:
            predicted = prices.cost(cached, estimated - cached) * factor
            real = prices.cost(usage.cache_read, usage.cache_write) + usage.fresh
            expected = 0 if usage.cleared else cached * factor  # what a provider clears, it does not find in its cache
            cold = expected >= _LEAST_CACHED and usage.cache_read < expected / 10
            reckoned = Reckoned(predicted, real, int(cold))
            self.calibration.learn(model, estimated, usage.prompt + usage.cleared)
        if links:
            self._last.pop(links[-1], None)
            self._last[links[-1]] = _Last(estimated, now)
            while len(self._last) > _REMEMBERED:
                del self._last[next(iter(self._last))]
        return parts, reckoned
