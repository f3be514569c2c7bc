"""Sets values in a client's settings and takes them out again: JSON, with comments or without, and keys of TOML's top.

Works on a file's text alone; every other byte stays. A value that the user has set is never replaced: it is left, and
the reason is told. Taking out removes only what was set here.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from pagefold.errors import ConfigError, WireError
from pagefold.mcp_proxy.clients import Changed
from pagefold.wire import json_text
from pagefold.wire.json_comments import without_comments

Path = tuple[str, ...]
Values = Mapping[Path, Any]
Ours = Callable[[Any, Any], bool]
"""Whether a value that was found is one that pagefold set, given the one that it would set now."""


def with_values(text: str, values: Values, ours: Ours, label: str, *, toml: bool = False) -> Changed:
    """The text with each value at its path. Raises ConfigError."""
    changed: list[str] = []
    left: dict[str, str] = {}
    for path, value in values.items():
        found = _found(text, path, label, toml=toml)
        if found is not None:
            left[".".join(path)] = "is set already" if ours(found, value) else "is yours, and stays as it is"
            continue
        changed.append(".".join(path))
        text = f"{path[0]} = {json.dumps(value)}\n{text}" if toml else _inserted(text or "{}\n", path, value)
    return Changed(text, tuple(changed), left)


def without_values(text: str, values: Values, ours: Ours, label: str, *, toml: bool = False) -> Changed:
    """The text without those of these values that pagefold set; empty where nothing is left. Raises ConfigError."""
    changed: list[str] = []
    left: dict[str, str] = {}
    for path, value in values.items():
        found = _found(text, path, label, toml=toml)
        if found is None or not ours(found, value):
            left[".".join(path)] = "is not set" if found is None else "is yours, and stays as it is"
            continue
        changed.append(".".join(path))
        text = _without_line(text, path[0]) if toml else _removed(text, path)
    return Changed("" if changed and re.fullmatch(r"\s*\{\s*\}\s*", text) else text, tuple(changed), left)


def _found(text: str, path: Path, label: str, *, toml: bool) -> Any:
    """The value at a path, or None. Raises ConfigError where a text is not what it should be."""
    try:
        at = tomllib.loads(text) if toml else json_text.parse(without_comments(text)) if text.strip() else {}
    except (tomllib.TOMLDecodeError, WireError) as error:
        raise ConfigError(f"{label}: not {'TOML' if toml else 'JSON'} ({error})") from error
    for step, key in enumerate(path):
        if not isinstance(at, dict):
            raise ConfigError(f"{label}: {'.'.join(path[:step]) or 'the whole'}: expected an object")
        if key not in at:
            return None
        at = at[key]
    return at


# ---- JSON ------------------------------------------------------------------------------------------------------------


def _inserted(text: str, path: Path, value: Any) -> str:
    """Puts a value first into the innermost object of its path that is there."""
    plain, start, rest = without_comments(text), without_comments(text).index("{"), list(path)
    while rest and (spot := json_text.member(json_text.members(plain, start), rest[0])) is not None:
        start, rest = spot.start, rest[1:]
    for key in reversed(rest[1:]):
        value = {key: value}
    newline = "\r\n" if "\r\n" in text else "\n"
    brace = start + 1
    after = re.compile(r"[ \t\r\n]*").match(plain, brace)
    assert after is not None
    outer = _indent_of(plain, start)
    if plain[after.end()] == "}":
        inner = outer + "  "
        member = _member(rest[0], value, inner, newline)
        return f"{text[:brace]}{newline}{inner}{member}{newline}{outer}{text[after.end() :].lstrip(' ')}"
    if "\n" in after[0]:
        inner = after[0].rpartition("\n")[2]
        return f"{text[:brace]}{newline}{inner}{_member(rest[0], value, inner, newline)},{text[brace:]}"
    return f"{text[:brace]}{after[0]}{json.dumps(rest[0])}: {json.dumps(value, ensure_ascii=False)},{text[brace:]}"


def _member(key: str, value: Any, indent: str, newline: str) -> str:
    step = "\t" if indent.startswith("\t") else 2
    lines = json.dumps(value, ensure_ascii=False, indent=step).split("\n")
    return f"{json.dumps(key)}: " + f"{newline}{indent}".join(lines)


def _indent_of(plain: str, at: int) -> str:
    """The white space with which the line of a position begins."""
    line = plain[plain.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _removed(text: str, path: Path) -> str:
    """Takes the member at a path out, and the objects around it that are empty then."""
    plain = without_comments(text)
    start = plain.index("{")
    for key in path[:-1]:
        spot = json_text.member(json_text.members(plain, start), key)
        assert spot is not None
        start = spot.start
    members = json_text.members(plain, start)
    at = max(number for number, spot in enumerate(members) if spot.key == path[-1])
    begin, end = (members[at - 1].end if at else start + 1), members[at].end
    rest = re.compile(r"[ \t\r\n]*([,}])").match(plain, end)
    assert rest is not None
    if at == 0 and rest[1] == ",":
        end = rest.end()
    elif at == 0 and not text[end : rest.end() - 1].strip():  # the only one, and no comment behind it
        end = rest.end() - 1
    text = text[:begin] + text[end:]
    if len(path) > 1 and text.startswith("{}", start):
        return _removed(text, path[:-1])
    return text


# ---- TOML ------------------------------------------------------------------------------------------------------------


def _without_line(text: str, key: str) -> str:
    made = re.sub(rf"^{re.escape(key)}[ \t]*=[^\n]*\n?", "", text, count=1, flags=re.MULTILINE)
    expected = {name: value for name, value in tomllib.loads(text).items() if name != key}
    if tomllib.loads(made) != expected:
        raise ConfigError(f"{key} is not written in a line of its own: take it out by hand")
    return made
