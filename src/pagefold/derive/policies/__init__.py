"""The policies there are, by name.

Those that fold are told the window, the prices and the counter. Some look ahead and are for recordings alone: whoever
serves live requests never gets one. A policy is imported when it is asked for: a process uses one or two of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pagefold.derive.cost import ASSUMED, Prices
from pagefold.derive.learned import SHIPPED, Learned
from pagefold.derive.policy import Policy
from pagefold.errors import ConfigError

DEFAULT = "economic"
_REFUSAL = (
    "policy = {name!r}: it looks ahead in a recording, so it is for replay alone; a live request has no future to look "
    "into. Expected one of {names}"
)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under which a policy works, in values that travel between processes."""

    window: int = 200_000
    prices: Prices = ASSUMED
    tokens: str = "o200k"
    learned: Learned = SHIPPED


def _class(place: str) -> Any:
    """The class of a policy, by its module in this folder and its name."""
    module, name = place.split(".")
    return getattr(import_module(f"{__name__}.{module}"), name)


def _folding(place: str) -> Callable[[Conditions], Policy]:
    """Makes policies that take what every folding policy takes, and nothing more."""

    def make(given: Conditions) -> Policy:
        learned = given.learned
        own = {"file_tools": learned.file_tools, "context_servers": learned.context_servers}
        made: Policy = _class(place)(given.window, given.prices, given.tokens, **own)
        return made

    return make


_MAKERS: Mapping[str, Callable[[Conditions], Policy]] = {
    "identity": lambda given: _class("identity.Identity")(),
    "lossless": lambda given: _class("lossless.Lossless")(forms=given.learned.forms),
    "economic": lambda given: _class("economic.Economic")(
        given.window,
        given.prices,
        given.tokens,
        priors=given.learned.priors,
        lasting=given.learned.lasting,
        folds=given.learned.folds,
        forms=given.learned.forms,
        file_tools=given.learned.file_tools,
        context_servers=given.learned.context_servers,
    ),
    "legacy": lambda given: _class("legacy.Legacy")(
        given.window, given.prices, given.tokens, context_servers=given.learned.context_servers
    ),
    "reset": _folding("reset.Reset"),
    "incremental": _folding("incremental.Incremental"),
    "masking": _folding("masking.Masking"),
    "clear": _folding("clear.Clear"),
    "fifo": _folding("fifo.Fifo"),
    "compaction": _folding("compaction.Compaction"),
    "oracle_replay": lambda given: _class("oracle.OracleReplay")(given.window, given.prices, tokens=given.tokens),
    "clairvoyant": lambda given: _class("oracle.OracleReplay")(
        given.window, given.prices, tokens=given.tokens, lookahead=None
    ),
}
NAMES = tuple(_MAKERS)
OFFLINE = ("oracle_replay", "clairvoyant")
LIVE = tuple(name for name in NAMES if name not in OFFLINE)


def policy_named(
    name: str,
    *,
    window: int = 200_000,
    prices: Prices = ASSUMED,
    tokens: str = "o200k",
    learned: Learned = SHIPPED,
    offline: bool = False,
) -> Policy:
    """Raises ConfigError with the names there are; `offline` also gives those that look ahead in a recording."""
    if name in OFFLINE and not offline:
        raise ConfigError(_REFUSAL.format(name=name, names=", ".join(LIVE)))
    if name not in _MAKERS:
        names = NAMES if offline else LIVE
        raise ConfigError(f"policy = {name!r}: expected one of {', '.join(names)}")
    return _MAKERS[name](Conditions(window or 200_000, prices, tokens, learned))
