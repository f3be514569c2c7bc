"""What the Chat Completions and Responses APIs refuse: roles, pairs, ids, reasoning items, parameters.

Texts are those of the API as far as they are known; `RULES` in `refusal` says where a rule is documented. Roles that do
not exist are refused where requests are read.
"""

import re
from collections.abc import Callable, Collection, Sequence

from pagefold.provider.models import OpenaiModel
from pagefold.provider.openai_content import Conversation, InputItem
from pagefold.provider.refusal import Refusal

_CALLS = frozenset(
    ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call")
)
_ITEMS = _CALLS | {f"{kind}_output" for kind in _CALLS}
_ITEMS |= {"message", "reasoning", "compaction", "compaction_trigger", "item_reference", "web_search_call", "program"}
_ITEMS |= {"file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools"}
_ITEMS |= {"mcp_approval_request", "mcp_approval_response", "tool_search_call", "tool_search_output", "program_output"}
_ITEMS |= {"additional_tools", "configuration_update", "compaction_summary", "agent_message", "context_compaction"}
_AFTER_REASONING = re.compile(r"[a-z]+_(r\d+)_\d+")


def broken_chat_rule(chat: Conversation, model: OpenaiModel) -> Refusal | None:
    """The first rule that a chat breaks, its length left out."""
    return _parameters(chat, model) or _chat_shape(chat.items) or _chat_pairs(chat.items)


def broken_response_rule(
    asked: Conversation, model: OpenaiModel, before: Sequence[InputItem], stored: Collection[str]
) -> Refusal | None:
    """The first rule that a Responses request breaks. `before` are the items that it goes on from, `stored` the ids of
    items that the provider holds."""
    items = [*before, *asked.items]
    checks: Sequence[Callable[[], Refusal | None]] = (
        lambda: _parameters(asked, model),
        lambda: _item_shape(asked.items, stored),
        lambda: _reasoning(items),
        lambda: _item_pairs(items),
    )
    return next((refusal for check in checks if (refusal := check()) is not None), None)


def _parameters(asked: Conversation, model: OpenaiModel) -> Refusal | None:
    members = asked.members
    if model.reasons and "max_tokens" in members:
        message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
        return _refusal("openai_parameter", message + "instead.", "max_tokens", "unsupported_parameter")
    for name in ("temperature", "top_p"):
        if model.reasons and members.get(name, 1) not in (1, None):
            message = f"Unsupported parameter: '{name}' is not supported with this model."
            return _refusal("openai_parameter", message, name, "unsupported_parameter")
    marked = "prompt_cache_options" in members or any(item.breaks for item in asked.items)
    if marked and not model.breakpoints:
        message = "Unsupported parameter: 'prompt_cache_options' is not supported with this model."
        return _refusal("openai_parameter", message, "prompt_cache_options", "unsupported_parameter")
    if "prompt_cache_options" in members and "prompt_cache_retention" in members:
        message = "prompt_cache_options and prompt_cache_retention cannot both be set."
        return _refusal("openai_parameter", message, "prompt_cache_retention", "invalid_request")
    return None


def _chat_shape(items: Sequence[InputItem]) -> Refusal | None:
    if not items:
        message = (
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )
        return _refusal("openai_content", message, "messages", "empty_array")
    for index, item in enumerate(items):
        if item.empty and item.role != "assistant":
            message = "Invalid value for 'content': expected a string, got null."
            return _refusal("openai_content", message, f"messages.[{index}].content", "")
    return None


def _chat_pairs(items: Sequence[InputItem]) -> Refusal | None:
    waiting: list[str] = []
    caller = -1
    for index, item in enumerate(items):
        if item.role == "tool":
            if item.answers in waiting:
                waiting.remove(item.answers)
                continue
            where = f"messages.[{index}].role"
            message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            return _refusal("chat_tool_without_call", message + "'tool_calls'.", where, "")
        if waiting:
            return _unanswered(waiting, caller)
        if item.calls:
            waiting, caller = list(item.calls), index
    return _unanswered(waiting, caller) if waiting else None


def _unanswered(waiting: Sequence[str], index: int) -> Refusal:
    message = "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    message += "'tool_call_id'. The following tool_call_ids did not have response messages: "
    return _refusal("chat_call_without_result", message + ", ".join(waiting), f"messages.[{index}].role", "")


def _item_shape(items: Sequence[InputItem], stored: Collection[str]) -> Refusal | None:
    seen: set[str] = set()
    for index, item in enumerate(items):
        if item.kind not in _ITEMS:
            message = f"Invalid value: '{item.kind}'. Supported values are: {', '.join(sorted(_ITEMS))}."
            return _refusal("item_type", message, f"input[{index}]", "invalid_value")
        if item.id and item.id in seen:
            message = f"Duplicate item found with id {item.id}. Remove duplicate items from your input and try again."
            return _refusal("item_twice", message, "input", "")
        seen.add(item.id)
        if item.foreign:
            message = (
                f"The encrypted content for item {item.id} could not be verified. Reason: Encrypted content could "
            )
            code = "invalid_encrypted_content"
            return _refusal("encrypted_content", message + "not be decrypted or parsed.", "", code)
        needed = item.kind == "item_reference" or (item.kind == "reasoning" and item.sealed is None)
        if needed and item.id not in stored:
            message = f"Item with id '{item.id}' not found. Items are not persisted when `store` is set to false. Try "
            message += "again with `store` set to true, or remove this item from your input."
            return Refusal("item_not_found", message, 404, "invalid_request_error", param="input")
    return None


def _reasoning(items: Sequence[InputItem]) -> Refusal | None:
    given = {item.id for item in items if item.kind in ("reasoning", "item_reference")}
    for index, item in enumerate(items):
        if item.kind == "reasoning":
            following = items[index + 1] if index + 1 < len(items) else None
            if following is None or not following.of_model:
                message = f"Item '{item.id}' of type 'reasoning' was provided without its required following item."
                return _refusal("reasoning_without_item", message, "input", "")
        elif (made := _AFTER_REASONING.fullmatch(item.id)) and f"rs_{made[1]}" not in given:
            message = f"Item '{item.id}' of type '{item.kind}' was provided without its required 'reasoning' item: "
            return _refusal("item_without_reasoning", message + f"'rs_{made[1]}'.", "input", "")
    return None


def _item_pairs(items: Sequence[InputItem]) -> Refusal | None:
    answered = {item.answers for item in items if item.answers}
    called: set[str] = set()
    for item in items:
        if item.kind in _CALLS:
            called.update(item.calls)
            missing = next((call for call in item.calls if call not in answered), None)
            if missing is not None:
                message = f"No tool output found for {_spoken(item.kind)} {missing}."
                return _refusal("call_without_output", message, "input", "")
        elif item.kind.removesuffix("_output") in _CALLS and item.answers not in called:
            kind = _spoken(item.kind.removesuffix("_output"))
            message = f"No tool call found for {kind} output with call_id {item.answers}."
            return _refusal("output_without_call", message, "input", "")
    return None


def _spoken(kind: str) -> str:
    return kind.replace("_", " ")


def _refusal(rule: str, message: str, param: str, code: str) -> Refusal:
    return Refusal(rule, message, param=param, code=code)
