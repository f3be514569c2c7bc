"""Teams, their tokens and limits, and what is counted of them.

Promises: a token is kept as a hash only, and its id reveals nothing of it. A team's name is the principal under which
all that belongs to it is stored, so it never changes.
"""

import hashlib
import hmac
import re
from dataclasses import asdict, dataclass, fields
from typing import TypeAlias

from pagefold.errors import ConfigError

TOKEN_PREFIX = "pf_"  # noqa: S105  how every token begins, and no token
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}", re.ASCII)
_ID_DIGITS = 10
MICRO = 1_000_000


@dataclass(frozen=True, slots=True)
class TeamLimits:
    """What a team may use: dollars (at list prices) and tokens a day and a month, both of UTC, and requests a minute.
    0 is no limit."""

    usd_day: float = 0.0
    usd_month: float = 0.0
    tokens_day: int = 0
    tokens_month: int = 0
    requests_minute: int = 0


@dataclass(frozen=True, slots=True)
class Team:
    name: str
    limits: TeamLimits = TeamLimits()


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token as it is listed: `label` says what it is for, `revoked` when it was, or 0."""

    id: str
    team: str
    label: str
    created: float
    revoked: float = 0.0


@dataclass(frozen=True, slots=True)
class AdministrativeAct:
    """One line of the audit log: who did what to which team or token, and when."""

    at: float
    actor: str
    act: str
    team: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Attribution:
    """To what a use is put down. `day` is 2026-11-18, of UTC."""

    team: str
    day: str
    project: str = ""
    agent: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class TeamUse:
    """Counts that are added up. Money is in millionths of a dollar: sums of whole numbers do not depend on an order."""

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    saved: int = 0
    microusd: int = 0
    microusd_saved: int = 0

    def __add__(self, other: "TeamUse") -> "TeamUse":
        return TeamUse(*(getattr(self, name) + getattr(other, name) for name in USE_FIELDS))

    @property
    def tokens(self) -> int:
        return self.prompt + self.output

    def to_dict(self) -> dict[str, int | float]:
        counts = asdict(self)
        return {**counts, "usd": counts["microusd"] / MICRO, "usd_saved": counts["microusd_saved"] / MICRO}


USE_FIELDS = tuple(item.name for item in fields(TeamUse))
NO_USE = TeamUse()
UseByAttribution: TypeAlias = dict[Attribution, TeamUse]


def checked_name(name: str) -> str:
    """Returns the name of a team. Raises ConfigError."""
    if not _NAME.fullmatch(name):
        words = "expected up to 40 small letters, digits, dots, underscores and hyphens, a letter or digit first"
        raise ConfigError(f"team {name!r}: {words}")
    return name


def dashboard_secret(token: str) -> str:
    """What a browser's cookie holds in place of a token: it opens the team's dashboard and nothing else."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def hash_of_secret(secret: str) -> str:
    """The hash that is stored, of a dashboard secret. Whoever reads it can make neither that nor the token."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def stored_hash(token: str) -> str:
    """The hash of a token at rest. Tokens have 256 random bits: a slow hash would add nothing."""
    return hash_of_secret(dashboard_secret(token))


def token_id(digest: str) -> str:
    """The name of a token for people, from its stored hash."""
    return digest[:_ID_DIGITS]


def same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
