"""Answers requests of the Chat Completions and Responses APIs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pagefold.errors import WireError
from pagefold.provider import chat_answer, openai_rules, responses_answer
from pagefold.provider.models import OpenaiModel, openai_model
from pagefold.provider.openai_content import Conversation, InputItem, ItemReader, item_of
from pagefold.provider.openai_prompt import cached_items, charge_for
from pagefold.provider.prompt_cache import CachedPrefix, PromptCache
from pagefold.provider.refusal import Refusal
from pagefold.provider.reply import EVENTS, Incoming, ProviderReply, RequestRecord, refused, whole
from pagefold.provider.request_memory import RequestMemory
from pagefold.provider.signature import Sealed, seal
from pagefold.tokens import counter_for
from pagefold.wire import json_text
from pagefold.wire.api import Api
from pagefold.wire.apis import CHAT, RESPONSES
from pagefold.wire.json_text import as_object, as_string

_STORED = 2000


class _OpenaiApi:
    """What both APIs have in common: reading a request, and its length."""

    api: Api

    def __init__(self, cache: PromptCache, window: int = 0) -> None:
        self._cache, self._window = cache, window
        self._requests, self._items = RequestMemory(), ItemReader()

    def _read(self, incoming: Incoming) -> tuple[Conversation, OpenaiModel] | Refusal:
        try:
            request = self._requests.parse(self.api, incoming.body)
            asked = self._items.read(request, counter_for(request.model))
        except WireError as error:
            return Refusal("not_json", f"We could not parse the JSON body of your request. ({error})")
        model = openai_model(asked.model)
        if model is None:
            message = f"The model `{asked.model}` does not exist or you do not have access to it."
            return Refusal("openai_model", message, 404, code="model_not_found")
        return asked, model

    def _too_long(self, cached: CachedPrefix, model: OpenaiModel) -> Refusal | None:
        tokens, window = cached.totals[-1] if cached.totals else 0, self._window or model.window
        if tokens <= window:
            return None
        message = (
            f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
        )
        message += "tokens. Please reduce the length of the messages."
        return Refusal("openai_too_long", message, code="context_length_exceeded", param=self.api.shape.messages)


class ChatApi(_OpenaiApi):
    api = CHAT

    def answer(self, incoming: Incoming) -> ProviderReply:
        read = self._read(incoming)
        if isinstance(read, Refusal):
            return refused(read, incoming.record(), "openai")
        asked, model = read
        record = incoming.record(asked.model)
        cached = cached_items(asked, model, ())
        if refusal := openai_rules.broken_chat_rule(asked, model) or self._too_long(cached, model):
            return refused(refusal, record, "openai")
        turn = incoming.answer()
        counter = counter_for(asked.model)
        calls = sum(counter.count(f"{call.name} {json_text.dumps(call.arguments)}") for call in turn.calls)
        charge = charge_for(cached, model, self._cache, incoming.now, counter.count(turn.text) + calls)
        record = replace(record, charge=charge, tokens=charge.prompt)
        completion = chat_answer.completion_of(asked.model, incoming.number, turn, charge, incoming.now)
        if not asked.stream:
            return whole(completion, record)
        with_usage = as_object(asked.members.get("stream_options")).get("include_usage") is True
        return ProviderReply(
            200, EVENTS, list(chat_answer.chunks_of(completion, with_usage=with_usage)), completion, record
        )


class ResponsesApi(_OpenaiApi):
    """Holds the responses that it was asked to store, up to a number of them."""

    api = RESPONSES

    def __init__(self, cache: PromptCache, window: int = 0) -> None:
        super().__init__(cache, window)
        self._responses: dict[str, tuple[InputItem, ...]] = {}
        self._stored_ids: dict[str, None] = {}

    def answer(self, incoming: Incoming) -> ProviderReply:
        read = self._read(incoming)
        if isinstance(read, Refusal):
            return refused(read, incoming.record(), "openai")
        asked, model = read
        record = incoming.record(asked.model)
        before = self._before(asked)
        if isinstance(before, Refusal):
            return refused(before, record, "openai")
        refusal = openai_rules.broken_response_rule(asked, model, before, self._stored_ids)
        cached = cached_items(asked, model, before)
        if refusal := refusal or self._too_long(cached, model):
            return refused(refusal, record, "openai")
        if incoming.path.endswith("/compact"):
            return self._compacted(incoming, asked, model, cached, record)
        turn, counter = incoming.answer(), counter_for(asked.model)
        reasoning = counter.count(turn.thinking) if model.reasons and turn.thinking else 0
        output = responses_answer.output_of(turn, incoming.number, asked.tools, reasoning)
        items = [item_of(item, counter) for item in output]
        charge = charge_for(cached, model, self._cache, incoming.now, sum(item.tokens for item in items))
        given = sum(item.kind == "reasoning" for item in (*before, *asked.items))
        record = replace(record, charge=charge, tokens=charge.prompt, thinking=given, made=int(bool(reasoning)))
        usage = responses_answer.usage_of(charge, reasoning)
        response = responses_answer.response_of(
            asked.model, incoming.number, output, usage, asked.members, incoming.now
        )
        if asked.members.get("store", True):
            self._store(response["id"], before, (*asked.items, *items))
        if asked.stream:
            return ProviderReply(200, EVENTS, list(responses_answer.events_of(response)), response, record)
        return whole(response, record)

    def _before(self, asked: Conversation) -> Sequence[InputItem] | Refusal:
        """The items of the response that a request goes on from."""
        name = as_string(asked.members.get("previous_response_id"))
        if asked.members.get("conversation"):
            message = "Conversation not found."
            return Refusal("previous_response", message, 404, param="conversation")
        if not name:
            return ()
        if name not in self._responses:
            message, code = f"Previous response with id '{name}' not found.", "previous_response_not_found"
            return Refusal("previous_response", message, code=code, param="previous_response_id")
        return self._responses[name]

    def _store(self, name: str, before: Sequence[InputItem], items: tuple[InputItem, ...]) -> None:
        self._responses[name] = (*before, *items)
        self._stored_ids |= {item.id: None for item in items if item.id}
        if len(self._responses) > _STORED:
            del self._responses[next(iter(self._responses))]

    def _compacted(
        self, incoming: Incoming, asked: Conversation, model: OpenaiModel, cached: CachedPrefix, record: RequestRecord
    ) -> ProviderReply:
        """The user's messages as they came, and one compaction item for everything (responses/compact)."""
        charge = charge_for(cached, model, self._cache, incoming.now, output := 400)
        name = f"cmp_r{incoming.number:06}"
        given = as_object(json_text.parse(json_text.text_of(incoming.body))).get("input")
        listed: list[Mapping[str, Any]] = given if isinstance(given, list) else [{"role": "user", "content": given}]
        kept = [item for item in listed if as_object(item).get("role") == "user"]
        summary = {"id": name, "type": "compaction", "encrypted_content": seal(Sealed("compaction", name, output))}
        message = {
            "id": f"resp_r{incoming.number:06}",
            "object": "response.compaction",
            "created_at": int(incoming.now),
            "output": [*kept, summary],
            "usage": responses_answer.usage_of(charge, 0),
        }
        return whole(message, replace(record, charge=charge, tokens=charge.prompt))
