"""Lists every setting by its path (KNOBS), and converts between values by path and a `Settings` value."""

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any

from pagefold.errors import ConfigError
from pagefold.settings.rules import ValueRule
from pagefold.settings.sections import Settings
from pagefold.settings.toml_text import KeyPath
from pagefold.settings.tools import FileToolTable, ToolTable

NAME = "NAME"
"""Stands in a path for the free name of a table."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One setting: what the reader and the reference page need to know about it."""

    path: KeyPath
    section: type
    default: object
    meaning: str
    rule: ValueRule
    secret: bool
    flag: str

    @property
    def variable(self) -> str:
        return "_".join(("PAGEFOLD", *self.path)).upper()

    def path_of(self, variable: str) -> KeyPath | None:
        """Returns the path that an environment variable sets, free name included; None if it sets another setting."""
        if NAME not in self.path:
            return self.path if variable == self.variable else None
        place = self.path.index(NAME)
        before, after = self.path[:place], self.path[place + 1 :]
        head, tail = "_".join(("PAGEFOLD", *before, "")).upper(), "_".join(("", *after)).upper()
        name = variable.removeprefix(head).removesuffix(tail)
        return (*before, name.lower(), *after) if name and head + name + tail == variable else None


def _section_of(item: Field[Any]) -> Any:
    factory: Any = item.default_factory
    return factory if is_dataclass(factory) else None


def _knobs(shape: Any, path: KeyPath = ()) -> Iterator[Knob]:
    for item in fields(shape):
        here = (*path, item.name)
        if tables := item.metadata.get("tables"):
            yield from _knobs(tables, (*here, NAME))
        elif section := _section_of(item):
            yield from _knobs(section, here)
        elif rule := item.metadata.get("rule"):
            flag = item.metadata["flag"] or "--" + item.name.replace("_", "-")
            yield Knob(here, shape, item.default, item.metadata["meaning"], rule, not item.repr, flag)


KNOBS: Mapping[KeyPath, Knob] = {knob.path: knob for knob in _knobs(Settings)}
SECTIONS = frozenset(path[:end] for path in KNOBS for end in range(1, len(path)))


def generic_path(path: KeyPath) -> KeyPath:
    """Returns the path with NAME in place of a table's free name, as KNOBS and SECTIONS have it."""
    named = (*path[:1], NAME, *path[2:])
    return named if len(path) > 1 and named[:2] in SECTIONS else path


def setting_values(table: Mapping[str, Any], above: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yields the path and value of each setting in a table as a file gives it.

    A path that is no setting, and a value where there should be a section, are yielded as they are.
    """
    for name, value in table.items():
        path = (*above, name)
        if isinstance(value, dict) and generic_path(path) in SECTIONS:
            yield from setting_values(value, path)
        else:
            yield path, value


def tool_tables(tables: Mapping[str, Mapping[str, Any]]) -> tuple[ToolTable, ...]:
    """Returns the `[tools.NAME]` tables of a file that ships in the package. A test holds it to the rules."""
    values = setting_values(tables, ("tools",))
    return settings_of({path: KNOBS[generic_path(path)].rule.kept(value) for path, value in values}).tools


def file_tool_tables(tables: Mapping[str, Mapping[str, Any]]) -> tuple[FileToolTable, ...]:
    """Returns the `[file_tools.NAME]` tables that a program gives. Raises ConfigError where a file would be refused."""
    values: dict[KeyPath, object] = {}
    for path, value in setting_values(tables, ("file_tools",)):
        knob = KNOBS.get(generic_path(path))
        if knob is None:
            raise ConfigError(f"unknown setting {'.'.join(path)}")
        if not knob.rule.admits(value):
            raise ConfigError(f"{'.'.join(path)} = {value!r}: expected {knob.rule.words}")
        values[path] = knob.rule.kept(value)
    return settings_of(values).file_tools


def settings_of(values: Mapping[KeyPath, object]) -> Settings:
    """Returns the defaults with these values in place. The values must have passed their rules."""
    nested: dict[str, Any] = {}
    for path, value in values.items():
        table = nested
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = value
    filled = _filled(Settings, nested)
    assert isinstance(filled, Settings)
    return filled


def _filled(shape: Any, values: Mapping[str, Any]) -> object:
    arguments: dict[str, object] = {}
    for item in fields(shape):
        if item.name not in values:
            continue
        value = values[item.name]
        if tables := item.metadata.get("tables"):
            value = tuple(_filled(tables, {**entry, "name": name}) for name, entry in sorted(value.items()))
        elif section := _section_of(item):
            value = _filled(section, value)
        arguments[item.name] = value
    return shape(**arguments)


def values_of(settings: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    """Yields each setting with its value in the order of declaration, without what a named table leaves out."""
    for item in fields(settings):
        here, value = (*path, item.name), getattr(settings, item.name)
        if "tables" in item.metadata:
            for table in value:
                yield from values_of(table, (*here, table.name))
        elif is_dataclass(value):
            yield from values_of(value, here)
        elif "rule" in item.metadata and value is not None:
            yield here, value
