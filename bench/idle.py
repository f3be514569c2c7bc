"""What silences cost: doing nothing, keeping the cache alive by expected cost, and knowing every silence beforehand.

    python -m bench.idle [--family coding-claude-code-july,coding-codex] [--half 1] [--overhead 25000] [--folds 0.4]
    python -m bench.idle --half 0       the other way round: values from half 1, figures from half 0
    python -m bench.idle --projects     values from the other projects, figures from each project
    python -m bench.idle --fit          prints the values of `derive/idle.py`, from half 0

The recorded times say how long each session was silent; its end is a silence that never ends. Cost is that of all
prompts of a session as it is, in USD at the prices of three models with three cache lives, keep-alives included.
*known* knows every silence and does what is cheapest; *ours / known* is the figure that has to stay within 1.05, *ours
/ nothing* must not exceed 1. *dearer* counts sessions that cost more than doing nothing, *worst* is the dearest of
them. Values and figures never come from the same sessions. GPT-5.6 has no request that only fills its cache: nothing is
sent there, and *known* is what that costs. With --folds a cold request is folded to that share first, as economic does,
in all three; *ours / as it is* is against neither keep-alives nor folds.

The values: of the silences that have lasted so long, how many end before the next time, reckoned by the logarithm of
time. From five minutes on that rate is drawn towards its mean, so that the few silences that last for hours do not
decide alone.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from bench.recorded import families, in_half, name_of, sessions, table
from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive.cost import Prices
from pagefold.derive.idle import AFTER_ANSWER, AFTER_CALL, Idle, Silences, chosen, keep_alive_after, resume_of
from pagefold.tokens import FRAME, counter
from pagefold.wire.message import BlockKind, Role
from pagefold.wire.transcripts import Session

LIVES = (("claude-opus-5", False), ("claude-opus-5-5", True), ("gpt-5.6-sol", False))
FAMILIES = "coding-claude-code,coding-claude-code-july,coding-codex"
TIMES = (30, 60, 120, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 21600, 43200, 86400)
DRAWN_FROM = 300
DRAWN_BY = 4.0  # silences watched for a time e times as long


@dataclass(frozen=True)
class Silence:
    """After a request with so many tokens: how long it lasted, whether a tool was called, and how much is new in the
    next request."""

    tokens: int
    seconds: float
    calls: bool
    new: int


@dataclass(frozen=True)
class Likely:
    after_answer: Silences
    after_call: Silences

    def after(self, silence: Silence) -> Silences:
        return self.after_call if silence.calls else self.after_answer


SHIPPED = Likely(AFTER_ANSWER, AFTER_CALL)


def silences_of(session: Session, overhead: int) -> Iterator[Silence]:
    count = counter("o200k").count
    sizes = [count(message.text) + FRAME for message in session.messages]
    asked = [at for at, message in enumerate(session.messages) if message.role is Role.ASSISTANT]
    for at, following in zip(asked, [*asked[1:], None], strict=True):
        calls = any(block.kind is BlockKind.CALL for block in session.messages[at].blocks)
        seconds = math.inf if following is None else session.times[following] - session.times[at]
        new = 0 if following is None else sum(sizes[at:following])
        yield Silence(overhead + sum(sizes[:at]), seconds, calls, new)


def fitted(lasted: Sequence[float]) -> Silences:
    """The share of silences that last longer than each of `TIMES`, from how long these lasted."""
    ended = [sum(since < one <= until for one in lasted) for since, until in pairwise(TIMES)]
    watched = [
        sum(math.log(min(one, until) / since) for one in lasted if one > since) for since, until in pairwise(TIMES)
    ]
    late = TIMES.index(DRAWN_FROM)
    mean = sum(ended[late:]) / sum(watched[late:])
    longer = [sum(one > TIMES[0] for one in lasted) / len(lasted)]
    for at, (since, until) in enumerate(pairwise(TIMES)):
        drawn = DRAWN_BY if at >= late else 0.0
        rate = (ended[at] + drawn * mean) / (watched[at] + drawn)
        longer.append(longer[-1] * math.exp(-rate * math.log(until / since)))
    return Silences(tuple(map(float, TIMES)), tuple(longer))


def likely_in(recorded: Sequence[Sequence[Silence]]) -> Likely:
    every = [silence for session in recorded for silence in session]
    return Likely(*(fitted([one.seconds for one in every if one.calls is calls]) for calls in (False, True)))


def sent(silence: Silence, prices: Prices, fold: float, likely: Likely) -> int:
    """How many keep-alives are sent during a silence, by what is likely. Only the Messages API has one to send."""
    if not prices.name.startswith("claude"):
        return 0
    resume = resume_of(prices, silence.tokens, round(fold * silence.tokens) if fold else None)
    step, number = keep_alive_after(prices.life), 0
    while silence.seconds > (number + 1) * step:
        if chosen(resume, resume.warm, prices.life, (number + 1) * step, likely.after(silence)) is not Idle.KEEP:
            break
        number += 1
    return number


def cost(silence: Silence, prices: Prices, keep_alives: int, fold: float) -> float:
    """Of the keep-alives and, where there is one, of the next request."""
    resume = resume_of(prices, silence.tokens, round(fold * silence.tokens) if fold else None)
    spent = keep_alives * resume.warm
    if math.isinf(silence.seconds):
        return spent
    alive = keep_alives * keep_alive_after(prices.life) + prices.life
    prompt = resume.warm if silence.seconds <= alive else resume.warm + resume.late
    return spent + prompt + prices.cost(0, silence.new)


def needed(silence: Silence, prices: Prices) -> int:
    """The fewest keep-alives that a cache of this life survives the silence with."""
    if math.isinf(silence.seconds):
        return 0
    return max(0, math.ceil((silence.seconds - prices.life) / keep_alive_after(prices.life)))


@dataclass
class Costs:
    """Of sessions, one after the other; `plain` is all of them without keep-alives and folds."""

    nothing: list[float]
    ours: list[float]
    known: list[float]
    plain: float
    sends: int
    late: int


def costs_of(recorded: list[list[Silence]], prices: Prices, fold: float, likely: Likely) -> Costs:
    costs = Costs([], [], [], 0.0, 0, 0)
    for silences in recorded:
        first = prices.cost(0, silences[0].tokens)
        chose = [sent(one, prices, fold, likely) for one in silences]
        without = [cost(one, prices, 0, fold) for one in silences]
        kept = [cost(one, prices, needed(one, prices), fold) for one in silences]
        costs.sends += sum(chose)
        costs.late += sum(one.seconds > prices.life for one in silences)
        costs.plain += first + sum(cost(one, prices, 0, 0.0) for one in silences)
        costs.nothing.append(first + sum(without))
        costs.ours.append(first + sum(cost(one, prices, n, fold) for one, n in zip(silences, chose, strict=True)))
        costs.known.append(first + sum(map(min, without, kept)))
    return costs


def row(title: str, prices: Prices, parts: Sequence[Costs]) -> dict[str, Any]:
    nothing = [one for part in parts for one in part.nothing]
    ours = [one for part in parts for one in part.ours]
    known = sum(sum(part.known) for part in parts)
    ratios = [mine / base for mine, base in zip(ours, nothing, strict=True)]
    return {
        "family": title,
        "model": prices.name,
        "life": int(prices.life),
        "sessions": len(ours),
        "expiries": sum(part.late for part in parts),
        "keep-alives": sum(part.sends for part in parts),
        "nothing USD": prices.usd(sum(nothing)),
        "ours / nothing": sum(ours) / sum(nothing),
        "known / nothing": known / sum(nothing),
        "ours / known": sum(ours) / known,
        "ours / as it is": sum(ours) / sum(part.plain for part in parts),
        "dearer": sum(ratio > 1.0005 for ratio in ratios),
        "worst": max(ratios),
    }


def fit_and_figures(
    recorded: dict[str, dict[str, list[Silence]]], options: argparse.Namespace
) -> dict[str, tuple[list[list[Silence]], Likely]]:
    """What is measured by family, with the values for it: those of sessions that are not measured with them."""
    parts = {}
    for name, found in recorded.items():
        if options.projects:
            others = [one for other in recorded if other != name for one in recorded[other].values()]
            parts[name] = list(found.values()), likely_in(others)
        else:
            others = [
                silences
                for all_of in recorded.values()
                for session, silences in all_of.items()
                if in_half(session, 1 - options.half)
            ]
            measured = [silences for session, silences in found.items() if in_half(session, options.half)]
            parts[name] = measured, SHIPPED if options.half == 1 else likely_in(others)
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default=FAMILIES)
    parser.add_argument("--half", type=int, default=1, choices=[0, 1])
    parser.add_argument("--projects", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--overhead", type=int, default=25_000)
    parser.add_argument("--folds", type=float, default=0.0)
    options = parser.parse_args()
    recorded = {
        name_of(path): {one.id: found for one in sessions(path) if (found := list(silences_of(one, options.overhead)))}
        for path in families(options.family)
    }
    if options.fit:
        half = [one for found in recorded.values() for name, one in found.items() if in_half(name, 0)]
        for title, values in vars(likely_in(half)).items():
            print(title, [float(f"{share:.3g}") for share in values.longer])
        return
    known, rows = ModelPrices(), []
    parts = fit_and_figures(recorded, options)
    priced = [known.prices(model).lived(long=long) for model, long in LIVES]
    for prices in priced:
        costs = {name: costs_of(measured, prices, options.folds, likely) for name, (measured, likely) in parts.items()}
        rows += [row(name, prices, [costs[name]]) for name in costs]
        rows.append(row("all", prices, list(costs.values())))
    print(table(rows))


if __name__ == "__main__":
    main()
