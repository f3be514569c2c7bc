"""The only reader of configuration files, environment variables and flags.

Five layers, the later wins: shipped defaults, the user's file, the project's file, the environment, flags. Each value
is checked in the layer that gives it, also where a later one overrides it, and the place it came from is kept. What is
unknown, of the wrong type or out of range is refused with one sentence that names the place, the value and what would
do. A line number is either right or left out, and the value of a secret is never repeated.
"""

import difflib
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from pagefold.errors import ConfigError
from pagefold.loopback import is_loopback
from pagefold.settings import (
    KNOBS,
    NAME,
    SECTIONS,
    KeyPath,
    Settings,
    ValueRule,
    generic_path,
    setting_values,
    settings_of,
    toml_key,
    toml_value,
    values_of,
)
from pagefold.settings.toml_lines import first_path, key_lines

FILE_NAME = "pagefold.toml"
CONFIG_VARIABLE = "PAGEFOLD_CONFIG"
DEFAULT = "default"

_OTHER_VARIABLES = frozenset({CONFIG_VARIABLE})
_SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_SHOWN_CHARACTERS = 80
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_PLACE = re.compile(r"\(at line (\d+),")


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings and, for each key, where its value came from: default, file:line, variable or flag."""

    settings: Settings
    origins: Mapping[str, str]


class SettingRow(NamedTuple):
    key: str
    value: str
    origin: str
    meaning: str


@dataclass(frozen=True, slots=True)
class _Given:
    """A value as one layer gives it: `subject` opens a message about it, `folder` is where its file names start."""

    path: KeyPath
    value: object = field(repr=False)
    origin: str
    subject: str
    folder: Path


@dataclass(frozen=True, slots=True)
class _Surroundings:
    environment: Mapping[str, str] = field(repr=False)
    folder: Path
    platform: str

    @property
    def home(self) -> Path | None:
        home = self.environment.get("USERPROFILE" if self.platform == "win32" else "HOME")
        return Path(home) if home else None

    def user_folder(self, variable: str, under_home: str) -> Path | None:
        """pagefold's folder below the one that the variable names, or else below the home folder."""
        named = Path(self.environment.get(variable, ""))
        # The XDG specification has relative paths ignored.
        if named.is_absolute():
            return named / "pagefold"
        return self.home / under_home / "pagefold" if self.home else None

    def config_folder(self) -> Path | None:
        if self.platform == "win32":
            return self.user_folder("APPDATA", "AppData/Roaming")
        return self.user_folder("XDG_CONFIG_HOME", ".config")

    def data_folder(self) -> Path | None:
        if self.platform == "win32":
            return self.user_folder("LOCALAPPDATA", "AppData/Local")
        if self.platform == "darwin":
            return self.user_folder("", "Library/Application Support")
        return self.user_folder("XDG_DATA_HOME", ".local/share")

    def located(self, name: str, folder: Path) -> Path:
        if self.home and (name == "~" or name.startswith(("~/", "~\\"))):
            return self.home / name[2:]
        return folder / name

    def label(self, file: Path) -> str:
        """A file as a message names it: short in the current folder, from ~ in the home folder, else in full."""
        if file.parent == self.folder:
            return file.name
        if self.home and file.is_relative_to(self.home):
            return f"~/{file.relative_to(self.home).as_posix()}"
        return str(file)


def load(
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
    platform: str = sys.platform,
) -> LoadedSettings:
    """All layers as one value. A flag is keyed by its setting (`serve.port`); None counts as not given.

    Raises ConfigError.
    """
    at = _Surroundings(environment, (folder or Path.cwd()).absolute(), platform)
    raised = {key: value for key, value in (flags or {}).items() if value is not None}
    given: dict[KeyPath, _Given] = {}
    values: dict[KeyPath, object] = {}
    for layer in (_from_files(raised, at), _from_environment(at), _from_flags(raised, at)):
        for one in layer:
            given[one.path], values[one.path] = one, _checked(one, at)
    settings = settings_of(values)
    _refuse_an_open_door(settings, given)
    origins = {toml_key(path): given[path].origin if path in given else DEFAULT for path, _ in values_of(settings)}
    return LoadedSettings(settings, origins)


def shown(loaded: LoadedSettings) -> Iterator[SettingRow]:
    """Every setting as `pagefold config` lists it, values spelled as in a file and secrets masked."""
    for path, value in values_of(loaded.settings):
        knob, key = KNOBS[generic_path(path)], toml_key(path)
        text = "(set)" if knob.secret and value else toml_value(value)
        yield SettingRow(key, text, loaded.origins[key], knob.meaning)


def store_path(settings: Settings, environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """The file of the store. Raises ConfigError where none is named and there is no user data directory."""
    if settings.store.path:
        return Path(settings.store.path)
    folder = _Surroundings(environment, Path(), platform).data_folder()
    if folder is None:
        raise ConfigError('store.path = "": expected the name of a file, as there is no user data directory')
    return folder / "store.sqlite3"


def agent_logs(
    environment: Mapping[str, str] = os.environ, platform: str = sys.platform
) -> Iterator[tuple[str, Path, str]]:
    """Where agents keep their logs on this computer: who, which folder, which files in it."""
    home = _Surroundings(environment, Path(), platform).home or Path()
    claude, codex = environment.get("CLAUDE_CONFIG_DIR"), environment.get("CODEX_HOME")
    yield "Claude Code", (Path(claude) if claude else home / ".claude") / "projects", "*.jsonl"
    yield "Codex", (Path(codex) if codex else home / ".codex") / "sessions", "rollout-*.jsonl"


def home_of(client: str, environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path | None:
    """The folder below which a client keeps its own files: the home, or what the client's variable says."""
    home = _Surroundings(environment, Path(), platform).home
    variable = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}.get(client, "")
    named = environment.get(variable)
    # Codex's variable names the folder `.codex` itself.
    return (Path(named).parent if client == "codex" else Path(named)) if named else home


def claude_settings(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path | None:
    """Claude Code's own settings, those of the user."""
    home = _Surroundings(environment, Path(), platform).home
    named = environment.get("CLAUDE_CONFIG_DIR")
    folder = Path(named) if named else home / ".claude" if home else None
    return folder / "settings.json" if folder else None


def process_environment(changes: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a program that is started, with what its configuration adds to ours."""
    return {**environment, **changes}


def proxies_for(addresses: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The HTTP proxy by which programs reach each of these addresses from here, by its host and port.

    Those that are reached directly are left out, and so is this computer itself.
    """
    listed = environment.get("no_proxy") or environment.get("NO_PROXY", "")
    spared = [name.strip().lstrip(".").partition(":")[0] for name in listed.split(",")]
    found: dict[str, str] = {}
    for address in addresses:
        parts = urlsplit(address)
        names = [variable for name in (f"{parts.scheme}_proxy", "all_proxy") for variable in (name, name.upper())]
        proxy = next((environment[name] for name in names if environment.get(name)), "")
        host = parts.hostname or ""
        direct = host in _LOOPBACK or "*" in spared
        direct = direct or any(name and f".{host}".endswith(f".{name}") for name in spared)
        if proxy.startswith(("http://", "https://")) and not direct:
            found[parts.netloc] = proxy
    return found


def with_variables(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """`${NAME}` and `${NAME:-otherwise}` as the files of MCP clients use them. Raises ConfigError for an unset one."""

    def value(found: re.Match[str]) -> str:
        name, _, otherwise = found[1].partition(":-")
        if name in environment:
            return environment[name]
        if ":-" not in found[1]:
            raise ConfigError(f"${{{name}}}: there is no such environment variable; ${{{name}:-…}} gives it a value")
        return otherwise

    return re.sub(r"\$\{([A-Za-z_]\w*(?::-[^}]*)?)\}", value, text)


# ---- the layers -----------------------------------------------------------------------------------------------


def _from_files(flags: Mapping[str, object], at: _Surroundings) -> Iterator[_Given]:
    named_by, named = "--config", flags.get("config")
    if not named:
        named_by, named = CONFIG_VARIABLE, at.environment.get(CONFIG_VARIABLE)
    if named:
        yield from _from_file(at.located(str(named), at.folder), at, f" (named by {named_by})")
        return
    if (user := at.config_folder()) and _exists(user / FILE_NAME):
        yield from _from_file(user / FILE_NAME, at)
    for folder in (at.folder, *at.folder.parents):
        if _exists(folder / FILE_NAME):
            yield from map(_harmless, _from_file(folder / FILE_NAME, at))
            return


def _harmless(given: _Given) -> _Given:
    """A project's file may come with somebody else's repository: it does not decide where the user's keys go."""
    own = KNOBS[generic_path(given.path)].own
    if own(given.value) if callable(own) else own:
        raise ConfigError(f"{given.subject}: not in a project's file; set it in your own, the environment or a flag")
    return given


def _exists(file: Path) -> bool:
    """False also where a folder on the way may not be searched: a parent that is closed to us is not our project."""
    try:
        file.lstat()
    except OSError:
        return False
    return True


def _from_file(file: Path, at: _Surroundings, why: str = "") -> Iterator[_Given]:
    label = at.label(file)
    text = _text_of(file, label, why)
    try:
        # With a last line end tomllib tells the place of a mistake there, and not only that it is at the end.
        table, lines = tomllib.loads(text + "\n"), key_lines(text)
    except RecursionError as error:
        raise ConfigError(f"{label}: not valid TOML: nested too deeply") from error
    except ValueError as error:
        place = _PLACE.search(str(error))
        where = f"{label}:{place[1]}" if place else label
        raise ConfigError(f"{where}: not valid TOML: {error}") from error
    for path, value in setting_values(table):
        origin = f"{label}:{lines[path]}" if path in lines else label
        if generic_path(path) in KNOBS:
            yield _Given(path, value, origin, f"{origin}: {toml_key(path)}", file.parent)
        elif generic_path(path) in SECTIONS:
            raise ConfigError(f"{origin}: {toml_key(path)} = {_brief(value)}: expected a table")
        else:
            raise _unknown_setting(origin, path)


def _text_of(file: Path, label: str, why: str) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{label}: cannot be read{why}: {error.strerror}") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{label}:{line}: not UTF-8 text: byte 0x{content[error.start]:02x}") from error


def _from_environment(at: _Surroundings) -> Iterator[_Given]:
    for variable, text in sorted(at.environment.items()):
        if not variable.startswith("PAGEFOLD_") or variable in _OTHER_VARIABLES:
            continue
        path = next((path for knob in KNOBS.values() if (path := knob.path_of(variable))), None)
        if path is None:
            known = [*(knob.variable for knob in KNOBS.values()), *_OTHER_VARIABLES]
            hint = _hint(known, {name: _likeness(variable, name) for name in known}, 0.8)
            raise ConfigError(f"{variable}: unknown environment variable ({hint})")
        yield _Given(path, _read(KNOBS[generic_path(path)].rule, text), variable, variable, at.folder)


def _from_flags(flags: Mapping[str, object], at: _Surroundings) -> Iterator[_Given]:
    for key, value in flags.items():
        if key == "config":
            continue
        path = _path_of_flag(key)
        knob = KNOBS.get(generic_path(path))
        if knob is None:
            raise _unknown_setting(f"--{key}", path)
        text = str(value) if isinstance(value, Path) else value
        typed = _read(knob.rule, text) if isinstance(text, str) else text
        yield _Given(path, typed, knob.flag, knob.flag, at.folder)


def _path_of_flag(key: str) -> KeyPath:
    try:
        return first_path(tomllib.loads(f"{key} = 0")) or (key,)
    except tomllib.TOMLDecodeError:
        return (key,)


# ---- one value ------------------------------------------------------------------------------------------------


def _read(rule: ValueRule, text: str) -> object:
    """Text as a value of the rule's type; text that is none stays text, which the rule then refuses."""
    if rule.of is bool:
        return _SWITCH.get(text.strip().lower(), text)
    if rule.made is not None:
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            return text
    try:
        return rule.of(text)
    except ValueError:
        return text


def _checked(given: _Given, at: _Surroundings) -> object:
    knob, value = KNOBS[generic_path(given.path)], given.value
    if not knob.rule.admits(value):
        aside = "" if knob.secret else f" = {_brief(value)}"
        raise ConfigError(f"{given.subject}{aside}: expected {knob.rule.words}")
    if knob.rule.is_file and value:
        return str(at.located(str(value), given.folder))
    return knob.rule.kept(value)


def _refuse_an_open_door(settings: Settings, given: Mapping[KeyPath, _Given]) -> None:
    """Whoever can reach the proxy can spend the user's money, so beyond this machine it asks for a token."""
    host = settings.serve.host
    if is_loopback(host) or settings.serve.token.strip():
        return
    subject = given["serve", "host"].subject
    needs = "a host that is not a loopback address needs serve.token (PAGEFOLD_SERVE_TOKEN)"
    raise ConfigError(f"{subject} = {_brief(host)}: {needs}")


# ---- what a message says ---------------------------------------------------------------------------------------


def _brief(value: object) -> str:
    # An address that is refused for the password in it must not be repeated with the password.
    text = re.sub(r"//[^/]*@", "//…@", toml_value(value))
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _unknown_setting(place: str, path: KeyPath) -> ConfigError:
    # In a table with a free name the suggestions carry that name.
    named = path[1] if generic_path(path) != path else NAME
    known = [tuple(named if part == NAME else part for part in one) for one in (*KNOBS, *sorted(SECTIONS))]
    likeness = {toml_key(one): _likeness_of_paths(path, one) for one in known}
    siblings = [toml_key(one) for one in known if one[:-1] == path[:-1]]
    return ConfigError(f"{place}: unknown setting {toml_key(path)} ({_hint(siblings, likeness, 0.6)})")


def _likeness_of_paths(wanted: KeyPath, known: KeyPath) -> float:
    """By the last name, which tells a slip from a stranger in the same section, and best within that section."""
    last = _likeness(wanted[-1], known[-1])
    if wanted[:-1] == known[:-1]:
        return last
    return 0.9 * (last if len(wanted) > 1 else max(last, _likeness(wanted[0], toml_key(known))))


def _likeness(left: str, right: str) -> float:
    return difflib.SequenceMatcher(None, left, right).ratio()


def _hint(known: Iterable[str], likeness: Mapping[str, float], floor: float) -> str:
    """The nearest names, ties and near ties together, or all that are known where none is near."""
    best = max(likeness.values())
    near = [name for name, ratio in likeness.items() if ratio >= max(floor, best - 0.05)]
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
