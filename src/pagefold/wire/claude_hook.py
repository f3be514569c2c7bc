"""Claude Code's hook after a tool: what it tells, how a result is replaced, and where the hook is set.

A result is replaced in the shape that the tool gave it, or Claude Code keeps its own. Only texts that go to the model
as they stand are offered: what Bash printed, the lines that Grep found, the texts of an MCP server's result. Of a file
that Read gives, the numbers are written after the hook, and lists of names are no text: they are left alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagefold.errors import ConfigError, WireError
from pagefold.wire import json_text
from pagefold.wire.json_text import as_list, as_object, as_string

EVENT = "PostToolUse"
MATCHER = "Bash|Grep|mcp__.*"
COMMAND = "hook"
_SECONDS = 20
_MCP = "mcp__"
_TEXTS = {"Bash": "stdout", "Grep": "content"}


@dataclass(frozen=True, slots=True)
class HookCall:
    """A tool has answered. `texts` are those of its answer that may be said in another way, each with its place."""

    tool: str
    answer: Any
    texts: tuple[tuple[json_text.Path, str], ...]


def parse(text: str) -> HookCall:
    """Raises WireError."""
    event = as_object(json_text.parse(text))
    if event.get("hook_event_name") != EVENT:
        raise WireError(f"expected an event {EVENT}")
    tool, answer = as_string(event.get("tool_name")), event.get("tool_response")
    if tool.startswith(_MCP):
        parts = enumerate(as_list(answer))
        found = [((at, "text"), part.get("text")) for at, part in parts if as_object(part).get("type") == "text"]
        return HookCall(tool, answer, tuple((path, said) for path, said in found if isinstance(said, str)))
    said = as_object(answer).get(_TEXTS.get(tool, ""))
    return HookCall(tool, answer, (((_TEXTS[tool],), said),) if isinstance(said, str) else ())


def render(called: HookCall, texts: Mapping[json_text.Path, str]) -> str:
    """What the hook prints, so that the model reads other texts at these places."""
    answer: Any = json_text.parse(json_text.dumps(called.answer))
    for path, said in texts.items():
        *steps, last = path
        at = answer
        for step in steps:
            at = at[step]
        at[last] = said
    return json_text.dumps({"hookSpecificOutput": {"hookEventName": EVENT, "updatedToolOutput": answer}})


# ---- where it is set


def with_hook(settings: str, ours: Sequence[str], label: str) -> str:
    """Claude Code's settings with the hook in them; as they are where they have it. Raises ConfigError."""
    value = _settings(settings, label)
    hooks = as_object(value.get("hooks"))
    groups = as_list(hooks.get(EVENT))
    if any(map(_is_ours, groups)):
        return settings
    command = " ".join(f'"{word}"' if " " in word else word for word in (*ours, COMMAND))
    group = {"matcher": MATCHER, "hooks": [{"type": "command", "command": command, "timeout": _SECONDS}]}
    return _written({**value, "hooks": {**hooks, EVENT: [*groups, group]}})


def without_hook(settings: str, label: str) -> str:
    """The settings without it; empty where nothing else is in them. Raises ConfigError."""
    value = _settings(settings, label)
    hooks = as_object(value.get("hooks"))
    groups = as_list(hooks.get(EVENT))
    left = [group for group in groups if not _is_ours(group)]
    if len(left) == len(groups):
        return settings
    kept = {name: other for name, other in hooks.items() if name != EVENT} | ({EVENT: left} if left else {})
    rest = {name: other for name, other in value.items() if name != "hooks"} | ({"hooks": kept} if kept else {})
    return _written(rest) if rest else ""


def _is_ours(group: Any) -> bool:
    said = [as_string(as_object(hook).get("command")) for hook in as_list(as_object(group).get("hooks"))]
    return any("pagefold" in command and command.endswith(f" {COMMAND}") for command in said)


def _settings(text: str, label: str) -> dict[str, Any]:
    try:
        value = json_text.parse(text) if text.strip() else {}
    except WireError as error:
        raise ConfigError(f"{label}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{label}: expected an object")
    return value


def _written(value: dict[str, Any]) -> str:
    return json_text.indented(value) + "\n"
