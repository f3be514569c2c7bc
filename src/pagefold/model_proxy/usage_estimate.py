"""Estimates what a request costs in tokens, and compares that with the usage that the provider reports.

Messages are counted by the counter nearest to the model; `Calibration` draws the estimate towards the reported usage of
earlier replies. Where the provider should have read a prefix from its prompt cache and did not, the cache was cold.
`SeenHistories` tells how a request relates to earlier ones. Times come in as values.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from pagefold import tokens
from pagefold.derive.cost import Prices
from pagefold.log import Log
from pagefold.model_proxy.derivation import Derivation, Sent
from pagefold.model_proxy.request_cache import ParsedRequest
from pagefold.model_proxy.totals import NOT_RECKONED, CachedPrompt, CostCheck, Prefix
from pagefold.wire import apis
from pagefold.wire.message import BlockKind, Message, Role, Usage

_HEADS = 1_000
_HASHES = 50_000
_NAMES = {role: role.value for role in Role}
_LEAST_CACHED = 1024
"""Providers cache no prefix shorter than about this."""
_WEIGHT = 0.2
_SAMPLES, _SAMPLE = 20, 5_000
_MODELS = 200


def parts_of(
    messages: Iterable[Message], counter: tokens.Counter, before: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Tokens by what they are spent on, results and the other words of each role, and those of what stands `before`.
    Media are left out."""
    parts = dict(before or ())
    for message in messages:
        role = _NAMES[message.role]
        parts[role] = parts.get(role, 0) + tokens.FRAME
        for block in message.blocks:
            part, text = "results" if block.kind is BlockKind.RESULT else role, block.text
            counted = counter.count(text) if len(text) <= _SAMPLES * _SAMPLE else _sampled(text, counter)
            if block.name:
                counted += _name_tokens(block.name, counter)
            parts[part] = parts.get(part, 0) + counted
    return parts


@lru_cache(maxsize=4096)
def _name_tokens(name: str, counter: tokens.Counter) -> int:
    """Tokens of a tool's name: a session has few, and every call says one."""
    return counter.count(name)


def _sampled(text: str, counter: tokens.Counter) -> int:
    """A very long text is judged by samples: nobody should wait until all of it is counted."""
    places = range(0, len(text), -(-len(text) // _SAMPLES))
    sampled = [text[at : at + _SAMPLE] for at in places]
    return round(sum(map(counter.count, sampled)) * len(text) / sum(map(len, sampled)))


class Last(NamedTuple):
    """What the newest request of a history came to: tokens of its messages by what they are spent on, as some counter
    has them, all tokens that went upstream, and when; what the provider has cached of it; and what it would have come
    to without pagefold, in the provider's tokens. `begun` is what the first request of it that was told came to, as
    estimated and as reported; `saved`, of how many messages how many tokens were left out, by the counter."""

    parts: Mapping[str, int]
    counter: str
    estimated: int
    at: float
    cached: CachedPrompt
    whole: float = 0.0
    begun: tuple[int, int] = (0, 0)
    saved: tuple[int, int] = (0, 0)

    def is_warm(self, now: float) -> bool:
        return not self.cached.life or now - self.at <= self.cached.life


@dataclass(slots=True)
class Tip:
    """The newest request that went through some hashes: how long it was, its head, and what it came to."""

    length: int
    head: bytes
    last: Last | None = None


class SeenHistories:
    """Tells how a request relates to earlier ones. Keeps only hashes and counts, and forgets the least recently used.

    A fork (an edited turn, a side question) looks like a prefix that moved, until its parent goes on.
    """

    def __init__(self, most: int = _HASHES) -> None:
        self._most = most
        self._newest: dict[bytes, Tip] = {}

    def nearest(self, hashes: Log[bytes]) -> tuple[Tip | None, int]:
        """The newest request that has the most messages in common with this one, and how many they are."""
        newest, kept = self._newest, hashes.length
        for prefix_hash in reversed(hashes):
            if (tip := newest.get(prefix_hash)) is not None:
                return tip, kept
            kept -= 1
        return None, 0

    def place(self, hashes: Log[bytes], head: bytes) -> tuple[Prefix, Tip]:
        """How this request stands to what was seen before it; it is remembered from here on, as the tip. That still
        says what the request before it came to."""
        tip, kept = self.nearest(hashes)
        if tip is None:
            prefix, tip = Prefix(histories=1), Tip(0, head)
        else:
            prefix = Prefix(0, kept, tip.length - kept, int(head != tip.head))
            if tip.length != kept:  # it is no mere continuation: from now on all its hashes lead here
                tip, kept = Tip(0, head, tip.last), 0
        tip.length, tip.head = hashes.length, head
        newest = self._newest
        for prefix_hash in hashes.since(kept):
            newest.pop(prefix_hash, None)
            newest[prefix_hash] = tip
        if len(newest) > self._most:
            # Many at once: to find its first key, a dict looks past all that were deleted before it.
            for prefix_hash in list(islice(newest, len(newest) - self._most + self._most // 16)):
                del newest[prefix_hash]
        return prefix, tip


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
        before = self.factors.get(model, ratio)
        if model in self.factors or len(self.factors) < _MODELS:
            self.factors[model] = before + _WEIGHT * (ratio - before)


class Reckoned(NamedTuple):
    """What a request came to: its tokens by what they are spent on, as estimated, how it stands to what went before,
    its cost predicted and real, and what the provider has cached of it now."""

    estimated: Mapping[str, int]
    prefix: Prefix
    check: CostCheck
    cached: CachedPrompt


class CostEstimator:
    """Predicts what a request costs, and compares. What was counted is remembered with its history: a new turn costs
    its new messages."""

    def __init__(self, prices: Callable[[ParsedRequest], Prices]) -> None:
        """`prices` are those of a request's model, for the cache life that it asks for."""
        self.calibration = Calibration()
        # Of messages alone: an estimate of tool schemas is further from the truth than one of text.
        self.growth = Calibration()
        self._histories = SeenHistories()
        self._prices = prices
        self._heads: dict[tuple[str, bytes], dict[str, int]] = {}

    def kept_alive(self, hashes: Log[bytes], now: float) -> None:
        """The cache of what was sent last of a history was used just now."""
        tip, _ = self._histories.nearest(hashes)
        if tip is not None and tip.last is not None:
            tip.last = tip.last._replace(at=now)

    def head(self, reading: ParsedRequest) -> Mapping[str, int]:
        """Tokens of what stands before the messages, by what they are spent on."""
        counter = tokens.counter_for(reading.request.model)
        parts = self._heads.get((counter.name, reading.head))
        if parts is None:
            parts = parts_of(reading.request.head, counter)
            if reading.request.tools:
                parts["tools"] = sum(map(counter.count, reading.request.tools))
            self._heads[counter.name, reading.head] = parts
            if len(self._heads) > _HEADS:
                del self._heads[next(iter(self._heads))]
        return parts

    def reckon(
        self, reading: ParsedRequest, usage: Usage | None, *, derived: Derivation | None, now: float
    ) -> "Reckoned":
        """What a request came to that went upstream, as it was derived or, without that, as it came."""
        prefix, tip = self._histories.place(reading.prefix_hashes, reading.head)
        last, messages, model = tip.last, reading.request.messages, reading.request.model
        counter = tokens.counter_for(model)
        moved = derived is not None and bool(derived.moved)
        head = self.head(reading)
        extends = last is not None and not prefix.moved
        if last is not None and extends and last.counter == counter.name:
            begun = last.parts
        else:
            begun = parts_of(messages[: prefix.kept], counter)
        parts = parts_of(messages.since(prefix.kept), counter, begun)
        edited = (0, 0)
        if derived is not None and not derived.moves:
            known = (
                last.saved if last is not None and extends and not moved and last.counter == counter.name else (0, 0)
            )
            edited = derived.sent.length, known[1] + _left_out(derived.sent.since(known[0]), counter)
        saved = _saved(derived, sum(parts.values())) if derived is not None and derived.moves else edited[1]
        by_part = dict(head)
        for part, count in parts.items():
            by_part[part] = by_part.get(part, 0) + count
        if saved:
            by_part["results"] = by_part.get("results", 0) - saved
        estimated = sent = sum(by_part.values())
        check, prices, whole, first = NOT_RECKONED, self._prices(reading), 0.0, (0, 0)
        if usage is not None:
            sent = usage.prompt
            cached, factor = 0, self.calibration.factor(model)
            if last is not None and not moved and not prefix.heads_moved and last.is_warm(now):
                cached = last.estimated if extends else min(estimated, sum(begun.values()) + sum(head.values()))
            prices = _as_written(prices, usage)
            first = last.begun if last is not None and extends and last.begun[1] else (estimated, sent + usage.cleared)
            self.growth.learn(model, estimated - first[0], sent + usage.cleared - first[1])
            whole = sent + max(0, saved) * self.growth.factor(model)
            warm = last.whole if last is not None and extends and last.is_warm(now) else 0.0
            check = _checked(prices, usage, cached * factor, (estimated - cached) * factor, whole, warm)
            self.calibration.learn(model, estimated, sent + usage.cleared)
        tip.last = Last(parts, counter.name, estimated, now, _cached(prices, sent), whole, first, edited)
        return Reckoned(by_part, prefix, check, tip.last.cached)


def _left_out(sent: Iterable[Sent], counter: tokens.Counter) -> int:
    """How many tokens these messages have less than they came with. Forms are not like what they stand for (data, code
    or prose), so none of them can be told from the tokens of another counter."""
    saved = 0
    for each in sent:
        blocks = apis.without_reasoning(each.source).blocks if each.bare and each.edits else each.source.blocks
        saved += sum(counter.count(blocks[index].text) - counter.count(text) for index, text in each.edits)
    return saved


def _saved(derived: Derivation, came: int) -> int:
    """How many tokens a folded request has less than the client's, which came to so many by the model's counter."""
    return round(derived.saved_tokens * came / derived.came_tokens) if derived.came_tokens > 0 else 0


def _cached(prices: Prices, tokens: int) -> CachedPrompt:
    return CachedPrompt(prices.life, prices.usd(prices.cost(tokens, 0)), prices.usd(prices.cost(0, tokens)))


def _as_written(prices: Prices, usage: Usage) -> Prices:
    """The prices for the life that the provider says it wrote for, whatever was asked for. Reading says nothing."""
    return prices.lived(long=2 * usage.cache_write_long > usage.cache_write) if usage.cache_write else prices


def _checked(prices: Prices, usage: Usage, cached: float, written: float, whole: float, warm: float) -> CostCheck:
    """What was predicted against what the provider reports. Without pagefold the prompt would have had `whole` tokens,
    of which the cache would have held `warm`: what that costs more was saved. A fold that writes much saves less."""
    expected = 0 if usage.cleared else cached  # what a provider clears, it finds in no cache
    usd, output_usd = prices.billed(usage)
    cold = expected >= _LEAST_CACHED and usage.cache_read < expected / 10
    saved = 0.0
    if whole > usage.prompt or warm > usage.cache_read:
        read = usage.cache_read if cold or not warm else max(usage.cache_read, min(round(warm), round(whole)))
        rest, other = max(0, round(whole) - read), usage.fresh + usage.cache_write
        fresh = round(rest * usage.fresh / other) if other else 0
        long = round((rest - fresh) * usage.cache_write_long / usage.cache_write) if usage.cache_write else 0
        saved = prices.billed(Usage(fresh, read, rest - fresh, 0, 0, long))[0] - usd
    return CostCheck(
        prices.cost(round(cached), round(written)),
        usd * 1_000_000 / prices.fresh if prices.fresh else 0.0,
        int(cold),
        usd + output_usd,
        saved,
    )
