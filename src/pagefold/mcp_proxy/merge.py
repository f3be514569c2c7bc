"""Merges the answers of several servers into one: greetings, lists and names.

A name that only one server has stays as it is, so that permissions and habits keep working. A name that several have
gets the server's name in front, for each of them, in whatever order they answered; so does one that is reserved.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pagefold.wire.json_text import as_object, as_string

LISTS: Mapping[str, str] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tasks/list": "tasks",
}
"""The member of a method's answer that holds its list."""

KEYS: Mapping[str, str] = {"resources": "uri", "resourceTemplates": "uriTemplate", "tasks": "taskId"}
"""The member that identifies an element of a list whose elements cannot be renamed."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def capability(method: str) -> str:
    """The capability that a server must have to be asked this, or "" if it needs none."""
    return method.partition("/")[0] if method in LISTS or method == "logging/setLevel" else ""


def greeting(answers: Mapping[str, Mapping[str, Any]], version: str) -> dict[str, Any]:
    """A greeting with the capabilities of all servers, in the oldest version of the protocol that one of them chose.
    Without any server there are still the tools of pagefold's own."""
    capabilities: dict[str, Any] = {} if answers else {"tools": {}}
    for answer in answers.values():
        capabilities = union(capabilities, as_object(answer.get("capabilities")))
    texts = {name: as_string(answer.get("instructions")) for name, answer in answers.items()}
    instructions = "\n\n".join(f"{name}: {text}" for name, text in texts.items() if text)
    versions = [as_string(answer.get("protocolVersion")) for answer in answers.values()]
    merged: dict[str, Any] = {
        "protocolVersion": min(filter(None, versions), default="2025-06-18"),
        "capabilities": capabilities,
        "serverInfo": {"name": "pagefold", "version": version},
    }
    return merged | {"instructions": instructions} if instructions else merged


def union(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The members of both; a switch that is on in one of them is on."""
    both = {key: _either(first[key], second[key]) for key in first if key in second}
    return {**first, **second, **both}


def _either(first: Any, second: Any) -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        return union(first, second)
    return first or second


def public_names(
    listed: Mapping[str, Sequence[Any]], reserved: Collection[str] = frozenset()
) -> dict[str, tuple[str, str]]:
    """For each name that the client sees, the server and the name that the server uses. No server's tool is seen under
    a `reserved` name."""
    names = {server: list(dict.fromkeys(map(_name, elements))) for server, elements in listed.items()}
    uses = Counter(name for own_names in names.values() for name in own_names)
    taken = {name for name, count in uses.items() if count == 1} | set(reserved)
    public_names: dict[str, tuple[str, str]] = {}
    for server, own_names in names.items():
        for name in own_names:
            public = name
            if uses[name] > 1 or name in reserved:
                public = f"{_NOT_IN_A_NAME.sub('_', server)}_{name}"
                while public in taken or public in public_names:
                    public += "_"
            public_names[public] = (server, name)
    return public_names


def renamed(listed: Mapping[str, Sequence[Any]], names: Mapping[str, tuple[str, str]]) -> list[Any]:
    """All elements in the order of the servers, under the names that the client sees."""
    public = {there: name for name, there in names.items()}
    elements = [(element, public[server, _name(element)]) for server in listed for element in listed[server]]
    return [element if _name(element) == name else {**element, "name": name} for element, name in elements]


def distinct(listed: Mapping[str, Sequence[Any]], key: str) -> tuple[list[Any], dict[str, str]]:
    """All elements that cannot be renamed, each once, and its server: the first that has it."""
    distinct: list[Any] = []
    owners: dict[str, str] = {}
    for server, elements in listed.items():
        for element in elements:
            name = as_string(as_object(element).get(key))
            if name not in owners:
                owners[name] = server
                distinct.append(element)
    return distinct, owners


def matches(template: str, uri: str) -> bool:
    """Whether a URI may come from a template: it contains the template's fixed parts in their order."""
    pattern = "".join(".*" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{[^}]*\})", template))
    return re.fullmatch(pattern, uri, re.DOTALL) is not None


def _name(element: Any) -> str:
    return as_string(as_object(element).get("name"))
