"""Claude Code's project logs: one JSON record a line, several kinds of record, one file a session.

A request is an answer of the model (records that share a message id are one answer, written block by block). What the
agent put into the conversation by itself (rendered attachments) counts like any message. A compaction begins a new
history, and so does each sub-agent: each becomes a session of its own. Records that carry no message are passed over.
Not followed: a conversation rewound to an earlier prompt is read as one line of messages.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import anthropic, json_text
from pagefold.wire.message import Block, Role
from pagefold.wire.transcripts.session import Builder, CacheMiss, Problem, Session, read_lines, seconds

_SOURCE = "claude-code"


def looks_like(value: Any) -> bool:
    return isinstance(value, dict) and "sessionId" in value and isinstance(value.get("type"), str)


def read(lines: Iterable[tuple[int, str]], *, name: str) -> Iterator[Session | Problem]:
    return read_lines(_ClaudeCodeReader(name), lines)


@dataclass(slots=True)
class _ClaudeCodeReader:
    name: str
    builders: dict[str, Builder] = field(default_factory=dict)
    histories: dict[str, int] = field(default_factory=dict)
    head: tuple[str, ...] = ()

    def take(self, record: Any) -> Iterator[Session]:
        if not isinstance(record, dict):
            raise WireError(f"expected a record, found {json_text.dumps(record)[:40]}")
        agent = str(record.get("agentId") or ("sidechain" if record.get("isSidechain") else ""))
        match record.get("type"):
            case "assistant":
                self._answer(agent, record)
            case "user":
                self._say(agent, record, *_said(record.get("message")))
            case "attachment" if isinstance(record.get("rendered"), list):
                for part in record["rendered"]:
                    role = Role.SYSTEM if record.get("renderedRole") == "system" else Role.USER
                    content = part.get("content") if isinstance(part, dict) else part
                    self._say(agent, record, role, list(anthropic.blocks_of(content, ())))
            case "api-request-shape" if isinstance(record.get("shape"), dict):
                shape = record["shape"]
                self.head = tuple(json_text.dumps(shape.get(part)) for part in ("tools", "system") if shape.get(part))
            case "system" if record.get("subtype") == "compact_boundary":
                yield from self._close(agent)

    def finish(self) -> Iterator[Session]:
        for agent in list(self.builders):
            yield from self._close(agent)

    def _answer(self, agent: str, record: dict[str, Any]) -> None:
        message = record.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("content"), list | str):
            raise WireError("an assistant record has a message with content")
        if message.get("model") == "<synthetic>":
            return
        builder = self._builder(agent, record)
        builder.model = str(message.get("model") or builder.model)
        blocks = list(anthropic.blocks_of(message["content"], ()))
        key = str(message.get("id") or record.get("uuid"))
        builder.answer(key, blocks, seconds(record.get("timestamp")))
        builder.name_answer(key, f"{key} {record.get('timestamp')}")  # a fork's log begins with copies of both
        builder.used(anthropic.parse_usage(message.get("usage")), _cache_miss(message.get("diagnostics")), key)

    def _say(self, agent: str, record: dict[str, Any], role: Role, blocks: list[Block]) -> None:
        self._builder(agent, record).add(role, blocks, seconds(record.get("timestamp")))

    def _builder(self, agent: str, record: dict[str, Any]) -> Builder:
        if agent not in self.builders:
            identity = f"{record.get('sessionId') or self.name}{f'/{agent}' if agent else ''}"
            count = self.histories[agent] = self.histories.get(agent, 0) + 1
            name = identity if count == 1 else f"{identity}#{count}"
            self.builders[agent] = Builder(name, _SOURCE, project=str(record.get("cwd") or ""))
        return self.builders[agent]

    def _close(self, agent: str) -> Iterator[Session]:
        builder = self.builders.pop(agent, None)
        if builder is not None:
            builder.head = self.head
            if session := builder.session():
                yield session


def _cache_miss(diagnostics: Any) -> CacheMiss | None:
    """Why the cache was missed, as the provider told Claude Code; None where it was not, or nothing was told."""
    reason = diagnostics.get("cache_miss_reason") if isinstance(diagnostics, dict) else None
    kind = reason.get("type") if isinstance(reason, dict) else None
    if not isinstance(reason, dict) or not isinstance(kind, str):
        return None
    tokens = reason.get("cache_missed_input_tokens")
    return CacheMiss(kind, tokens if isinstance(tokens, int) and tokens > 0 else 0)


def _said(message: Any) -> tuple[Role, list[Block]]:
    if not isinstance(message, dict) or "content" not in message:
        raise WireError("a user record has a message with content")
    return Role.USER, list(anthropic.blocks_of(message["content"], ()))
