"""The Claude Agent SDK with the Claude Code that it brings along, past the window, through a proxy in this process."""

import asyncio
import importlib
import json
from pathlib import Path

import pytest

from tests.integrations.kit import CLAUDE, LAST, READING, TASK, WINDOW, needs, provider, read_part

pytestmark = [needs("claude_agent_sdk"), pytest.mark.filterwarnings("ignore")]


def test_a_loop_past_the_window_ends_as_scripted(tmp_path: Path) -> None:
    run = importlib.import_module("examples.claude_agent_sdk_agent").run
    called = "mcp__document__read_part"
    turns = [{**turn, "tool_call": {**turn["tool_call"], "name": called}} for turn in READING]
    with provider([*turns, {"text": LAST}]) as judged:
        env = {
            "ANTHROPIC_BASE_URL": judged.url,
            "ANTHROPIC_API_KEY": "sk-scripted",
            "CLAUDE_CONFIG_DIR": str(tmp_path),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        assert asyncio.run(run(CLAUDE, TASK, read_part, WINDOW, **env)) == LAST
    loop = [body for body in judged.bodies if body.get("tools")]
    assert [record.rule for record in judged.records if record.rule] == []
    assert len(loop) >= len(turns) + 1
    assert "pagefold wrote this message" in json.dumps(loop[-1])
