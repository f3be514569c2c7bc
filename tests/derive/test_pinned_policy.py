"""With what a history began is written down whole, and read back as it was or not at all."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pagefold.derive.cost import Prices, Rates
from pagefold.derive.learned import SHIPPED, Folds, Learned, forms_of
from pagefold.derive.pinned_policy import VERSION, PinnedPolicy, parse
from pagefold.derive.policies import LIVE, policy_named
from pagefold.derive.policies.incremental import Incremental
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policies.oracle import OracleReplay
from pagefold.derive.policies.reset import Reset
from pagefold.derive.policy import Policy
from pagefold.derive.prefix_hashes import root_of
from pagefold.derive.remaining import TurnsLeft
from pagefold.derive.values import Priors
from pagefold.wire import openai_chat
from pagefold.wire.message import Message

TIERED = Prices("tiered", 1, 0.1, 1.25, 5, write_long=2.0, tiers=(Rates(100_000, 5, 0.5, 6.25, 25, 10),))
LEARNED = Learned(
    Priors(bias=-0.25), TurnsLeft((0, 5), (7, 9)), Folds(least=3_000), forms_of([("Read", ["numbered", "log"])])
)


@pytest.mark.parametrize(
    "policy",
    [
        *(policy_named(name, window=70_001, prices=TIERED, learned=LEARNED) for name in LIVE),
        Reset(threshold_tokens=12_345),
        Incremental(budget_tokens=777),
        Lossless(without=frozenset({"log", "numbered"})),
    ],
    ids=lambda policy: f"{policy.name}",
)
def test_what_is_written_is_read_back_with_every_setting(policy: Policy) -> None:
    beginning = PinnedPolicy(policy, 28_672, 1.5)

    assert parse(beginning.to_json()) == beginning


def test_a_policy_of_the_callers_own_is_not_written() -> None:
    with pytest.raises(ValueError, match="oracle_replay"):
        PinnedPolicy(OracleReplay()).to_json()


def changed(**change: Any) -> str:
    said = json.loads(PinnedPolicy(policy_named("economic", learned=SHIPPED), 4_096).to_json())
    return json.dumps(said | change)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "{}",
        changed(version=VERSION + 1),
        changed(version=str(VERSION)),
        changed(policy="clairvoyant"),
        changed(policy="tomorrow"),
        changed(head=None),
        changed(head="long"),
        changed(settings={"window": "large"}),
        changed(settings={"window": True}),
        changed(settings={"prices": {"tiers": [1]}}),
        changed(settings={"prices": {"tiers": [[1, "dear", 1, 1, 1, 1]]}}),
        changed(settings={"priors": [1, 2]}),
        changed(settings={"priors": {"age": "old"}}),
        changed(settings={"a setting of tomorrow": 1}),
        changed(settings={"folds": {"a setting of tomorrow": 1}}),
    ],
)
def test_what_cannot_be_derived_as_it_was_is_not_read(text: str) -> None:
    assert parse(text) is None


def test_a_setting_that_an_older_version_did_not_have_is_what_ships() -> None:
    said = json.loads(PinnedPolicy(policy_named("economic", window=9_999)).to_json())
    del said["settings"]["folds"]["rent"]

    assert parse(json.dumps(said)) == PinnedPolicy(policy_named("economic", window=9_999))
    assert parse(changed()) != parse(changed(settings={"window": 9_999}))


def test_a_history_begins_at_its_first_request_and_is_known_by_its_first_answer() -> None:
    messages = [_message(role) for role in ("system", "user", "assistant", "user", "assistant")]
    links = [bytes([place]) for place in range(5)]

    assert root_of(messages[:2], links[:2]) == (links[1], None)
    assert root_of(messages[:3], links[:3]) == root_of(messages, links) == (links[1], links[2])
    assert root_of(messages[2:], links[2:]) == (links[2], links[2])


def _message(role: str) -> Message:
    return replace(openai_chat.parse_message({"role": role, "content": "So."}, "{}"))
