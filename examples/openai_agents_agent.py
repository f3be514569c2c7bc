"""An agent of the OpenAI Agents SDK that reads parts of a document, with a context that never outgrows the window.

pip install pagefold openai-agents
OPENAI_API_KEY=… python examples/openai_agents_agent.py
"""

from collections.abc import Callable
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool

from pagefold.integrations.openai_agents import Pagefold

TASK = "Read parts 0 to 9 of the document and say what each is about."


def read_part(number: int) -> str:
    """Reads a part of the document."""
    return f"Part {number} is about the number {number}.\n" * 40


def run(model: Any, task: str = TASK, tool: Callable[[int], str] = read_part, window: int = 0) -> str:
    pagefold = Pagefold(window=window)
    agent: Any = Agent(name="Reader", model=model, tools=[function_tool(tool), *pagefold.tools])
    config = RunConfig(call_model_input_filter=pagefold, tracing_disabled=True)
    return str(Runner.run_sync(agent, task, run_config=config, max_turns=100).final_output)


if __name__ == "__main__":
    print(run("gpt-5.6-sol"))
