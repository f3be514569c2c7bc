"""pydantic-ai: a capability that derives what the model is sent, and a tool by which it recalls.

    agent = Agent(model, capabilities=[Pagefold()])

The run's history keeps every message as it is: only the request is derived. That is why this is no history processor,
whose result replaces the history.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pagefold.derive.policy import Policy
from pagefold.integrations.histories import RECALL, Histories, missing
from pagefold.pages.store import Store

try:
    from pydantic_ai import RunContext, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        RetryPromptPart,
        SystemPromptPart,
        TextPart,
        ThinkingPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.toolsets import FunctionToolset
except ImportError as error:
    raise missing("pydantic-ai", "pydantic-ai-slim") from error


@dataclass
class Pagefold(AbstractCapability[Any]):  # type: ignore[misc]
    """`window` is how many tokens fit; without it, what is known of the model. `policy` and `store` are those of
    `pagefold.Deriver`. With `recall=False` the model gets no tool to recall what was folded."""

    window: int = 0
    policy: str | Policy = "economic"
    store: Store | str | Path | None = None
    recall: bool = True
    histories: Histories[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.histories = Histories(
            _spelled, _rewritten, _written, window=self.window, policy=self.policy, store=self.store
        )

    def get_toolset(self) -> Any:
        if not self.recall:
            return None
        arguments = dict(RECALL.arguments)
        tool = Tool.from_schema(self.histories.recall, RECALL.name, RECALL.description, arguments)
        return FunctionToolset([tool], id="pagefold")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        asked = request_context.model_request_parameters
        tools = [
            json.dumps([tool.name, tool.description, tool.parameters_json_schema]) for tool in asked.function_tools
        ]
        before = [*(part.content for part in asked.instruction_parts or ()), *tools]
        messages = await asyncio.to_thread(
            self.histories.derive, request_context.messages, model=request_context.model.model_name, before=before
        )
        return replace(request_context, messages=messages)


def _spelled(message: ModelMessage) -> dict[str, Any]:
    """One block for each part."""
    role = "assistant" if isinstance(message, ModelResponse) else "user"
    return {"role": role, "content": [_block(part) for part in message.parts]}


def _block(part: Any) -> dict[str, Any]:
    match part:
        case ToolReturnPart():
            return {"type": "tool_result", "tool_use_id": part.tool_call_id, "content": part.model_response_str()}
        case RetryPromptPart() if part.tool_name:
            text = part.model_response()
            return {"type": "tool_result", "tool_use_id": part.tool_call_id, "content": text, "is_error": True}
        case ToolCallPart():
            return {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name, "input": part.args_as_dict()}
        case ThinkingPart():
            return {"type": "thinking", "thinking": part.content, "signature": part.signature or ""}
        case TextPart():
            return {"type": "text", "text": part.content}
        case UserPromptPart() | SystemPromptPart() if isinstance(part.content, str):
            return {"type": "text", "text": part.content}
    return {"type": part.part_kind, "value": repr(part)}  # pagefold leaves a block alone that it does not know


def _rewritten(message: ModelMessage, value: Mapping[str, Any]) -> ModelMessage:
    blocks: Sequence[Mapping[str, Any]] = value["content"]
    parts = list(message.parts)
    if len(blocks) < len(parts):  # its reasoning was left out
        parts = [part for part in parts if not isinstance(part, ThinkingPart)]
    return replace(message, parts=[_part(part, block) for part, block in zip(parts, blocks, strict=True)])


def _part(part: Any, block: Mapping[str, Any]) -> Any:
    if _block(part) == block:
        return part
    if isinstance(part, ToolCallPart):
        return replace(part, args=block["input"])
    return replace(part, content=block["content"] if block["type"] == "tool_result" else block["text"])


def _written(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(text)])
