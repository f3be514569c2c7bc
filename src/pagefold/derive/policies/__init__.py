"""The policies there are, by name."""

from collections.abc import Mapping

from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.identity import Identity
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policy import Policy
from pagefold.errors import ConfigError

POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in (Identity(), Lossless(), Economic())}


def policy_named(name: str) -> Policy:
    """Raises ConfigError with the names there are."""
    if name not in POLICIES:
        raise ConfigError(f"policy = {name!r}: expected one of {', '.join(sorted(POLICIES))}")
    return POLICIES[name]
