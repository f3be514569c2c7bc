"""Costs of policies at the prices of real models, by the replay: against the history as it is, and against lossless.

    python -m bench.model_costs [--family coding-claude-code-july] [--window 200000] [--model claude-opus-5,gpt-5.6-sol]
                                [--policy lossless,compaction,economic] [--overhead 25000] [--every 3] [--short]

Prices, tiers and cache lives are the model's; a Claude client asks for the cache of one hour, with --short for that of
five minutes. *cost* is in USD, *of as it is* relative to sending the history as it is; *above lossless* is in how many
sessions a policy cost more than lossless, *worst* the dearest of them relative to lossless. Where the history is longer
than the window, neither the history nor lossless could have been sent: *over* counts such requests.
"""

import argparse
from typing import Any

from bench.policies import Unmissed
from bench.recorded import families, name_of, sessions, table
from pagefold.adapters.model_prices import ModelPrices
from pagefold.analysis.replay import Terms
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.derive.cost import Prices
from pagefold.derive.policies import policy_named
from pagefold.tokens import counter
from pagefold.wire.transcripts import Session

MODELS = "claude-opus-5,claude-opus-5-5,claude-fable-5-2,gpt-5.6-sol,claude-haiku-5-5"
LEAST = 1.0005  # above lossless by more than this is above it


def figures_of(session: Session, name: str, prices: Prices, options: argparse.Namespace, window: int) -> ReplayFigures:
    policy = policy_named(name, window=window, prices=prices, offline=True)
    replayed = Unmissed(session, Terms(policy, prices, counter("o200k"), window, options.overhead))
    for _ in replayed:
        pass
    return replayed.figures


def rows_of(
    title: str, recorded: list[Session], prices: Prices, options: argparse.Namespace, window: int
) -> list[dict[str, Any]]:
    names = ["identity", "lossless", *(name for name in options.policy.split(",") if name != "lossless")]
    found = {name: [figures_of(one, name, prices, options, window) for one in recorded] for name in names}
    as_it_is, lossless = found["identity"], found["lossless"]
    rows = []
    for name in names:
        ratios = [mine.cost / base.cost for mine, base in zip(found[name], lossless, strict=True) if base.cost]
        total = sum(one.cost for one in found[name])
        rows.append(
            {
                "family": title,
                "model": prices.name,
                "window": window,
                "policy": name,
                "USD": prices.usd(total),
                "of as it is": total / sum(one.cost for one in as_it_is),
                "of lossless": total / sum(one.cost for one in lossless),
                "above lossless": sum(ratio > LEAST for ratio in ratios),
                "worst": max(ratios),
                "moved": sum(one.moved for one in found[name]),
                "over": sum(one.over for one in found[name]),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="coding-claude-code-july")
    parser.add_argument("--window", default="200000")
    parser.add_argument("--model", default=MODELS)
    parser.add_argument("--policy", default="lossless,compaction,economic")
    parser.add_argument("--overhead", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    known, rows = ModelPrices(), []
    for path in families(options.family):
        recorded = list(sessions(path))[:: options.every]
        for window in map(int, options.window.split(",")):
            for model in options.model.split(","):
                prices = known.prices(model).lived(long=not options.short)
                rows += rows_of(name_of(path), recorded, prices, options, window)
    print(table(rows))


if __name__ == "__main__":
    main()
