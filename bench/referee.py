"""Sends recorded sessions through pagefold to the provider on loopback: what is refused or lost, and the bill.

    python -m bench.referee --family coding-claude-code-july --policy economic,lossless --window 64000
    python -m bench.referee --family coding-claude-code-july --policy economic --exits 200 --seed 1

The provider adds thinking to every answer, signed by its prefix, and enforces the check (`--thinking` says otherwise).
*refused* is what the client sees; *by rule* counts requests that pagefold sent once more as well (*sent again*).
*dropped* is thinking that the provider took out. *lost* is the share of the thinking kept by the client that the model
did not read: a fold left it behind, or somebody took it out. *without cause* counts sessions that lost some although
nothing was folded and nobody left. *bill* is relative to sending the history as it is.

`--exits` leaves pagefold at so many random requests of a family: off, observing, killed, its store deleted, upgraded,
a second instance; some for a few requests, others for good. `--stop` ends at the first refusal.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.recorded import families, name_of, sessions, table
from bench.recorded_clients import Ask, client_for
from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive import pinned_policy
from pagefold.derive.policies import policy_named
from pagefold.derive.policy import Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import OFF, Exchange
from pagefold.model_proxy.totals import Ending
from pagefold.pages.memory_store import MemoryStore
from pagefold.provider.billing import Charge
from pagefold.provider.referee import Referee
from pagefold.provider.reply import ProviderReply
from pagefold.provider.thinking import Behaviour
from pagefold.wire.message import Usage
from pagefold.wire.transcripts import Session

EXITS = ("off", "observe", "kill", "store deleted", "upgrade", "second instance")
LASTING = ("kill", "store deleted", "upgrade")
MOST_AWAY = 4
GAP = 100_000.0  # seconds between sessions


MODELS = ModelPrices()


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

    def send(
        self, referee: Referee, path: str, ask: Ask, headers: Mapping[str, str], wish: str = ""
    ) -> tuple[ProviderReply, bool]:
        """What the provider replied to the client's request, and whether it is a fold point."""
        exchange = Exchange("POST", path, ask.body, self.conversations, wish=wish)
        derived = exchange.derive(ask.now) if exchange.derives and exchange.read(ask.now) else None
        self._save(exchange, ask.now)
        reply = referee.answer(path, headers, ask.body if derived is None else derived, ask.now, ask.answer)
        if not reply.accepted and (smaller := exchange.smaller(reply.status, reply.pieces[0])) is not None:
            self._save(exchange, ask.now)
            reply = referee.answer(path, headers, smaller, ask.now, ask.answer)
        if not reply.accepted:
            mended = exchange.without_refused(reply.status, reply.pieces[0], ask.now)
            if mended is not None:
                self.sent_again += 1
                reply = referee.answer(path, headers, mended, ask.now, ask.answer)
        exchange.answer_began(reply.status, reply.kind)
        for piece in reply.pieces:
            exchange.hear(piece)
        exchange.note_reasoning()
        self.conversations.notebook.save(ask.now)
        seen = exchange.finish(Ending.WHOLE, now=ask.now)
        return reply, bool(seen.work.folds)

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
                for name in list(store.pages.contents):
                    content = store.pages.contents[name]
                    if b'"version":' in content:
                        store.pages.contents[name] = content.replace(
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
    """What came of all sessions of a family under one policy."""

    requests: int = 0
    folds: int = 0
    exits: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    read: int = 0
    sent_again: int = 0
    without_cause: int = 0
    refusals: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def exits_of(counts: list[int], number: int, seed: int) -> dict[tuple[int, int], tuple[str, int]]:
    """Random exits: at which request of which session, of which kind, for how many requests."""
    rng = random.Random(seed)
    places = [(at, request) for at, count in enumerate(counts) for request in range(1, count)]
    chosen = rng.sample(places, min(number, len(places)))
    return {place: (rng.choice(EXITS), rng.randint(1, MOST_AWAY)) for place in chosen}


def run(
    recorded: list[Session],
    name: str,
    window: int,
    options: argparse.Namespace,
    exits: Mapping[tuple[int, int], tuple[str, int]],
) -> tuple[Referee, Outcome]:
    referee = Referee(behaviour=Behaviour(options.thinking), price=price)
    outcome = Outcome()
    headers = {"anthropic-beta": options.betas} if options.betas else {}
    began = time.perf_counter()

    def policy(share: float) -> Policy | None:
        return None if name == "identity" else policy_named(name, window=round(share * window))

    for at, session in enumerate(recorded):
        client = client_for(session, options.model, options.life, options.api)
        operation = Operation(policy, window)
        caused = lost = False
        for number, ask in enumerate(shifted(client.asks(), GAP * at)):
            if (at, number) in exits:
                kind, requests = exits[at, number]
                operation.leave(kind, requests)
                outcome.exits[kind] += 1
                caused = True
            instance, wish = operation.taker()
            again = instance.sent_again
            reply, folded = instance.send(referee, client.path, ask, headers, wish)
            outcome.sent_again += instance.sent_again - again
            outcome.requests += 1
            outcome.folds += folded
            caused = caused or folded
            if reply.accepted:
                outcome.kept += client.thinking_kept
                outcome.read += reply.record.thinking
                lost = lost or reply.record.thinking < client.thinking_kept
                client.keep(reply)
            else:
                outcome.refusals.append(
                    {"session": session.id, "request": number, "exit": wish, "why": reply.record.reason}
                )
                client.keep_unanswered(ask.answer)
                if options.stop:
                    break
        outcome.without_cause += lost and not caused
        if options.stop and outcome.refusals:
            break
    outcome.seconds = time.perf_counter() - began
    return referee, outcome


def shifted(asks: Iterator[Ask], by: float) -> Iterator[Ask]:
    return (Ask(ask.body, ask.now + by, ask.answer) for ask in asks)


def row(family: str, name: str, window: int, referee: Referee, outcome: Outcome, as_it_is: float) -> dict[str, Any]:
    totals = referee.totals
    return {
        "family": family,
        "policy": name,
        "window": window,
        "requests": outcome.requests,
        "refused": len(outcome.refusals),
        "sent again": outcome.sent_again,
        "by rule": ", ".join(f"{rule} {count}" for rule, count in totals.refused.most_common()) or "-",
        "folds": outcome.folds,
        "exits": sum(outcome.exits.values()),
        "dropped": totals.dropped,
        "lost": 1 - outcome.read / outcome.kept if outcome.kept else 0.0,
        "without cause": outcome.without_cause,
        "USD": totals.usd,
        "bill": totals.usd / as_it_is if as_it_is else 0.0,
        "seconds": round(outcome.seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="coding-claude-code-july", help="names of recordings, with commas between")
    parser.add_argument("--policy", default="identity,lossless,economic")
    parser.add_argument("--window", default="64000", help="one or more, with commas between")
    parser.add_argument("--model", default="claude-opus-5-5", help="one of OpenAI's is asked through Responses")
    parser.add_argument("--api", default="", choices=["", "chat"], help="Chat Completions in place of Responses")
    parser.add_argument("--life", default="1h", choices=["5m", "1h"], help="of the client's cache marks")
    parser.add_argument("--thinking", default="error", choices=[str(behaviour) for behaviour in Behaviour])
    parser.add_argument("--betas", default="", help="of the client")
    parser.add_argument("--exits", type=int, default=0, metavar="N", help="a family")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=0, metavar="N", help="only the first of each family")
    parser.add_argument("--stop", action="store_true", help="at the first refusal")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for path in families(options.family):
        recorded = list(sessions(path))[: options.sessions or None]
        counts = [sum(message.role == "assistant" for message in session.messages) for session in recorded]
        exits = exits_of(counts, options.exits, options.seed)
        as_it_is = run(recorded, "identity", 0, options, {})[0].totals.usd
        for window in map(int, options.window.split(",")):
            for name in options.policy.split(","):
                referee, outcome = run(recorded, name, window, options, exits)
                rows.append(row(name_of(path), name, window, referee, outcome, as_it_is))
                for refusal in outcome.refusals[:3]:
                    print(f"  {name}: {json.dumps(refusal)}", file=sys.stderr)
                print(f"  {rows[-1]['family']} {name} {window}: {rows[-1]['refused']} refused", file=sys.stderr)
    print(json.dumps(rows) if options.json else table(rows))


if __name__ == "__main__":
    main()
