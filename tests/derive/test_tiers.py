"""economic where every token of a longer prompt is dearer: it keeps below that length where that is cheaper."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pagefold.analysis.replay import Terms, replay
from pagefold.derive.cost import ASSUMED, Prices, Rates
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policy import Policy
from pagefold.tokens import counter
from pagefold.wire.transcripts import Session, parse_line

TIER = 40_000


def tiered(times: float) -> Prices:
    rates = [rate * times for rate in ASSUMED.at(0)[1:]]
    return replace(ASSUMED, tiers=(Rates(TIER, *rates),))


def reading(turns: int) -> Session:
    """One prompt and a loop of reads of less than 2,000 tokens."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read everything in /srv."}]
    for turn in range(turns):
        arguments = json.dumps({"file_path": f"/srv/{turn}.py"})
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "Read", "arguments": arguments}}
        messages.append({"role": "assistant", "content": f"Reading {turn}.", "tool_calls": [call]})
        lines = "\n".join(f"value_{turn}_{line} = compute({line * turn}, 'row {line}')" for line in range(120))
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": lines})
    return parse_line(json.dumps({"messages": [*messages, {"role": "assistant", "content": "Done."}]}), name="x")


def cost(policy: Policy, session: Session, prices: Prices) -> tuple[float, int]:
    figures = replay(session, Terms(policy, prices, counter("o200k")))
    return figures.cost, figures.peak


def test_a_fold_keeps_to_the_length_from_which_tokens_are_dearer() -> None:
    """One dear request costs less than a fold that was in vain: it may pass the length by one read."""
    session, prices = reading(40), tiered(5)

    folded, peak = cost(Economic(1_000_000, prices), session, prices)
    unfolded, longest = cost(Lossless(), session, prices)

    assert longest > 1.5 * TIER
    assert peak < TIER + 2_000
    assert folded < unfolded / 2


def test_without_dearer_tokens_the_same_history_grows_longer() -> None:
    _, peak = cost(Economic(1_000_000, ASSUMED), reading(40), ASSUMED)

    assert peak > TIER


@pytest.mark.parametrize("times", [1.1, 2, 5, 20])
@pytest.mark.parametrize("turns", range(22, 30, 2))
def test_a_session_that_ends_at_any_turn_after_the_length_loses_little(turns: int, times: float) -> None:
    session, prices = reading(turns), tiered(times)

    folded, _ = cost(Economic(1_000_000, prices), session, prices)
    unfolded, longest = cost(Lossless(), session, prices)

    assert longest > TIER
    assert folded <= unfolded * 1.05


def test_a_head_that_leaves_no_room_below_the_length_is_not_squeezed_there() -> None:
    prices = tiered(5)
    terms = Terms(Economic(1_000_000, prices), prices, counter("o200k"), head=TIER - 1_000)

    figures = replay(reading(40), terms)

    assert figures.over == 0
    assert figures.peak > TIER
