"""The settings that `pagefold tune` learns from recorded sessions. Defaults are as shipped."""

from dataclasses import dataclass

from pagefold.settings.rules import NAMES, TURNS, WEIGHT, number, setting, whole
from pagefold.settings.tools import FOLLOW_UPS, FollowUpLink


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedTable:
    """What tune learned about a tool from your own logs. It replaces only these two entries of what is known about the
    tool."""

    name: str
    without: tuple[str, ...] | None = setting(None, "Codecs that are not used for its results.", NAMES)
    follow_up: tuple[FollowUpLink, ...] | None = setting(
        None, "Which calls usually follow, in place of the learned and shipped ones.", FOLLOW_UPS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesSettings:
    """Weights on the log-odds that a fact will be needed again; learned by tune."""

    age: float = setting(-0.474, "Weight of the log of turns since anybody last mentioned it.", WEIGHT)
    uses: float = setting(0.980, "Weight of the log of the assistant's own messages that used it.", WEIGHT)
    since_use: float = setting(-0.335, "Weight of the log of turns since the assistant used it.", WEIGHT)
    sources: float = setting(-0.369, "Weight of the log of the other messages that hold it.", WEIGHT)
    user: float = setting(0.540, "Added where the user has said it.", WEIGHT)
    digit: float = setting(-1.137, "Added where it has a digit.", WEIGHT)
    capital: float = setting(-0.328, "Added where it has an inner capital.", WEIGHT)
    long: float = setting(-0.284, "Added where it is long.", WEIGHT)
    bias: float = setting(0.052, "Added for every fact.", WEIGHT)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastingSettings:
    """How many more turns a session is expected to last; learned by tune."""

    left: tuple[int, ...] = setting(
        (), "The median of turns left after 0, 10, 20, 40, 80 and 160 turns; empty takes the shipped ones.", TURNS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencesSettings:
    """When a reference takes the place of lines that the request already holds; learned by tune."""

    floor_tokens: int = setting(32, "How many tokens the lines must have; half as many again for one or two.", whole(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldsSettings:
    """When the economic policy folds; learned by tune."""

    miss_tokens: int = setting(48_000, "What missing a fact costs, in tokens.", whole(1))
    least_tokens: int = setting(16_000, "A request of fewer tokens is not folded.", whole(0))
    cold_tokens: int = setting(12_000, "The same, where the provider's cache has expired.", whole(0))
    rent: float = setting(
        1.0, "A fold is due once reading what it would leave out has cost this many times the fold itself.", number(0)
    )
    horizon_turns: int = setting(35, "How many turns ahead a fold looks at most when it weighs what to keep.", whole(1))
