"""Answers requests of Gemini's generateContent, and holds cached contents.

The implicit cache is assumed to find any prefix of whole contents that was sent in the last five minutes, from the
length on that the model asks for; what is read is told, and writing costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pagefold.errors import WireError
from pagefold.provider import gemini_answer
from pagefold.provider.billing import Charge
from pagefold.provider.gemini_content import InputContent, content_of, declared
from pagefold.provider.gemini_rules import INVALID, broken_content_rule, refusal
from pagefold.provider.messages_content import hash_of, hash_of_value
from pagefold.provider.models import GeminiModel, gemini_model
from pagefold.provider.prompt_cache import CachedPrefix, PromptCache
from pagefold.provider.refusal import Refusal
from pagefold.provider.reply import EVENTS, JSON, Incoming, ProviderReply, refused, whole
from pagefold.tokens import Counter, counter_for
from pagefold.wire import json_text
from pagefold.wire.api_paths import Framing, asked_at
from pagefold.wire.json_text import as_list, as_object, as_string

CACHED = "/v1beta/cachedContents"
_ANY_DISTANCE = 1 << 30
_BROUGHT_ALONG = ("systemInstruction", "system_instruction", "tools", "toolConfig", "tool_config")


class GeminiApi:
    """`window` overrides the models' own."""

    def __init__(self, cache: PromptCache, window: int = 0) -> None:
        self._cache, self._window = cache, window
        self._contents: dict[tuple[str, str], InputContent] = {}
        self._cached: dict[str, Mapping[str, Any]] = {}

    def answer(self, incoming: Incoming) -> ProviderReply:
        asked = asked_at(incoming.path)
        assert asked is not None, "the referee asks only for paths of this API"
        model = gemini_model(asked.model)
        record = incoming.record(asked.model)
        if model is None:
            message = (
                f"models/{asked.model} is not found for API version v1beta, or is not supported for generateContent."
            )
            return refused(Refusal("gemini_model", message, 404, "NOT_FOUND"), record, "gemini")
        counter = counter_for(asked.model)
        prompt = self._prompt(incoming, asked.model, counter)
        if isinstance(prompt, Refusal):
            return refused(prompt, record, "gemini")
        head, contents, names = prompt
        cached, total = _prefix(asked.model, head, contents)
        if broken := broken_content_rule(contents, names, model) or self._too_long(total, model):
            return refused(broken, record, "gemini")
        turn = incoming.answer()
        thoughts = counter.count(turn.thinking) if model.signs and turn.thinking else 0
        written = counter.count(turn.text)
        written += sum(counter.count(f"{call.name} {json_text.dumps(call.arguments)}") for call in turn.calls)
        use = self._cache.use(cached, incoming.now, shortest=model.cacheable, look_back=_ANY_DISTANCE)
        charge = Charge(total - use.read, use.read, {}, written + thoughts)
        given = sum(content.signed for content in contents)
        record = replace(record, charge=charge, tokens=charge.prompt, thinking=given, made=int(model.signs))
        response = gemini_answer.response_of(asked.model, model, incoming.number, turn, charge, thoughts)
        if not asked.stream:
            return whole(response, record)
        if asked.framing is Framing.LIST:
            return ProviderReply(200, JSON, gemini_answer.list_of(response), response, record)
        return ProviderReply(200, EVENTS, gemini_answer.events_of(response), response, record)

    def create_cached(self, incoming: Incoming) -> ProviderReply:
        """Takes contents, system prompt and tools that later requests name."""
        value = as_object(json_text.parse(json_text.text_of(incoming.body)))
        name = f"cachedContents/c{incoming.number:06}"
        self._cached[name] = value
        return whole({"name": name, "model": value.get("model")}, incoming.record(as_string(value.get("model"))))

    def _prompt(
        self, incoming: Incoming, model: str, counter: Counter
    ) -> tuple[list[InputContent], list[InputContent], list[str]] | Refusal:
        """What stands before the contents, all contents, and the names of the functions that are declared."""
        try:
            body = json_text.parse(json_text.text_of(incoming.body))
        except WireError as error:
            return refusal("gemini_request", f"Invalid JSON payload received. {error}")
        if not isinstance(body, dict) or not isinstance(body.get("contents"), list):
            return refusal("gemini_request", "* GenerateContentRequest.contents: contents is not specified")
        before: Mapping[str, Any] = {}
        if name := as_string(body.get("cachedContent") or body.get("cached_content")):
            if name not in self._cached:
                return Refusal(
                    "gemini_cached", "CachedContent not found (or permission denied)", 403, "PERMISSION_DENIED"
                )
            if any(key in body for key in _BROUGHT_ALONG):
                message = (
                    "CachedContent can not be used with GenerateContent request setting system_instruction, tools "
                )
                return Refusal("gemini_cached", message + "or tool_config.", kind=INVALID)
            before = self._cached[name]
        given = {**body, **{key: before[key] for key in _BROUGHT_ALONG if key in before}}
        system, tools = given.get("systemInstruction") or given.get("system_instruction"), given.get("tools")
        head = [
            InputContent("", hash_of_value(each), counter.count(json_text.dumps(each)))
            for each in (tools, system)
            if each
        ]
        contents = [
            self._content(each, model, counter) for each in (*as_list(before.get("contents")), *body["contents"])
        ]
        return head, contents, declared(tools)

    def _content(self, value: Any, model: str, counter: Counter) -> InputContent:
        key = json_text.dumps(value), model
        if key not in self._contents:
            self._contents[key] = content_of(value, counter)
        return self._contents[key]

    def _too_long(self, tokens: int, model: GeminiModel) -> Refusal | None:
        window = self._window or model.window
        message = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        return refusal("gemini_too_long", message) if tokens > window else None


def _prefix(model: str, head: Sequence[InputContent], contents: Sequence[InputContent]) -> tuple[CachedPrefix, int]:
    last, total = hash_of(model.encode()), 0
    hashes: list[bytes] = []
    totals: list[int] = []
    for content in (*head, *contents):
        last, total = hash_of(last, content.content), total + content.tokens
        hashes.append(last)
        totals.append(total)
    return CachedPrefix(hashes, totals, [(at, "5m") for at in range(len(hashes))]), total
