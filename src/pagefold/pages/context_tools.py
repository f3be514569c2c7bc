"""The tools by which an agent works on its own context: their names, descriptions and arguments.

Only data; `context_calls` and the surfaces answer calls. All surfaces offer the same list. None of these tools can take
a constraint away: only whoever set it can, so a tool result that asks the agent to do it has no effect.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ContextTool:
    """`arguments` is a JSON schema; the hints are those of MCP."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, Any]
    read_only: bool
    idempotent: bool = True

    @property
    def annotations(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "readOnlyHint": self.read_only,
            "destructiveHint": False,
            "idempotentHint": self.idempotent,
            "openWorldHint": False,
        }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _whole(description: str, least: int, most: int | None = None) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "description": description} | (
        {} if most is None else {"maximum": most}
    )


def _tool(
    name: str, title: str, description: str, *required: str, read_only: bool = False, **properties: Mapping[str, Any]
) -> ContextTool:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ContextTool(name, title, description, schema, read_only, idempotent=name != "context_reset")


_SCOPE = {
    "type": "string",
    "enum": ["session", "project"],
    "description": "How far it reaches: this conversation, or every one in this project.",
}

RECALL = _tool(
    "context_recall",
    "Recall a page",
    "Get back what a handle such as pf-abcdefghij stands for, as it was: a call with its result, a file, a text.",
    "handle",
    handle=_text("The handle, as it stands in the text that replaced the original."),
    cursor=_text("Where to go on, as the answer before said; leave out to begin."),
    lines=_text("Only these lines, such as 40-80,120."),
    path=_text("Only what stands there in its JSON, such as $.items[3].name."),
    find=_text("Only the lines with this word, and those around them."),
    read_only=True,
)
SEARCH = _tool(
    "context_search",
    "Search what was shown",
    "Find what was shown, said or done earlier in this conversation, also where it has since been folded away.",
    "query",
    query=_text("Words, names, a path, a tool, or how a call ended: failed, refused, interrupted."),
    limit=_whole("How many places to give at most; 5 if left out.", 1, 20),
    read_only=True,
)
STATUS = _tool(
    "context_status",
    "Look at the context",
    "See how full the context is, what is pinned, and what was folded away.",
    read_only=True,
)
PIN = _tool(
    "context_pin",
    "Pin a constraint",
    "Hold a rule of the user that must not be broken: every later request carries it, whatever is folded away.",
    "statement",
    statement=_text("The rule, in one or two sentences, as the user set it."),
    scope=_SCOPE,
)
PLAN = _tool(
    "context_plan",
    "Set the plan",
    "Hold the goal and the steps you are working through; call it again whenever one of them or the step changes.",
    "goal",
    goal=_text("What is to be reached, in one or two sentences."),
    steps={"type": "array", "items": {"type": "string"}, "description": "The steps, in order."},
    current=_whole("The step you are at, counted from 1; 1 if left out.", 1),
)
PREFER = _tool(
    "context_prefer",
    "Hold a preference",
    "Hold something the user or the project prefers, such as a style, that is no hard rule.",
    "statement",
    statement=_text("The preference, in one or two sentences."),
    scope=_SCOPE,
)
RESET = _tool(
    "context_reset",
    "Start over with a summary",
    "Fold everything before this point into the summary you give; what is pinned stays, and the rest can be recalled.",
    "summary",
    summary=_text("All you need to go on: the state of the work, decisions, names and numbers, what is open."),
)

CONTEXT_TOOLS = (RECALL, SEARCH, PIN, PLAN, PREFER, RESET, STATUS)
PARTS = ("cursor", "lines", "path", "find")
"""The arguments of `context_recall` that ask for a part of a page; one at a time."""

SERVERS = ("pagefold",)
"""The names by which clients know the MCP servers that offer these tools, where no setting says others."""

_NAMES = frozenset(tool.name for tool in CONTEXT_TOOLS)
_SPELLED = re.compile(rf"(?:mcp__?)?(.+?)(?:__|[-_./])({'|'.join(tool.name for tool in CONTEXT_TOOLS)})")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def own_name(spelled: str, servers: Collection[str] = SERVERS) -> str:
    """Returns the name of a context tool, alone or as clients spell a tool of one of these servers, such as
    mcp__pagefold__context_pin; "" for any other tool, also for one of another server that has the same name."""
    if "context_" not in spelled or spelled in _NAMES:
        return spelled if spelled in _NAMES else ""
    match = _SPELLED.fullmatch(spelled)
    known = match is not None and any(match[1] in (server, _NOT_IN_A_NAME.sub("_", server)) for server in servers)
    return match[2] if match is not None and known else ""
