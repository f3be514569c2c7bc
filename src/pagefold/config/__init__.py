"""Reads the settings; the only reader of configuration files, environment variables and flags.

Five layers, the later wins: shipped defaults, the user's file, the project's file, the environment, flags. Each value
is checked in the layer that gives it, also where a later one overrides it, and the place it came from is kept. What is
unknown, of the wrong type or out of range is refused with one sentence that names the place, the value and what would
do. A line number is either right or left out, and the value of a secret is never repeated.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pagefold.config.computer import (
    Computer,
    agent_logs,
    aws_credentials,
    claude_settings,
    claude_variables,
    codex_has_login,
    codex_settings,
    home_of,
    opencode_addresses,
    process_environment,
    proxies_for,
    store_flags,
    store_path,
    store_place,
    user_settings,
    whoami,
    with_variables,
)
from pagefold.config.layers import GivenValue, all_layers
from pagefold.config.messages import brief
from pagefold.config.project_file import project_scope
from pagefold.errors import ConfigError
from pagefold.loopback import is_loopback
from pagefold.settings.knobs import KNOBS, generic_path, settings_of, values_of
from pagefold.settings.sections import Settings
from pagefold.settings.toml_text import KeyPath, toml_key, toml_value

__all__ = [
    "DEFAULT",
    "LoadedSettings",
    "SettingRow",
    "agent_logs",
    "aws_credentials",
    "claude_settings",
    "claude_variables",
    "codex_has_login",
    "codex_settings",
    "home_of",
    "load",
    "opencode_addresses",
    "process_environment",
    "project_scope",
    "proxies_for",
    "setting_rows",
    "store_flags",
    "store_path",
    "store_place",
    "user_settings",
    "whoami",
    "with_variables",
]

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings and, for each key, where its value came from: default, file:line, variable or flag."""

    settings: Settings
    origins: Mapping[str, str]


class SettingRow(NamedTuple):
    """A setting as `pagefold config` lists it."""

    key: str
    value: str
    origin: str
    meaning: str


def load(
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
    platform: str = sys.platform,
) -> LoadedSettings:
    """Returns all layers as one value. A flag is keyed by its setting (`serve.port`); None counts as not given.

    Raises ConfigError.
    """
    computer = Computer(environment, (folder or Path.cwd()).absolute(), platform)
    raised = {key: value for key, value in (flags or {}).items() if value is not None}
    winners: dict[KeyPath, GivenValue] = {}
    values: dict[KeyPath, object] = {}
    for given in all_layers(raised, computer):
        winners[given.path], values[given.path] = given, given.checked(computer)
    settings = settings_of(values)
    _refuse_open_host(settings, winners)
    origins = {toml_key(path): winners[path].origin if path in winners else DEFAULT for path, _ in values_of(settings)}
    return LoadedSettings(settings, origins)


def setting_rows(loaded: LoadedSettings) -> Iterator[SettingRow]:
    """Yields every setting as `pagefold config` lists it, values spelled as in a file and secrets masked."""
    for path, value in values_of(loaded.settings):
        knob, key = KNOBS[generic_path(path)], toml_key(path)
        text = "(set)" if knob.secret and value else toml_value(value)
        yield SettingRow(key, text, loaded.origins[key], knob.meaning)


def _refuse_open_host(settings: Settings, winners: Mapping[KeyPath, GivenValue]) -> None:
    """Whoever can reach the proxy can spend the user's money, so beyond this machine it has to ask for a token."""
    host = settings.serve.host
    if is_loopback(host) or settings.serve.token.strip() or settings.serve.teams:
        return
    subject = winners["serve", "host"].subject
    needs = "a host that is not a loopback address needs serve.token (PAGEFOLD_SERVE_TOKEN) or serve.teams"
    raise ConfigError(f"{subject} = {brief(host)}: {needs}")
