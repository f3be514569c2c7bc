"""`pagefold init`: changes a client's configuration so that its MCP servers run behind pagefold, or undoes that.

Rewrites the commands of the servers in the client's own file, shows what changed and keeps the file as it was beside
it. Names stay, and with them the permissions you gave. Servers with an address are left as they are. The servers are
named in your own settings (mcp.context_servers), so that the model proxy knows their context tools for pagefold's.

With --hook, Claude Code's results go on in their cheapest lossless form without any proxy: what Bash prints, what Grep
finds and what MCP servers say. That is set in the user's settings; --undo takes it out.

Examples:
  pagefold init claude-code            .mcp.json here, and ~/.claude.json: for everywhere and for this folder
  pagefold init claude-code --hook     ~/.claude/settings.json
  pagefold init codex --dry-run        only show what would change
  pagefold init claude-code --undo     as it was
"""

import argparse
import difflib
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pagefold import config
from pagefold.adapters.atomic_file import replacing
from pagefold.cli import output
from pagefold.errors import ConfigError
from pagefold.mcp_proxy.clients import CLIENTS, Changed, McpClient, holds_servers, unwrapped, wrapped
from pagefold.settings.toml_text import with_setting
from pagefold.wire.claude_hook import EVENT, with_hook, without_hook

_BACKUP = ".before-pagefold"
_ALSO = {"claude": "claude-code"}
"""Clients by the names of their programs, where those differ."""


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("client", choices=sorted((*CLIENTS, *_ALSO)), help="whose servers; claude is Claude Code")
    command.add_argument("--file", metavar="FILE", help="its configuration file, where that is elsewhere")
    command.add_argument("--hook", action="store_true", help="of Claude Code: shorten results by its hook after a tool")
    command.add_argument("--undo", action="store_true", help="as it was before")
    command.add_argument("--dry-run", action="store_true", help="change nothing, show what would change")


def run(options: argparse.Namespace) -> int:
    client = CLIENTS[_ALSO.get(options.client, options.client)]
    files = [_hook_file(client, options)] if options.hook else _server_files(client, options)
    seen = [_change(client, file.resolve(), options) for file in files]
    if not options.hook:
        _name_servers([name for one in seen for name in one.changed], options)
    if options.json:
        output.print_json(
            [
                {"file": str(file), "changed": list(one.changed), "left": dict(one.left)}
                for file, one in zip(files, seen, strict=True)
            ]
        )
    return 0


def _hook_file(client: McpClient, options: argparse.Namespace) -> Path:
    place = Path(options.file) if options.file else config.claude_settings()
    if client.name != "claude-code" or place is None:
        raise ConfigError(f"--hook: {client.name} has no hook that replaces results; claude-code has")
    return place.resolve()


def _server_files(client: McpClient, options: argparse.Namespace) -> list[Path]:
    files = [Path(options.file)] if options.file else list(_files(client))
    if not files:
        expected = ", ".join((*client.project, *(f"~/{name}" for name in client.user)))
        raise ConfigError(f"no MCP servers of {client.name} found: expected some in {expected}, or in --file FILE")
    return files


def _files(client: McpClient) -> Iterator[Path]:
    """Yields the client's configuration files that exist and name servers."""
    home = config.home_of(client.name)
    places = [*(Path.cwd() / name for name in client.project), *((home / name) for name in client.user if home)]
    for place in dict.fromkeys(places):
        if place.is_file() and holds_servers(client, _text_of(place), _folders()):
            yield place


def _folders() -> list[str]:
    """Returns the folders under which Claude Code may keep servers that were added for this project only."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    return list(dict.fromkeys((str(here), str(root))))


def _change(client: McpClient, file: Path, options: argparse.Namespace) -> Changed:
    """Puts pagefold into a file, which is kept as it was beside it, or with --undo takes it out."""
    # The settings with the hook need not exist; the file that names servers does.
    before = "" if options.hook and not file.is_file() else _text_of(file)
    backup = file.with_name(file.name + _BACKUP)
    made = _edited(client, before, file, options, undo=options.undo)
    after = made.text
    if options.undo and backup.is_file():
        kept = _text_of(backup)
        # Where nothing else was changed since, even the spacing comes back.
        if _edited(client, kept, file, options, undo=False).text == before:
            after = kept
    if not options.json:
        _show(file, before, after, made)
    if after == before or options.dry_run:
        return made
    if before and not options.undo and not backup.exists():
        shutil.copy2(file, backup)
    if after:
        _replace(file, after)
    else:
        file.unlink()  # there was none before
    if options.undo:
        backup.unlink(missing_ok=True)
    return made


def _name_servers(names: Sequence[str], options: argparse.Namespace) -> None:
    """Names the changed servers in the user's settings: the model proxy follows the context tools of these alone."""
    file = config.user_settings()
    if file is None or not names:
        return
    before = _text_of(file) if file.is_file() else ""
    try:
        given = tomllib.loads(before).get("mcp", {}).get("context_servers", "pagefold")
        known = [name.strip() for name in str(given).split(",")]
        kept = [name for name in known if not (options.undo and name in names)]
        wanted = ", ".join([*kept, *(name for name in names if not options.undo and name not in known)])
        after = before if wanted == given else with_setting(before, "mcp", "context_servers", wanted)
    except (ValueError, AttributeError):
        output.to_stderr(f"{file}: name these servers there yourself, in [mcp] context_servers: {', '.join(names)}")
        return
    if not options.json:
        _show(file, before, after, Changed(after, (), {}))
    if after != before and not options.dry_run:
        _replace(file, after)


def _edited(client: McpClient, text: str, file: Path, options: argparse.Namespace, *, undo: bool) -> Changed:
    """Returns the text of a file with pagefold in its hooks or before its servers, or without it."""
    if options.hook:
        after = without_hook(text, str(file)) if undo else with_hook(text, _ours(), str(file))
        return Changed(after, (EVENT,) if after != text else (), {})
    return (unwrapped if undo else wrapped)(client, text, _ours(), str(file), _folders())


def _text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error


def _show(file: Path, before: str, after: str, made: Changed) -> None:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(file), str(file), n=0, lineterm="")
    output.to_stdout("\n".join(lines) or f"{file}: nothing to change")
    for name, why in made.left.items():
        output.to_stdout(f"{name} {why}")


def _ours() -> list[str]:
    """Returns the command by which a client starts pagefold without this shell's PATH."""
    program = shutil.which("pagefold")
    return [program] if program else [sys.executable, "-m", "pagefold"]


def _replace(file: Path, text: str) -> None:
    """Replaces a file atomically and keeps its permissions; a new file is readable by its owner only."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(file) as fresh:
            Path(fresh.name).chmod(file.stat().st_mode if file.exists() else 0o600)
            fresh.write(text.encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from error
