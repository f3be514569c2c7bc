"""LangChain and LangGraph: a middleware that derives what the model is sent, and a tool by which it recalls.

    agent = create_agent(model, tools, middleware=[PagefoldMiddleware()])

The agent's state keeps every message as it is. A node of one's own graph calls `derive` instead.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pagefold.derive.policy import Policy
from pagefold.integrations.histories import RECALL, Histories, missing
from pagefold.pages.store import Store

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise missing("LangChain", "langchain") from error

_ANTHROPIC = ("tool_use", "thinking", "redacted_thinking")


class PagefoldMiddleware(AgentMiddleware):  # type: ignore[misc]
    """`window` is how many tokens fit; without it, what is known of the model. `policy` and `store` are those of
    `pagefold.Deriver`. With `recall=False` the model gets no tool to recall what was folded."""

    def __init__(
        self,
        *,
        window: int = 0,
        policy: str | Policy = "economic",
        store: Store | str | Path | None = None,
        recall: bool = True,
    ) -> None:
        super().__init__()
        self.histories: Histories[Any] = Histories(
            _spelled, _rewritten, HumanMessage, window=window, policy=policy, store=store
        )
        tool = StructuredTool.from_function(
            self.histories.recall, name=RECALL.name, description=RECALL.description, args_schema=dict(RECALL.arguments)
        )
        self.tools = [tool] if recall else []

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Any]) -> Any:
        return handler(self._derived(request))

    async def awrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[Any]]) -> Any:
        return await handler(await asyncio.to_thread(self._derived, request))

    def derive(self, messages: Sequence[AnyMessage], model: Any = None, before: Sequence[str] = ()) -> list[AnyMessage]:
        """What to send in place of these messages; `model` is the chat model, `before` what stands before them."""
        name = getattr(model, "model_name", None) or getattr(model, "model", None) or ""
        return self.histories.derive(messages, model=str(name), before=before)

    def _derived(self, request: ModelRequest) -> ModelRequest:
        tools = [json.dumps(convert_to_openai_tool(tool)) for tool in request.tools]
        before = [request.system_prompt or "", *tools]
        return request.override(messages=self.derive(request.messages, request.model, before))


def _spelled(message: AnyMessage) -> dict[str, Any]:
    content = message.content
    match message:
        case AIMessage():
            blocks = content if isinstance(content, list) else []
            if any(isinstance(block, dict) and block.get("type") in _ANTHROPIC for block in blocks):
                return {"role": "assistant", "content": content}
            calls = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
                }
                for call in message.tool_calls
            ]
            return {"role": "assistant", "content": content} | ({"tool_calls": calls} if calls else {})
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}
        case SystemMessage():
            return {"role": "system", "content": content}
        case _:
            return {"role": "user", "content": content}


def _rewritten(message: AnyMessage, value: Mapping[str, Any]) -> AnyMessage:
    changed: dict[str, Any] = {"content": value["content"]}
    if isinstance(message, AIMessage) and "tool_calls" in value:
        changed["tool_calls"] = [
            {**call, "args": json.loads(spelled["function"]["arguments"])}
            for call, spelled in zip(message.tool_calls, value["tool_calls"], strict=True)
        ]
    return message.model_copy(update=changed)
