"""DerivePolicy: the checklist S-DP, line by line, and what is refused."""

import json
from typing import Any

import pytest

from pagefold.derive.policies import LIVE, NAMES, OFFLINE, Conditions, policy_named, policy_of
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.incremental import Incremental
from pagefold.derive.policies.legacy import Legacy
from pagefold.derive.policies.oracle import OracleReplay
from pagefold.derive.policies.reset import Reset
from pagefold.derive.policy import DerivePolicy
from pagefold.errors import ConfigError


@pytest.mark.requirement("S-DP-1")
def test_the_default_is_legacy() -> None:
    assert DerivePolicy() == DerivePolicy.legacy()
    assert DerivePolicy().kind == "legacy"


@pytest.mark.requirement("S-DP-2")
def test_reset_carries_its_threshold() -> None:
    assert DerivePolicy.reset(threshold_tokens=8192).threshold_tokens == 8192


@pytest.mark.requirement("S-DP-3")
def test_kinds_are_snake_case_and_distinct() -> None:
    policies = (
        DerivePolicy.legacy(),
        DerivePolicy.reset(threshold_tokens=0),
        DerivePolicy.incremental(budget_tokens=0),
    )

    assert [policy.kind for policy in policies] == ["legacy", "reset", "incremental"]


@pytest.mark.requirement("S-DP-4")
def test_incremental_carries_its_budget() -> None:
    assert DerivePolicy.incremental(budget_tokens=16_384).budget_tokens == 16_384


@pytest.mark.requirement("S-DP-5")
def test_reset_survives_json() -> None:
    text = json.dumps(DerivePolicy.reset(threshold_tokens=12_000).to_dict(), separators=(",", ":"))

    assert '"policy":"reset"' in text
    assert DerivePolicy.from_dict(json.loads(text)).threshold_tokens == 12_000


@pytest.mark.requirement("S-DP-6")
def test_legacy_and_reset_are_told_apart() -> None:
    assert DerivePolicy.legacy() != DerivePolicy.reset(threshold_tokens=16_000)
    assert DerivePolicy.legacy().kind != DerivePolicy.reset(threshold_tokens=16_000).kind


@pytest.mark.requirement("S-DP-7")
def test_kind_of_legacy_and_of_reset_are_as_documented() -> None:
    assert DerivePolicy.legacy().kind == "legacy"
    assert DerivePolicy.reset(threshold_tokens=0).kind == "reset"


@pytest.mark.requirement("S-DP-8")
def test_oracle_replay_carries_its_lookahead() -> None:
    policy = DerivePolicy.oracle_replay(lookahead=5)

    assert (policy.kind, policy.lookahead) == ("oracle_replay", 5)
    assert DerivePolicy.oracle_replay().lookahead == 3


FORMS: tuple[tuple[DerivePolicy, dict[str, Any]], ...] = (
    (DerivePolicy.legacy(), {"policy": "legacy"}),
    (DerivePolicy.reset(threshold_tokens=7), {"policy": "reset", "threshold_tokens": 7}),
    (DerivePolicy.incremental(budget_tokens=8), {"policy": "incremental", "budget_tokens": 8}),
    (DerivePolicy.oracle_replay(lookahead=9), {"policy": "oracle_replay", "lookahead": 9}),
)


@pytest.mark.requirement("S-DP-9")
@pytest.mark.parametrize(("policy", "form"), FORMS)
def test_the_written_forms(policy: DerivePolicy, form: dict[str, Any]) -> None:
    assert policy.to_dict() == form
    assert DerivePolicy.from_dict(form) == policy


@pytest.mark.requirement("S-DP-10")
@pytest.mark.parametrize("name", OFFLINE)
def test_an_oracle_is_never_used_for_live_requests(name: str) -> None:
    with pytest.raises(ConfigError, match="for replay alone"):
        policy_named(name)
    with pytest.raises(ConfigError, match="needs the recording"):
        policy_named(name, offline=True).begin()


@pytest.mark.requirement("S-DP-10")
def test_a_written_oracle_is_refused_live_and_made_offline() -> None:
    with pytest.raises(ConfigError, match="for replay alone"):
        policy_of(DerivePolicy.oracle_replay(lookahead=2))

    assert policy_of(DerivePolicy.oracle_replay(lookahead=2), offline=True) == OracleReplay(lookahead=2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"policy": "magic"}, "policy = 'magic': expected one of legacy, reset, incremental, oracle_replay"),
        ({}, "policy = None: expected one of legacy, reset"),
        ({"policy": "reset"}, "policy = 'reset': it needs threshold_tokens alone"),
        ({"policy": "reset", "budget_tokens": 1}, "it needs threshold_tokens alone, found budget_tokens"),
        ({"policy": "legacy", "lookahead": 1}, "it needs nothing else, found lookahead"),
        ({"policy": "reset", "threshold_tokens": -1}, "threshold_tokens = -1: expected a whole number from 0"),
        ({"policy": "reset", "threshold_tokens": True}, "expected a whole number from 0"),
        ({"policy": "reset", "threshold_tokens": "many"}, "expected a whole number from 0"),
    ],
)
def test_what_is_no_policy_is_refused_with_what_would_do(value: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DerivePolicy.from_dict(value)


def test_a_choice_makes_the_policy_that_runs() -> None:
    given = Conditions(window=50_000)

    assert policy_of(DerivePolicy.legacy(), given) == Legacy(50_000)
    assert policy_of(DerivePolicy.reset(threshold_tokens=9), given) == Reset(50_000, threshold_tokens=9)
    assert policy_of(DerivePolicy.incremental(budget_tokens=9), given) == Incremental(50_000, budget_tokens=9)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_gives_its_policy_and_those_that_fold_know_the_window(name: str) -> None:
    policy = policy_named(name, window=12_345, offline=True)

    assert policy.name == name
    assert getattr(policy, "window", 12_345) == 12_345


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(
        ConfigError, match=r"policy = 'magic': expected one of identity, lossless, economic, .*, compaction$"
    ):
        policy_named("magic")
    assert policy_named("economic") == Economic()
    assert {"identity", "lossless", "economic", "legacy", "reset", "incremental"} <= {*LIVE}
