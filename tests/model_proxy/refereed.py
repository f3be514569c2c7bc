"""The referee behind real sockets, and an agent that keeps every answer exactly as it came, thinking included."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pagefold.model_proxy.server import running
from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.referee import Referee
from pagefold.provider.reply import RequestRecord
from pagefold.provider.server import ProviderApp
from pagefold.wire.apis import MESSAGES
from tests.model_proxy.conversation import FILE
from tests.model_proxy.upstream import ask

MODEL = "claude-opus-5-5"
_TOOLS = [{"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}]


def reads_a_file(number: int, request: Mapping[str, Any]) -> Answer:
    return Answer(f"Next I read {number}.", [AnswerCall("Read", {"path": f"{number}.py"}, f"call_{number}")])


@dataclass
class Provider:
    """A referee that enforces the check, with all that it decided."""

    referee: Referee = field(default_factory=lambda: Referee(answers=reads_a_file))
    records: list[RequestRecord] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    url: str = ""

    @property
    def refused(self) -> list[str]:
        return [record.reason for record in self.records if record.rule]


@contextmanager
def provider() -> Iterator[Provider]:
    made = Provider()

    def seen(record: RequestRecord, body: bytes) -> None:
        made.records.append(record)
        made.bodies.append(json.loads(body))

    with running(ProviderApp(made.referee, clock=lambda: float(len(made.records)), seen=seen)) as made.url:
        yield made


@dataclass
class Agent:
    """Reads one more file with every turn. `size` is how often each file holds its lines."""

    stream: bool = True
    size: int = 1
    messages: list[dict[str, Any]] = field(default_factory=lambda: [{"role": "user", "content": "Read everything."}])

    def turn(self, url: str, **headers: str) -> tuple[int, dict[str, str]]:
        """Sends the history, keeps what came back, and has the tool's result ready."""
        rest = {"max_tokens": 9000, "system": "s", "tools": _TOOLS, "thinking": {"type": "adaptive"}}
        body = json.dumps({"model": MODEL, "stream": self.stream, "messages": self.messages, **rest}).encode()
        status, found, answer = ask(url, body=body, content_type="application/json", **headers)
        if status == 200:
            content = _content(answer) if self.stream else json.loads(answer)["content"]
            call = next(block["id"] for block in content if block["type"] == "tool_use")
            text = "\n".join([FILE.replace("function", f"function_{len(self.messages)}")] * self.size)
            result = {"type": "tool_result", "tool_use_id": call, "content": text}
            self.messages += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        return status, dict(found)

    @property
    def thinking(self) -> int:
        """How many thinking blocks it keeps."""
        kinds = [block["type"] for message in self.messages[1:] for block in message["content"]]
        return kinds.count("thinking")


def _content(answer: bytes) -> list[dict[str, Any]]:
    stream = MESSAGES.stream()
    stream.feed(answer)
    content: list[dict[str, Any]] = json.loads(stream.response().message.raw)["content"]
    return content
