"""The settings that `pagefold tune` learns from recorded sessions. Defaults are as shipped."""

from dataclasses import dataclass

from pagefold.settings.rules import NAMES, TURNS, WEIGHT, number, setting, whole
from pagefold.settings.tools import FOLLOW_UPS, FollowUpLink


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedTable:
    """What tune learned of a tool from your own logs. It is laid over what is known of the tool, and says nothing of
    its effect."""

    name: str
    without: tuple[str, ...] | None = setting(None, "Codecs that never write its results.", NAMES)
    follow_up: tuple[FollowUpLink, ...] | None = setting(
        None, "Which calls follow, in place of those known so far.", FOLLOW_UPS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesSettings:
    """What makes a fact needed again, as weights on the log-odds; learned by tune."""

    age: float = setting(-0.474, "Of the log of turns since anybody last mentioned it.", WEIGHT)
    uses: float = setting(0.980, "Of the log of the assistant's own messages that used it.", WEIGHT)
    since_use: float = setting(-0.335, "Of the log of turns since the assistant used it.", WEIGHT)
    sources: float = setting(-0.369, "Of the log of the other messages that hold it.", WEIGHT)
    user: float = setting(0.540, "Where the user has said it.", WEIGHT)
    digit: float = setting(-1.137, "Where it has a digit.", WEIGHT)
    capital: float = setting(-0.328, "Where it has an inner capital.", WEIGHT)
    long: float = setting(-0.284, "Where it is long.", WEIGHT)
    bias: float = setting(0.052, "Of every fact.", WEIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastingSettings:
    """How long sessions still last; learned by tune."""

    left: tuple[int, ...] = setting(
        (), "Turns left, in the median, after 0, 10, 20, 40, 80 and 160 turns; empty is as shipped.", TURNS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencesSettings:
    """When lines that stand earlier in the request are referred to; learned by tune."""

    floor_tokens: int = setting(
        9, "What such lines have to be worth, besides naming their place, not to be said again.", whole(1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldsSettings:
    """When the economic policy folds; learned by tune."""

    miss_tokens: int = setting(48_000, "What a fact that is missed costs, in tokens.", whole(1))
    least_tokens: int = setting(16_000, "Below this size a request is not folded.", whole(0))
    cold_tokens: int = setting(6_000, "The same, where the provider's cache has expired anyway.", whole(0))
    rent: float = setting(2.0, "How many times the price of a fold is read in vain before it is made.", number(0))
    horizon_turns: int = setting(35, "For at most how many turns a fold weighs what is kept.", whole(1))
