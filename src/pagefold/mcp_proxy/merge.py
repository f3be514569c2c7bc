"""Several servers' answers as one: greetings, lists, names.

A name that only one server has stays as it is, so that permissions and habits keep working. One that several have is
told apart by the server's name in front, for each of them, whatever order they came in.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pagefold.wire.json_text import as_list, as_object, as_string

LISTS: Mapping[str, str] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tasks/list": "tasks",
}
"""Which member of its answer a method lists things in."""

KEYS: Mapping[str, str] = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
    "tasks": "taskId",
}
"""What tells the things of a list apart."""

CAPABILITY: Mapping[str, str] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "tasks/list": "tasks",
    "logging/setLevel": "logging",
}
"""What a server must be capable of to be asked at all."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def greeting(answers: Mapping[str, Mapping[str, Any]], version: str) -> dict[str, Any]:
    """One server that can what any of them can, in the oldest version that one of them chose."""
    capabilities: dict[str, Any] = {}
    for answer in answers.values():
        capabilities = union(capabilities, as_object(answer.get("capabilities")))
    told = [(name, as_string(answer.get("instructions"))) for name, answer in answers.items()]
    instructions = "\n\n".join(f"{name}: {text}" for name, text in told if text)
    versions = [as_string(answer.get("protocolVersion")) for answer in answers.values()]
    merged: dict[str, Any] = {
        "protocolVersion": min(filter(None, versions), default="2025-06-18"),
        "capabilities": capabilities,
        "serverInfo": {"name": "pagefold", "version": version},
    }
    return merged | {"instructions": instructions} if instructions else merged


def union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """What either has; of two switches, the one that is on."""
    both = {key: _either(one[key], other[key]) for key in one if key in other}
    return {**one, **other, **both}


def _either(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return union(one, other)
    return one or other


def public_names(listed: Mapping[str, Sequence[Any]]) -> dict[str, tuple[str, str]]:
    """For each server's named things, the name that the client sees, with whose it is and what it is called there."""
    uses = Counter(name for things in listed.values() for name in set(_names(things)))
    taken = {name for name, count in uses.items() if count == 1}
    found: dict[str, tuple[str, str]] = {}
    for server, things in listed.items():
        for name in dict.fromkeys(_names(things)):
            public = name
            if uses[name] > 1:
                public = f"{_NOT_IN_A_NAME.sub('_', server)}_{name}"
                while public in taken or public in found:
                    public += "_"
            found[public] = (server, name)
    return found


def renamed(listed: Mapping[str, Sequence[Any]], names: Mapping[str, tuple[str, str]]) -> list[Any]:
    """All things in the order of the servers, under the names that the client sees."""
    public = {there: name for name, there in names.items()}
    found: list[Any] = []
    for server, things in listed.items():
        for thing in things:
            name = as_string(as_object(thing).get("name"))
            seen = public.get((server, name), name)
            found.append(thing if seen == name else {**thing, "name": seen})
    return found


def distinct(listed: Mapping[str, Sequence[Any]], key: str) -> tuple[list[Any], dict[str, str]]:
    """All things that cannot be renamed, each once, and whose each is: the first server's that has it."""
    found: list[Any] = []
    owners: dict[str, str] = {}
    for server, things in listed.items():
        for thing in things:
            name = as_string(as_object(thing).get(key))
            if name not in owners:
                owners[name] = server
                found.append(thing)
    return found, owners


def matches(template: str, uri: str) -> bool:
    """Whether a URI may come from a template: its fixed parts stand in it, in order."""
    pattern = "".join(".*" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{[^}]*\})", template))
    return re.fullmatch(pattern, uri, re.DOTALL) is not None


def _names(things: Iterable[Any]) -> list[str]:
    return [as_string(as_object(thing).get("name")) for thing in as_list(list(things))]
