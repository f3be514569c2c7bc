"""What the environment says about this computer: the user's folders, agents' logs, HTTP proxies and variables."""

import getpass
import json
import os
import re
import socket
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pagefold.errors import ConfigError
from pagefold.settings.sections import Settings
from pagefold.wire.aws_signature import AwsCredentials
from pagefold.wire.json_comments import without_comments

_DATABASES = ("postgresql://", "postgres://")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Computer:
    """The environment variables, the current folder and the platform that settings are read under."""

    environment: Mapping[str, str] = field(repr=False)
    folder: Path
    platform: str

    @property
    def home(self) -> Path | None:
        home = self.environment.get("USERPROFILE" if self.platform == "win32" else "HOME")
        return Path(home) if home else None

    def config_folder(self) -> Path | None:
        if self.platform == "win32":
            return self._user_folder("APPDATA", "AppData/Roaming")
        return self._user_folder("XDG_CONFIG_HOME", ".config")

    def data_folder(self) -> Path | None:
        if self.platform == "win32":
            return self._user_folder("LOCALAPPDATA", "AppData/Local")
        if self.platform == "darwin":
            return self._user_folder("", "Library/Application Support")
        return self._user_folder("XDG_DATA_HOME", ".local/share")

    def _user_folder(self, variable: str, under_home: str) -> Path | None:
        """Returns pagefold's folder below the one that the variable names, or else below the home folder."""
        named = Path(self.environment.get(variable, ""))
        # The XDG specification has relative paths ignored.
        if named.is_absolute():
            return named / "pagefold"
        return self.home / under_home / "pagefold" if self.home else None

    def located(self, name: str, folder: Path) -> Path:
        """Returns the path of a file name that starts at `folder`, or at the home folder where it begins with ~."""
        if self.home and (name == "~" or name.startswith(("~/", "~\\"))):
            return self.home / name[2:]
        return folder / name

    def label(self, file: Path) -> str:
        """Returns a file's name for a message: short in the current folder, from ~ in the home folder, else in full."""
        if file.parent == self.folder:
            return file.name
        if self.home and file.is_relative_to(self.home):
            return f"~/{file.relative_to(self.home).as_posix()}"
        return str(file)


def store_path(settings: Settings, environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Returns the store's file. Raises ConfigError where none is named and there is no user data directory."""
    if settings.store.path:
        return Path(settings.store.path)
    folder = Computer(environment, Path(), platform).data_folder()
    if folder is None:
        raise ConfigError('store.path = "": expected the name of a file, as there is no user data directory')
    return folder / "store.sqlite3"


def store_place(
    settings: Settings, environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> str | Path:
    """Returns where the store is: the address of a database, or a file. Raises ConfigError, without the address."""
    if settings.store.url and not settings.store.url.startswith(_DATABASES):
        raise ConfigError("store.url: expected postgresql://USER@HOST:PORT/DATABASE, or nothing")
    return settings.store.url or store_path(settings, environment, platform)


def store_flags(typed: str | None) -> dict[str, object]:
    """Returns what `--store` sets: a file, or the address of a database."""
    if typed is None:
        return {}
    if typed.startswith(_DATABASES):
        return {"store.url": typed}
    return {"store.path": typed, "store.url": ""}


def agent_logs(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> Iterator[tuple[str, Path, str]]:
    """Yields where agents keep their logs on this computer: the agent, its folder, the pattern of the files."""
    home = Computer(environment, Path(), platform).home or Path()
    claude, codex = environment.get("CLAUDE_CONFIG_DIR"), environment.get("CODEX_HOME")
    yield "Claude Code", (Path(claude) if claude else home / ".claude") / "projects", "*.jsonl"
    yield "Codex", (Path(codex) if codex else home / ".codex") / "sessions", "rollout-*.jsonl"


def home_of(client: str, environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path | None:
    """Returns the folder below which a client keeps its own files: the home, or what the client's variable says."""
    home = Computer(environment, Path(), platform).home
    variable = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}.get(client, "")
    named = environment.get(variable)
    # Codex's variable names the folder `.codex` itself.
    return (Path(named).parent if client == "codex" else Path(named)) if named else home


def user_settings(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path | None:
    """Returns the user's own settings file, which need not exist, or None without a home."""
    folder = Computer(environment, Path.cwd(), platform).config_folder()
    return folder / "pagefold.toml" if folder else None


def claude_settings(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path | None:
    """Returns the file of Claude Code's own settings for the user."""
    home = Computer(environment, Path(), platform).home
    named = environment.get("CLAUDE_CONFIG_DIR")
    folder = Path(named) if named else home / ".claude" if home else None
    return folder / "settings.json" if folder else None


def claude_variables(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform, folder: Path | None = None
) -> list[tuple[Path, dict[str, str]]]:
    """Returns the variables that Claude Code's settings files set, which win over those it is started with: the user's
    file first, then those of the project in the folder; the later win. A file that cannot be read sets none."""
    here = (folder or Path.cwd()) / ".claude"
    user = claude_settings(environment, platform)
    places = dict.fromkeys([user or Path(), here / "settings.json", here / "settings.local.json"])
    return [(place, _variables_in(place)) for place in places]


def _variables_in(place: Path) -> dict[str, str]:
    try:
        said = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # Claude Code itself says what is wrong with it
    variables = said.get("env") if isinstance(said, dict) else None
    return {name: str(value) for name, value in variables.items()} if isinstance(variables, dict) else {}


def opencode_addresses(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform, folder: Path | None = None
) -> dict[str, str]:
    """Returns the addresses that OpenCode's settings files name, by provider; a project's file wins over the user's.
    They win over OpenCode's environment. A file that cannot be read names none."""
    home = home_of("opencode", environment, platform) or Path()
    found: dict[str, str] = {}
    for place in (home / ".config" / "opencode", folder or Path.cwd()):
        for name in ("opencode.json", "opencode.jsonc"):
            try:
                said = json.loads(without_comments((place / name).read_text(encoding="utf-8")))
                providers = said.get("provider", {}).items()
                found |= {key: str(url) for key, one in providers if (url := one.get("options", {}).get("baseURL"))}
            except (OSError, ValueError, AttributeError):
                continue  # OpenCode itself says what is wrong with it
    return found


def codex_settings(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> dict[str, Any]:
    """Returns what Codex's own settings file says, as TOML is read; nothing where there is none that can be read."""
    try:
        return tomllib.loads((_codex_folder(environment, platform) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # Codex itself says what is wrong with it


def codex_has_login(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether Codex is logged in with a ChatGPT account, and not by an API key."""
    try:
        kept = json.loads((_codex_folder(environment, platform) / "auth.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(kept, dict) and bool(kept.get("tokens"))


def _codex_folder(environment: Mapping[str, str], platform: str) -> Path:
    named = environment.get("CODEX_HOME")
    return Path(named) if named else (Computer(environment, Path(), platform).home or Path()) / ".codex"


def aws_credentials(environment: Mapping[str, str] = os.environ) -> AwsCredentials | None:
    """The access key for AWS in the environment, or None."""
    key_id, secret = environment.get("AWS_ACCESS_KEY_ID", ""), environment.get("AWS_SECRET_ACCESS_KEY", "")
    return AwsCredentials(key_id, secret, environment.get("AWS_SESSION_TOKEN", "")) if key_id and secret else None


def process_environment(changes: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the environment for a program that is started: ours, with what its configuration changes."""
    return {**environment, **changes}


def proxies_for(addresses: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the HTTP proxy that the environment names for each address, by the address's host and port.

    Addresses that are reached directly are left out, this computer itself among them.
    """
    no_proxy = environment.get("no_proxy") or environment.get("NO_PROXY", "")
    direct_hosts = [name.strip().lstrip(".").partition(":")[0] for name in no_proxy.split(",")]
    proxies: dict[str, str] = {}
    for address in addresses:
        parts = urlsplit(address)
        variables = [name for base in (f"{parts.scheme}_proxy", "all_proxy") for name in (base, base.upper())]
        proxy = next((environment[name] for name in variables if environment.get(name)), "")
        host = parts.hostname or ""
        direct = host in _LOOPBACK or "*" in direct_hosts
        direct = direct or any(name and f".{host}".endswith(f".{name}") for name in direct_hosts)
        if proxy.startswith(("http://", "https://")) and not direct:
            proxies[parts.netloc] = proxy
    return proxies


def with_variables(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Fills in `${NAME}` and `${NAME:-otherwise}`, as the files of MCP clients use them.

    Raises ConfigError for a variable that is not set and has no other value.
    """

    def value_of(reference: re.Match[str]) -> str:
        name, _, otherwise = reference[1].partition(":-")
        if name in environment:
            return environment[name]
        if ":-" not in reference[1]:
            raise ConfigError(f"${{{name}}}: there is no such environment variable; ${{{name}:-…}} gives it a value")
        return otherwise

    return re.sub(r"\$\{([A-Za-z_]\w*(?::-[^}]*)?)\}", value_of, text)


def whoami() -> str:
    """Who is at work here, for a log of what was done: the user's name and the host's."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"
