"""`pagefold init`: changes a client's configuration so that its MCP servers run behind pagefold, or undoes that.

Rewrites the commands of the servers in the client's own file, shows what changed and keeps the file as it was beside
it. Names stay, and with them the permissions you gave; so do comments. Servers with an address are left as they are.
The servers are named in your own settings (mcp.context_servers), so that the model proxy knows their context tools for
pagefold's. A file of a project gets the plain command `pagefold`, so that it can be committed.

With --hook, Claude Code's results go on in their cheapest lossless form without any proxy: what Bash prints, what Grep
finds and what MCP servers say. --statusline has it show what `pagefold statusline` says. --proxy sets the address of
the model proxy for good, for Claude Code, Codex and OpenCode: `pagefold serve` has to run then. All three are in the
user's settings; --undo takes each out.

Examples:
  pagefold init claude-code            .mcp.json here, and ~/.claude.json: for everywhere and for this folder
  pagefold init claude-code --hook     ~/.claude/settings.json
  pagefold init codex --proxy          ~/.codex/config.toml
  pagefold init zed --dry-run          only show what would change
  pagefold init claude-code --undo     as it was
"""

import argparse
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pagefold import config
from pagefold.cli import output
from pagefold.cli.client_files import FileEdit, Outcome, change, replace, show, text_of
from pagefold.errors import ConfigError
from pagefold.mcp_proxy.client_settings import Values, with_values, without_values
from pagefold.mcp_proxy.client_table import CLIENTS, McpClient
from pagefold.mcp_proxy.clients import Changed, holds_servers, unwrapped, wrapped
from pagefold.settings.toml_text import with_setting, without_setting
from pagefold.wire.claude_hook import EVENT, with_hook, without_hook

_ALSO = {"claude": "claude-code"}
"""Clients by the names of their programs, where those differ."""
_UNNAMED = "pagefold"
"""The server whose context tools are followed without being named."""
_LOOPBACK = "http://127.0.0.1:"


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("client", choices=sorted((*CLIENTS, *_ALSO)), help="whose servers; claude is Claude Code")
    command.add_argument("--file", metavar="FILE", help="its configuration file, where that is elsewhere")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--hook", action="store_true", help="of Claude Code: shorten results by its hook after a tool")
    what.add_argument("--statusline", action="store_true", help="of Claude Code: show window, savings and cache")
    what.add_argument("--proxy", action="store_true", help="send requests to the model by `pagefold serve`, for good")
    command.add_argument("--undo", action="store_true", help="as it was before")
    command.add_argument("--dry-run", action="store_true", help="change nothing, show what would change")


def run(options: argparse.Namespace) -> int:
    client = CLIENTS[_ALSO.get(options.client, options.client)]
    edits = _edits(client, options)
    seen = [change(edit, undo=options.undo, dry_run=options.dry_run, quiet=options.json) for edit in edits]
    if not (options.hook or options.statusline or options.proxy):
        _name_servers([name for one in seen for name in one.made.changed], options)
    said = _next(client, edits, seen, options)
    if options.json:
        output.print_json(
            [
                {
                    "file": str(one.file),
                    "changed": list(one.made.changed),
                    "left": dict(one.made.left),
                    "backup": str(one.backup) if one.backup else None,
                    "next": said,
                }
                for one in seen
            ]
        )
    else:
        output.to_stdout(said)
    return 0


def _next(client: McpClient, edits: Sequence[FileEdit], seen: Sequence[Outcome], options: argparse.Namespace) -> str:
    """The last line: what was done, where the file is as it was, and what to do now."""
    changed = [name for one in seen for name in one.made.changed]
    if not changed:
        return "Nothing was changed."
    if options.dry_run:
        return "Nothing was changed: without --dry-run it will be."
    parts = [f"{'Taken out' if options.undo else 'Set'}: {', '.join(changed)}."]
    if kept := [str(one.backup) for one in seen if one.backup]:
        back = "" if options.undo else "; --undo brings it back"
        parts.append(f"As it was: {', '.join(kept)}{back}.")
    elif not options.undo:
        parts.append("There was no such file before: --undo removes it.")
    if options.proxy and not options.undo:
        parts.append("Start `pagefold serve` and keep it running: without it no model is reached.")
    if any(edit.shared for edit in edits) and not options.undo:
        parts.append("Whoever uses this project needs `pagefold` on the PATH.")
    servers = not (options.hook or options.statusline or options.proxy)
    return f"{' '.join(parts)} Next: {client.then if servers else client.then.partition(';')[0]}."


def _edits(client: McpClient, options: argparse.Namespace) -> list[FileEdit]:
    """What is to be done to which files. Raises ConfigError."""
    if options.hook:
        return [_hook_edit(_claude_settings(client, options, "--hook", "hook that replaces results"))]
    if options.statusline:
        file = _claude_settings(client, options, "--statusline", "status line that runs a program")
        command = " ".join(f'"{word}"' if " " in word else word for word in (*_ours(), "statusline"))
        return [_values_edit(file, {("statusLine",): {"type": "command", "command": command}})]
    if options.proxy:
        return [_proxy_edit(client, options)]
    return [_servers_edit(client, file, shared=shared) for file, shared in _server_files(client, options)]


# ---- hook, status line and the model's address, in the user's settings


def _claude_settings(client: McpClient, options: argparse.Namespace, flag: str, what: str) -> Path:
    place = Path(options.file) if options.file else config.claude_settings()
    if client.name != "claude-code" or place is None:
        raise ConfigError(f"{flag}: {client.name} has no {what}; claude-code has")
    return place.resolve()


def _hook_edit(file: Path) -> FileEdit:
    def edited(text: str, *, undo: bool) -> Changed:
        after = without_hook(text, str(file)) if undo else with_hook(text, _ours(), str(file))
        return Changed(after, (EVENT,) if after != text else (), {})

    return FileEdit(file, lambda text: edited(text, undo=False), lambda text: edited(text, undo=True), may_be_new=True)


def _values_edit(file: Path, values: Values, *, toml: bool = False) -> FileEdit:
    return FileEdit(
        file,
        lambda text: with_values(text, values, _is_ours, str(file), toml=toml),
        lambda text: without_values(text, values, _is_ours, str(file), toml=toml),
        may_be_new=True,
    )


def _is_ours(found: Any, wanted: Any) -> bool:
    """Whether a value that was found is pagefold's: the same, another port of this computer, or its status line."""
    if isinstance(wanted, dict):
        said = str(found.get("command", "")) if isinstance(found, dict) else ""
        return "pagefold" in said and said.endswith(" statusline")
    address = str(wanted).startswith(_LOOPBACK) and str(found).startswith(_LOOPBACK)
    return bool(found == wanted) or address


def _proxy_edit(client: McpClient, options: argparse.Namespace) -> FileEdit:
    if not client.proxy:
        able = ", ".join(name for name, one in CLIENTS.items() if one.proxy)
        raise ConfigError(f"--proxy: {client.title} has no setting for it that is known here; {able} have")
    home = config.home_of(client.name)
    named = [home / name for name in client.user_files(sys.platform)] if home else []
    files = [Path(options.file)] if options.file else [name for name in named if name.is_file()] or named[:1]
    place = config.claude_settings() if client.name == "claude-code" and not options.file else next(iter(files), None)
    if place is None:
        raise ConfigError("--proxy: there is no home folder; name the file by --file FILE")
    file = place.resolve()
    if client.toml and file.is_file() and not options.undo:
        _check_provider(file)
    url = f"{_LOOPBACK}{config.load(flags={'config': options.config}).settings.serve.port}"
    return _values_edit(file, {path: one.format(url=url) for path, one in client.proxy.items()}, toml=client.toml)


def _check_provider(file: Path) -> None:
    """Codex reads the address of its own provider only."""
    try:
        provider = tomllib.loads(text_of(file)).get("model_provider", "openai")
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not TOML ({error})") from error
    if provider != "openai":
        raise ConfigError(f"{file}: model_provider = {provider!r}: set the base_url of that provider by hand")


# ---- servers


def _servers_edit(client: McpClient, file: Path, *, shared: bool) -> FileEdit:
    ours, folders = ["pagefold"] if shared else _ours(), _folders()
    return FileEdit(
        file,
        lambda text: wrapped(client, text, ours, str(file), folders),
        lambda text: unwrapped(client, text, ours, str(file), folders),
        shared=shared,
    )


def _server_files(client: McpClient, options: argparse.Namespace) -> list[tuple[Path, bool]]:
    """The files that are changed, and whether each belongs to a project. Raises ConfigError."""
    files = list(_files(client))
    if options.file:
        file = Path(options.file).resolve()
        files = [(file, any((folder / ".git").exists() for folder in file.parents))]
    if not files:
        expected = ", ".join((*client.project, *(f"~/{name}" for name in client.user_files(sys.platform))))
        hint = "; `init claude-code --hook` and `pagefold run claude` need none" if client.name == "claude-code" else ""
        raise ConfigError(
            f"no MCP servers of {client.name} found: expected some in {expected}, or in --file FILE{hint}"
        )
    return files


def _files(client: McpClient) -> Iterator[tuple[Path, bool]]:
    """Yields the client's configuration files that exist and name servers, and whether each belongs to a project."""
    home = config.home_of(client.name)
    mine = [home / name for name in client.user_files(sys.platform)] if home else []
    places = [(place, False) for place in mine]
    places = [*((place, True) for name in client.project if (place := Path.cwd() / name) not in mine), *places]
    for place, shared in places:
        if place.is_file() and holds_servers(client, text_of(place), _folders()):
            yield place.resolve(), shared


def _folders() -> list[str]:
    """Returns the folders under which Claude Code may keep servers that were added for this project only."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    return list(dict.fromkeys((str(here), str(root))))


def _name_servers(names: Sequence[str], options: argparse.Namespace) -> None:
    """Names the changed servers in the user's settings: the model proxy follows the context tools of these alone.

    With --undo they go again, and where none is left but what needs no naming, the setting, its table and its file.
    """
    file = config.user_settings()
    if file is None or not names:
        return
    before = text_of(file) if file.is_file() else ""
    try:
        given = tomllib.loads(before).get("mcp", {}).get("context_servers", _UNNAMED)
        known = [name.strip() for name in str(given).split(",")]
        kept = [name for name in known if not options.undo or name not in names or name == _UNNAMED]
        wanted = ", ".join([*kept, *(name for name in names if not options.undo and name not in known)])
        if wanted == given:
            after = before
        elif options.undo and wanted == _UNNAMED:
            after = without_setting(before, "mcp", "context_servers")
        else:
            after = with_setting(before, "mcp", "context_servers", wanted)
    except (ValueError, AttributeError):
        output.to_stderr(f"{file}: name these servers there yourself, in [mcp] context_servers: {', '.join(names)}")
        return
    if not options.json:
        show(file, before, after, Changed(after, (), {}))
    if after != before and not options.dry_run:
        if after:
            replace(file, after)
        else:
            file.unlink()
            if not any(file.parent.iterdir()) and not file.parent.is_symlink():
                file.parent.rmdir()


def _ours() -> list[str]:
    """Returns the command by which a client starts pagefold without this shell's PATH."""
    program = shutil.which("pagefold")
    return [program] if program else [sys.executable, "-m", "pagefold"]
