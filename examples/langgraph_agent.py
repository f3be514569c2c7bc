"""A LangGraph graph of one's own that reads parts of a document: its model node sends what pagefold derives.

pip install pagefold langchain langchain-anthropic
ANTHROPIC_API_KEY=… python examples/langgraph_agent.py
"""

from collections.abc import Callable
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool as as_tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from pagefold.integrations.langchain import PagefoldMiddleware

TASK = "Read parts 0 to 9 of the document and say what each is about."


def read_part(number: int) -> str:
    """Reads a part of the document."""
    return f"Part {number} is about the number {number}.\n" * 40


def run(model: Any, task: str = TASK, tool: Callable[[int], str] = read_part, window: int = 0) -> str:
    pagefold = PagefoldMiddleware(window=window)
    tools = [as_tool(tool), *pagefold.tools]
    bound = model.bind_tools(tools)

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(pagefold.derive(state["messages"], model))]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    answer = graph.compile().invoke({"messages": [("user", task)]}, {"recursion_limit": 200})
    return str(answer["messages"][-1].text)


if __name__ == "__main__":
    print(run(ChatAnthropic(model="claude-sonnet-5-5")))
