"""Real agents against the provider that enforces its rules, straight and through pagefold: nothing is refused.

Thinking is in every answer and bound to its prefix. The agents are driven by the kit beside the project; where it or
they are missing the tests skip. Everything stays on loopback.
"""

from pathlib import Path

import pytest

from tests.agents.kit import KIT, program_of
from tests.agents.refereed import AGENTS, continued, drive, drive_folding, refereed, work_in

pytestmark = pytest.mark.skipif(not KIT.exists(), reason="the agents kit (../shared/agents) is not on this machine")
TURNS = 40


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    name: str = request.param
    program_of(name)
    work_in(tmp_path)
    return name


def test_an_agent_keeps_its_thinking_valid_and_is_not_refused(agent: str, tmp_path: Path) -> None:
    with refereed(8) as provider:
        assert "All is read." in drive(agent, provider.url, tmp_path, "Read code.py in parts")
        assert "Nothing is left." in drive(agent, provider.url, tmp_path, "And now?", *continued(agent))
    records, referee = provider.records, provider.referee
    assert [record.reason for record in records if record.rule] == []
    assert max(record.thinking for record in records) == 9
    assert (referee.totals.dropped, referee.totals.unreadable) == (0, 0)
    last = [record.charge for record in records if record.charge][-1]
    assert last.read > 0.9 * last.prompt


def test_an_agent_behind_pagefold_is_not_refused_and_goes_on_without_it(agent: str, tmp_path: Path) -> None:
    """Past its window, with folds. Without pagefold the provider is shown another prefix than the one that thinking is
    bound to: Claude Code then sends the same without thinking, by itself; OpenCode has asked to drop what
    is bound elsewhere."""
    if agent == "claude-code (older)":
        pytest.skip("does what the newest does, and takes as long")
    with refereed(TURNS) as provider:
        proxy = drive_folding(agent, provider, tmp_path)
        behind = len(provider.records)
        assert "Nothing is left." in drive(agent, provider.url, tmp_path, "And now?", *continued(agent))

    assert [record.reason for record in provider.records[:behind] if record.rule] == []
    assert (proxy.totals.faults, proxy.totals.failed) == (0, 0)
    assert proxy.totals.work.folds >= 1
    left = {"claude-code": ["thinking_bound", ""], "codex": [""], "opencode": [""]}
    assert provider.rules[behind:] == left[agent]
