"""How recorded sessions are replayed, in values that travel between processes, and the replay of one of them.

`ReplayJob` is the only description of work on sessions: replay, compare, export, report and tune all use it, and give
what they need besides as arguments of their own function.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Self

from pagefold.adapters.model_prices import ModelPrices
from pagefold.analysis.replay import SessionReplay, Terms, emitted
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.derive.cost import Prices
from pagefold.derive.learned import SHIPPED, Learned
from pagefold.derive.policies import policy_named
from pagefold.settings.sections import PriceTable, SinkSettings
from pagefold.tokens import FRAME, counter
from pagefold.wire import json_text
from pagefold.wire.transcripts import Format, Session


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """`overhead` are tokens before all messages that a recording lacks: system prompt and tool schemas.

    `prices` count for every session, or with `by_model` for those whose model is not known; `own` are the user's
    numbers. Costs of all sessions are in the unit of `prices`, so that they add up. `fitted` sessions are counted like
    their model and have its window; for others, and without it, `tokens` and `window` count. `storage` is where buckets
    of recordings are.
    """

    prices: Prices
    tokens: str
    window: int
    format: Format | None = None
    max_line_bytes: int = 1 << 26
    overhead: int = 0
    learned: Learned = SHIPPED
    by_model: bool = False
    own: tuple[PriceTable, ...] = ()
    fitted: frozenset[str] = frozenset()  # of "tokens" and "window"
    storage: SinkSettings = field(default=SinkSettings(), repr=False)

    def of(self, session: Session) -> Self:
        """The job for one session: with the prices of its model and the cache life that its usage shows."""
        known = _prices_by_model(self.own)(session.model) if session.model else None
        prices = known.prices if known and self.by_model else self.prices
        long = 2 * sum(used.cache_write_long for used in session.usage.values())
        prices = prices.lived(long=long > sum(used.cache_write for used in session.usage.values()))
        tokens = known.tokens if known and "tokens" in self.fitted else self.tokens
        window = known.window if known and known.window and "window" in self.fitted else self.window
        return replace(
            self,
            prices=replace(prices, unit=self.prices.unit or self.prices.fresh),
            tokens=tokens,
            window=window,
        )

    def with_head_of(self, session: Session) -> Self:
        """The job for one session with all that stood before its messages, unless the user said how much that is."""
        return self if self.overhead else replace(self, overhead=head_of(session, self.tokens))

    def terms(self, policy: str, *, window: int | None = None, learned: Learned | None = None) -> Terms:
        """Returns what a session is replayed under. Raises ConfigError for an unknown policy."""
        window = self.window if window is None else window
        learned = self.learned if learned is None else learned
        made = policy_named(
            policy, window=window, prices=self.prices, tokens=self.tokens, learned=learned, offline=True
        )
        return Terms(made, self.prices, counter(self.tokens), window, self.overhead)


def head_of(session: Session, tokens: str) -> int:
    """Tokens that stood before the messages of a session: what the first usage reports beyond them, else what the
    recording holds of system prompt and tools, else 0."""
    count = counter(tokens).count
    turn = min(session.usage, default=None)
    if turn is None:
        return sum(map(count, session.head))
    messages = sum(count(message.text) + FRAME for message in session.messages[:turn])
    return max(0, session.usage[turn].prompt - messages)


@lru_cache(maxsize=8)
def _prices_by_model(own: tuple[PriceTable, ...]) -> ModelPrices:
    return ModelPrices(own)


@dataclass(frozen=True, slots=True)
class ReplayedSession:
    """`emitted` is every request as JSON lines, as the scorer reads them."""

    figures: ReplayFigures = field(default_factory=ReplayFigures)
    emitted: bytes = b""


def replay_session(session: Session, job: ReplayJob, *, policy: str, emit: bool = False) -> ReplayedSession:
    replay = SessionReplay(session, job.of(session).terms(policy))
    lines = [emitted(session, turn, derived) if emit else "" for turn, derived in replay]
    return ReplayedSession(replay.figures, json_text.bytes_of("".join(lines)))
