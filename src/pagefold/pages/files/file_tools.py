"""By which tools agents show and change files: the tables of `file_tools.toml`, and those of the user's settings.

A tool that nobody has listed is known by the names of its arguments and by verbs in its own name, so that agents and
servers nobody has thought of are understood as well.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from pagefold.frozen import frozen
from pagefold.package_data import package_toml
from pagefold.pages.files.agents import LookingAgents, orders_in
from pagefold.pages.files.own_tools import OwnTools

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SERVER = re.compile(r"__|[-_./]")  # between the name of a server and that of its tool


class Does(StrEnum):
    """What a tool does, as far as files and plans go. `file`: its other arguments and its name say what."""

    READ = "read"
    WRITE = "write"
    EDIT = "edit"
    PATCH = "patch"
    MOVE = "move"
    REMOVE = "remove"
    SEARCH = "search"
    DIFF = "diff"
    SHELL = "shell"
    PROGRAM = "program"
    CHANGE_ANY = "change_any"
    DELEGATE = "delegate"
    WAIT = "wait"
    ASK_USER = "ask_user"
    PLAN = "plan"
    NEW_TASK = "new_task"
    TASK_STATE = "task_state"
    FILE = "file"
    NOTHING = "nothing"


@frozen
class ArgumentNames:
    """The names under which each argument is looked for, in that order."""

    path: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    everywhere: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    folder: tuple[str, ...] = ()
    offset: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    pattern: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    purpose: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    task_id: tuple[str, ...] = ()
    dry_run: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


@frozen
class FileTool:
    """What one tool does, and its arguments. `stated` are the arguments that its own table names, `only_look` the types
    of agents that it sends out and that change nothing."""

    does: Does
    arguments: ArgumentNames
    stated: frozenset[str] = frozenset()
    only_look: tuple[str, ...] = ()


@frozen
class FileTools:
    """All listed tools by name, and what is looked for in others. `keep_folder` are shells in which a `cd` lasts,
    `follow_folder` the tools whose paths begin where that shell stands."""

    listed: Mapping[str, FileTool] = field(hash=False)
    arguments: ArgumentNames
    reads: frozenset[str]
    writes: frozenset[str]
    agents: LookingAgents
    keep_folder: frozenset[str]
    follow_folder: frozenset[str]

    def find(self, name: str) -> FileTool | None:
        """The tool of this name, or the one that it is called behind the name of a server; None for one not listed."""
        if (tool := self.listed.get(name)) is not None:
            return tool
        for mark in _SERVER.finditer(name):
            own = name[mark.end() :]
            if own in self.listed and (mark.group() != "_" or "_" in own):  # `spawn_task` is no `task`
                return self.listed[own]
        return None

    def of_client(self, name: str) -> FileTool | None:
        """The tool of exactly this name: one of the client's own, or that the user listed so. What a server offers
        stands behind the name of that server, and no server speaks for the user."""
        return self.listed.get(name)

    def may_be_a_servers(self, name: str) -> bool:
        """Whether a tool of this name may stand behind the name of a server, by any client's way of writing that."""
        return name not in self.listed and _SERVER.search(name) is not None

    def reads_by_name(self, name: str) -> bool:
        """Whether a verb in a tool's name says that it reads."""
        return not self.reads.isdisjoint(_verbs(name))

    def writes_by_name(self, name: str) -> bool:
        return not self.writes.isdisjoint(_verbs(name))


def _verbs(name: str) -> Iterable[str]:
    return (word.lower() for word in _WORDS.findall(name))


def text_under(arguments: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of these arguments that is a text."""
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


@cache
def file_tools(own: OwnTools = ()) -> FileTools:
    """The tools that ship with pagefold, and the user's own before them."""
    content = package_toml(__package__, "file_tools.toml")
    known = ArgumentNames(**{name: tuple(names) for name, names in content["arguments"].items()})
    tables = {
        name: {key: _names(value) for key, value in table.items()} for name, table in content["file_tools"].items()
    }
    tables |= {name: dict(stated) for name, stated in own}
    words = {name: frozenset(listed) for name, listed in content["words"].items()}
    listed = {name: _tool(table, known) for name, table in tables.items()}
    return FileTools(
        MappingProxyType(listed),
        known,
        words["read"],
        words["write"],
        LookingAgents(
            words["agents_that_only_look"],
            words["roles_that_only_look"],
            words["tasks_that_only_look"],
            orders_in(words["orders_to_change"]),
        ),
        words["shells_that_keep_their_folder"],
        words["tools_that_follow_the_shell"],
    )


def _names(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _tool(table: Mapping[str, tuple[str, ...]], known: ArgumentNames) -> FileTool:
    stated = {name: names for name, names in table.items() if name not in ("does", "only_look")}
    parts = {item.name: getattr(known, item.name) for item in fields(known)}
    does = Does(table.get("does", (Does.FILE,))[0])
    return FileTool(does, ArgumentNames(**parts | stated), frozenset(stated), table.get("only_look", ()))


KNOWN_TOOLS = file_tools()
