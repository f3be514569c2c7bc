"""Answers requests of the Messages API: reads, checks, counts, and lets the model say its turn."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pagefold.errors import WireError
from pagefold.provider import messages_answer, messages_rules
from pagefold.provider.answer import Answer
from pagefold.provider.billing import Charge
from pagefold.provider.messages_content import THINKING, Prompt, PromptReader, part_of
from pagefold.provider.messages_prompt import cached_prompt
from pagefold.provider.models import ClaudeModel, claude_model
from pagefold.provider.prompt_cache import PromptCache
from pagefold.provider.refusal import Refusal
from pagefold.provider.reply import EVENTS, Incoming, ProviderReply, refused, whole
from pagefold.provider.request_memory import RequestMemory
from pagefold.provider.thinking import (
    BINDING_BETA,
    PREFIX,
    Behaviour,
    Checked,
    Mismatch,
    ThinkingPlace,
    check_thinking,
    first_change,
    signed_summary,
)
from pagefold.tokens import counter_for
from pagefold.wire import json_text
from pagefold.wire.apis import MESSAGES
from pagefold.wire.json_text import as_object, as_string

_LARGEST = 32 << 20
_PROMPTS = 4000
_SUMMARY = "Summary by the referee: the conversation so far, in short."


class MessagesApi:
    """`behaviour` is what the account has for thinking whose prefix changed, where a request does not say; `window`
    overrides the models' own."""

    def __init__(self, behaviour: Behaviour, cache: PromptCache, window: int = 0) -> None:
        self._behaviour, self._cache, self._window = behaviour, cache, window
        self._requests, self._prompts = RequestMemory(), PromptReader()
        self._made: dict[bytes, Prompt] = {}  # under which prompts thinking was made, to say what changed

    def answer(self, incoming: Incoming) -> ProviderReply:
        prompt = self._read(incoming)
        if isinstance(prompt, Refusal):
            return refused(prompt, incoming.record())
        record = incoming.record(prompt.model)
        model = claude_model(prompt.model)
        if model is None:
            refusal = Refusal("unknown_model", f"model: {prompt.model}", 404, "not_found_error")
            return refused(refusal, record)
        counting = incoming.path.endswith("/count_tokens")
        checked = self._check(prompt, model, counting=counting)
        if isinstance(checked, Refusal):
            return refused(checked, record)
        cached = cached_prompt(prompt, model, checked.dropped)
        tokens, window = cached.totals[-1], self._window or model.window
        record = replace(record, tokens=tokens)
        if tokens > window:
            refusal = Refusal("too_long", f"prompt is too long: {tokens} tokens > {window} maximum")
            return refused(refusal, record)
        record = replace(record, mismatches=checked.mismatches, thinking=checked.read)
        if counting:
            return whole({"input_tokens": tokens}, record)
        content, stop = self._content(incoming, prompt, model, checked)
        use = self._cache.use(cached, incoming.now, shortest=model.cacheable)
        charge = Charge(use.fresh, use.read, use.written, _output_tokens(prompt.model, content))
        made = sum(block["type"] in THINKING for block in content)
        record = replace(record, charge=charge, made=made)
        message = messages_answer.message_of(prompt.model, incoming.number, content, _usage(charge, stop), stop)
        if BINDING_BETA in prompt.betas:
            message["input_transformations"] = [mismatch.report() for mismatch in checked.mismatches]
        if prompt.stream:
            return ProviderReply(200, EVENTS, list(messages_answer.events_of(message)), message, record)
        return whole(message, record)

    def _read(self, incoming: Incoming) -> Prompt | Refusal:
        if len(incoming.body) > _LARGEST:
            message = "Request exceeds the maximum size"
            return Refusal("too_large", message, 413, "request_too_large")
        try:
            request = self._requests.parse(MESSAGES, incoming.body)
            names = incoming.headers.get("anthropic-beta", "").split(",")
            betas = frozenset(name.strip() for name in names if name.strip())
            return self._prompts.read(request, betas, counter_for(request.model))
        except WireError as error:
            return Refusal("not_json", f"The request body is not valid: {error}")

    def _check(self, prompt: Prompt, model: ClaudeModel, *, counting: bool) -> Checked | Refusal:
        """All rules in the order of the API: shape, then thinking."""
        if refusal := messages_rules.broken_rule(prompt, model, counting=counting):
            return refusal
        asked = as_string(as_object(prompt.thinking.get("block_binding")).get("prefix_mismatch_behavior"))
        checked = check_thinking(
            prompt, model, Behaviour(asked) if asked in ("error", "drop_block") else self._behaviour
        )
        if checked.forged is not None:
            turn, part = checked.forged
            message = f"messages.{turn}.content.{part}: Invalid `signature` in `thinking` block"
            return Refusal("thinking_signature", message)
        bound = next((failed for failed in checked.mismatches if failed.reason == PREFIX and not failed.dropped), None)
        if bound is not None and (asked == "error" or (not asked and self._behaviour is Behaviour.ERROR)):
            return self._bound_elsewhere(prompt, bound)
        return checked

    def _bound_elsewhere(self, prompt: Prompt, failed: Mismatch) -> Refusal:
        message = f"{failed.path}: Invalid `signature` in `thinking` block. The block is bound to a different "
        message += "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
        message += '"drop_block".'
        if BINDING_BETA not in prompt.betas:
            message += f" That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header."
        block = prompt.turns[failed.turn].parts[failed.part]
        before = self._made.get(block.bound.prefix) if block.bound else None
        return Refusal("thinking_bound", f"{message} {first_change(before, prompt, failed)}" if before else message)

    def _content(
        self, incoming: Incoming, prompt: Prompt, model: ClaudeModel, checked: Checked
    ) -> tuple[list[dict[str, Any]], str]:
        """What the model says, and why it stops."""
        if prompt.members.get("max_tokens") == 0:  # it only writes the prompt to the cache
            return [], "max_tokens"
        answer = incoming.answer()
        if "compaction" in prompt.members:
            return [dict(signed_summary(prompt, checked, answer.text or _SUMMARY))], "compaction"
        content = messages_answer.content_of(answer, incoming.number)
        if answer.thinking and _thinks(prompt, model):
            content = _thought(prompt, model, checked, answer, content)
            if len(self._made) >= _PROMPTS:
                del self._made[next(iter(self._made))]
            self._made[checked.answer_prefix] = prompt
        return content, "tool_use" if answer.calls else "end_turn"


def _thought(
    prompt: Prompt, model: ClaudeModel, checked: Checked, answer: Answer, content: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The content of an answer with its thinking."""
    shown = prompt.thinking.get("display", "omitted" if model.thinks != "asked" else "full") != "omitted"
    counter = counter_for(prompt.model)
    place = ThinkingPlace(prompt.model, checked.answer_prefix, checked.previous)
    first = place.signed(answer.thinking, counter, shown=shown, redacted=answer.redacted)
    if not (answer.second_thinking and answer.text and answer.calls):
        return [dict(first), *content]
    text, *calls = content
    then = place.after(first, [part_of(text, counter)])
    return [dict(first), text, dict(then.signed(answer.second_thinking, counter, shown=shown)), *calls]


def _thinks(prompt: Prompt, model: ClaudeModel) -> bool:
    kind = prompt.thinking.get("type")
    if kind == "between_tools":
        return prompt.turns[-1].parts[-1].kind == "tool_result"
    return kind in ("adaptive", "enabled") if kind else model.thinks in ("always", "default")


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
