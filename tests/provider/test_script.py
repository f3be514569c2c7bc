"""Scripted answers: the next turn is found in the request, whichever API it is of and whatever a proxy left out."""

import json
from typing import Any

import pytest

from pagefold.errors import ConfigError
from pagefold.provider.referee import Referee
from pagefold.provider.script import parse_script

TURNS = [
    {"text": "Reading.", "tool_call": {"name": "$read", "input": {"path": "a.py"}}},
    {"tool_calls": [{"name": "$shell", "input": {"command": "ls"}}, {"name": "other", "input": {}}]},
    {"text": "Both read."},
    {"text": "Goodbye.", "thinking": "The user leaves."},
]


def agent(path: str, tools: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Plays an agent through the script; returns what was called, and what was said at the end of each turn."""
    referee = Referee(answers=parse_script(json.dumps(TURNS), "turns.json"))
    history: list[Any] = [{"role": "user", "content": "Go."}]
    called, texts = list[Any](), list[Any]()
    key = "input" if path.endswith("responses") else "messages"
    model = "claude-opus-5-5" if path.endswith("messages") else "gpt-5.6-sol"
    for _ in range(5):
        more = {"max_tokens": 100} if model.startswith("claude") else {"store": False}
        body = {"model": model, key: history, "tools": tools, **more}
        reply = referee.answer(path, {}, json.dumps(body).encode(), 0.0)
        assert reply.accepted, reply.message
        if path.endswith("messages"):
            content = reply.message["content"]
            history.append({"role": "assistant", "content": content})
            calls = [(block["id"], block["name"], block["input"]) for block in content if block["type"] == "tool_use"]
            results: list[Any] = [{"type": "tool_result", "tool_use_id": name, "content": "x"} for name, _, _ in calls]
            history += [{"role": "user", "content": results}] if results else []
            texts += [block["text"] for block in content if block["type"] == "text" and not calls]
        elif path.endswith("completions"):
            message = reply.message["choices"][0]["message"]
            history.append(message)
            functions = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
            calls = [(name, function["name"], json.loads(function["arguments"])) for name, function in functions]
            history += [{"role": "tool", "tool_call_id": name, "content": "x"} for name, _, _ in calls]
            texts += [] if calls else [message["content"]]
        else:
            items = reply.message["output"]
            history += items
            calls = [
                (item["call_id"], item["name"], json.loads(item["arguments"]))
                for item in items
                if item["type"] == "function_call"
            ]
            history += [{"type": "function_call_output", "call_id": name, "output": "x"} for name, _, _ in calls]
            texts += [] if calls else [items[-1]["content"][0]["text"]]
        called += [(name, arguments) for _, name, arguments in calls]
        if not calls:
            history.append({"role": "user", "content": "And?"})
    return called, texts


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
def test_an_agent_is_led_through_the_script(path: str) -> None:
    names = ("Read", "Bash", "other")
    anthropic = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    functions: list[dict[str, Any]] = [{"type": "function", "function": {"name": name}} for name in names]
    tools = anthropic if path.endswith("messages") else functions
    if path.endswith("responses"):
        tools = [{"type": "function", "name": name} for name in names]
    called, texts = agent(path, tools)
    assert called[0] == ("Read", {"file_path": "a.py"})
    assert called[1] == ("Bash", {"command": "ls", "description": "scripted"})
    assert called[2] == ("other", {})
    assert texts == ["Both read.", "Goodbye.", "End of script."]


def test_a_retry_gets_the_same_turn_and_a_question_without_tools_calls_nothing() -> None:
    script = parse_script(json.dumps(TURNS), "turns.json")
    request = {"messages": [{"role": "user", "content": "Go."}], "tools": [{"name": "bash"}]}
    assert script(1, request) == script(2, request)
    assert script(1, request).calls[0].arguments == {"command": "cat a.py", "description": "scripted"}
    assert not script(1, {"messages": request["messages"]}).calls


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "expected a JSON list of turns"),
        ("{}", "found dict"),
        ('[{"txt": "a"}]', "turn 0: expected an object with any of text"),
        ("[{}]", "turn 0"),
        ('[{"text": "a"}, {"tool_call": {"input": {}}}]', "turn 1: a call is an object with a name"),
    ],
)
def test_what_is_no_script_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"turns\.json") as refused:
        parse_script(text, "turns.json")
    assert words in str(refused.value)
