"""Reads the values that files, environment variables and flags give, each with the place that it came from."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pagefold.config.computer import Computer
from pagefold.config.messages import brief, unknown_setting, unknown_variable
from pagefold.config.project_file import may_set
from pagefold.errors import ConfigError
from pagefold.number_format import whole_number
from pagefold.settings.knobs import KNOBS, SECTIONS, generic_path, setting_values
from pagefold.settings.rules import ValueRule
from pagefold.settings.toml_lines import first_path, key_lines
from pagefold.settings.toml_text import KeyPath, toml_key

FILE_NAME = "pagefold.toml"
CONFIG_VARIABLE = "PAGEFOLD_CONFIG"

_OTHER_VARIABLES = frozenset({CONFIG_VARIABLE})
_SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_PLACE = re.compile(r"\(at line (\d+),")


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value as one layer gives it: `subject` opens a message about it, `folder` is where its file names start."""

    path: KeyPath
    value: object = field(repr=False)
    origin: str
    subject: str
    folder: Path

    def checked(self, computer: Computer) -> object:
        """Returns the value as the settings keep it. Raises ConfigError where its rule does not admit it."""
        knob = KNOBS[generic_path(self.path)]
        if not knob.rule.admits(self.value):
            shown_value = "" if knob.secret else f" = {brief(self.value)}"
            raise ConfigError(f"{self.subject}{shown_value}: expected {knob.rule.words}")
        if knob.rule.is_file and self.value:
            return str(computer.located(str(self.value), self.folder))
        return knob.rule.kept(self.value)


def all_layers(flags: Mapping[str, object], computer: Computer) -> Iterator[GivenValue]:
    """Yields every value that any layer gives; of two for the same setting the later one wins."""
    yield from _from_files(flags, computer)
    yield from _from_environment(computer)
    yield from _from_flags(flags, computer)


# ---- files ----------------------------------------------------------------------------------------------------


def _from_files(flags: Mapping[str, object], computer: Computer) -> Iterator[GivenValue]:
    named_by, named = "--config", flags.get("config")
    if not named:
        named_by, named = CONFIG_VARIABLE, computer.environment.get(CONFIG_VARIABLE)
    if named:
        yield from _from_file(computer.located(str(named), computer.folder), computer, f" (named by {named_by})")
        return
    if (user := computer.config_folder()) and _exists(user / FILE_NAME):
        yield from _from_file(user / FILE_NAME, computer)
    for folder in (computer.folder, *computer.folder.parents):
        if _exists(folder / FILE_NAME):
            yield from map(_allowed_in_project, _from_file(folder / FILE_NAME, computer))
            return


def _allowed_in_project(given: GivenValue) -> GivenValue:
    if not may_set(given.path, given.value):
        raise ConfigError(f"{given.subject}: not in a project's file; set it in your own, the environment or a flag")
    return given


def _exists(file: Path) -> bool:
    """False also where a folder on the way may not be searched: a parent that is closed to us is not our project."""
    try:
        file.lstat()
    except OSError:
        return False
    return True


def _from_file(file: Path, computer: Computer, why: str = "") -> Iterator[GivenValue]:
    label = computer.label(file)
    text = _text_of(file, label, why)
    try:
        # With a line end at its end, tomllib can name the line of a mistake on the last line too.
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
            yield GivenValue(path, value, origin, f"{origin}: {toml_key(path)}", file.parent)
        elif generic_path(path) in SECTIONS:
            raise ConfigError(f"{origin}: {toml_key(path)} = {brief(value)}: expected a table")
        else:
            raise unknown_setting(origin, path)


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


# ---- environment and flags ------------------------------------------------------------------------------------


def _from_environment(computer: Computer) -> Iterator[GivenValue]:
    for variable, text in sorted(computer.environment.items()):
        if not variable.startswith("PAGEFOLD_") or variable in _OTHER_VARIABLES:
            continue
        path = next((path for knob in KNOBS.values() if (path := knob.path_of(variable))), None)
        if path is None:
            raise unknown_variable(variable, _OTHER_VARIABLES)
        value = _typed(KNOBS[generic_path(path)].rule, text)
        yield GivenValue(path, value, variable, variable, computer.folder)


def _from_flags(flags: Mapping[str, object], computer: Computer) -> Iterator[GivenValue]:
    for key, value in flags.items():
        if key == "config":
            continue
        path = _path_of_flag(key)
        knob = KNOBS.get(generic_path(path))
        if knob is None:
            raise unknown_setting(f"--{key}", path)
        text = str(value) if isinstance(value, Path) else value
        typed = _typed(knob.rule, text) if isinstance(text, str) else text
        yield GivenValue(path, typed, knob.flag, knob.flag, computer.folder)


def _path_of_flag(key: str) -> KeyPath:
    try:
        return first_path(tomllib.loads(f"{key} = 0")) or (key,)
    except tomllib.TOMLDecodeError:
        return (key,)


def _typed(rule: ValueRule, text: str) -> object:
    """Returns text as a value of the rule's type. Text that is none stays text, which the rule then refuses."""
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
        scaled = whole_number(text.strip()) if rule.of is int else None
        return text if scaled is None else scaled
