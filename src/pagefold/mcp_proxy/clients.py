"""Edits the files in which MCP clients list their servers: puts servers behind the proxy, and takes them out again.

Works on a file's text alone. Of each server that is a command, the command and its arguments are replaced where they
stand, and every other byte stays. Servers with an address are left alone: their clients sign in to them by themselves.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagefold.errors import ConfigError, WireError
from pagefold.mcp_proxy.client_table import McpClient
from pagefold.wire import json_text
from pagefold.wire.json_comments import without_comments

_TABLE = re.compile(r"\s*\[")


@dataclass(frozen=True, slots=True)
class Changed:
    """A file's new text, with the servers that were changed and those that were left, each with its reason."""

    text: str
    changed: tuple[str, ...]
    left: Mapping[str, str]


Edit = tuple[int, int, str]
Spans = Mapping[str, tuple[int, int]]
"""Where `command` and `args` of a server stand: in JSON their values, in TOML their whole lines."""


def holds_servers(client: McpClient, text: str, folders: Sequence[str] = ()) -> bool:
    """Whether a file of the client lists servers for everywhere or for these folders. One that cannot be read may."""
    try:
        whole = tomllib.loads(text) if client.toml else json_text.parse(without_comments(text))
    except (tomllib.TOMLDecodeError, WireError):
        return True
    return bool(_sections(client, whole, folders))


def wrapped(client: McpClient, text: str, ours: Sequence[str], label: str, folders: Sequence[str] = ()) -> Changed:
    """Puts every server that is a command behind `ours mcp --`, also those of these folders. Only the first offers
    pagefold's tools. Raises ConfigError."""

    def wrap(name: str, command: list[str], number: int) -> list[str] | str:
        if _behind(command, ours) is not None:
            return "is behind pagefold already"
        return [*ours, "mcp", "--name", name, *(["--no-tools"] if number else []), "--", *command]

    return _change(client, text, wrap, label, folders)


def unwrapped(client: McpClient, text: str, ours: Sequence[str], label: str, folders: Sequence[str] = ()) -> Changed:
    """Restores every server as it was before `wrapped`. Raises ConfigError."""

    def unwrap(name: str, command: list[str], number: int) -> list[str] | str:
        own_command = _behind(command, ours)
        return "is not behind pagefold" if own_command is None else own_command

    return _change(client, text, unwrap, label, folders)


def _behind(command: Sequence[str], ours: Sequence[str]) -> list[str] | None:
    """The server's own command in one that `wrapped` made, here or earlier with another path; None in others."""
    words = list(command)
    if "mcp" not in words or "--" not in words:
        return None
    start, end = words.index("mcp"), words.index("--")
    head = words[:start]
    is_ours = head == list(ours) or head[-2:] == ["-m", "pagefold"] or (len(head) == 1 and "pagefold" in head[0])
    return words[end + 1 :] if is_ours and start < end else None


def _change(
    client: McpClient,
    text: str,
    change: Callable[[str, list[str], int], list[str] | str],
    label: str,
    folders: Sequence[str],
) -> Changed:
    """`change` returns a server's new command, or why it is left."""
    servers = _toml_servers(client, text, label) if client.toml else _json_servers(client, text, label, folders)
    edits: list[Edit] = []
    changed: list[str] = []
    left: dict[str, str] = {}
    for name, server, spans in servers:
        command = _command(server, spans)
        command = change(name, command, len(changed)) if isinstance(command, list) else command
        if isinstance(command, str):
            left[name] = command
        else:
            changed.append(name)
            edits += _toml_edits(spans, command) if client.toml else _json_edits(client, text, spans, command)
    return Changed(json_text.splice(text, sorted(edits)), tuple(changed), left)


def _command(server: Any, spans: Spans) -> list[str] | str:
    """A server's command with its arguments, or why it cannot be changed."""
    if not isinstance(server, dict) or "command" not in server:
        return "has no command"
    command = server["command"]
    words = [*(command if isinstance(command, list) else [command]), *(server.get("args") or [])]
    if not words or not all(isinstance(word, str) for word in words):
        return "has a command that is not made of words"
    if "command" not in spans or ("args" in server and "args" not in spans):
        return "is written in a way that is not changed here"
    return words


def _sections(client: McpClient, whole: Any, folders: Sequence[str]) -> list[tuple[str, ...]]:
    """The paths at which a file lists servers."""
    paths: list[tuple[str, ...]] = [(client.section,)]
    if client.by_folder:
        paths += [(client.by_folder, folder, client.section) for folder in folders]
    return [path for path in paths if isinstance(_value_at(whole, path), dict)]


def _value_at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


# ---- JSON ------------------------------------------------------------------------------------------------------


def _json_servers(client: McpClient, text: str, label: str, folders: Sequence[str]) -> Iterator[tuple[str, Any, Spans]]:
    plain = without_comments(text)  # in which everything has the same place
    try:
        paths = _sections(client, json_text.parse(plain), folders) or [(client.section,)]
        servers = [spot for path in paths for spot in json_text.members(plain, json_text.find(plain, path)[0])]
    except WireError as error:
        raise ConfigError(f"{label}: expected JSON with servers under {client.section} ({error})") from error
    for server in servers:
        members = json_text.members(plain, server.start) if isinstance(server.value, dict) else []
        yield server.key, server.value, {member.key: (member.start, member.end) for member in members}


def _json_edits(client: McpClient, text: str, spans: Spans, command: list[str]) -> list[Edit]:
    start, end = spans["command"]
    if client.one_list:
        return [(start, end, json.dumps(command, ensure_ascii=False))]
    arguments = json.dumps(command[1:], ensure_ascii=False)
    edits = [(start, end, json.dumps(command[0], ensure_ascii=False))]
    if "args" in spans:
        return [*edits, (*spans["args"], arguments)]
    indent = re.match(r"\s*", text[text.rfind("\n", 0, start) + 1 : start])
    gap = f"\n{indent[0]}" if indent and indent[0] else " "
    return [*edits, (end, end, f',{gap}"args": {arguments}')] if command[1:] else edits


# ---- TOML ------------------------------------------------------------------------------------------------------


def _toml_servers(client: McpClient, text: str, label: str) -> Iterator[tuple[str, Any, Spans]]:
    try:
        servers = tomllib.loads(text).get(client.section)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{label}: not valid TOML: {error}") from error
    if not isinstance(servers, dict):
        raise ConfigError(f"{label}: expected servers under {client.section}")
    for name, server in servers.items():
        yield name, server, _toml_spans(text, client.section, name)


def _toml_edits(spans: Spans, command: list[str]) -> list[Edit]:
    program = f"command = {json.dumps(command[0], ensure_ascii=False)}\n"
    arguments = f"args = {json.dumps(command[1:], ensure_ascii=False)}\n"
    if "args" in spans:
        return [(*spans["command"], program), (*spans["args"], arguments)]
    return [(*spans["command"], program + arguments if command[1:] else program)]


def _toml_spans(text: str, section: str, name: str) -> dict[str, tuple[int, int]]:
    """Where the statements of a server's own table stand, in whole lines."""
    spans: dict[str, tuple[int, int]] = {}
    inside, start, number = False, 0, 0
    lines = text.splitlines(keepends=True)
    while number < len(lines):
        statement = lines[number]
        if _TABLE.match(statement):
            inside = _path_of(statement) == [section, name]
        else:
            while _parsed(statement) is None and number + 1 < len(lines):
                number += 1
                statement += lines[number]
            key = statement.split("=", 1)[0].strip().strip("\"'")
            if inside and "=" in statement:
                spans[key] = (start, start + len(statement))
        start += len(statement)
        number += 1
    return spans


def _path_of(header: str) -> list[str]:
    inner: Any = _parsed(header)
    path: list[str] = []
    while isinstance(inner, dict) and inner:
        key, inner = next(iter(inner.items()))
        path.append(key)
    return path


def _parsed(statement: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return None
