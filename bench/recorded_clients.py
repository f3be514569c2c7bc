"""Plays recorded sessions as the agents that made them would: append-only, through the API of their provider.

A client keeps the answers exactly as they come, thinking included, marks the prompt for the cache as its agent does,
and sends everything again with each request. What a recording lacks so that an API takes it (a user's word between two
answers, ids that no other call has) is added. Some answers think twice, and some thinking is redacted.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.reply import ProviderReply
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


class RecordedClient:
    """One recorded session as an agent. `life` is the cache life that it asks for, where its API sells several.
    `thinking_kept` is how many pieces of thinking it sends back."""

    path = ""

    def __init__(self, session: Session, model: str, life: str = "1h") -> None:
        self.session, self.model, self.life = session, model, life
        self.thinking_kept = 0
        self._raws: list[str] = []  # the history but for its last part, which may still grow
        self._last: dict[str, Any] | None = None
        self._ids: dict[str, str] = {}
        leading = list(takewhile(lambda message: message.role is Role.SYSTEM, session.messages))
        self._start = len(leading)
        self.system = "\n\n".join([f"You are an agent in session {session.id}.", *map(text_of, leading)])
        blocks = [block for message in session.messages for block in message.blocks]
        self.tool_names = sorted({block.name or "tool" for block in blocks if block.kind is BlockKind.CALL})

    def asks(self) -> Iterator[Ask]:
        """The requests of the session. After each, its reply is told by `keep` or `keep_unanswered`."""
        answered = True
        for number, message in enumerate(self.session.messages[self._start :], self._start):
            now = self.session.times[number] if self.session.times else STEP * number
            if message.role is Role.ASSISTANT:
                if answered:
                    self._user(GO_ON)
                blocks = [block for block in message.blocks if block.kind is BlockKind.CALL]
                answer = answer_of(message, number)
                self._ids |= {block.call_id: call.id for block, call in zip(blocks, answer.calls, strict=True)}
                yield Ask(self._body(), now, answer)
                answered = True
            elif message.role is Role.TOOL:
                for block in message.blocks:
                    if block.kind is BlockKind.RESULT:
                        self._result(self._ids.get(block.call_id, block.call_id), block.text)
                answered = False
            else:
                self._user(text_of(message).strip() or GO_ON)
                answered = False

    def keep(self, reply: ProviderReply) -> None:
        """Keeps the answer as it came."""
        raise NotImplementedError

    def keep_unanswered(self, answer: Answer) -> None:
        """Goes on after a refusal with what the model said when it was recorded, so that the next request is one."""
        raise NotImplementedError

    def _user(self, text: str) -> None:
        raise NotImplementedError

    def _result(self, call_id: str, text: str) -> None:
        raise NotImplementedError

    def _body(self) -> bytes:
        raise NotImplementedError

    def _say(self, message: dict[str, Any]) -> None:
        if self._last is not None:
            self._raws.append(json.dumps(self._last))
        self._last = message


def answer_of(message: Message, number: int) -> Answer:
    blocks = [block for block in message.blocks if block.kind is BlockKind.CALL]
    calls = [
        AnswerCall(block.name or "tool", arguments(block.text), f"call_{number}_{at}")
        for at, block in enumerate(blocks)
    ]
    text = text_of(message)
    second = "Now the calls." if number % 5 == 1 else ""
    return Answer(
        text if text.strip() or calls else "(nothing)", calls, second_thinking=second, redacted=number % 7 == 3
    )


def arguments(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {"input": text}
    return value if isinstance(value, dict) else {"input": value}


def text_of(message: Message) -> str:
    return "\n".join(block.text for block in message.blocks if block.kind is BlockKind.TEXT)


class MessagesClient(RecordedClient):
    """A client of the Messages API with two cache marks, as Claude Code sets them: one on the system prompt, one on the
    last block."""

    path = "/v1/messages"

    def __init__(self, session: Session, model: str, life: str = "1h") -> None:
        super().__init__(session, model, life)
        self._mark = {"type": "ephemeral", "ttl": life}
        schema = {"type": "object", "properties": {}}
        tools = [{"name": name, "description": f"Runs {name}.", "input_schema": schema} for name in self.tool_names]
        rest: dict[str, Any] = {"system": [{"type": "text", "text": self.system, "cache_control": self._mark}]}
        rest |= {"tools": tools, "max_tokens": 32_000, "thinking": {"type": "adaptive"}, "stream": False}
        self._rest = json.dumps(rest)[1:]

    def keep(self, reply: ProviderReply) -> None:
        content = reply.message["content"]
        self.thinking_kept += sum(block["type"].endswith("thinking") for block in content)
        self._say({"role": "assistant", "content": content})

    def keep_unanswered(self, answer: Answer) -> None:
        content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text.strip() else []
        content += [{"type": "tool_use", "id": c.id, "name": c.name, "input": dict(c.arguments)} for c in answer.calls]
        self._say({"role": "assistant", "content": content})

    def _user(self, text: str) -> None:
        self._say({"role": "user", "content": [{"type": "text", "text": text}]})

    def _result(self, call_id: str, text: str) -> None:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        if self._last is not None and self._last["role"] == "user":
            self._last["content"].append(block)
        else:
            self._say({"role": "user", "content": [block]})

    def _body(self) -> bytes:
        assert self._last is not None
        *before, last = self._last["content"]
        marked = {**self._last, "content": [*before, {**last, "cache_control": self._mark}]}
        messages = ",".join([*self._raws, json.dumps(marked)])
        return f'{{"model":"{self.model}","messages":[{messages}],{self._rest}'.encode()


class ChatClient(RecordedClient):
    """A client of the Chat Completions API."""

    path = "/v1/chat/completions"

    def __init__(self, session: Session, model: str, life: str = "1h") -> None:
        super().__init__(session, model, life)
        tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in self.tool_names]
        self._rest = json.dumps({**({"tools": tools} if tools else {}), "prompt_cache_key": session.id})[1:]
        self._say({"role": "system", "content": self.system})

    def keep(self, reply: ProviderReply) -> None:
        self._say(dict(reply.message["choices"][0]["message"]))

    def keep_unanswered(self, answer: Answer) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text}
        functions = [
            (call.id, {"name": call.name, "arguments": json.dumps(dict(call.arguments))}) for call in answer.calls
        ]
        calls = [{"id": name, "type": "function", "function": function} for name, function in functions]
        self._say({**message, "tool_calls": calls} if calls else message)

    def _user(self, text: str) -> None:
        self._say({"role": "user", "content": text})

    def _result(self, call_id: str, text: str) -> None:
        self._say({"role": "tool", "tool_call_id": call_id, "content": text})

    def _body(self) -> bytes:
        messages = ",".join([*self._raws, json.dumps(self._last)])
        return f'{{"model":"{self.model}","messages":[{messages}],{self._rest}'.encode()


class ResponsesClient(RecordedClient):
    """A client of the Responses API that keeps its state itself, as Codex does: nothing is stored, and items go back as
    they came, reasoning encrypted."""

    path = "/v1/responses"

    def __init__(self, session: Session, model: str, life: str = "1h") -> None:
        super().__init__(session, model, life)
        tools = [{"type": "function", "name": name, "parameters": {}, "strict": False} for name in self.tool_names]
        rest = {"instructions": self.system, "tools": tools, "store": False, "prompt_cache_key": session.id}
        self._rest = json.dumps({**rest, "include": ["reasoning.encrypted_content"]})[1:]

    def keep(self, reply: ProviderReply) -> None:
        for item in reply.message["output"]:
            self.thinking_kept += item["type"] == "reasoning"
            self._say(dict(item))

    def keep_unanswered(self, answer: Answer) -> None:
        if answer.text.strip():
            content = [{"type": "output_text", "text": answer.text}]
            self._say({"type": "message", "role": "assistant", "content": content})
        for call in answer.calls:
            said = {"call_id": call.id, "name": call.name, "arguments": json.dumps(dict(call.arguments))}
            self._say({"type": "function_call", **said})

    def _user(self, text: str) -> None:
        self._say({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})

    def _result(self, call_id: str, text: str) -> None:
        self._say({"type": "function_call_output", "call_id": call_id, "output": text})

    def _body(self) -> bytes:
        items = ",".join([*self._raws, json.dumps(self._last)])
        return f'{{"model":"{self.model}","input":[{items}],{self._rest}'.encode()


class GeminiClient(RecordedClient):
    """A client of generateContent, as Gemini CLI is one: all responses to one answer are in one content."""

    def __init__(self, session: Session, model: str, life: str = "1h") -> None:
        super().__init__(session, model, life)
        self.path = f"/v1beta/models/{model}:streamGenerateContent?alt=sse"
        schema = {"type": "object", "properties": {}}
        declared = [
            {"name": name, "description": f"Runs {name}.", "parametersJsonSchema": schema} for name in self.tool_names
        ]
        rest: dict[str, Any] = {"systemInstruction": {"parts": [{"text": self.system}]}}
        rest |= {"tools": [{"functionDeclarations": declared}]} if declared else {}
        self._rest = json.dumps(rest)[1:]
        self._open: list[dict[str, Any]] = []  # calls of the last answer that have no response yet

    def keep(self, reply: ProviderReply) -> None:
        content = reply.message["candidates"][0]["content"]
        self.thinking_kept += sum("thoughtSignature" in part for part in content["parts"])
        self._say(dict(content))

    def keep_unanswered(self, answer: Answer) -> None:
        parts: list[dict[str, Any]] = [{"text": answer.text}] if answer.text.strip() else []
        parts += [{"functionCall": {"id": c.id, "name": c.name, "args": dict(c.arguments)}} for c in answer.calls]
        self._say({"role": "model", "parts": parts})

    def _user(self, text: str) -> None:
        self._say({"role": "user", "parts": [{"text": text}]})

    def _result(self, call_id: str, text: str) -> None:
        if self._last is not None and self._last["role"] == "model":
            self._open = [part["functionCall"] for part in self._last["parts"] if "functionCall" in part]
        call = next((call for call in self._open if call.get("id", call_id) == call_id), None)
        if call is None:
            return  # nobody has called it, and no client of this API could say it
        self._open.remove(call)
        own = {"id": call_id} if "id" in call else {}
        part = {"functionResponse": {**own, "name": call["name"], "response": {"output": text}}}
        if self._last is not None and self._last["role"] == "user" and "functionResponse" in self._last["parts"][0]:
            self._last["parts"].append(part)
        else:
            self._say({"role": "user", "parts": [part]})

    def _body(self) -> bytes:
        contents = ",".join([*self._raws, json.dumps(self._last)])
        return f'{{"contents":[{contents}],{self._rest}'.encode()


def client_for(session: Session, model: str, life: str, api: str = "") -> RecordedClient:
    """The client of a session by its model: for one of OpenAI of the Responses API, unless `api` says chat."""
    if model.startswith("claude"):
        return MessagesClient(session, model, life)
    if model.startswith("gemini"):
        return GeminiClient(session, model, life)
    return ChatClient(session, model) if api == "chat" else ResponsesClient(session, model)
