"""The policies there are, by name.

Those that fold are told the window, the prices and the counter. Some look ahead and are for recordings alone: whoever
serves live requests never gets one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pagefold.derive.cost import ASSUMED, Prices
from pagefold.derive.learned import SHIPPED, Learned
from pagefold.derive.policies.clear import Clear
from pagefold.derive.policies.compaction import Compaction
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.fifo import Fifo
from pagefold.derive.policies.identity import Identity
from pagefold.derive.policies.incremental import Incremental
from pagefold.derive.policies.legacy import Legacy
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policies.masking import Masking
from pagefold.derive.policies.oracle import REFUSAL, OracleReplay
from pagefold.derive.policies.reset import Reset
from pagefold.derive.policy import Policy
from pagefold.errors import ConfigError

DEFAULT = "economic"


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under which a policy works, in values that travel between processes."""

    window: int = 200_000
    prices: Prices = ASSUMED
    tokens: str = "o200k"
    learned: Learned = SHIPPED


def _folding(kind: Callable[..., Policy], given: Conditions) -> Policy:
    learned = given.learned
    own = {"file_tools": learned.file_tools, "context_servers": learned.context_servers}
    return kind(given.window, given.prices, given.tokens, **own)


_MAKERS: Mapping[str, Callable[[Conditions], Policy]] = {
    "identity": lambda given: Identity(),
    "lossless": lambda given: Lossless(forms=given.learned.forms),
    "economic": lambda given: Economic(
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
    "legacy": lambda given: Legacy(
        given.window, given.prices, given.tokens, context_servers=given.learned.context_servers
    ),
    "reset": lambda given: _folding(Reset, given),
    "incremental": lambda given: _folding(Incremental, given),
    "masking": lambda given: _folding(Masking, given),
    "clear": lambda given: _folding(Clear, given),
    "fifo": lambda given: _folding(Fifo, given),
    "compaction": lambda given: _folding(Compaction, given),
    "oracle_replay": lambda given: OracleReplay(given.window, given.prices, tokens=given.tokens),
    "clairvoyant": lambda given: OracleReplay(given.window, given.prices, tokens=given.tokens, lookahead=None),
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
        raise ConfigError(REFUSAL.format(name=name, names=", ".join(LIVE)))
    if name not in _MAKERS:
        names = NAMES if offline else LIVE
        raise ConfigError(f"policy = {name!r}: expected one of {', '.join(names)}")
    return _MAKERS[name](Conditions(window or 200_000, prices, tokens, learned))
