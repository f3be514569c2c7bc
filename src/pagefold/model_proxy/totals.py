"""What was seen in one exchange, and the counts over many.

No value here holds a header, a text of a message or anything else that a client or model wrote, except the model's
name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from functools import reduce
from operator import add, attrgetter
from typing import Any, TypeVar

from pagefold.frozen import frozen
from pagefold.model_proxy.charge import Charge
from pagefold.wire import json_text
from pagefold.wire.message import Usage
from pagefold.wire.quota import NO_LIMITS, Limits

_NO_USAGE = Usage()


class Ending(StrEnum):
    WHOLE = "whole"
    CUT_OFF = "cut off"  # the upstream broke off in the middle of its answer
    ABANDONED = "abandoned"  # the client left first
    UNREACHABLE = "unreachable"  # there was no answer at all


@frozen
class Prefix:
    """How requests stand to the ones before them, in messages: `kept` are equal from the start on, `moved` had been
    sent and are not in their place any more. A request that begins like no other begins a history."""

    histories: int = 0
    kept: int = 0
    moved: int = 0
    heads_moved: int = 0


NO_PREFIX = Prefix()


@frozen
class Work:
    """What was done to a request: it was sent on `changed`, is a fold point (`folds`), holds `saved` tokens fewer than
    the client sent, was made smaller because the provider said it was too long (`shrunk`), or had context tools
    answered inside the turn (`recalls`). `reasoning_dropped` messages lost their reasoning, which the provider would
    have refused; `refused` requests were sent again because it did."""

    changed: int = 0
    folds: int = 0
    saved: int = 0
    shrunk: int = 0
    recalls: int = 0
    reasoning_dropped: int = 0
    refused: int = 0


NO_WORK = Work()


@frozen
class CostCheck:
    """Cost in fresh input tokens, as predicted from what had been sent before, and as the provider's usage says.

    `cold` counts requests whose prefix should have been read from the provider's cache and was not. `usd` is what the
    provider's usage costs at list prices, the answer included; `usd_saved` is how much more it would have cost without
    pagefold. `windows` and `weeks` are the shares of a subscription's five-hour window and of its week that
    were used since the answer before, where the provider says.
    """

    predicted: float = 0.0
    real: float = 0.0
    cold: int = 0
    usd: float = 0.0
    usd_saved: float = 0.0
    windows: float = 0.0
    weeks: float = 0.0


NOT_RECKONED = CostCheck()


@frozen
class CachedPrompt:
    """What the provider has cached after an exchange: for how many seconds, 0 for ever, and what the next request costs
    for it, in USD, before and after that has passed."""

    life: float = 0.0
    warm_usd: float = 0.0
    cold_usd: float = 0.0


NOTHING_CACHED = CachedPrompt()
_Counts = TypeVar("_Counts", Usage, Prefix, Work, CostCheck)
_FIELDS = {kind: attrgetter(*(item.name for item in fields(kind))) for kind in (Usage, Prefix, Work, CostCheck)}


@frozen
class Seen:
    """One exchange. What was estimated and how the prefix stands is there for requests that the provider took. `charge`
    is there where it took one and its usage does not say it all."""

    api: str
    ending: Ending
    status: int = 0
    model: str = ""
    stream: bool = False
    messages: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    estimated: Mapping[str, int] = field(default_factory=dict)
    prefix: Prefix = NO_PREFIX
    work: Work = NO_WORK
    reckoned: CostCheck = NOT_RECKONED
    usage: Usage | None = None
    stop: str = ""
    error: str = ""
    unread: str = ""
    limits: Limits = NO_LIMITS
    cached: CachedPrompt = NOTHING_CACHED
    charge: Charge | None = None

    @property
    def failed(self) -> bool:
        return self.ending is not Ending.ABANDONED and bool(self.error)


_PLAIN = attrgetter("stream", "bytes_up", "bytes_down")


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts over exchanges; adding two is counting both. `messages`, `estimated` and `prefix` count the requests that
    the provider took, so that they can be held against the usage it reported. `keep_alives` are requests of pagefold's
    own that kept a cache alive: `requests` leaves them out, `usage` and `reckoned` hold what they cost. What was
    `handed_on` to another version of pagefold is counted there."""

    requests: int = 0
    streamed: int = 0
    failed: int = 0
    abandoned: int = 0
    faults: int = 0
    keep_alives: int = 0
    keep_alives_refused: int = 0
    handed_on: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    messages: int = 0
    usage: Usage = _NO_USAGE
    estimated: Mapping[str, int] = field(default_factory=dict)
    prefix: Prefix = NO_PREFIX
    work: Work = NO_WORK
    reckoned: CostCheck = NOT_RECKONED
    errors: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, int] = field(default_factory=dict)
    by_model: Mapping[str, "Totals"] = field(default_factory=dict)

    @classmethod
    def of(cls, *seen: Seen) -> "Totals":
        """The counts of these exchanges, and of each model among them."""
        by_model: dict[str, list[Seen]] = {}
        for exchange in seen:
            # Only what a provider answered to: any name can be asked for, and each would be kept for ever.
            by_model.setdefault(exchange.model if exchange.usage else "", []).append(exchange)
        counted = {model: _counted(some) for model, some in by_model.items()}
        whole = reduce(add, counted.values()) if counted else cls()
        return replace(whole, by_model={name: part for name, part in counted.items() if name})

    def __add__(self, other: "Totals") -> "Totals":
        summed: Totals = _added(self, other)
        return summed

    def to_json(self) -> str:
        return json_text.dumps(asdict(self))


def _counted(seen: Sequence[Seen]) -> Totals:
    estimated: dict[str, int] = {}
    errors, unread, usages, works = list[str](), list[str](), list[Usage](), list[Work]()
    abandoned = messages = 0
    for exchange in seen:
        for part, count in exchange.estimated.items():
            estimated[part] = estimated.get(part, 0) + count
        if exchange.estimated:
            messages += exchange.messages
        if exchange.usage:
            usages.append(exchange.usage)
        if exchange.work is not NO_WORK:
            works.append(exchange.work)
        if exchange.error and exchange.failed:
            errors.append(exchange.error)
        if exchange.unread:
            unread.append(exchange.unread)
        abandoned += exchange.ending is Ending.ABANDONED
    streamed, bytes_up, bytes_down = map(sum, zip(*map(_PLAIN, seen), strict=True))
    return Totals(
        requests=len(seen),
        streamed=streamed,
        failed=len(errors),
        abandoned=abandoned,
        bytes_up=bytes_up,
        bytes_down=bytes_down,
        messages=messages,
        usage=_summed(_NO_USAGE, usages),
        estimated=estimated,
        prefix=_summed(NO_PREFIX, [exchange.prefix for exchange in seen]),
        work=_summed(NO_WORK, works),
        reckoned=_summed(NOT_RECKONED, [exchange.reckoned for exchange in seen]),
        # As plain dicts: `asdict` makes other keys of a Counter's.
        errors=dict(Counter(errors)),
        unread=dict(Counter(unread)),
    )


def _summed(nothing: _Counts, values: list[_Counts]) -> _Counts:
    """The sum of many, field by field: none is made for any sum on the way."""
    rows = list(map(_FIELDS[type(nothing)], values))
    return type(nothing)(*map(sum, zip(*rows, strict=True))) if rows else nothing


def _added(count: Any, other: Any) -> Any:
    """The sum of two counts, of two mappings of counts, or of two values whose fields are counts."""
    if isinstance(count, int | float):
        return count + other
    if isinstance(count, dict):
        return {**count, **{key: _added(count[key], more) if key in count else more for key, more in other.items()}}
    return type(count)(
        **{item.name: _added(getattr(count, item.name), getattr(other, item.name)) for item in fields(count)}
    )
