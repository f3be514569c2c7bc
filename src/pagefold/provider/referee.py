"""The referee: bytes of a request and the time in, an answer and a record of what was decided out.

It is pure but for what a provider remembers: the prompt cache, responses it was asked to store, its totals, and work
that need not be done twice. The clock is passed in. `Referee.answer` is the only door; `server` opens it to HTTP.
"""

from collections import Counter as Tally
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pagefold.provider.answer import Answer
from pagefold.provider.billing import ModelBill, Price
from pagefold.provider.gemini_api import CACHED, GeminiApi
from pagefold.provider.messages_api import MessagesApi
from pagefold.provider.openai_api import ChatApi, ResponsesApi
from pagefold.provider.prompt_cache import PromptCache
from pagefold.provider.refusal import Refusal
from pagefold.provider.reply import Answers, Incoming, ProviderReply, RequestRecord, refused
from pagefold.provider.thinking import PREFIX, Behaviour
from pagefold.wire.api_paths import asked_at
from pagefold.wire.apis import GENERATE


@dataclass(slots=True)
class RefereeTotals:
    """All that was counted. `dropped` and `allowed` are thinking blocks whose prefix had changed; `unreadable` are
    those that the model asked could not read."""

    requests: int = 0
    accepted: int = 0
    refused: Tally[str] = field(default_factory=Tally)
    dropped: int = 0
    allowed: int = 0
    unreadable: int = 0
    thinking_made: int = 0
    bill: dict[str, ModelBill] = field(default_factory=dict)

    def count(self, record: RequestRecord) -> None:
        self.requests += 1
        if record.rule:
            self.refused[record.rule] += 1
            return
        self.accepted += 1
        self.thinking_made += record.made
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

    def to_json(self) -> dict[str, Any]:
        names = ("requests", "accepted", "dropped", "allowed", "unreadable", "thinking_made")
        bill = {model: bill.to_json() for model, bill in self.bill.items()}
        return {**{name: getattr(self, name) for name in names}, "refused": dict(self.refused), "bill": bill}


class Referee:
    """A provider for one account. `behaviour` is what the account has for thinking whose prefix changed, where a
    request does not say. `price` says what a request costs; `answers` what the model answers where the caller of
    `answer` does not. `window` overrides the models' own."""

    def __init__(
        self,
        *,
        behaviour: Behaviour = Behaviour.ERROR,
        price: Price = lambda model, charge: 0.0,
        answers: Answers = lambda number, request: Answer("Done."),
        window: int = 0,
    ) -> None:
        self._price, self._answers = price, answers
        self.totals = RefereeTotals()
        cache = PromptCache()
        messages, responses = MessagesApi(behaviour, cache, window), ResponsesApi(cache, window)
        self._gemini = GeminiApi(cache, window)
        self._apis: Mapping[str, Callable[[Incoming], ProviderReply]] = {
            "/v1/messages": messages.answer,
            "/v1/messages/count_tokens": messages.answer,
            "/v1/chat/completions": ChatApi(cache, window).answer,
            "/v1/responses": responses.answer,
            "/v1/responses/compact": responses.answer,
            CACHED: self._gemini.create_cached,
        }

    def answer(
        self, path: str, headers: Mapping[str, str], body: bytes, now: float, answer: Answer | None = None
    ) -> ProviderReply:
        """Answers one POST. `path` may have its query behind it, `headers` have lower-case names. `now` is in seconds,
        from any start."""
        plain, asked = path.partition("?")[0], asked_at(path)
        api = self._apis.get(plain)
        if api is None and asked is not None and asked.api is GENERATE:
            plain, api = path, self._gemini.answer  # whose query decides how an answer is streamed
        incoming = Incoming(self.totals.requests + 1, plain, headers, body, now, self._answers, answer)
        if api is None:
            reply = refused(Refusal("not_found", f"Not found: {path}", 404, "not_found_error"), incoming.record())
        else:
            reply = api(incoming)
        charge = reply.record.charge
        if charge is not None:
            reply = replace(reply, record=replace(reply.record, usd=self._price(reply.record.model, charge)))
        self.totals.count(reply.record)
        return reply
