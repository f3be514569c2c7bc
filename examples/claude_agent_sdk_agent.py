"""An agent of the Claude Agent SDK that reads parts of a document, with a context that never outgrows the window.

pip install pagefold claude-agent-sdk
ANTHROPIC_API_KEY=… python examples/claude_agent_sdk_agent.py
"""

import asyncio
from collections.abc import Callable
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool

from pagefold.integrations.claude_agent_sdk import derived_options

TASK = "Read parts 0 to 9 of the document and say what each is about."


def read_part(number: int) -> str:
    """Reads a part of the document."""
    return f"Part {number} is about the number {number}.\n" * 40


async def run(model: str, task: str = TASK, read: Callable[[int], str] = read_part, window: int = 0, **env: str) -> str:
    async def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": read(arguments["number"])}]}

    served = create_sdk_mcp_server("document", tools=[tool("read_part", "Reads a part.", {"number": int})(answer)])
    asked = ClaudeAgentOptions(
        model=model,
        system_prompt="You read documents.",
        mcp_servers={"document": served},
        tools=[],
        allowed_tools=["mcp__document__read_part"],
        setting_sources=[],
        env=env,
    )
    said = ""
    with derived_options(asked, window=window) as options:
        async for message in query(prompt=task, options=options):
            said = str(message.result) if isinstance(message, ResultMessage) else said
    return said


if __name__ == "__main__":
    print(asyncio.run(run("claude-sonnet-5-5")))
