"""Reads the servers, each a command or an address, from the configuration file of an MCP client.

Knows the `mcpServers` of Claude Code, Cursor and Claude Desktop, the `servers` of VS Code and the `mcp` of opencode.
Settings of pagefold's stand under `pagefold` in a server's entry. Refuses, with ConfigError, a file without servers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pagefold.errors import ConfigError, WireError
from pagefold.wire import json_text

_SECTIONS = ("mcpServers", "servers", "mcp")
_OWN_KEYS = {"encode": bool, "slim_tools": str, "structured": str, "as_is": str}


@dataclass(frozen=True, slots=True)
class Spec:
    """One server: a command with its arguments, or a URL. `own` are the settings that apply to it alone."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str = ""
    own: Mapping[str, Any] = field(default_factory=dict)


def specs_of(text: str, label: str) -> list[Spec]:
    """The servers of a client's configuration file. Raises ConfigError."""
    try:
        value = json_text.parse(text)
    except WireError as error:
        raise ConfigError(f"{label}: not valid JSON: {error}") from error
    table = next((value[key] for key in _SECTIONS if isinstance(value, dict) and key in value), None)
    if not isinstance(table, dict):
        raise ConfigError(f"{label}: expected servers under mcpServers, servers or mcp")
    return [_spec(name, entry, label) for name, entry in table.items() if not _is_off(entry)]


def _is_off(entry: object) -> bool:
    return isinstance(entry, dict) and (entry.get("disabled") is True or entry.get("enabled") is False)


def _spec(name: str, entry: object, label: str) -> Spec:
    place = f"{label}: {name}"
    if not isinstance(entry, dict):
        raise ConfigError(f"{place}: expected an object with a command or a url")
    command = entry.get("command")
    words = list(command) if isinstance(command, list) else [command] if isinstance(command, str) else []
    words += entry.get("args") or []
    url = entry.get("url") or entry.get("serverUrl") or ""
    if not all(isinstance(word, str) for word in words) or not isinstance(url, str) or bool(words) == bool(url):
        raise ConfigError(f"{place}: expected a command with its args, or a url")
    return Spec(
        name,
        tuple(words),
        url,
        _texts(entry, ("env", "environment"), place),
        _texts(entry, ("headers",), place),
        entry["cwd"] if isinstance(entry.get("cwd"), str) else "",
        _own(entry.get("pagefold", {}), place),
    )


def _texts(entry: Mapping[str, Any], keys: tuple[str, ...], place: str) -> dict[str, str]:
    texts: Any = next((entry[key] for key in keys if entry.get(key)), {})
    if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
        raise ConfigError(f"{place}: {keys[0]}: expected an object of texts")
    return texts


def _own(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{place}: pagefold: expected an object")
    for key, setting in value.items():
        if key not in _OWN_KEYS or not isinstance(setting, _OWN_KEYS[key]):
            raise ConfigError(f"{place}: pagefold.{key}: known are {', '.join(_OWN_KEYS)}")
    return value
