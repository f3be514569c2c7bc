"""One recorded session through pagefold to the provider on loopback, with exits and keep-alives, and what came of it.

Sessions share nothing: each has a provider and a store of its own, so that they can be played in any order and by
several processes.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bench.recorded_clients import Ask, client_for
from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive import pinned_policy
from pagefold.derive.idle import Idle
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.compaction import AT, SUMMARY, Compaction
from pagefold.derive.policy import Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import OFF, Exchange
from pagefold.model_proxy.idle_plan import IdlePlan, idle_plan, keep_alive_body
from pagefold.model_proxy.totals import Ending
from pagefold.pages.memory_store import MemoryStore
from pagefold.provider.billing import Charge
from pagefold.provider.referee import Referee
from pagefold.provider.reply import ProviderReply
from pagefold.provider.thinking import Behaviour
from pagefold.wire.message import Usage
from pagefold.wire.transcripts import Session

EXITS = ("off", "observe", "kill", "store deleted", "upgrade", "second instance")
MOST_AWAY = 4
WINDOW = 200_000  # of the harness that compacts at `AT`

MODELS = ModelPrices()

Exits = Mapping[int, tuple[str, int]]
"""At which request of a session pagefold is left, how, and for how many requests."""


def price(model: str, charge: Charge) -> float:
    written, long = sum(charge.written.values()), charge.written.get("1h", 0)
    used = Usage(charge.fresh, charge.read, written, charge.output, cache_write_long=long)
    return MODELS.prices(model).bill(used)


class Instance:
    """One process of pagefold in front of the provider. `sent_again` counts requests that it sent once more because the
    provider refused their thinking."""

    sent_again = 0

    def __init__(self, policy: Policy | None, store: MemoryStore, window: int) -> None:
        self.store = store
        self.conversations = Conversations(policy, store=store, window=window, known=MODELS)
        self.plan: IdlePlan | None = None

    def send(
        self, referee: Referee, path: str, ask: Ask, headers: Mapping[str, str], wish: str = ""
    ) -> tuple[ProviderReply, bool]:
        """What the provider replied to the client's request, and whether it is a fold point."""
        exchange = Exchange("POST", path, ask.body, self.conversations, wish=wish)
        derived = exchange.derive(ask.now) if exchange.derives and exchange.read(ask.now) else None
        self._save(exchange, ask.now)
        sent = ask.body if derived is None else derived
        reply = referee.answer(path, headers, sent, ask.now, ask.answer)
        if not reply.accepted and (smaller := exchange.smaller(reply.status, reply.pieces[0])) is not None:
            self._save(exchange, ask.now)
            sent = smaller
            reply = referee.answer(path, headers, sent, ask.now, ask.answer)
        if not reply.accepted:
            mended = exchange.without_refused(reply.status, reply.pieces[0], ask.now)
            if mended is not None:
                self.sent_again += 1
                sent = mended
                reply = referee.answer(path, headers, sent, ask.now, ask.answer)
        exchange.answer_began(reply.status, reply.kind)
        for piece in reply.pieces:
            exchange.hear(piece)
        exchange.note_reasoning()
        self.conversations.notebook.save(ask.now)
        seen = exchange.finish(Ending.WHOLE, now=ask.now)
        record = exchange.record
        self.plan = None
        if record is not None:
            prices = self.conversations.prices_of(record.parsed)
            self.plan = idle_plan(record.parsed, sent, seen, prices, folds=exchange.may_shrink)
        return reply, bool(seen.work.folds)

    def keep_alive(self, referee: Referee, path: str, headers: Mapping[str, str], last: float, until: float) -> int:
        """Sends the keep-alives of a silence, by the plan of the last exchange; how many."""
        sent, now = 0, last
        while (plan := self.plan) is not None and (now := now + plan.wait) < until:
            body = keep_alive_body(plan.body, plan.api)
            if plan.choice() is not Idle.KEEP or body is None:
                break
            reply = referee.answer(path, headers, body, now)
            if not reply.accepted:
                raise SystemExit(f"a keep-alive was refused: {reply.record.reason}")
            self.conversations.reckoner.kept_alive(plan.hashes, now)
            self.plan = plan.kept()
            sent += 1
        return sent

    def _save(self, exchange: Exchange, now: float) -> None:
        for page in exchange.unsaved.pages:
            self.store.pages.put(page.content, history=exchange.name, now=now, kind=page.kind, name=page.name)
        exchange.saved()


@dataclass
class Operation:
    """How pagefold is run while one session goes on: which instance takes the next request, and with what wish."""

    policy: Callable[[float], Policy | None]
    window: int

    def __post_init__(self) -> None:
        self.instance = Instance(self.policy(1.0), MemoryStore(), self.window)
        self._away: tuple[Instance, str] | None = None
        self._left = 0

    def leave(self, kind: str, requests: int) -> None:
        store = self.instance.store
        match kind:
            case "off":
                self._away, self._left = (self.instance, OFF), requests
            case "observe":
                self._away, self._left = (Instance(None, store, self.window), ""), requests
            case "second instance":
                self._away, self._left = (Instance(self.policy(1.0), store, self.window), ""), requests
            case "kill":
                self.instance = Instance(self.policy(1.0), store, self.window)
            case "store deleted":
                self.instance = Instance(self.policy(1.0), MemoryStore(), self.window)
            case "upgrade":  # notes of the version before are not read, and the settings are others
                for name in list(store.pages.shared.contents):
                    content = store.pages.shared.contents[name]
                    if b'"version":' in content:
                        store.pages.shared.contents[name] = content.replace(
                            b'"version":%d' % pinned_policy.VERSION, b'"version":0'
                        )
                self.instance = Instance(self.policy(0.8), store, round(0.8 * self.window))

    def taker(self) -> tuple[Instance, str]:
        if self._left:
            self._left -= 1
            assert self._away is not None
            return self._away
        return self.instance, ""


@dataclass
class Outcome:
    """What came of one session under one policy. `summaries` is what a model would have charged for writing the
    summaries of a harness's compaction: reading the whole history once more, and the summary as its answer."""

    session: str = ""
    requests: int = 0
    folds: int = 0
    exits: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    read: int = 0
    sent_again: int = 0
    without_cause: bool = False
    refusals: list[dict[str, Any]] = field(default_factory=list)
    by_rule: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    keep_alives: int = 0
    usd: float = 0.0
    summaries: float = 0.0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(replace(self, exits=Counter())), "exits": dict(self.exits)}


def policy_for(name: str, window: int) -> Policy | None:
    """A policy for a window. Harnesses compact at a share of theirs."""
    if name == "identity":
        return None
    policy = policy_named(name, window=window)
    return replace(policy, at=round(AT * window / WINDOW)) if isinstance(policy, Compaction) else policy


def play(session: Session, name: str, window: int, options: argparse.Namespace, exits: Exits) -> Outcome:
    referee = Referee(behaviour=Behaviour(options.thinking), price=price)
    outcome = Outcome(session.id)
    headers = {"anthropic-beta": options.betas} if options.betas else {}
    began = time.perf_counter()
    client = client_for(session, options.model, options.life, options.api)
    operation = Operation(lambda share: policy_for(name, round(share * window)), window)
    caused = lost = False
    instance, last, prompt = operation.instance, 0.0, 0
    for number, ask in enumerate(client.asks()):
        if options.keep_alive and number:
            outcome.keep_alives += instance.keep_alive(referee, client.path, headers, last, ask.now)
        if number in exits:
            kind, requests = exits[number]
            operation.leave(kind, requests)
            outcome.exits[kind] += 1
            caused = True
        instance, wish = operation.taker()
        again = instance.sent_again
        reply, folded = instance.send(referee, client.path, ask, headers, wish)
        last = ask.now
        outcome.sent_again += instance.sent_again - again
        outcome.requests += 1
        outcome.folds += folded
        if folded and name == "compaction":
            outcome.summaries += price(options.model, Charge(0, prompt, {}, SUMMARY))
        caused = caused or folded
        if reply.accepted:
            charge = reply.record.charge
            prompt = charge.prompt if charge else 0
            outcome.kept += client.thinking_kept
            outcome.read += reply.record.thinking
            lost = lost or reply.record.thinking < client.thinking_kept
            client.keep(reply)
        else:
            where = {"session": session.id, "request": number, "exit": wish}
            outcome.refusals.append({**where, "why": reply.record.reason})
            client.keep_unanswered(ask.answer)
    if options.keep_alive:  # nobody comes back
        outcome.keep_alives += instance.keep_alive(referee, client.path, headers, last, float("inf"))
    outcome.without_cause = lost and not caused
    outcome.by_rule, outcome.dropped = dict(referee.totals.refused), referee.totals.dropped
    outcome.usd, outcome.seconds = referee.totals.usd, time.perf_counter() - began
    return outcome


def exits_of(counts: list[int], number: int, seed: int) -> list[dict[int, tuple[str, int]]]:
    """Random exits of a family's sessions, which have so many requests."""
    rng = random.Random(seed)
    places = [(at, request) for at, count in enumerate(counts) for request in range(1, count)]
    exits: list[dict[int, tuple[str, int]]] = [{} for _ in counts]
    for at, request in rng.sample(places, min(number, len(places))):
        exits[at][request] = rng.choice(EXITS), rng.randint(1, MOST_AWAY)
    return exits


def exits_by_session(recorded: list[Session], number: int, seed: int) -> Iterator[tuple[Session, Exits]]:
    counts = [sum(message.role == "assistant" for message in session.messages) for session in recorded]
    yield from zip(recorded, exits_of(counts, number, seed), strict=True)
