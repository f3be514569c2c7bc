"""The settings that `pagefold tune` learns from recorded sessions. Defaults are as shipped."""

from dataclasses import dataclass, field

from pagefold.settings.rules import NAMES, TURNS, WEIGHT, about, number, whole
from pagefold.settings.tools import FOLLOW_UPS


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedTable:
    """What tune learned of a tool from your own logs. It is laid over what is known of the tool, and says nothing of
    its effect."""

    name: str
    without: tuple | None = field(  # type: ignore[type-arg]
        default=None, metadata=about("Codecs that never write its results.", NAMES)
    )
    follow_up: tuple | None = field(  # type: ignore[type-arg]
        default=None, metadata=about("Which calls follow, in place of those known so far.", FOLLOW_UPS)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesSettings:
    """What makes a fact needed again, as weights on the log-odds; learned by tune."""

    age: float = field(default=-0.474, metadata=about("Of the log of turns since anybody last mentioned it.", WEIGHT))
    uses: float = field(
        default=0.980, metadata=about("Of the log of the assistant's own messages that used it.", WEIGHT)
    )
    since_use: float = field(default=-0.335, metadata=about("Of the log of turns since the assistant used it.", WEIGHT))
    sources: float = field(default=-0.369, metadata=about("Of the log of the other messages that hold it.", WEIGHT))
    user: float = field(default=0.540, metadata=about("Where the user has said it.", WEIGHT))
    digit: float = field(default=-1.137, metadata=about("Where it has a digit.", WEIGHT))
    capital: float = field(default=-0.328, metadata=about("Where it has an inner capital.", WEIGHT))
    long: float = field(default=-0.284, metadata=about("Where it is long.", WEIGHT))
    bias: float = field(default=0.052, metadata=about("Of every fact.", WEIGHT))


@dataclass(frozen=True, slots=True, kw_only=True)
class LastingSettings:
    """How long sessions still last; learned by tune."""

    left: tuple = field(  # type: ignore[type-arg]
        default=(),
        metadata=about("Turns left, in the median, after 0, 10, 20, 40, 80 and 160 turns; empty is as shipped.", TURNS),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencesSettings:
    """When lines that stand earlier in the request are referred to; learned by tune."""

    floor_tokens: int = field(
        default=9,
        metadata=about("What such lines have to be worth, besides naming their place, not to be said again.", whole(1)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldsSettings:
    """When the economic policy folds; learned by tune."""

    miss_tokens: int = field(default=48_000, metadata=about("What a fact that is missed costs, in tokens.", whole(1)))
    least_tokens: int = field(default=16_000, metadata=about("Below this size a request is not folded.", whole(0)))
    cold_tokens: int = field(
        default=6_000, metadata=about("The same, where the provider's cache has expired anyway.", whole(0))
    )
    rent: float = field(
        default=2.0,
        metadata=about("How many times the price of a fold is read in vain before it is made.", number(0)),
    )
    horizon_turns: int = field(
        default=35, metadata=about("For at most how many turns a fold weighs what is kept.", whole(1))
    )
