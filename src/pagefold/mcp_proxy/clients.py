"""Where MCP clients write down their servers, and how one of them is put behind the proxy, or taken from behind it.

A pure change of a file's text: of each server that is a command, the command and its arguments are replaced where they
stand, and every other byte stays. Servers with an address are left alone: their clients sign in to them by themselves.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagefold.errors import ConfigError, WireError
from pagefold.wire import json_text

_TABLE = re.compile(r"\s*\[")


@dataclass(frozen=True, slots=True)
class McpClient:
    """`files` are looked for in the project and then in the user's home; `section` holds the servers, and where there
    is `by_folder`, the same section under it and a folder's path those of that folder alone."""

    name: str
    section: str
    project: tuple[str, ...]
    user: tuple[str, ...]
    one_list: bool = False
    toml: bool = False
    by_folder: str = ""


CLIENTS: Mapping[str, McpClient] = {
    client.name: client
    for client in (
        McpClient("claude-code", "mcpServers", (".mcp.json",), (".claude.json",), by_folder="projects"),
        McpClient("codex", "mcp_servers", (".codex/config.toml",), (".codex/config.toml",), toml=True),
        McpClient("opencode", "mcp", ("opencode.json",), (".config/opencode/opencode.json",), one_list=True),
        McpClient("cursor", "mcpServers", (".cursor/mcp.json",), (".cursor/mcp.json",)),
        McpClient("vscode", "servers", (".vscode/mcp.json",), (".config/Code/User/mcp.json",)),
    )
}


@dataclass(frozen=True, slots=True)
class Changed:
    """A file's new text, with the servers that were changed and those that were left, each with its reason."""

    text: str
    changed: tuple[str, ...]
    left: Mapping[str, str]


def holds_servers(client: McpClient, text: str, folders: Sequence[str] = ()) -> bool:
    """Whether a file of the client names servers for everywhere or for these folders. One that cannot be read may."""
    try:
        whole = tomllib.loads(text) if client.toml else json_text.parse(text)
    except (tomllib.TOMLDecodeError, WireError):
        return True
    return bool(_sections(client, whole, folders))


def wrapped(client: McpClient, text: str, ours: Sequence[str], label: str, folders: Sequence[str] = ()) -> Changed:
    """Every server that is a command behind `ours mcp --`, those of these folders alone included. Only the first offers
    our tools. Raises ConfigError."""

    def wrap(name: str, command: list[str], number: int) -> list[str] | str:
        if _behind(command, ours) is not None:
            return "is behind pagefold already"
        return [*ours, "mcp", "--name", name, *(["--no-tools"] if number else []), "--", *command]

    return _change(client, text, wrap, label, folders)


def unwrapped(client: McpClient, text: str, ours: Sequence[str], label: str, folders: Sequence[str] = ()) -> Changed:
    """Every server as it was before `wrapped`. Raises ConfigError."""

    def unwrap(name: str, command: list[str], number: int) -> list[str] | str:
        found = _behind(command, ours)
        return "is not behind pagefold" if found is None else found

    return _change(client, text, unwrap, label, folders)


def _behind(command: Sequence[str], ours: Sequence[str]) -> list[str] | None:
    """What stands behind the proxy in a command that `wrapped` made, here or on another day with another path."""
    words = list(command)
    if "mcp" not in words or "--" not in words:
        return None
    at, end = words.index("mcp"), words.index("--")
    head = words[:at]
    is_ours = head == list(ours) or head[-2:] == ["-m", "pagefold"] or (len(head) == 1 and "pagefold" in head[0])
    return words[end + 1 :] if is_ours and at < end else None


Change = Callable[[str, list[str], int], "list[str] | str"]


def _change(client: McpClient, text: str, change: Change, label: str, folders: Sequence[str]) -> Changed:
    entries = _toml_entries(client, text, label) if client.toml else _json_entries(client, text, label, folders)
    edits: list[tuple[int, int, str]] = []
    changed: list[str] = []
    left: dict[str, str] = {}
    for name, entry in entries:
        if isinstance(entry, str):
            left[name] = entry
            continue
        command, write = entry
        made = change(name, command, len(changed))
        if isinstance(made, str):
            left[name] = made
        else:
            changed.append(name)
            edits += write(made)
    return Changed(json_text.splice(text, sorted(edits)), tuple(changed), left)


Write = Callable[[list[str]], list[tuple[int, int, str]]]
Entry = tuple[list[str], Write]


def _sections(client: McpClient, whole: Any, folders: Sequence[str]) -> list[tuple[str, ...]]:
    """The paths at which a file holds servers."""
    paths: list[tuple[str, ...]] = [(client.section,)]
    if client.by_folder:
        paths += [(client.by_folder, folder, client.section) for folder in folders]
    return [path for path in paths if isinstance(_at(whole, path), dict)]


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _words(command: Any, arguments: Any) -> list[str] | None:
    words = [*(command if isinstance(command, list) else [command]), *(arguments or [])]
    return words if words and all(isinstance(word, str) for word in words) else None


# ---- JSON ------------------------------------------------------------------------------------------------------


def _json_entries(
    client: McpClient, text: str, label: str, folders: Sequence[str]
) -> Iterator[tuple[str, Entry | str]]:
    try:
        paths = _sections(client, json_text.parse(text), folders) or [(client.section,)]
        servers = [spot for path in paths for spot in json_text.members(text, json_text.find(text, path)[0])]
    except WireError as error:
        raise ConfigError(f"{label}: expected JSON with servers under {client.section} ({error})") from error
    for server in servers:
        yield server.key, _json_entry(client, text, server)


def _json_entry(client: McpClient, text: str, server: json_text.Spot) -> Entry | str:
    if not isinstance(server.value, dict) or "command" not in server.value:
        return "has no command"
    members = json_text.members(text, server.start)
    command, arguments = json_text.member(members, "command"), json_text.member(members, "args")
    assert command is not None
    words = _words(command.value, arguments.value if arguments else None)
    if words is None:
        return "has a command that is not made of words"

    def write(made: list[str]) -> list[tuple[int, int, str]]:
        if client.one_list:
            return [(command.start, command.end, json.dumps(made, ensure_ascii=False))]
        rest = json.dumps(made[1:], ensure_ascii=False)
        edits = [(command.start, command.end, json.dumps(made[0], ensure_ascii=False))]
        if arguments is not None:
            return [*edits, (arguments.start, arguments.end, rest)]
        line = text[text.rfind("\n", 0, command.start) + 1 : command.start]
        indent = re.match(r"\s*", line)
        gap = f"\n{indent[0]}" if indent and indent[0] else " "
        return [*edits, (command.end, command.end, f',{gap}"args": {rest}')] if made[1:] else edits

    return words, write


# ---- TOML ------------------------------------------------------------------------------------------------------


def _toml_entries(client: McpClient, text: str, label: str) -> Iterator[tuple[str, Entry | str]]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{label}: not valid TOML: {error}") from error
    servers = table.get(client.section)
    if not isinstance(servers, dict):
        raise ConfigError(f"{label}: expected servers under {client.section}")
    for name, server in servers.items():
        yield name, _toml_entry(client, text, name, server)


def _toml_entry(client: McpClient, text: str, name: str, server: Any) -> Entry | str:
    if not isinstance(server, dict) or "command" not in server:
        return "has no command"
    words = _words(server["command"], server.get("args"))
    spans = _toml_spans(text, client.section, name)
    if words is None or "command" not in spans or ("args" in server and "args" not in spans):
        return "is written in a way that is not changed here"

    def write(made: list[str]) -> list[tuple[int, int, str]]:
        start, end = spans["command"]
        command = f"command = {json.dumps(made[0], ensure_ascii=False)}\n"
        arguments = f"args = {json.dumps(made[1:], ensure_ascii=False)}\n"
        if "args" in spans:
            return [(start, end, command), (*spans["args"], arguments)]
        return [(start, end, command + arguments if made[1:] else command)]

    return words, write


def _toml_spans(text: str, section: str, name: str) -> dict[str, tuple[int, int]]:
    """Where the statements of a server's own table stand, whole lines each."""
    found: dict[str, tuple[int, int]] = {}
    inside, at = False, 0
    lines = text.splitlines(keepends=True)
    number = 0
    while number < len(lines):
        start, statement = at, lines[number]
        if _TABLE.match(statement):
            inside = _path_of(statement) == [section, name]
        else:
            while not _parses(statement) and number + 1 < len(lines):
                number += 1
                statement += lines[number]
            key = statement.split("=", 1)[0].strip().strip("\"'")
            if inside and "=" in statement:
                found[key] = (start, start + len(statement))
        at = start + len(statement)
        number += 1
    return found


def _path_of(header: str) -> list[str]:
    try:
        inner: Any = tomllib.loads(header)
    except tomllib.TOMLDecodeError:
        return []
    path: list[str] = []
    while isinstance(inner, dict) and inner:
        key, inner = next(iter(inner.items()))
        path.append(key)
    return path


def _parses(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True
