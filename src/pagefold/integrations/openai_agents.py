"""The OpenAI Agents SDK: an input filter that derives what the model is sent, and a tool by which it recalls.

    pagefold = Pagefold()
    agent = Agent(name="Reader", tools=[*tools, *pagefold.tools])
    Runner.run(agent, task, run_config=RunConfig(call_model_input_filter=pagefold))

Sessions keep every item as it is.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pagefold.derive.policy import Policy
from pagefold.integrations.histories import RECALL, Histories, missing
from pagefold.pages.store import Store

try:
    from agents import Agent, FunctionTool
    from agents.run import CallModelData, ModelInputData
except ImportError as error:
    raise missing("the OpenAI Agents SDK", "openai-agents") from error


class Pagefold:
    """`window` is how many tokens fit; without it, what is known of the model. `policy` and `store` are those of
    `pagefold.Deriver`. `tools` holds the one by which the model recalls what was folded."""

    def __init__(
        self, *, window: int = 0, policy: str | Policy = "economic", store: Store | str | Path | None = None
    ) -> None:
        self.histories: Histories[Any] = Histories(
            dict, _rewritten, _written, window=window, policy=policy, store=store
        )
        self.tools = [
            FunctionTool(
                name=RECALL.name,
                description=RECALL.description,
                params_json_schema=dict(RECALL.arguments),
                on_invoke_tool=self._recall,
                strict_json_schema=False,
            )
        ]

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        asked, agent = data.model_data, data.agent
        before = [asked.instructions or "", *map(_told, agent.tools)]
        derived = await asyncio.to_thread(self.histories.derive, asked.input, model=_model_of(agent), before=before)
        return ModelInputData(input=derived, instructions=asked.instructions)

    async def _recall(self, _: Any, arguments: str) -> str:
        return await asyncio.to_thread(lambda: self.histories.recall(**json.loads(arguments)))


def _model_of(agent: Agent[Any]) -> str:
    model = agent.model
    return model if isinstance(model, str) else str(getattr(model, "model", "") or "")


def _told(tool: Any) -> str:
    """What the model reads of a tool."""
    described = getattr(tool, "description", ""), getattr(tool, "params_json_schema", {})
    return json.dumps([tool.name, *described], default=str)


def _rewritten(_: Any, value: Mapping[str, Any]) -> Any:
    return dict(value)


def _written(text: str) -> Any:
    return {"role": "user", "content": text}
