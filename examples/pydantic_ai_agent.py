"""A pydantic-ai agent that reads parts of a document, with a context that never outgrows the window.

pip install pagefold 'pydantic-ai-slim[anthropic]'
ANTHROPIC_API_KEY=… python examples/pydantic_ai_agent.py
"""

from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent

from pagefold.integrations.pydantic_ai import Pagefold

TASK = "Read parts 0 to 9 of the document and say what each is about."


def read_part(number: int) -> str:
    """Reads a part of the document."""
    return f"Part {number} is about the number {number}.\n" * 40


def run(model: Any, task: str = TASK, tool: Callable[[int], str] = read_part, window: int = 0) -> str:
    agent: Any = Agent(model, tools=[tool], capabilities=[Pagefold(window=window)])
    return str(agent.run_sync(task).output)


if __name__ == "__main__":
    print(run("anthropic:claude-sonnet-5-5"))
