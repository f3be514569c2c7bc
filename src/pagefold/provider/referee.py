"""The referee: bytes of a request and the time in, an answer and a record of what was decided out.

It is pure but for what a provider remembers: the prompt cache, its totals, and work that need not be done twice. The
clock is passed in. `Referee.answer` is the only door; `server` opens it to HTTP.
"""

from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pagefold.errors import WireError
from pagefold.frozen import frozen
from pagefold.provider import messages_answer, messages_rules
from pagefold.provider.answer import Answer
from pagefold.provider.billing import Charge, ModelBill, Price
from pagefold.provider.messages_content import Prompt, PromptReader
from pagefold.provider.messages_prompt import cached_prompt
from pagefold.provider.models import ClaudeModel, claude_model
from pagefold.provider.prompt_cache import PromptCache
from pagefold.provider.refusal import Refusal
from pagefold.provider.request_memory import RequestMemory
from pagefold.provider.thinking import (
    BINDING_BETA,
    PREFIX,
    Behaviour,
    Checked,
    Mismatch,
    check_thinking,
    first_change,
    signed_summary,
    signed_thinking,
)
from pagefold.tokens import counter_for
from pagefold.wire import json_text
from pagefold.wire.apis import MESSAGES
from pagefold.wire.json_text import as_object, as_string

JSON, EVENTS = "application/json", "text/event-stream; charset=utf-8"
_LARGEST = 32 << 20
_PROMPTS = 4000
_SUMMARY = "Summary by the referee: the conversation so far, in short."


@frozen
class Record:
    """What was decided about one request. `rule` is the one it broke, or "" where it was accepted; `thinking` is how
    many thinking blocks the model read."""

    number: int
    path: str
    model: str = ""
    rule: str = ""
    reason: str = ""
    mismatches: Sequence[Mismatch] = ()
    charge: Charge | None = None
    usd: float = 0.0
    tokens: int = 0
    thinking: int = 0


@frozen
class Reply:
    """An answer: `pieces` are its bytes, one event each where it is streamed; `message` is what they say."""

    status: int
    kind: str
    pieces: Sequence[bytes]
    message: Mapping[str, Any]
    record: Record

    @property
    def accepted(self) -> bool:
        return self.status == 200


@dataclass(slots=True)
class Totals:
    """All that was counted. `dropped` and `allowed` are thinking blocks whose prefix had changed; `unreadable` are
    those that the model asked could not read."""

    requests: int = 0
    accepted: int = 0
    refused: Tally[str] = field(default_factory=Tally)
    dropped: int = 0
    allowed: int = 0
    unreadable: int = 0
    thinking_made: int = 0
    summaries: int = 0
    bill: dict[str, ModelBill] = field(default_factory=dict)

    def count(self, record: Record) -> None:
        self.requests += 1
        if record.rule:
            self.refused[record.rule] += 1
            return
        self.accepted += 1
        for mismatch in record.mismatches:
            if mismatch.reason != PREFIX:
                self.unreadable += 1
            elif mismatch.dropped:
                self.dropped += 1
            else:
                self.allowed += 1
        if record.charge is not None:
            self.bill.setdefault(record.model, ModelBill()).add(record.charge, record.usd)

    @property
    def usd(self) -> float:
        return sum(bill.usd for bill in self.bill.values())


class Referee:
    """A provider for one account. `behaviour` is what the account has for thinking whose prefix changed, where a
    request does not say. `answers` says what the model answers where the caller of `answer` does not; it gets the
    number of the request and its body as JSON. `window` overrides the models' own."""

    def __init__(
        self,
        *,
        behaviour: Behaviour = Behaviour.ERROR,
        price: Price = lambda model, charge: 0.0,
        answers: Callable[[int, Mapping[str, Any]], Answer] = lambda number, request: Answer("Done."),
        window: int = 0,
    ) -> None:
        self.behaviour, self._price, self._answers, self._window = behaviour, price, answers, window
        self.totals = Totals()
        self._requests = RequestMemory()
        self._prompts = PromptReader()
        self._cache = PromptCache()
        self._made: dict[bytes, Prompt] = {}  # under which prompts thinking was made, to say what changed

    def answer(
        self, path: str, headers: Mapping[str, str], body: bytes, now: float, answer: Answer | None = None
    ) -> Reply:
        """Answers one POST. `headers` have lower-case names. `now` is in seconds, from any start."""
        number = self.totals.requests + 1
        reply = self._messages(number, path, headers, body, now, answer)
        self.totals.count(reply.record)
        return reply

    def _messages(
        self, number: int, path: str, headers: Mapping[str, str], body: bytes, now: float, answer: Answer | None
    ) -> Reply:
        prompt = self._read(headers, body)
        if isinstance(prompt, Refusal):
            return _refused(prompt, Record(number, path))
        model = claude_model(prompt.model)
        if model is None:
            refusal = Refusal("unknown_model", f"model: {prompt.model}", 404, "not_found_error")
            return _refused(refusal, Record(number, path, prompt.model))
        counting = path.endswith("/count_tokens")
        refusal_or_checked = self._check(prompt, model, counting=counting)
        if isinstance(refusal_or_checked, Refusal):
            return _refused(refusal_or_checked, Record(number, path, prompt.model))
        checked = refusal_or_checked
        cached = cached_prompt(prompt, model, checked.dropped)
        tokens, window = cached.totals[-1], self._window or model.window
        if tokens > window:
            refusal = Refusal("too_long", f"prompt is too long: {tokens} tokens > {window} maximum")
            return _refused(refusal, Record(number, path, prompt.model, tokens=tokens))
        record = Record(number, path, prompt.model, mismatches=checked.mismatches, tokens=tokens, thinking=checked.read)
        if counting:
            return _whole({"input_tokens": tokens}, record)
        said = answer or self._answers(number, as_object(json_text.parse(json_text.text_of(body))))
        content, stop = self._content(number, prompt, model, checked, said)
        output = _output_tokens(prompt.model, content)
        use = self._cache.use(cached, now, shortest=model.cacheable)
        charge = Charge(use.fresh, use.read, use.written, output)
        usd = self._price(prompt.model, charge)
        record = replace(record, charge=charge, usd=usd)
        message = messages_answer.message_of(prompt.model, number, content, _usage(charge, stop), stop)
        if BINDING_BETA in prompt.betas:
            message["input_transformations"] = [mismatch.report() for mismatch in checked.mismatches]
        if prompt.stream:
            return Reply(200, EVENTS, list(messages_answer.events_of(message)), message, record)
        return _whole(message, record)

    def _read(self, headers: Mapping[str, str], body: bytes) -> Prompt | Refusal:
        if len(body) > _LARGEST:
            said = "Request exceeds the maximum size"
            return Refusal("too_large", said, 413, "request_too_large")
        try:
            request = self._requests.parse(MESSAGES, body)
            betas = frozenset(name.strip() for name in headers.get("anthropic-beta", "").split(",") if name.strip())
            return self._prompts.read(request, betas, counter_for(request.model))
        except WireError as error:
            return Refusal("not_json", f"The request body is not valid: {error}")

    def _check(self, prompt: Prompt, model: ClaudeModel, *, counting: bool) -> Checked | Refusal:
        """All rules in the order of the API: shape, then thinking."""
        if refusal := messages_rules.broken_rule(prompt, model, counting=counting):
            return refusal
        asked = as_string(as_object(prompt.thinking.get("block_binding")).get("prefix_mismatch_behavior"))
        checked = check_thinking(
            prompt, model, Behaviour(asked) if asked in ("error", "drop_block") else self.behaviour
        )
        if checked.forged is not None:
            turn, part = checked.forged
            said = f"messages.{turn}.content.{part}: Invalid `signature` in `thinking` block"
            return Refusal("thinking_signature", said)
        bound = next((failed for failed in checked.mismatches if failed.reason == PREFIX and not failed.dropped), None)
        if bound is not None and (asked == "error" or (not asked and self.behaviour is Behaviour.ERROR)):
            return self._bound_elsewhere(prompt, bound)
        return checked

    def _bound_elsewhere(self, prompt: Prompt, failed: Mismatch) -> Refusal:
        said = f"{failed.path}: Invalid `signature` in `thinking` block. The block is bound to a different "
        said += "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
        said += '"drop_block".'
        if BINDING_BETA not in prompt.betas:
            said += f" That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header."
        block = prompt.turns[failed.turn].parts[failed.part]
        before = self._made.get(block.bound.prefix) if block.bound else None
        return Refusal("thinking_bound", f"{said} {first_change(before, prompt, failed)}" if before else said)

    def _content(
        self, number: int, prompt: Prompt, model: ClaudeModel, checked: Checked, answer: Answer
    ) -> tuple[list[dict[str, Any]], str]:
        if "compaction" in prompt.members:
            self.totals.summaries += 1
            return [signed_summary(prompt, checked, answer.text or _SUMMARY)], "compaction"
        content = messages_answer.content_of(answer, number)
        kind = prompt.thinking.get("type")
        thinks = kind in ("adaptive", "enabled") if kind else model.thinks in ("always", "default")
        if thinks and answer.thinking:
            shown = prompt.thinking.get("display", "omitted" if model.thinks != "asked" else "full") != "omitted"
            counter = counter_for(prompt.model)
            content.insert(0, dict(signed_thinking(prompt, checked, answer.thinking, counter, shown=shown)))
            self.totals.thinking_made += 1
            if len(self._made) >= _PROMPTS:
                del self._made[next(iter(self._made))]
            self._made[checked.answer_prefix] = prompt
        return content, "tool_use" if answer.calls else "end_turn"


def _output_tokens(model: str, content: Sequence[Mapping[str, Any]]) -> int:
    return sum(counter_for(model).count(json_text.dumps(block)) for block in content)


def _usage(charge: Charge, stop: str) -> dict[str, Any]:
    lives = {f"ephemeral_{life}_input_tokens": charge.written.get(life, 0) for life in ("5m", "1h")}
    usage: dict[str, Any] = {
        "input_tokens": charge.fresh,
        "cache_creation_input_tokens": sum(charge.written.values()),
        "cache_read_input_tokens": charge.read,
        "cache_creation": lives,
        "output_tokens": charge.output,
        "service_tier": "standard",
    }
    if stop != "compaction":
        return usage
    nothing = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}
    return {**usage, **nothing, "iterations": [{"type": "compaction", **usage}]}


def _whole(message: dict[str, Any], record: Record) -> Reply:
    return Reply(200, JSON, [json_text.bytes_of(json_text.dumps(message))], message, record)


def _refused(refusal: Refusal, record: Record) -> Reply:
    message = refusal.anthropic()
    refused = replace(record, rule=refusal.rule, reason=refusal.message)
    return Reply(refusal.status, JSON, [json_text.bytes_of(json_text.dumps(message))], message, refused)
