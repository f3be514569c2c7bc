"""An agent in sixty lines: a model behind the Anthropic Messages API, one tool, and a context that folds.

ANTHROPIC_BASE_URL=http://127.0.0.1:8080 python examples/agent_loop.py "Which file defines parse?"
"""

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

from pagefold import Context

READ = {
    "name": "read_file",
    "description": "Read a text file.",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
RECALL = {
    "name": "context_recall",
    "description": "Give back, whole, what a handle such as pf-abcdefghij in this conversation stands for.",
    "input_schema": {"type": "object", "properties": {"handle": {"type": "string"}}, "required": ["handle"]},
}


def ask(url: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    body = {"model": "claude-sonnet-5", "max_tokens": 2048, "tools": [READ, RECALL], "messages": messages}
    headers = {"content-type": "application/json", "x-api-key": os.environ.get("ANTHROPIC_API_KEY", "")}
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return dict(json.load(answer))


def use(context: Context, name: str, given: dict[str, str]) -> str:
    if name == RECALL["name"]:
        return context.recall(given["handle"])
    try:
        return Path(given["path"]).read_text()
    except OSError as error:
        return f"error: {error}"


def run(task: str, url: str, window: int = 200_000) -> Context:
    context = Context(window, model="claude-sonnet-5", head=600)
    context.add({"role": "user", "content": task})
    while True:
        answer = ask(url, context.request())
        context.add({"role": "assistant", "content": answer["content"]})
        calls = [part for part in answer["content"] if part["type"] == "tool_use"]
        if not calls:
            return context
        done = [(call["id"], use(context, call["name"], call["input"])) for call in calls]
        results = [{"type": "tool_result", "tool_use_id": call, "content": text} for call, text in done]
        context.add({"role": "user", "content": results})


if __name__ == "__main__":
    print(run(" ".join(sys.argv[1:]), os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")).report())
