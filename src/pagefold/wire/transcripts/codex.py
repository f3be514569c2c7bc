"""Codex rollouts: one record a line, `{"timestamp", "type", "payload"}`; the conversation is in the `response_item`s.

Items that the model wrote one after another are one answer. A compaction begins a new history with what Codex kept.
Records that carry no item are passed over. An answer is named by all that stands up to it, ids included: forks of older
releases begin with copies of it, and have other times.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text, openai_responses
from pagefold.wire.message import Role
from pagefold.wire.quota import LimitsUse, limits_of_codex
from pagefold.wire.transcripts.session import Builder, Problem, Session, read_lines, seconds

_SOURCE = "codex"


def looks_like(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("payload"), dict) and isinstance(value.get("type"), str)


def read(lines: Iterable[tuple[int, str]], *, name: str) -> Iterator[Session | Problem]:
    return read_lines(_CodexReader(Builder(name, _SOURCE)), lines)


@dataclass(slots=True)
class _CodexReader:
    builder: Builder
    histories: int = 1
    answer: int = 0
    answering: bool = field(default=False)
    items: bytes = b""  # a hash of all so far
    limits_use: LimitsUse = field(default_factory=LimitsUse)

    def take(self, record: Any) -> Iterator[Session]:
        payload = record.get("payload") if isinstance(record, dict) else None
        if not isinstance(payload, dict):
            raise WireError('a rollout record has a "payload"')
        time = seconds(record.get("timestamp"))
        match record.get("type"):
            case "session_meta":
                self.builder.id = str(payload.get("id") or self.builder.id)
                self.builder.project = str(payload.get("cwd") or "")
                instructions = payload.get("base_instructions")
                self.builder.head = (json_text.dumps(instructions),) if instructions else ()
            case "turn_context":
                self.builder.model = str(payload.get("model") or self.builder.model)
            case "response_item":
                self._item(payload, time)
            case "compacted":
                yield from self._compact(payload, time)
            case "event_msg" if payload.get("type") == "token_count":
                self._used(payload.get("info"))
                windows, weeks = self.limits_use.increase(limits_of_codex(payload.get("rate_limits")))
                self.builder.windows += windows
                self.builder.weeks += weeks

    def finish(self) -> Iterator[Session]:
        if session := self.builder.session():
            yield session

    def _item(self, item: dict[str, Any], time: float | None) -> None:
        raw = json_text.dumps(item)
        message = openai_responses.parse_item(item, raw)
        self.items = sha256(self.items + json_text.bytes_of(raw)).digest()
        if message.role is Role.ASSISTANT:
            self.answer += not self.answering
            self.answering = True
            self.builder.answer(str(self.answer), message.blocks, time)
            self.builder.name_answer(str(self.answer), self.items.hex())
        else:
            self.answering = False
            self.builder.add(message.role, message.blocks, time)

    def _compact(self, payload: dict[str, Any], time: float | None) -> Iterator[Session]:
        yield from self.finish()
        self.histories += 1
        old = self.builder
        identity = f"{old.id.partition('#')[0]}#{self.histories}"
        self.builder = Builder(identity, _SOURCE, head=old.head, model=old.model, project=old.project)
        self.answering = False
        for item in payload.get("replacement_history") or ():
            if isinstance(item, dict):
                self._item(item, time)
        self.answering = False

    def _used(self, info: Any) -> None:
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if isinstance(last, dict):
            details = {
                "cached_tokens": last.get("cached_input_tokens"),
                "cache_write_tokens": last.get("cache_write_input_tokens"),
            }
            usage = openai_responses.parse_usage(last | {"input_tokens_details": details})
            if usage:
                self.builder.used(usage)
