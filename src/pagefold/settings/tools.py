"""Declares the settings about tools: what is known of each, and when likely reads are run early."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pagefold.settings.rules import NAMED, NAMES, SHARE, SWITCH, ValueRule, are_names, number, one_of, setting, whole

MAX_CALLS_PER_LINK = 3


@dataclass(frozen=True, slots=True)
class FollowUpLink:
    """A call that often comes next, and how its arguments follow from the call before.

    `projection` names what is looked for in the answer (see `tools.projection`), `projection_arg` the argument that it
    becomes. `keep` are arguments taken over from the call before, `constants` are the same every time. `limit` bounds
    how many calls one answer leads to. An answer that offers more than `most` leads to none: nobody knows which of a
    long list comes next.
    """

    tool: str
    probability: float = 0.5
    projection: str | None = None
    projection_arg: str | None = None
    keep: tuple[str, ...] = ()
    constants: tuple[tuple[str, str | int | float | bool], ...] = ()
    limit: int = MAX_CALLS_PER_LINK
    most: int | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "FollowUpLink":
        constants = tuple(sorted(entry.get("constants", {}).items()))
        return cls(**{**entry, "keep": tuple(entry.get("keep", ())), "constants": constants})


@dataclass(frozen=True, slots=True)
class ToolFieldGroup:
    """Fields of an answer that are wanted, or dropped, together."""

    fields: tuple[str, ...] = ()
    estimated_value: float = 0.5
    default_include: bool = True

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "ToolFieldGroup":
        return cls(**{**entry, "fields": tuple(entry.get("fields", ()))})


_LINK_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "tool": NAMED.admits,
    "probability": SHARE.admits,
    "projection": NAMED.admits,
    "projection_arg": NAMED.admits,
    "keep": are_names,
    "constants": lambda value: (
        isinstance(value, dict) and all(isinstance(constant, str | int | float) for constant in value.values())
    ),
    "limit": whole(1, MAX_CALLS_PER_LINK).admits,
    "most": whole(1).admits,
}
_GROUP_MEMBERS: Mapping[str, Callable[[Any], bool]] = {
    "fields": are_names,
    "estimated_value": number(0).admits,
    "default_include": SWITCH.admits,
}


def _is_entry(value: Any, members: Mapping[str, Callable[[Any], bool]]) -> bool:
    return isinstance(value, dict) and all(name in members and members[name](part) for name, part in value.items())


FOLLOW_UPS = ValueRule(
    tuple,
    "a list of tables with tool, probability, projection, projection_arg, keep, constants, limit and most",
    lambda value: (
        isinstance(value, list) and all(_is_entry(entry, _LINK_MEMBERS) and "tool" in entry for entry in value)
    ),
    made=lambda value: tuple(map(FollowUpLink.of, value)),
)
FIELD_GROUPS = ValueRule(
    tuple,
    "tables with fields, estimated_value and default_include",
    lambda value: isinstance(value, dict) and all(_is_entry(entry, _GROUP_MEMBERS) for entry in value.values()),
    made=lambda value: tuple((name, ToolFieldGroup.of(entry)) for name, entry in sorted(value.items())),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCost:
    """What an answer of the tool costs."""

    typical_kb: float | None = setting(None, "The typical length of an answer.", number(0))
    max_kb: float | None = setting(None, "The length of the longest answers.", number(0))
    latency_ms_p50: int | None = setting(None, "The median time that a call takes.", whole(0))
    dollars: float | None = setting(None, "What a call costs in USD.", number(0))
    freshness_ttl_s: int | None = setting(None, "How many seconds an answer may wait before it is old.", whole(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTable:
    """What is known about a tool. NAME is its name, a glob, or `*`; the table replaces a shipped one as a whole."""

    name: str
    value_class: str | None = setting(
        None,
        "How much an answer matters; critical where it is left out.",
        one_of("critical", "supporting", "optional", "audit_only"),
    )
    side_effect_class: str | None = setting(
        None,
        "What running it does; indeterminate where it is left out. A project's file may only be stricter.",
        one_of("pure", "read_only", "mutates_local", "mutates_external", "indeterminate"),
    )
    speculate: bool | None = setting(
        None, "False: never run early. True allows nothing that the effect forbids.", SWITCH
    )
    open_world: bool | None = setting(
        None,
        "Whether it reaches beyond this machine; counts as true where it is left out.",
        SWITCH,
    )
    rate_limit_host: str | None = setting(None, "The host its calls go to, where no argument says so.", NAMED)
    watch: tuple[str, ...] | None = setting(None, "The arguments that name the files an answer is made of.", NAMES)
    memoise: bool | None = setting(None, "Answer a repeated call of a pure tool without running it.", SWITCH)
    fail_fast_after_n: int | None = setting(
        None, "Refuse a repeated query after this many empty answers in a row.", whole(1)
    )
    invalidates: tuple[str, ...] | None = setting(
        None, "Tools whose earlier answers a call makes old; globs are allowed.", NAMES
    )
    follow_up: tuple[FollowUpLink, ...] | None = setting(None, "The calls that usually follow.", FOLLOW_UPS)
    field_groups: tuple[tuple[str, ToolFieldGroup], ...] | None = setting(
        None, "Fields of an answer that are wanted or dropped together.", FIELD_GROUPS
    )
    cost_model: ToolCost = field(default_factory=ToolCost)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileToolTable:
    """What a tool of your own agent does to files. NAME is its name, without the name of an MCP server."""

    name: str
    does: str | None = setting(
        None,
        "What it does; `file` where its other arguments say so, which is also what is tried where it is left out.",
        one_of(
            "read",
            "write",
            "edit",
            "patch",
            "move",
            "remove",
            "search",
            "diff",
            "shell",
            "change_any",
            "delegate",
            "wait",
            "ask_user",
            "plan",
            "file",
            "nothing",
        ),
    )
    path: tuple[str, ...] | None = setting(None, "The argument that names the file.", NAMES)
    to: tuple[str, ...] | None = setting(None, "The argument that says where a file is moved to.", NAMES)
    old: tuple[str, ...] | None = setting(None, "The argument with the text that an edit replaces.", NAMES)
    new: tuple[str, ...] | None = setting(None, "The argument with the text that takes its place.", NAMES)
    everywhere: tuple[str, ...] | None = setting(
        None, "The argument that is true where an edit replaces every such text.", NAMES
    )
    edits: tuple[str, ...] | None = setting(None, "The argument with a list of edits, each with old and new.", NAMES)
    content: tuple[str, ...] | None = setting(None, "The argument with the whole text that is written.", NAMES)
    script: tuple[str, ...] | None = setting(
        None, "The argument with the shell command, as a text or as a list of words.", NAMES
    )
    folder: tuple[str, ...] | None = setting(None, "The argument that names the folder it runs in.", NAMES)
    offset: tuple[str, ...] | None = setting(None, "Arguments that say where a read begins.", NAMES)
    limit: tuple[str, ...] | None = setting(None, "Arguments that say how much is read.", NAMES)
    steps: tuple[str, ...] | None = setting(None, "The argument with the steps of a plan.", NAMES)
    only_look: tuple[str, ...] | None = setting(
        None, "Types of agents that the tool sends out and that change no files.", NAMES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchSettings:
    """Running likely reads early: only calls that read, and only on this machine unless a host is named."""

    enabled: bool = setting(True, "Run likely reads early.", SWITCH)
    hosts: tuple[str, ...] = setting(
        (),
        "Hosts that may be asked early; they learn what the agent may want. An MCP server whose host is not known is "
        "named by its own name.",
        NAMES,
    )
    parallel: int = setting(3, "How many early calls may run side by side.", whole(1, 16))
    per_host: int = setting(4, "How many calls a host may be answering at once.", whole(1, 64))
    deadline_ms: int = setting(1000, "After this long an early call is given up.", whole(1))
    budget_tokens: int = setting(8_000, "How many tokens of answers one turn may fetch early.", whole(0))
    min_probability: float = setting(
        0.35,
        "How likely a call must be to be run early.",
        SHARE,
    )
