"""The bill of one session or of many: what was paid, what the same work costs under a policy, and how sure that is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.analysis.replay import RequestSize
from pagefold.analysis.request_usage import (
    NOTHING,
    Happened,
    Money,
    cost_of,
    cost_of_misses,
    extra_turns,
    happened,
    predicted,
)
from pagefold.derive.cost import Prices
from pagefold.wire.message import Usage
from pagefold.wire.transcripts import Session

_SURE = 1.96
LARGE_HEAD = 25_000
"""Tokens of system prompt and tool schemas that an agent with many tools sends, for logs that tell nothing of them."""


@dataclass(slots=True)
class Bill:
    """`happened` is what was paid: as logged, or reckoned where a log holds no usage. `policies` are what the same work
    costs under each policy, `misses` what it costs to fetch again what was missed, in `extra_turns`. Of `edits` so many
    (`edits_gone`) replaced a text that the request would no longer have held; they are among what was missed.

    `plain` is what it costs without pagefold: what happened, but for sessions that ran behind it. `uncompacted` is what
    it would have cost had nothing ever been compacted. `predicted` is what the model says of logged prompts and
    `logged` what the log says; `deviation` is the sum of the squared differences, session by session.

    `windows` and `weeks` are what was used of a subscription's, `metered_usd` what the sessions cost of which that is
    known, and `metered_saved` what each policy would have saved in them.
    """

    sessions: int = 0
    requests: int = 0
    logged_requests: int = 0
    behind: int = 0  # sessions that ran behind pagefold
    compacted: int = 0  # sessions without usage that no window takes: reckoned as compacted by their client
    happened: Money = NOTHING
    plain: Money = NOTHING
    uncompacted: Money = NOTHING
    policies: dict[str, Money] = field(default_factory=dict)
    misses: dict[str, Money] = field(default_factory=dict)
    extra_turns: dict[str, int] = field(default_factory=dict)
    edits: int = 0
    edits_gone: dict[str, int] = field(default_factory=dict)
    head_usd: float = 0.0
    predicted: float = 0.0
    logged: float = 0.0
    deviation: float = 0.0
    windows: float = 0.0
    weeks: float = 0.0
    metered_usd: float = 0.0
    metered_saved: dict[str, float] = field(default_factory=dict)
    large_head_usd: float = 0.0  # what a head of LARGE_HEAD would have cost in sessions whose logs tell nothing of one

    def add(self, other: "Bill") -> None:
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("happened", "plain", "uncompacted"):
            setattr(self, name, getattr(self, name).plus(getattr(other, name)))
        for policy, money in other.policies.items():
            self.policies[policy] = self.policies.get(policy, NOTHING).plus(money)
            self.misses[policy] = self.misses.get(policy, NOTHING).plus(other.misses[policy])
            self.extra_turns[policy] = self.extra_turns.get(policy, 0) + other.extra_turns[policy]
            self.edits_gone[policy] = self.edits_gone.get(policy, 0) + other.edits_gone[policy]
        for policy, saved in other.metered_saved.items():
            self.metered_saved[policy] = self.metered_saved.get(policy, 0.0) + saved

    def with_misses(self, policy: str) -> Money:
        return self.policies.get(policy, NOTHING).plus(self.misses.get(policy, NOTHING))

    @property
    def saved(self) -> float:
        """What was saved already, in USD, by sessions that ran behind pagefold."""
        return self.plain.both - self.happened.both

    def share_saved(self, policy: str) -> float:
        """Of all that was paid, answers included, what the policy would have saved, misses priced in."""
        paid = self.happened.both
        return 1 - self.with_misses(policy).both / paid if paid else 0.0

    def least_share_saved(self, policy: str) -> float:
        """The same where sessions whose logs tell nothing of their head had a large one."""
        paid = self.happened.both
        return self.share_saved(policy) * paid / (paid + self.large_head_usd) if paid else 0.0

    def freed(self, used: float, policy: str) -> float:
        """What a policy would have left of so much of a subscription's windows: in proportion to the money."""
        return used * self.metered_saved.get(policy, 0.0) / self.metered_usd if self.metered_usd else 0.0

    @property
    def uncertainty(self) -> float:
        """By how much a share of the bill may be off: by as much as the same model is off on what was logged, in sum
        and (95 of 100) by chance."""
        if not self.logged:
            return 0.0
        return (abs(self.predicted - self.logged) + _SURE * math.sqrt(self.deviation)) / self.logged

    def to_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _COUNTS[:5]},
            "paid": _told(self.happened),
            "without_pagefold": _told(self.plain),
            "already_saved_usd": round(self.saved, 4),
            "policies": {
                policy: _told(money)
                | {
                    "misses_usd": round(self.misses[policy].both, 4),
                    "extra_turns": self.extra_turns[policy],
                    "edits_gone": self.edits_gone[policy],
                    "saved_share": round(self.share_saved(policy), 4),
                }
                for policy, money in self.policies.items()
            },
            "edits": self.edits,
            "plus_or_minus": round(self.uncertainty, 4),
            "head_usd": round(self.head_usd, 4),
            "large_head_usd": round(self.large_head_usd, 4),
            "never_compacted_usd": round(self.uncompacted.prompt, 4),
            "model_check": {"predicted_usd": round(self.predicted, 4), "logged_usd": round(self.logged, 4)},
            "five_hour_windows": round(self.windows, 4),
            "weekly_windows": round(self.weeks, 4),
        }


_COUNTS = (
    *("sessions", "requests", "logged_requests", "behind", "compacted"),
    *("head_usd", "predicted", "logged", "deviation", "windows", "weeks", "metered_usd", "edits", "large_head_usd"),
)


def session_bill(
    session: Session,
    prices: Prices,
    sizes: Mapping[str, Sequence[RequestSize]],
    *,
    sent: str = "identity",
    head: int = 0,
) -> Bill:
    """The bill of one session. `sizes` are its requests under each policy, `sent` names the one by which they were sent
    and `head` is what stands before them, in tokens."""
    was = happened(session, sizes[sent], prices, head)
    aside = cost_of(session.aside, prices)
    paid = cost_of(was.usage, prices).plus(aside)
    if sent == "compaction":  # a reckoned one: the recording holds nothing of what it would have had to fetch again
        paid = paid.plus(cost_of_misses(sizes[sent], was.usage, was.factor, prices))
    bill = Bill(1, len(was.usage), sum(was.logged), happened=paid, plain=paid, uncompacted=paid)
    if sent != "identity":
        whole = cost_of(list(was.under(sizes["identity"])), prices).plus(aside)
        if sent == "compaction":
            bill.compacted, bill.uncompacted = 1, whole
        else:
            bill.behind, bill.plain, bill.uncompacted = 1, whole, whole
    for policy in ("lossless", "economic"):
        if policy == sent:  # what was missed then is in what happened
            bill.policies[policy], bill.misses[policy], bill.extra_turns[policy] = paid, NOTHING, 0
            bill.edits_gone[policy] = 0
            continue
        usage = list(was.under(sizes[policy]))
        bill.policies[policy] = cost_of(usage, prices).plus(aside)
        bill.misses[policy] = cost_of_misses(sizes[policy], usage, was.factor, prices)
        bill.extra_turns[policy] = extra_turns(sizes[policy])
        bill.edits_gone[policy] = sum(size.edits_gone for size in sizes[policy])
    bill.head_usd = _head_usd(was, prices, head)
    if not head and not any(was.logged):
        bill.large_head_usd = cost_of([_large_head(usage) for usage in was.usage], prices).prompt
    bill.windows, bill.weeks = session.windows, session.weeks
    if bill.windows or bill.weeks:
        bill.metered_usd = paid.both
        bill.metered_saved = {policy: paid.both - bill.with_misses(policy).both for policy in bill.policies}
    if any(was.logged):
        _check(bill, session, was, prices)
    return bill


def _check(bill: Bill, session: Session, was: Happened, prices: Prices) -> None:
    """Adds what the model says of the requests that were logged, and what the log says."""
    expected = [one for one, known in zip(predicted(session, was, prices), was.logged, strict=True) if known]
    reported = [one for one, known in zip(was.usage, was.logged, strict=True) if known]
    bill.predicted, bill.logged = cost_of(expected, prices).prompt, cost_of(reported, prices).prompt
    bill.deviation = (bill.predicted - bill.logged) ** 2


def _head_usd(was: Happened, prices: Prices, head: int) -> float:
    """What the head costs in all requests: it is the first that is read, and written where even it is not."""
    total = 0.0
    for usage in was.usage:
        mine = min(head, usage.prompt)
        read = min(mine, usage.cache_read)
        rates = prices.at(usage.prompt)
        write = rates.write_long or rates.write if 2 * usage.cache_write_long > usage.cache_write else rates.write
        total += (read * rates.read + (mine - read) * (write if usage.cache_write else rates.fresh)) / 1_000_000
    return total


def _large_head(usage: Usage) -> Usage:
    """A large head in a request of this usage: read where anything was read, and else written with the rest."""
    if usage.cache_read:
        return Usage(0, LARGE_HEAD, 0, 0)
    return Usage(0, 0, LARGE_HEAD, 0, 0, LARGE_HEAD if usage.cache_write_long else 0)


def _told(money: Money) -> dict[str, float]:
    return {"prompt_usd": round(money.prompt, 4), "output_usd": round(money.output, 4)}
