"""What policies are told by settings, as one value: what was learned from recorded sessions (what facts are worth, how
long sessions last, when a fold is due, which codecs are left out for which tool, what is worth a reference), which
tools of the user's own show and change files, and by which names clients know the servers of context tools.

Without settings it is what ships. `pagefold tune` writes such settings; nothing here learns.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from pagefold.derive.remaining import SHIPPED as LASTING
from pagefold.derive.remaining import TurnsLeft
from pagefold.derive.values import SHIPPED as PRIORS
from pagefold.derive.values import Priors
from pagefold.pages.context_tools import SERVERS
from pagefold.pages.files.own_tools import OwnTools, own_tools
from pagefold.pages.ledger import FLOOR

if TYPE_CHECKING:
    from pagefold.settings.sections import Settings


@dataclass(frozen=True, slots=True)
class Forms:
    """Codecs that are left out, by the tool whose results they would have said; and what lines that stand already have
    to be worth, in tokens, to be referred to instead of said again."""

    without: tuple[tuple[str, frozenset[str]], ...] = ()
    floor: int = FLOOR

    def left_out(self, tool: str) -> frozenset[str]:
        return next((codecs for name, codecs in self.without if name == tool), frozenset())


@dataclass(frozen=True, slots=True)
class Folds:
    """When a fold is due. `miss` is what a miss costs, in tokens: the round trip alone is about 5,000; the rest is that
    it may not be made. `least` is the size below which a fold saves too little to be worth a moved prefix, `cold` the
    same where the cache holds nothing anyway; `rent` is how many times its price has to have been spent on reading what
    it would leave out; `horizon` is after how many turns the next fold decides anew."""

    miss: int = 48_000
    least: int = 16_000
    cold: int = 12_000
    rent: float = 1.0
    horizon: int = 35


AS_IT_COMES = Forms()
FOLDS = Folds()


@dataclass(frozen=True, slots=True)
class Learned:
    priors: Priors = PRIORS
    lasting: TurnsLeft = LASTING
    folds: Folds = FOLDS
    forms: Forms = field(default=AS_IT_COMES)
    file_tools: OwnTools = ()
    context_servers: tuple[str, ...] = SERVERS


SHIPPED = Learned()


def learned_of(settings: "Settings") -> Learned:
    """What the settings say, and what ships for the rest."""
    values, folds = settings.values, settings.folds
    weights = {item.name: getattr(values, item.name) for item in fields(Priors)}
    left = tuple(settings.lasting.left)
    return Learned(
        Priors(**weights),
        TurnsLeft(LASTING.so_far, left) if left else LASTING,
        Folds(folds.miss_tokens, folds.least_tokens, folds.cold_tokens, folds.rent, folds.horizon_turns),
        forms_of(
            ((table.name, table.without) for table in settings.learned if table.without),
            settings.references.floor_tokens,
        ),
        own_tools(settings.file_tools),
        context_servers_of(settings),
    )


def context_servers_of(settings: "Settings") -> tuple[str, ...]:
    """The names by which clients know the MCP servers that offer context tools."""
    return tuple(filter(None, (name.strip() for name in settings.mcp.context_servers.split(","))))


def forms_of(pairs: Iterable[tuple[str, Iterable[str]]], floor: int = FLOOR) -> Forms:
    return Forms(tuple(sorted((name, frozenset(codecs)) for name, codecs in pairs)), floor)
