"""One request on its way through the provider, and what came of it: the reply, and the record of what was decided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeAlias

from pagefold.frozen import frozen
from pagefold.provider.answer import Answer
from pagefold.provider.billing import Charge
from pagefold.provider.refusal import Refusal
from pagefold.provider.thinking import Mismatch
from pagefold.wire import json_text
from pagefold.wire.json_text import as_object

JSON, EVENTS = "application/json", "text/event-stream; charset=utf-8"

Answers: TypeAlias = Callable[[int, Mapping[str, Any]], Answer]
"""What the model answers: to the request of this number, which is this JSON."""


@frozen
class Incoming:
    """A request as it arrived. `given` is what the model is to answer, where the caller decides that."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: bytes
    now: float
    answers: Answers
    given: Answer | None = None

    def answer(self) -> Answer:
        if self.given is not None:
            return self.given
        return self.answers(self.number, as_object(json_text.parse(json_text.text_of(self.body))))

    def record(self, model: str = "") -> "RequestRecord":
        return RequestRecord(self.number, self.path, model)


@frozen
class RequestRecord:
    """What was decided about one request. `rule` is the one it broke, or "" where it was accepted; `thinking` is how
    many thinking blocks the model read."""

    number: int
    path: str
    model: str = ""
    rule: str = ""
    reason: str = ""
    mismatches: Sequence[Mismatch] = ()
    charge: Charge | None = None
    tokens: int = 0
    thinking: int = 0
    made: int = 0
    usd: float = 0.0

    def to_json(self) -> dict[str, Any]:
        reports = [mismatch.report() for mismatch in self.mismatches]
        charge = asdict(self.charge) if self.charge is not None else None
        names = ("number", "path", "model", "rule", "reason", "tokens", "thinking", "made", "usd")
        return {**{name: getattr(self, name) for name in names}, "mismatches": reports, "charge": charge}


@frozen
class ProviderReply:
    """An answer: `pieces` are its bytes, one event each where it is streamed; `message` is what they say."""

    status: int
    kind: str
    pieces: Sequence[bytes]
    message: Mapping[str, Any]
    record: RequestRecord

    @property
    def accepted(self) -> bool:
        return self.status == 200


def whole(message: Mapping[str, Any], record: RequestRecord, status: int = 200) -> ProviderReply:
    return ProviderReply(status, JSON, [json_text.bytes_of(json_text.dumps(message))], message, record)


def refused(refusal: Refusal, record: RequestRecord, spelled: str = "anthropic") -> ProviderReply:
    """A refusal in the spelling of a provider: anthropic, openai or gemini."""
    message = {"anthropic": refusal.anthropic, "openai": refusal.openai, "gemini": refusal.gemini}[spelled]()
    return whole(message, replace(record, rule=refusal.rule, reason=refusal.message), refusal.status)
