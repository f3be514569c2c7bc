"""The simulated agent as a model on loopback, behind the provider that enforces its rules: for runs over HTTP."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pagefold.model_proxy.server import running
from pagefold.provider.answer import Answer
from pagefold.provider.referee import Referee
from pagefold.provider.reply import RequestRecord
from pagefold.provider.server import ProviderApp
from pagefold.solve.simulated import SimulatedAgent
from pagefold.solve.task import Task


@dataclass
class SolvingModel:
    """Works on these tasks, known by what the user asks first; a request with one message begins a new run. Every text
    it says ends with `echo`."""

    tasks: Sequence[Task]
    echo: str = ""
    url: str = ""
    records: list[RequestRecord] = field(default_factory=list)
    _agent: SimulatedAgent | None = None

    def __call__(self, number: int, request: Mapping[str, Any]) -> Answer:
        messages = request["messages"]
        if messages[0]["role"] == "system":
            messages = from_chat(messages[1:])
        if len(messages) == 1:
            first = messages[0]["content"][0]["text"]
            self._agent = SimulatedAgent(next(task for task in self.tasks if task.asks[0].text == first).asks)
        assert self._agent is not None
        answer = self._agent(number, {"messages": messages})
        return replace(answer, text=f"{answer.text} {self.echo}") if self.echo else answer


def from_chat(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages of Chat Completions as the agent reads them."""
    read: list[dict[str, Any]] = []
    for message in messages:
        blocks: list[dict[str, Any]] = []
        if message["role"] == "tool":
            blocks = [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
        elif message.get("content"):
            blocks = [{"type": "text", "text": message["content"]}]
        for call in message.get("tool_calls") or ():
            given = json.loads(call["function"]["arguments"])
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": given})
        read.append({"role": "assistant" if message["role"] == "assistant" else "user", "content": blocks})
    return read


@contextmanager
def solving_model(tasks: Sequence[Task], echo: str = "") -> Iterator[SolvingModel]:
    model = SolvingModel(tasks, echo)
    app = ProviderApp(Referee(answers=model), seen=lambda record, body: model.records.append(record))
    with running(app) as model.url:
        yield model
