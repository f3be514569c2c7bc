"""What a Messages prompt is made of once thinking was checked: its tokens, and what the prompt cache sees of it."""

from collections.abc import Iterator, Set
from typing import Any

from pagefold.provider.messages_content import THINKING, ContentPart, Prompt, hash_of, hash_of_value
from pagefold.provider.models import ClaudeModel
from pagefold.provider.prompt_cache import CachedPrefix
from pagefold.tokens import FRAME
from pagefold.wire.json_text import as_object


def cached_prompt(prompt: Prompt, model: ClaudeModel, dropped: Set[tuple[int, int]]) -> CachedPrefix:
    """The prompt as the cache sees it: tools, system, messages. `dropped` thinking is not part of it."""
    hashes, totals = [], []
    breakpoints: list[tuple[int, str]] = []
    last, total = hash_of(prompt.model.encode()), 0
    cacheable = -1
    for salt, part, frame in _parts(prompt, model, dropped):
        last, total = hash_of(last, salt, part.content), total + part.tokens + frame
        hashes.append(last)
        totals.append(total)
        if part.kind not in THINKING:
            cacheable = len(hashes) - 1
        if part.life:
            breakpoints.append((len(hashes) - 1, part.life))
    automatic = prompt.members.get("cache_control")
    if isinstance(automatic, dict) and cacheable >= 0 and (not breakpoints or breakpoints[-1][0] != cacheable):
        breakpoints.append((cacheable, str(automatic.get("ttl", "5m"))))
    return CachedPrefix(hashes, totals, sorted(breakpoints))


def _parts(
    prompt: Prompt, model: ClaudeModel, dropped: Set[tuple[int, int]]
) -> Iterator[tuple[bytes, ContentPart, int]]:
    """The visible parts in the order of the cache, each with what else decides whether it is the same, and the tokens
    that it costs besides its own."""
    for part in prompt.tools:
        if part.kind == "tool":
            yield b"tool", part, 0
    for part in prompt.system:
        yield b"system", part, 0
    settings, role = hash_of_value(_settings(prompt)), ""
    begins = 0 if model.keeps else _running_turn(prompt)
    for index, turn in enumerate(prompt.turns):
        salt, frame = settings + turn.also, FRAME
        if turn.role != role:
            salt, role = salt + turn.role.encode(), turn.role
        for place, part in enumerate(turn.parts):
            if part.kind in THINKING and (index < begins or (index, place) in dropped):
                continue
            yield salt, part, frame
            salt, frame = b"", 0


def _settings(prompt: Prompt) -> dict[str, Any]:
    """Parameters that begin the messages of the cache anew when they change (prompt-caching, what invalidates)."""
    thinking = {key: value for key, value in prompt.thinking.items() if key in ("type", "budget_tokens")}
    effort = as_object(prompt.members.get("output_config")).get("effort")
    return {"tool_choice": prompt.members.get("tool_choice"), "thinking": thinking, "effort": effort}


def _running_turn(prompt: Prompt) -> int:
    """Where the newest message of the user stands that is no result: models that do not keep thinking read none of the
    answers before it."""
    for index in range(len(prompt.turns) - 1, -1, -1):
        turn = prompt.turns[index]
        if turn.role == "user" and any(part.kind != "tool_result" for part in turn.parts):
            return index
    return 0
