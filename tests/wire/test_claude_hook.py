"""Claude Code's hook after a tool: which texts may be replaced, in which shape, and where the hook is set."""

import json
from typing import Any

import pytest

from pagefold.errors import ConfigError, WireError
from pagefold.wire import claude_hook
from pagefold.wire.claude_hook import EVENT, parse, render, with_hook, without_hook

BASH = {"stdout": "a", "stderr": "b", "interrupted": False}
READ = {"type": "text", "file": {"filePath": "/x", "content": "a", "numLines": 1}}
PARTS = [{"type": "text", "text": "a"}, {"type": "image", "data": "…"}, {"type": "text", "text": "b"}]


def event(tool: str, answer: Any, name: str = EVENT) -> str:
    return json.dumps({"hook_event_name": name, "tool_name": tool, "tool_input": {}, "tool_response": answer})


@pytest.mark.parametrize(
    ("tool", "answer", "texts"),
    [
        ("Bash", BASH, [(("stdout",), "a")]),
        ("Grep", {"mode": "content", "content": "x:1:y"}, [(("content",), "x:1:y")]),
        ("Grep", {"mode": "files_with_matches", "filenames": ["x"]}, []),
        ("Read", READ, []),
        ("Glob", {"filenames": ["x"]}, []),
        ("mcp__git__log", PARTS, [((0, "text"), "a"), ((2, "text"), "b")]),
        ("mcp__git__log", "words", []),
        ("Bash", None, []),
        ("Bash", {"stdout": 3}, []),
    ],
)
def test_only_texts_that_the_model_reads_as_they_stand_are_offered(tool: str, answer: Any, texts: list[Any]) -> None:
    assert list(parse(event(tool, answer)).texts) == texts


def test_a_replaced_text_leaves_the_shape_and_the_rest_as_they_were() -> None:
    said = json.loads(render(parse(event("mcp__git__log", PARTS)), {(2, "text"): "B"}))

    expected = [*PARTS[:2], {"type": "text", "text": "B"}]
    assert said == {"hookSpecificOutput": {"hookEventName": EVENT, "updatedToolOutput": expected}}
    bash = json.loads(render(parse(event("Bash", BASH)), {("stdout",): "A"}))
    assert bash["hookSpecificOutput"]["updatedToolOutput"] == BASH | {"stdout": "A"}


def test_another_event_is_refused() -> None:
    with pytest.raises(WireError):
        parse(event("Bash", BASH, "PreToolUse"))


OTHER = {"matcher": "Edit", "hooks": [{"type": "command", "command": "prettier"}]}


@pytest.mark.parametrize(
    "before",
    [{}, {"model": "x"}, {"hooks": {}}, {"hooks": {"Stop": [OTHER]}}, {"hooks": {EVENT: [OTHER]}, "model": "x"}],
    ids=json.dumps,
)
def test_the_hook_is_set_once_beside_what_is_there_and_taken_out_again(before: dict[str, Any]) -> None:
    text = json.dumps(before)
    once = with_hook(text, ["/opt/my tools/pagefold"], "settings.json")

    groups = json.loads(once)["hooks"][EVENT]
    assert groups[-1]["hooks"][0]["command"] == '"/opt/my tools/pagefold" hook'
    assert groups[:-1] == before.get("hooks", {}).get(EVENT, [])
    assert with_hook(once, ["/elsewhere/pagefold"], "settings.json") == once
    left = without_hook(once, "settings.json")
    assert json.loads(left or "{}") == {name: value for name, value in before.items() if value}
    assert without_hook(text, "settings.json") == text


@pytest.mark.parametrize("text", ["{", "[]"])
def test_settings_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"settings\.json"):
        with_hook(text, ["pagefold"], "settings.json")


def test_the_matcher_names_the_tools_that_are_replaced() -> None:
    assert claude_hook.MATCHER.split("|") == ["Bash", "Grep", "mcp__.*"]
