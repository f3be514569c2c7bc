"""A recorded session, whoever recorded it: chat messages in order, with what the recording says about time and usage.

Messages are in chat form whatever the recording's own format, so that one replay and one scorer serve all. Thinking and
images are not part of a session: chat has no place for the one, and the other is not text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from pagefold.errors import WireError
from pagefold.wire import json_text, openai_chat
from pagefold.wire.message import Block, BlockKind, Message, Role, Usage


class CacheMiss(NamedTuple):
    """Why the provider could not read its cache, in its own word, and about how many tokens it would have read."""

    reason: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Session:
    """`times` are seconds, one a message, or empty. `usage` and `cache_misses` are what the provider reported, by the
    answer's index.

    `head` is what was sent before the messages where that is recorded: system prompt and tool schemas. `windows` is how
    much of a subscription's five-hour windows was used meanwhile, by all that its account did, and `weeks` the same of
    weekly ones; 0 where nobody says. `began` is when, in seconds since 1970, or 0; `project` is the folder in which the
    agent worked. `aside` is the usage of answers that hold nothing a session keeps, such as thinking alone.

    `answers` are the names of answers, by index, where a log has any: a copy in another log has the same. Answers
    before `since` were made elsewhere: they are history, and nothing was asked or paid for them here.
    """

    id: str
    source: str
    messages: tuple[Message, ...]
    times: tuple[float, ...] = ()
    usage: Mapping[int, Usage] = field(default_factory=dict)
    head: tuple[str, ...] = ()
    model: str = ""
    cache_misses: Mapping[int, CacheMiss] = field(default_factory=dict)
    windows: float = 0.0
    weeks: float = 0.0
    began: float = 0.0
    project: str = ""
    aside: tuple[Usage, ...] = ()
    answers: Mapping[int, str] = field(default_factory=dict)
    since: int = 0

    def own_from(self, index: int) -> "Session":
        """The session as a copy that goes on by itself from the answer with this index. What a log says of subscription
        windows and of answers that hold nothing is not told apart, and stays with the other."""
        return replace(
            self,
            usage={at: usage for at, usage in self.usage.items() if at >= index},
            cache_misses={at: miss for at, miss in self.cache_misses.items() if at >= index},
            windows=0.0,
            weeks=0.0,
            aside=(),
            since=index,
        )

    def since_time(self, time: float) -> "Session | None":
        """The session with its answers from a time on, in seconds since 1970, or None where it has none of them."""
        if not time or not self.times:
            return self
        own = [at for at, one in enumerate(self.messages) if at >= self.since and one.role is Role.ASSISTANT]
        new = [at for at in own if self.began + self.times[at] >= time]
        if not new:
            return None
        return self if new[0] == own[0] else self.own_from(new[0])


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a recording that could not be used as it is, and where. `skipped` is False where it was kept."""

    line: int
    what: str
    skipped: bool = True


class RecordReader(Protocol):
    """Reads a log record by record."""

    def take(self, record: Any) -> Iterator[Session]:
        """The sessions that end with this record. Raises WireError where it cannot be used."""

    def finish(self) -> Iterator[Session]:
        """The sessions that are left at the end."""


def read_lines(reader: RecordReader, lines: Iterable[tuple[int, str]]) -> Iterator[Session | Problem]:
    """The sessions in the numbered lines of a log; a line that cannot be used is a problem, and reading goes on."""
    for number, line in lines:
        try:
            yield from reader.take(json_text.parse(line))
        except WireError as error:
            yield Problem(number, str(error))
    yield from reader.finish()


def unanswered(session: Session) -> Iterator[str]:
    """One sentence for every call that was followed by something other than its result. The last turn may be open."""
    waiting: dict[str, str] = {}
    for message in session.messages:
        if message.role is Role.TOOL:
            for block in message.blocks:
                waiting.pop(block.call_id, None)
            continue
        yield from (f"call {call_id} of {name} has no result" for call_id, name in waiting.items())
        waiting = {b.call_id: b.name for b in message.blocks if b.kind is BlockKind.CALL}


def chat_messages(role: Role, blocks: Iterable[Block], names: Mapping[str, str]) -> Iterator[Message]:
    """Any message's blocks as chat messages: every result a message of its own, then what else was said.

    A result that came in several parts keeps them: they stand one by one in a request too, and have forms one by one.
    `names` maps call ids to tools, because a result does not always say whose it is.
    """
    rest: list[Block] = []
    results: dict[str, list[Block]] = {}
    for block in blocks:
        if block.kind is BlockKind.RESULT:
            results.setdefault(block.call_id, []).append(block)
        elif block.kind in (BlockKind.TEXT, BlockKind.CALL):
            rest.append(block)
        elif block.kind is BlockKind.OTHER and block.text:
            rest.append(replace(block, kind=BlockKind.TEXT))
    for call_id, parts in results.items():
        name = names.get(call_id, "")
        yield openai_chat.render_message(Role.TOOL, [replace(part, name=name) for part in parts])
    if rest:
        yield openai_chat.render_message(role, rest)


def seconds(value: Any) -> float | None:
    """A time stamp as agents write them, in seconds, or None where it is none."""
    try:
        return datetime.fromisoformat(value).timestamp()
    except (TypeError, ValueError):
        return None


@dataclass(slots=True)
class Builder:
    """Gathers one session's messages as a reader meets them."""

    id: str
    source: str
    messages: list[Message] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    usage: dict[int, Usage] = field(default_factory=dict)
    cache_misses: dict[int, CacheMiss] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    answers: dict[str, tuple[int | None, tuple[Block, ...]]] = field(default_factory=dict)
    answer_names: dict[int, str] = field(default_factory=dict)
    head: tuple[str, ...] = ()
    model: str = ""
    windows: float = 0.0
    weeks: float = 0.0
    project: str = ""
    aside: dict[str, Usage] = field(default_factory=dict)

    def add(self, role: Role, blocks: Sequence[Block], time: float | None) -> None:
        for message in chat_messages(role, blocks, self.names):
            self.messages.append(message)
            self.times.append(self.times[-1] if time is None and self.times else time or 0.0)

    def answer(self, key: str, blocks: Sequence[Block], time: float | None) -> None:
        """Part of an answer of the model. Parts under one key are one message, even with results in between."""
        self.names |= {block.call_id: block.name for block in blocks if block.kind is BlockKind.CALL}
        index, earlier = self.answers.get(key, (None, ()))
        gathered = (*earlier, *blocks)
        for message in chat_messages(Role.ASSISTANT, gathered, self.names):
            if index is None:
                index = len(self.messages)
                self.add(Role.ASSISTANT, gathered, time)
            else:
                self.messages[index] = message
        self.answers[key] = (index, gathered)

    def name_answer(self, key: str, name: str) -> None:
        """Gives an answer the name that it has in every copy; the first one stays."""
        index = self.answers[key][0]
        if index is not None:
            self.answer_names.setdefault(index, name)

    def used(self, usage: Usage | None, miss: CacheMiss | None = None, key: str = "") -> None:
        """What the provider reported for an answer, its usage and why its cache was missed: for the one with this key,
        or for the newest. Each part of an answer may report it; what is said last counts."""
        index = self.answers[key][0] if key else self._newest_answer()
        if index is None:
            if usage is not None and key:
                self.aside[key] = usage  # until a part comes that a session keeps
            return
        self.aside.pop(key, None)
        if usage is not None:
            self.usage[index] = usage
        if miss is not None:
            self.cache_misses[index] = miss

    def _newest_answer(self) -> int | None:
        places = reversed(range(len(self.messages)))
        return next((place for place in places if self.messages[place].role is Role.ASSISTANT), None)

    def session(self) -> Session | None:
        """The session, or None where nobody asked the model anything."""
        if not any(message.role is Role.ASSISTANT for message in self.messages):
            return None
        start = self.times[0]
        times = tuple(time - start for time in self.times) if any(self.times) else ()
        return Session(
            self.id,
            self.source,
            tuple(self.messages),
            times,
            dict(self.usage),
            self.head,
            self.model,
            dict(self.cache_misses),
            self.windows,
            self.weeks,
            start,
            self.project,
            tuple(self.aside.values()),
            self.answer_names,
        )
