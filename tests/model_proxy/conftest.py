"""Runs the tests that ask for it with a proxy that changes nothing, and with one that may."""

from collections.abc import Iterator

import pytest

from pagefold.derive.policies import policy_named
from tests.model_proxy.upstream import POLICY


@pytest.fixture(params=["observe", "lossless"])
def policy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever goes through, goes through a proxy that changes nothing and through one that may."""
    POLICY[0] = None if request.param == "observe" else policy_named(request.param)
    yield
    POLICY[0] = None
