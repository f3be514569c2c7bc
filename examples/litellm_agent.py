"""An agent loop over LiteLLM that reads parts of a document, with a context that never outgrows the window.

pip install pagefold litellm
ANTHROPIC_API_KEY=… python examples/litellm_agent.py
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import litellm

from pagefold.integrations.litellm import PagefoldCallback

TASK = "Read parts 0 to 9 of the document and say what each is about."
NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
TOOLS = [{"type": "function", "function": {"name": "read_part", "parameters": NUMBER}}]


def read_part(number: int) -> str:
    """Reads a part of the document."""
    return f"Part {number} is about the number {number}.\n" * 40


async def run(
    model: str, task: str = TASK, tool: Callable[[int], str] = read_part, window: int = 0, **more: Any
) -> str:
    litellm.callbacks = [PagefoldCallback(policy="economic", window=window)]
    messages: list[Any] = [{"role": "user", "content": task}]
    while True:
        answer: Any = await litellm.acompletion(model=model, messages=messages, tools=TOOLS, **more)
        said = answer.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            return str(said.content)
        for call in said.tool_calls:
            text = tool(json.loads(call.function.arguments)["number"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


if __name__ == "__main__":
    print(asyncio.run(run("anthropic/claude-sonnet-5-5")))
