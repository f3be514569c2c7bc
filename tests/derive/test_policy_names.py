"""Policies by name: every name gives its policy, and what is refused."""

import pytest

from pagefold.derive.policies import LIVE, NAMES, OFFLINE, policy_named
from pagefold.derive.policies.economic import Economic
from pagefold.errors import ConfigError


@pytest.mark.requirement("S-DP-10")
@pytest.mark.parametrize("name", OFFLINE)
def test_an_oracle_is_never_used_for_live_requests(name: str) -> None:
    with pytest.raises(ConfigError, match="for replay alone"):
        policy_named(name)
    with pytest.raises(ConfigError, match="needs the recording"):
        policy_named(name, offline=True).begin()


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
