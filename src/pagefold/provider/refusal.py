"""A refusal: the rule that a request broke, and the error that the API answers. `RULES` says where each is documented.

Pages are below platform.claude.com/docs/en; for OpenAI developers.openai.com/api/docs, for Gemini
ai.google.dev/gemini-api/docs. "seen" stands for the words of errors that the documentation does not list and that users
of the API report.
"""

from collections.abc import Mapping
from typing import Any

from pagefold.frozen import frozen

RULES: Mapping[str, str] = {
    "not_json": "api/errors: invalid_request_error",
    "not_found": "api/errors: not_found_error",
    "unknown_model": "api/errors: not_found_error",
    "too_large": "api/errors: request_too_large, 32 MB for Messages",
    "too_long": "build-with-claude/context-windows: a prompt beyond the window is an error",
    "unknown_member": "api/messages: parameters; code.claude.com errors: Extra inputs are not permitted",
    "max_tokens": "api/messages: required, 0 to fill the cache alone, at most what the model can write",
    "unknown_beta": "api/beta-headers: error handling",
    "needs_beta": "preserved-thinking: block_binding without its header; compaction-on-demand: every later request",
    "no_messages": "api/messages: at least one message",
    "role": "api/messages: user or assistant; mid-conversation-system-messages: system",
    "first_role": "api/messages: the first message is the user's (or a compaction block)",
    "system_place": "mid-conversation-system-messages: never between a tool_use and its tool_result",
    "empty_message": "seen: all messages must have non-empty content except for the optional final assistant message",
    "empty_text": "seen: text content blocks must be non-empty",
    "block_type": "api/messages: content blocks",
    "cache_mark_place": "prompt-caching: thinking and empty text cannot be marked",
    "cache_mark_count": "prompt-caching: up to 4 breakpoints",
    "cache_mark_order": "prompt-caching: longer lives come before shorter ones",
    "cache_mark_life": "prompt-caching: 5m or 1h",
    "call_without_result": "tool-use/handle-tool-calls: every tool_use has its tool_result in the next message",
    "result_without_call": "tool-use/handle-tool-calls: a tool_result follows its tool_use",
    "result_twice": "seen: each tool_use must have a single result",
    "result_order": "tool-use/handle-tool-calls: results come first in their message",
    "call_id_twice": "seen: tool_use ids must be unique",
    "tools_missing": "seen: requests with tool_use or tool_result blocks must define tools",
    "tool_name_twice": "seen: tool names must be unique",
    "prefill": "whats-new: models since Opus 4.6 take no prefilled answer",
    "forced_tool": "whats-new-fable-5-1: tool_choice any and tool are refused",
    "sampling": "whats-new: temperature, top_p and top_k other than the defaults are refused",
    "thinking_type": "build-with-claude/thinking: types by model",
    "thinking_budget": "extended-thinking: at least 1,024 and below max_tokens",
    "thinking_missing": "extended-thinking: with thinking enabled the last turn of a tool loop begins with thinking",
    "thinking_changed": "extended-thinking: thinking of the last answer goes back unmodified",
    "thinking_signature": "preserved-thinking: a tampered signature is always a 400",
    "thinking_bound": "preserved-thinking: the prefix of a block changed, or a block between others is gone",
    "compaction": "compaction-on-demand: what a request for a summary may not hold",
    "compaction_block": "compaction-on-demand: where its block stands, with its signature",
    "openai_model": "guides/error-codes: model_not_found",
    "openai_content": "api/reference: the content of a message by its role",
    "openai_parameter": "guides/reasoning, guides/prompt-caching: parameters by model",
    "openai_too_long": "guides/error-codes: context_length_exceeded",
    "chat_tool_without_call": "guides/function-calling; seen: messages with role 'tool' must be a response",
    "chat_call_without_result": "guides/function-calling; seen: must be followed by tool messages",
    "item_type": "api/reference/responses: input items",
    "item_twice": "seen: Duplicate item found with id",
    "item_not_found": "guides/conversation-state; seen: items are not persisted when `store` is false",
    "call_without_output": "guides/function-calling; seen: No tool output found for function call (copilot-cli#4572)",
    "output_without_call": "guides/function-calling; seen: No tool call found for function call output",
    "reasoning_without_item": "guides/reasoning; seen: without its required following item (coder/xum#59)",
    "item_without_reasoning": "guides/reasoning; seen: without its required 'reasoning' item",
    "encrypted_content": "guides/reasoning; seen: could not be verified (codex#8145)",
    "previous_response": "guides/conversation-state: previous_response_not_found",
    "gemini_request": "ai.google.dev api/generate-content: contents, parts, INVALID_ARGUMENT",
    "gemini_model": "ai.google.dev troubleshooting: NOT_FOUND",
    "gemini_role": "seen: Please use a valid role: user, model",
    "gemini_call_place": "seen: a function call turn follows a user turn or function responses (gemini-cli#16543)",
    "gemini_response_place": "seen: a function response turn follows a function call turn",
    "gemini_response_count": "seen: as many function responses as function calls (gemini-cli#3814)",
    "gemini_response_id": "ai.google.dev function-calling: a response has the id and the name of its call",
    "gemini_signature": "ai.google.dev thought-signatures: required in the current turn, from Gemini 3 on",
    "gemini_signature_changed": "ai.google.dev thought-signatures; seen: Corrupted thought signature",
    "gemini_tool_twice": "seen: Duplicate function declaration found",
    "gemini_cached": "ai.google.dev caching: cached content is found, and brings system prompt and tools along",
    "gemini_too_long": "seen: The input token count exceeds the maximum number of tokens allowed",
}


@frozen
class Refusal:
    """One broken rule. `kind` is the error's type and `code` its finer code, as the API spells them."""

    rule: str
    message: str
    status: int = 400
    kind: str = "invalid_request_error"
    code: str = ""
    param: str = ""

    def anthropic(self) -> dict[str, Any]:
        error: dict[str, Any] = {"type": self.kind, "message": self.message}
        if self.code:
            error["details"] = {"error_code": self.code}
        return {"type": "error", "error": error, "request_id": "req_referee"}

    def gemini(self) -> dict[str, Any]:
        return {"error": {"code": self.status, "message": self.message, "status": self.kind}}

    def openai(self) -> dict[str, Any]:
        error = {"message": self.message, "type": self.kind, "param": self.param or None, "code": self.code or None}
        return {"error": error}
