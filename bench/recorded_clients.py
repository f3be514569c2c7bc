"""Plays recorded sessions as the agents that made them would: append-only, through the API of their provider.

A client keeps the answers exactly as they come, thinking included, marks the prompt for the cache as Claude Code does,
and sends everything again with each request. What a recording lacks so that an API takes it (a user's word between two
answers, ids that no other call has) is added.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pagefold.provider.answer import Answer, ToolCall
from pagefold.provider.reply import Reply
from pagefold.wire.message import BlockKind, Message, Role
from pagefold.wire.transcripts import Session

GO_ON = "Go on."
STEP = 20.0  # seconds between messages where a recording has no times


@dataclass(frozen=True)
class Ask:
    """One request of a session: its body, when it is sent, and what the model answered when it was recorded."""

    body: bytes
    now: float
    answer: Answer


def answer_of(message: Message, number: int) -> Answer:
    text = "\n".join(block.text for block in message.blocks if block.kind is BlockKind.TEXT)
    blocks = [block for block in message.blocks if block.kind is BlockKind.CALL]
    calls = [
        ToolCall(block.name or "tool", arguments(block.text), f"call_{number}_{at}") for at, block in enumerate(blocks)
    ]
    return Answer(text if text.strip() or calls else "(nothing)", calls)


def arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {"input": text}
    return value if isinstance(value, dict) else {"input": value}


def texts_of(message: Message) -> str:
    return "\n".join(block.text for block in message.blocks if block.kind is BlockKind.TEXT)


@dataclass
class MessagesClient:
    """A client of the Messages API. `life` is the cache life that it asks for, `thinking` its parameter of that name;
    both of its marks move as Claude Code moves them: one on the system prompt, one on the last block."""

    session: Session
    model: str
    life: str = "1h"
    thinking: dict[str, Any] = field(default_factory=lambda: {"type": "adaptive"})
    path = "/v1/messages"

    def __post_init__(self) -> None:
        self._raws: list[str] = []
        self._last: dict[str, Any] | None = None
        self._ids: dict[str, str] = {}
        self._mark = {"type": "ephemeral", "ttl": self.life}
        self.thinking_kept = 0
        names = {
            block.name for message in self.session.messages for block in message.blocks if block.kind is BlockKind.CALL
        }
        schema = {"type": "object", "properties": {}}
        tools = [
            {"name": name or "tool", "description": f"Runs {name}.", "input_schema": schema} for name in sorted(names)
        ]
        said = [texts_of(message) for message in self._leading_system()]
        system = "\n\n".join([f"You are an agent in session {self.session.id}.", *said])
        rest: dict[str, Any] = {"system": [{"type": "text", "text": system, "cache_control": self._mark}]}
        rest |= {"tools": tools, "max_tokens": 32_000, "thinking": self.thinking, "stream": False}
        self._rest = json.dumps(rest)[1:]

    def _leading_system(self) -> list[Message]:
        found: list[Message] = []
        for message in self.session.messages:
            if message.role is not Role.SYSTEM:
                break
            found.append(message)
        return found

    def asks(self) -> Iterator[Ask]:
        """The requests of the session. After each, its reply is told by `keep`."""
        start = len(self._leading_system())
        for number, message in enumerate(self.session.messages[start:], start):
            now = self.session.times[number] if self.session.times else STEP * number
            if message.role is Role.ASSISTANT:
                if self._last is None or self._last["role"] == "assistant":
                    self._say({"role": "user", "content": [{"type": "text", "text": GO_ON}]})
                blocks = [block for block in message.blocks if block.kind is BlockKind.CALL]
                answer = answer_of(message, number)
                self._ids |= {block.call_id: call.id for block, call in zip(blocks, answer.calls, strict=True)}
                yield Ask(self._body(), now, answer)
            elif message.role is Role.TOOL:
                self._results(message)
            else:
                self._say({"role": "user", "content": [{"type": "text", "text": texts_of(message).strip() or GO_ON}]})

    def keep(self, reply: Reply) -> None:
        """Keeps the answer as it came. After a refusal nothing is kept but what the model would have said."""
        content = reply.message["content"]
        self.thinking_kept += sum(block["type"] == "thinking" for block in content)
        self._say({"role": "assistant", "content": content})

    def keep_unanswered(self, answer: Answer) -> None:
        """Goes on after a refusal with what the model said when it was recorded, so that the next request is one."""
        content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text.strip() else []
        content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": dict(c.arguments)} for c in answer.calls]
        self._say({"role": "assistant", "content": content})

    def _results(self, message: Message) -> None:
        blocks = [
            {"type": "tool_result", "tool_use_id": self._ids.get(block.call_id, block.call_id), "content": block.text}
            for block in message.blocks
            if block.kind is BlockKind.RESULT
        ]
        if self._last is not None and self._last["role"] == "user":
            self._last["content"] += blocks
        else:
            self._say({"role": "user", "content": blocks})

    def _say(self, message: dict[str, Any]) -> None:
        if self._last is not None:
            self._raws.append(json.dumps(self._last))
        self._last = message

    def _body(self) -> bytes:
        assert self._last is not None
        *before, last = self._last["content"]
        marked = {**self._last, "content": [*before, {**last, "cache_control": self._mark}]}
        messages = ",".join([*self._raws, json.dumps(marked)])
        return f'{{"model":"{self.model}","messages":[{messages}],{self._rest}'.encode()
