"""A LangChain agent that reads parts of a document, with a context that never outgrows the window.

pip install pagefold langchain langchain-anthropic
ANTHROPIC_API_KEY=… python examples/langchain_agent.py
"""

from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic

from pagefold.integrations.langchain import PagefoldMiddleware

TASK = "Read parts 0 to 9 of the document and say what each is about."


def read_part(number: int) -> str:
    """Reads a part of the document."""
    return f"Part {number} is about the number {number}.\n" * 40


def run(model: Any, task: str = TASK, tool: Callable[[int], str] = read_part, window: int = 0) -> str:
    agent: Any = create_agent(model, [tool], middleware=[PagefoldMiddleware(window=window)])
    answer = agent.invoke({"messages": [("user", task)]}, {"recursion_limit": 200})
    return str(answer["messages"][-1].text)


if __name__ == "__main__":
    print(run(ChatAnthropic(model="claude-sonnet-5-5")))
