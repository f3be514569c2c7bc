"""The arms of a comparison in one process: a policy of pagefold, or nothing, in front of the provider on loopback.

Times are passed in, so an hour of idling costs no time. The provider refuses what the real ones refuse, and bills.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive.policies import LIVE, policy_named
from pagefold.derive.policies.compaction import SUMMARY
from pagefold.derive.policy import Policy, configured
from pagefold.errors import ConfigError
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import Ending
from pagefold.pages.memory_store import MemoryStore
from pagefold.provider.billing import Charge
from pagefold.provider.referee import Referee
from pagefold.provider.reply import Answers, ProviderReply
from pagefold.solve.loop import RefusedError
from pagefold.wire.message import Usage

AS_IT_IS = "as it is"
PATH = "/v1/messages"
_COMPACTED_AT = 0.71  # of the window: 142,000 of 200,000 tokens
_HEADERS = {"anthropic-version": "2023-06-01"}


@dataclass(frozen=True, slots=True)
class Arm:
    """A policy by its name, and the window it keeps; without a policy requests go as they are."""

    policy: str = AS_IT_IS
    window: int = 0

    @property
    def name(self) -> str:
        return self.policy if not self.window else f"{self.policy} {self.window // 1000}k"

    def within(self, size: int) -> "Arm":
        """The arm at a size: one without a window of its own keeps the size's."""
        return self if self.window or self.policy == AS_IT_IS else Arm(self.policy, size)


def arm_named(text: str) -> Arm:
    """The arm of a name such as `as it is`, `lossless` or `economic 64k`. Raises ConfigError."""
    name, _, window = text.strip().rpartition(" ")
    if name and (thousands := re.fullmatch(r"(\d+)k", window)):
        arm = Arm(name, 1000 * int(thousands[1]))
    else:
        arm = Arm(text.strip())
    if arm.policy not in (AS_IT_IS, *LIVE) or (arm.policy == AS_IT_IS and arm.window):
        expected = f"{AS_IT_IS}, or one of {', '.join(LIVE)}, with a window such as 64k behind it or without"
        raise ConfigError(f"--arms {text.strip()!r}: expected {expected}")
    return arm


def policy_of(arm: Arm) -> Policy:
    """The policy of an arm. A harness that compacts does it at the same share of any window."""
    policy = policy_named(arm.policy)
    if arm.policy == "compaction":
        return configured(policy, at=int(_COMPACTED_AT * arm.window), summary=min(SUMMARY, arm.window // 10))
    return policy


class InProcess:
    """pagefold and the provider, as a `Send`. The bill is at the prices of the model `prices_of`, if one is named."""

    def __init__(self, arm: Arm, answers: Answers, *, prices_of: str = "") -> None:
        self.models, self._prices_of = ModelPrices(), prices_of
        self.referee = Referee(price=self._price, answers=answers)
        self.folds = 0
        self.largest = 0
        policy = None if arm.policy == AS_IT_IS else policy_of(arm)
        self._store = MemoryStore()
        self._conversations = Conversations(policy, store=self._store, window=arm.window, known=self.models)

    def _price(self, model: str, charge: Charge) -> float:
        used = Usage(charge.fresh, charge.read, sum(charge.written.values()), charge.output)
        return self.models.prices(self._prices_of or model).bill(used)

    def __call__(self, body: bytes, now: float) -> Mapping[str, Any]:
        exchange = Exchange("POST", PATH, body, self._conversations)
        derived = exchange.derive(now) if exchange.derives and exchange.read(now) else None
        self._save(exchange, now)
        reply = self.referee.answer(PATH, _HEADERS, body if derived is None else derived, now)
        if not reply.accepted and (smaller := exchange.smaller(reply.status, reply.pieces[0])) is not None:
            self._save(exchange, now)
            reply = self.referee.answer(PATH, _HEADERS, smaller, now)
        if not reply.accepted and (
            (mended := exchange.without_refused(reply.status, reply.pieces[0], now)) is not None
        ):
            reply = self.referee.answer(PATH, _HEADERS, mended, now)
        if not reply.accepted:
            raise RefusedError(reply.record.reason)
        self._hear(exchange, reply, now)
        return reply.message

    def _hear(self, exchange: Exchange, reply: ProviderReply, now: float) -> None:
        exchange.answer_began(reply.status, reply.kind)
        for piece in reply.pieces:
            exchange.hear(piece)
        exchange.note_reasoning()
        self._conversations.notebook.save(now)
        self.folds += exchange.finish(Ending.WHOLE, now=now).work.folds
        self.largest = max(self.largest, reply.record.tokens)

    def _save(self, exchange: Exchange, now: float) -> None:
        for page in exchange.unsaved.pages:
            self._store.pages.put(page.content, history=exchange.name, now=now, kind=page.kind, name=page.name)
        exchange.saved()
