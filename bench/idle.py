"""What silences cost: doing nothing, keeping the cache alive by expected cost, and knowing every silence beforehand.

    python -m bench.idle [--family coding-claude-code-july,coding-codex] [--half 1] [--overhead 25000] [--folds 0.4]

The recorded times say how long each session was silent; its end is a silence that never ends. Cost is that of all
prompts of a session as it is, in USD at the prices of three models with three cache lives, keep-alives included.
*known* knows every silence and does what is cheapest; *ours / known* is the figure that has to stay within 1.05, *ours
/ nothing* must not exceed 1. *dearer* counts sessions that cost more than doing nothing, *worst* is the dearest of
them. The shipped distribution is from half 0; half 1 is what is measured unless --half says otherwise (-1: both). That
a keep-alive has to save twice its price was chosen among five factors with both halves in sight. With --folds a cold
request is folded to that share first, as economic does, in all three; *ours / as it is* is against neither keep-alives
nor folds.
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.recorded import families, in_half, name_of, sessions, table
from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive.cost import Prices
from pagefold.derive.idle import AFTER_ANSWER, AFTER_CALL, Idle, Silences, chosen, keep_alive_after, resume_of
from pagefold.tokens import FRAME, counter
from pagefold.wire.message import BlockKind, Role
from pagefold.wire.transcripts import Session

LIVES = (("claude-opus-5", False), ("claude-opus-5-5", True), ("gpt-5.6-sol", False))


@dataclass(frozen=True)
class Silence:
    """After a request with so many tokens: how long it lasted, what is likely, and how much is new in the next one."""

    tokens: int
    seconds: float
    likely: Silences
    new: int


def silences_of(session: Session, overhead: int) -> Iterator[Silence]:
    count = counter("o200k").count
    sizes = [count(message.text) + FRAME for message in session.messages]
    asked = [at for at, message in enumerate(session.messages) if message.role is Role.ASSISTANT]
    for at, following in zip(asked, [*asked[1:], None], strict=True):
        calls = any(block.kind is BlockKind.CALL for block in session.messages[at].blocks)
        seconds = math.inf if following is None else session.times[following] - session.times[at]
        new = 0 if following is None else sum(sizes[at:following])
        yield Silence(overhead + sum(sizes[:at]), seconds, AFTER_CALL if calls else AFTER_ANSWER, new)


def sent(silence: Silence, prices: Prices, fold: float) -> int:
    """How many keep-alives are sent during a silence, by what is likely."""
    resume = resume_of(prices, silence.tokens, round(fold * silence.tokens) if fold else None)
    step, number = keep_alive_after(prices.life), 0
    while silence.seconds > (number + 1) * step:
        if chosen(resume, resume.warm, prices.life, (number + 1) * step, silence.likely) is not Idle.KEEP:
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


def row(title: str, recorded: list[list[Silence]], prices: Prices, fold: float) -> dict[str, Any]:
    nothing, ours, known, plain, sends, late = [], [], [], 0.0, 0, 0
    for silences in recorded:
        first = prices.cost(0, silences[0].tokens)
        chose = [sent(one, prices, fold) for one in silences]
        sends += sum(chose)
        late += sum(one.seconds > prices.life for one in silences)
        plain += first + sum(cost(one, prices, 0, 0.0) for one in silences)
        nothing.append(first + sum(cost(one, prices, 0, fold) for one in silences))
        ours.append(first + sum(cost(one, prices, number, fold) for one, number in zip(silences, chose, strict=True)))
        known.append(
            first
            + sum(min(cost(one, prices, 0, fold), cost(one, prices, needed(one, prices), fold)) for one in silences)
        )
    ratios = [mine / base for mine, base in zip(ours, nothing, strict=True)]
    return {
        "family": title,
        "model": prices.name,
        "life": int(prices.life),
        "sessions": len(recorded),
        "expiries": late,
        "keep-alives": sends,
        "nothing USD": prices.usd(sum(nothing)),
        "ours / nothing": sum(ours) / sum(nothing),
        "known / nothing": sum(known) / sum(nothing),
        "ours / known": sum(ours) / sum(known),
        "ours / as it is": sum(ours) / plain,
        "dearer": sum(ratio > 1.0005 for ratio in ratios),
        "worst": max(ratios),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="coding-claude-code,coding-claude-code-july,coding-codex")
    parser.add_argument("--half", type=int, default=1)
    parser.add_argument("--overhead", type=int, default=25_000)
    parser.add_argument("--folds", type=float, default=0.0)
    options = parser.parse_args()
    known, rows, every = ModelPrices(), [], list[list[Silence]]()
    for path in families(options.family):
        recorded = [
            found
            for session in sessions(path)
            if session.times and (options.half < 0 or in_half(session.id, options.half))
            if (found := list(silences_of(session, options.overhead)))
        ]
        every += recorded
        for model, long in LIVES:
            rows.append(row(name_of(path), recorded, known.prices(model).lived(long=long), options.folds))
    for model, long in LIVES:
        rows.append(row("all", every, known.prices(model).lived(long=long), options.folds))
    print(table(rows))


if __name__ == "__main__":
    main()
