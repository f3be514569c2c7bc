"""A client for tests of the referee: it keeps a conversation as documentation asks, and may change it on purpose."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.referee import Referee
from pagefold.provider.reply import ProviderReply

TOOLS: list[dict[str, Any]] = [
    {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {}}}
]
BINDING = "thinking-binding-controls-2026-08-01"


def ask(
    referee: Referee,
    body: Mapping[str, Any],
    answer: Answer | None = None,
    *,
    now: float = 0.0,
    betas: str = "",
    path: str = "/v1/messages",
) -> ProviderReply:
    headers = {"anthropic-beta": betas} if betas else {}
    return referee.answer(path, headers, json.dumps(body).encode(), now, answer)


@dataclass
class Talk:
    """One append-only conversation with tools."""

    referee: Referee
    model: str = "claude-opus-5-5"
    system: Any = "You are an agent."
    tools: Sequence[Mapping[str, Any]] = field(default_factory=lambda: list(TOOLS))
    messages: list[dict[str, Any]] = field(default_factory=list)
    members: dict[str, Any] = field(default_factory=dict)
    betas: str = ""
    now: float = 0.0

    def body(self) -> dict[str, Any]:
        body = {"model": self.model, "max_tokens": 1000, "system": self.system, "tools": self.tools}
        return {**body, "messages": self.messages, **self.members}

    def send(self, answer: Answer | None = None) -> ProviderReply:
        return ask(self.referee, self.body(), answer, now=self.now, betas=self.betas)

    def says(self, text: str, answer: Answer | None = None) -> ProviderReply:
        """The user says something, and the answer is kept."""
        self.messages.append({"role": "user", "content": text})
        return self.keep(self.send(answer))

    def calls(self, number: int) -> ProviderReply:
        """The model calls a tool and gets its result; that request's answer is kept."""
        answer = Answer(calls=[AnswerCall("read", {"path": f"f{number}"})])
        self.says(f"Read f{number}.", answer)
        self.results(f"content of f{number}")
        return self.keep(self.send(Answer(f"Read f{number}.")))

    def results(self, text: str) -> None:
        calls = [block["id"] for block in self.messages[-1]["content"] if block["type"] == "tool_use"]
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": text} for call in calls]
        self.messages.append({"role": "user", "content": blocks})

    def keep(self, reply: ProviderReply) -> ProviderReply:
        assert reply.accepted, reply.message
        self.messages.append({"role": "assistant", "content": reply.message["content"]})
        return reply
