"""What the Messages API refuses in the shape of a request: roles, pairs, ids, marks, parameters, sizes.

Each rule returns the refusal or None; `RULES` in `refusal` says where it is documented. Texts are those of the API as
far as they are known, because clients and proxies look for words in them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from pagefold.provider.messages_content import THINKING, ContentPart, Prompt, Turn
from pagefold.provider.models import BETAS, ClaudeModel
from pagefold.provider.refusal import Refusal
from pagefold.provider.thinking import BINDING_BETA

COMPACTION_BETA = "compact-2026-09-04"
_MOST_MARKS = 4
_LEAST_BUDGET = 1024
_CLEARING_BETAS = ("context-management-2025-06-27", "compact-2026-01-12")
_BLOCKS = frozenset(
    (
        *THINKING,
        *("text", "image", "document", "search_result", "tool_use", "tool_result", "server_tool_use", "fallback"),
        *("web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_use"),
        *("bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result"),
        *("mcp_tool_result", "mcp_tool_listing", "container_upload", "compaction", "tool_addition", "tool_removal"),
        *("advisor_tool_result", "connector_text", "tool_reference"),
    )
)

_MEMBERS = frozenset(
    (
        *("model", "max_tokens", "stream", "temperature", "top_p", "top_k", "stop_sequences", "metadata", "system"),
        *("thinking", "tool_choice", "tools", "service_tier", "cache_control", "compaction", "container", "speed"),
        *("context_management", "diagnostics", "fallback_credit_token", "fallbacks", "inference_geo", "mcp_servers"),
        *("output_config", "output_format", "thread", "user_profile_id", "workspace_id"),
    )
)
"""Of a body, besides its messages (anthropic 2.9.0, beta message_create_params)."""

MessagesRule: TypeAlias = Callable[[Prompt, ClaudeModel], Refusal | None]


def broken_rule(prompt: Prompt, model: ClaudeModel, *, counting: bool = False) -> Refusal | None:
    """The first rule that a request breaks, thinking and size left out. One that only counts needs no `max_tokens`."""
    rules = [rule for rule in _RULES if not (counting and rule is _max_tokens)]
    return next((refusal for rule in rules if (refusal := rule(prompt, model)) is not None), None)


def _betas(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    unknown = sorted(prompt.betas - BETAS)
    if not unknown:
        return None
    names = ", ".join(f"`{name}`" for name in unknown)
    message = f"Unexpected value(s) {names} for the `anthropic-beta` header. "
    return Refusal("unknown_beta", message + "Please consult our documentation or try again without the header.")


def _needed_betas(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    thinking, extra = prompt.thinking, "Extra inputs are not permitted"
    if "block_binding" in thinking and BINDING_BETA not in prompt.betas:
        return Refusal("needs_beta", f"thinking.{thinking.get('type', 'adaptive')}.block_binding: {extra}")
    if "compaction" in prompt.members and COMPACTION_BETA not in prompt.betas:
        return Refusal("needs_beta", f"compaction: {extra}")
    if "context_management" in prompt.members and not prompt.betas.intersection(_CLEARING_BETAS):
        return Refusal("needs_beta", f"context_management: {extra}")
    return None


def _members(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    unknown = next((name for name in prompt.members if name not in _MEMBERS), None)
    return Refusal("unknown_member", f"{unknown}: Extra inputs are not permitted") if unknown else None


def _max_tokens(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    most = prompt.members.get("max_tokens")
    if most is None:
        return Refusal("max_tokens", "max_tokens: Field required")
    if not isinstance(most, int) or most < 0:
        return Refusal("max_tokens", f"max_tokens: {most!r}: expected an integer of at least 0")
    if most > model.output:
        message = f"max_tokens: {most} > {model.output}, which is the maximum allowed number of output tokens for"
        return Refusal("max_tokens", f"{message} {prompt.model}")
    return None


def _thinking(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    kind = prompt.thinking.get("type")
    if "thinking" in prompt.members and kind not in model.thinking:
        message = (
            f'"thinking.type.{kind}" is not supported for this model. Expected one of: {", ".join(model.thinking)}.'
        )
        return Refusal("thinking_type", message)
    if kind == "enabled":
        budget, most = prompt.thinking.get("budget_tokens"), prompt.members.get("max_tokens", 0)
        if not isinstance(budget, int) or budget < _LEAST_BUDGET:
            message = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
            return Refusal("thinking_budget", message)
        if budget >= most and "interleaved-thinking-2025-05-14" not in prompt.betas:
            return Refusal("thinking_budget", "`max_tokens` must be greater than `thinking.budget_tokens`.")
    return None


def _parameters(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    choice = prompt.members.get("tool_choice")
    forced = isinstance(choice, dict) and choice.get("type") in ("any", "tool")
    if forced and (model.strict or prompt.thinking.get("type") == "enabled"):
        return Refusal("forced_tool", "tool_choice: forcing a tool is not supported on this model or with thinking.")
    if model.strict:
        for name, default in (("temperature", 1), ("top_p", 1), ("top_k", None)):
            if prompt.members.get(name, default) != default:
                return Refusal("sampling", f"{name}: only the default value is supported on this model.")
    return None


def _roles(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    if not prompt.turns:
        return Refusal("no_messages", "messages: at least one message is required")
    for index, turn in enumerate(prompt.turns):
        if turn.role not in ("user", "assistant", "system"):
            message = f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'"
            return Refusal("role", message)
        if turn.role == "system" and not model.system_turns:
            return Refusal("role", f"messages.{index}: role 'system' is not supported on this model")
    first = prompt.turns[0]
    summarized = bool(first.parts) and first.parts[0].kind == "compaction"
    if first.role != "user" and not summarized:
        return Refusal("first_role", 'messages: first message must use the "user" role')
    last = prompt.turns[-1]
    if last.role == "assistant" and model.strict and "compaction" not in prompt.members:
        message = (
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
        return Refusal("prefill", message)
    return None


def _contents(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    for index, turn in enumerate(prompt.turns):
        if not turn.parts and not (turn.role == "system" and turn.also):
            message = "all messages must have non-empty content except for the optional final assistant message"
            if index < len(prompt.turns) - 1 or turn.role != "assistant":
                return Refusal("empty_message", f"messages.{index}: {message}")
        for place, part in enumerate(turn.parts):
            where = f"messages.{index}.content.{place}"
            if part.kind not in _BLOCKS:
                message = f"{where}: Input tag '{part.kind}' found using 'type' does not match any of the expected tags"
                return Refusal("block_type", message)
            if part.kind == "text" and part.empty:
                return Refusal("empty_text", f"{where}: text content blocks must be non-empty")
            if part.life and part.kind in THINKING:
                return Refusal("cache_mark_place", f"{where}.{part.kind}.cache_control: Extra inputs are not permitted")
    if any(part.empty for part in prompt.system if part.kind == "text"):
        return Refusal("empty_text", "system: text content blocks must be non-empty")
    return None


def _pairs(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    seen: set[str] = set()
    open_calls: dict[str, int] = {}
    for index, turn in enumerate(prompt.turns):
        results = [(place, part) for place, part in enumerate(turn.parts) if part.kind == "tool_result"]
        if open_calls and turn.role == "system":
            message = f"messages.{index}: a `system` message cannot come between `tool_use` and its `tool_result`"
            return Refusal("system_place", message)
        if turn.role == "user" and (refusal := _results(index, turn, results, open_calls)):
            return refusal
        if turn.role == "user":
            open_calls = {}
        if turn.role != "assistant" and any(part.kind == "tool_use" for part in turn.parts):
            return Refusal("role", f"messages.{index}: `tool_use` blocks can only be in `assistant` messages")
        if turn.role != "user" and results:
            return Refusal("role", f"messages.{index}: `tool_result` blocks can only be in `user` messages")
        for place, part in enumerate(turn.parts):
            if part.kind == "tool_use":
                if part.call_id in seen:
                    return Refusal("call_id_twice", f"messages.{index}.content.{place}: `tool_use` ids must be unique")
                seen.add(part.call_id)
                open_calls[part.call_id] = index
    return _unanswered(open_calls) if open_calls else None


def _results(
    index: int, turn: Turn, results: Sequence[tuple[int, ContentPart]], calls: dict[str, int]
) -> Refusal | None:
    left = dict(calls)
    for place, part in results:
        where = f"messages.{index}.content.{place}"
        if part.call_id in left:
            del left[part.call_id]
        elif part.call_id in calls:
            message = "each tool_use must have a single result. Found multiple `tool_result` blocks with id: "
            return Refusal("result_twice", f"{where}: {message}{part.call_id}")
        else:
            message = f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {part.call_id}. "
            more = "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            return Refusal("result_without_call", message + more)
    if left:
        return _unanswered(left)
    if results and results[-1][0] != len(results) - 1:
        message = "`tool_result` blocks must come first in the content of the message after `tool_use`"
        return Refusal("result_order", f"messages.{index}: {message}")
    return None


def _unanswered(calls: dict[str, int]) -> Refusal:
    index, ids = min(calls.values()), ", ".join(calls)
    message = f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
    more = "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    return Refusal("call_without_result", message + more)


def _tools(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    names = [part.name for part in prompt.tools if part.name]
    if len(set(names)) < len(names):
        return Refusal("tool_name_twice", "tools: Tool names must be unique.")
    calls = any(part.kind in ("tool_use", "tool_result") for turn in prompt.turns for part in turn.parts)
    if calls and not prompt.tools:
        message = "Requests which include `tool_use` or `tool_result` blocks must define tools"
        return Refusal("tools_missing", message)
    return None


def _marked(prompt: Prompt) -> Iterator[tuple[str, ContentPart]]:
    yield from ((f"tools.{at}", part) for at, part in enumerate(prompt.tools) if part.life)
    yield from ((f"system.{at}", part) for at, part in enumerate(prompt.system) if part.life)
    for index, turn in enumerate(prompt.turns):
        yield from ((f"messages.{index}.content.{at}", part) for at, part in enumerate(turn.parts) if part.life)


def _marks(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    marked = list(_marked(prompt))
    count = len(marked) + ("cache_control" in prompt.members)
    if count > _MOST_MARKS:
        message = f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided. Found {count}."
        return Refusal("cache_mark_count", message)
    short = False
    for where, part in marked:
        if part.life not in ("5m", "1h"):
            return Refusal("cache_mark_life", f"{where}.cache_control.ttl: Input should be '5m' or '1h'")
        if part.life == "1h" and short:
            message = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
            more = "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
            return Refusal("cache_mark_order", f"{where}.cache_control.ttl: {message}{more}")
        short = short or part.life == "5m"
    return None


def _loop_thinking(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    """With `thinking.type` enabled, a running tool loop begins with thinking. Adaptive thinking requires none."""
    if prompt.thinking.get("type") != "enabled" or prompt.turns[-1].role != "user":
        return None
    last, answers = len(prompt.turns) - 1, list[int]()
    while last >= 0 and (prompt.turns[last].role != "user" or _is_results(prompt.turns[last])):
        if prompt.turns[last].role == "assistant":
            answers.append(last)
        last -= 1
    if not answers or any(prompt.turns[at].parts[0].kind in THINKING for at in (answers[0], answers[-1])):
        return None
    kind = prompt.turns[answers[0]].parts[0].kind
    message = f"messages.{answers[0]}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. "
    more = "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
    end = "lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`."
    return Refusal("thinking_missing", message + more + end)


def _unmodified(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    """Where a model thinks by a budget, thinking of the last answer goes back as it came, its text included. Later
    models read the signature and let the text be."""
    if prompt.thinking.get("type") != "enabled":
        return None
    last = max((at for at, turn in enumerate(prompt.turns) if turn.role == "assistant"), default=-1)
    for place, part in enumerate(prompt.turns[last].parts if last >= 0 else ()):
        if part.kind == "thinking" and part.bound is not None and part.text != part.bound.text:
            message = (
                f"messages.{last}.content.{place}: `thinking` or `redacted_thinking` blocks in the latest assistant "
            )
            more = "message cannot be modified. These blocks must remain as they were in the original response."
            return Refusal("thinking_changed", message + more)
    return None


def _is_results(turn: Turn) -> bool:
    return bool(turn.parts) and turn.parts[0].kind == "tool_result"


def _compaction(prompt: Prompt, model: ClaudeModel) -> Refusal | None:
    for index, turn in enumerate(prompt.turns):
        for place, part in enumerate(turn.parts):
            if part.kind == "compaction" and (refusal := _compaction_block(prompt, index, place, part)):
                return refusal
    if "compaction" not in prompt.members:
        return None
    for name in ("context_management", "stop_sequences"):
        if name in prompt.members:
            return Refusal("compaction", f"compaction: cannot be combined with `{name}`")
    choice = prompt.members.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        return Refusal("compaction", "compaction: cannot be combined with a forced `tool_choice`")
    return None


def _compaction_block(prompt: Prompt, index: int, place: int, part: ContentPart) -> Refusal | None:
    where = f"messages.{index}.content.{place}"
    if part.empty:
        return Refusal("compaction_block", f"{where}: a `compaction` block with `content` requires its `signature`")
    if COMPACTION_BETA not in prompt.betas:
        message = f"{where}: `compaction` blocks with a `signature` require anthropic-beta: {COMPACTION_BETA}"
        return Refusal("needs_beta", message)
    if (index, place) != (0, 0):
        message = f"{where}: a `compaction` block must be the first block of the first message"
        return Refusal("compaction_block", message, code="compaction_block_misplaced")
    if part.summary is None:
        message = f"{where}: Invalid `signature` in `compaction` block"
        return Refusal("compaction_block", message, code="compaction_signature_invalid")
    if not part.summary.intact:
        message = f"{where}: `compaction` block `content` does not match its `signature`"
        return Refusal("compaction_block", message, code="compaction_content_mismatch")
    return None


_RULES: Sequence[MessagesRule] = (
    _betas,
    _members,
    _needed_betas,
    _max_tokens,
    _thinking,
    _parameters,
    _roles,
    _contents,
    _pairs,
    _tools,
    _marks,
    _compaction,
    _loop_thinking,
    _unmodified,
)
