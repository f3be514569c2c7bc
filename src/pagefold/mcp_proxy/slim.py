"""Describes tools in fewer tokens.

`same` gives each tool a smaller schema that admits exactly what the whole one admits; names, annotations and
constraints stay. What validates nothing is shortened: a description keeps its first sentence, and an argument that
another tool of the list has described under the same name is not described again. `lazy` replaces the schema of a long
tool by a signature.

Either way `context_describe` returns the whole description as the server wrote it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pagefold.pages.context_tools import ContextTool
from pagefold.wire import json_text
from pagefold.wire.json_text import as_list, as_object, as_string

DESCRIBE = ContextTool(
    "context_describe",
    "Describe a tool",
    "Get the whole description and schema of tools that are listed in short.",
    {
        "type": "object",
        "properties": {"tools": {"type": "array", "items": {"type": "string"}, "description": "Their names."}},
        "required": ["tools"],
        "additionalProperties": False,
    },
    read_only=True,
)

_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_ONE = ("additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "items")
_ONE_MORE = ("additionalItems", "contentSchema")
_MANY = ("anyOf", "allOf", "oneOf", "prefixItems")
_DECORATIVE = ("title", "$comment", "examples", "example", "deprecated", "markdownDescription")
_EMPTY: Mapping[str, object] = {"required": [], "minLength": 0, "minItems": 0, "minProperties": 0, "uniqueItems": False}
_HINTS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
# Keywords that mean something else in an older dialect of JSON Schema, or nothing.
_DIALECT = re.compile(
    r'"(?:\$ref|\$id|id|additionalItems|dependencies|dependentRequired|dependentSchemas|prefixItems|minContains'
    r'|maxContains|unevaluated\w+|\$recursive\w+|\$dynamic\w+|\$anchor|exclusiveM\w+|divisibleBy|extends|disallow)"\s*:'
    r'|"items"\s*:\s*\['
)
_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)\s+(?=[A-Z`\"'(])|\n\s*\n|\n(?=\s*[-*#\d])|; ")
_WORD = re.compile(r"[a-z0-9]+")
_FILLER = frozenset(
    re.findall(r"\w+", "the a an of for to in on by with or and is be this that it its which will from as at if id iid")
)
_LONG_CHARACTERS = 100
_SHORT_CHARACTERS = 240
_LAZY_ARGUMENTS = 3
_HEAD_CHARACTERS = 40


def same(tools: Sequence[Any]) -> list[Any]:
    """Each tool with a schema that means the same in fewer tokens."""
    described: dict[str, list[frozenset[str]]] = {}
    return [_same(as_object(tool), described) if isinstance(tool, dict) else tool for tool in tools]


def lazy(tools: Sequence[Any]) -> list[Any]:
    """Each long tool as a signature; short ones as in `same`."""
    shorter = same(tools)
    return [
        _lazy(as_object(tool), as_object(less)) if isinstance(tool, dict) else tool
        for tool, less in zip(tools, shorter, strict=True)
    ]


def schema_in_fewer_words(schema: Any) -> Any:
    """A schema that admits exactly what this one admits, without what neither a validator nor a reader needs."""
    if not isinstance(schema, dict):
        return schema
    whole = json_text.dumps(schema)
    if '"unevaluated' in whole:
        return schema  # such a keyword depends on all others, also on those that admit everything
    return _smaller(schema, keep_dialect="$schema" in schema and _DIALECT.search(whole) is not None)


def _same(tool: Mapping[str, Any], described: dict[str, list[frozenset[str]]]) -> dict[str, Any]:
    less = dict(tool)
    for key in ("inputSchema", "outputSchema"):
        if key in less:
            less[key] = schema_in_fewer_words(less[key])
    if "description" in less:
        less["description"] = _first_sentence(as_string(less["description"]))
        if not _words(less["description"]) - _words(as_string(tool.get("name"))) - _FILLER:
            del less["description"]
    if isinstance(hints := less.pop("annotations", None), dict):
        # A hint that has its default value can be left out.
        kept = {key: value for key, value in hints.items() if _HINTS.get(key) is not value}
        less |= {"annotations": kept} if kept else {}
    if "inputSchema" in less:
        less["inputSchema"] = _described_once(less["inputSchema"], described, as_string(tool.get("name")))
    return less


def _lazy(tool: Mapping[str, Any], less: Mapping[str, Any]) -> Mapping[str, Any]:
    if len(json_text.dumps(less)) <= _SHORT_CHARACTERS:
        return less
    kept = {key: value for key, value in less.items() if key not in ("outputSchema", "title")}
    sentence = _first_sentence(as_string(tool.get("description"))).split(". ")[0].rstrip(".")
    more = _words(sentence) - _words(as_string(tool.get("name"))) - _FILLER
    head = _cut(sentence.partition(" (")[0], _HEAD_CHARACTERS) if more else ""
    kept["description"] = f"{head}{signature(as_object(tool.get('inputSchema')))}"
    kept["inputSchema"] = {"type": "object"}
    return kept


def signature(schema: Mapping[str, Any]) -> str:
    """The names of the arguments, optional ones with a question mark; of the optional ones only the first few."""
    required = set(map(str, as_list(schema.get("required"))))
    names = list(as_object(schema.get("properties")))
    ordered = [name for name in names if name in required]
    ordered += [f"{name}?" for name in names if name not in required][: max(0, _LAZY_ARGUMENTS - len(ordered))]
    more = ",…" if len(ordered) < len(names) else ""
    return f"({','.join(ordered)}{more})"


def described_in_full(tools: Mapping[str, str], asked: Mapping[str, Any]) -> str:
    """The answer of `context_describe`: the tools as the server described them."""
    names = [name for name in as_list(asked.get("tools")) if isinstance(name, str)]
    texts = [tools.get(name) or f"There is no tool {name!r}; known are {', '.join(tools)}." for name in names]
    return "\n\n".join(texts) or 'Name the tools in a list: {"tools": ["…"]}.'


# ---- schemas ---------------------------------------------------------------------------------------------------


def _smaller(schema: Any, *, keep_dialect: bool = False) -> Any:
    if not isinstance(schema, dict):
        return schema
    less: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DECORATIVE or (key == "$schema" and not keep_dialect) or _is_empty(key, value):
            continue
        if key in _NAMED and isinstance(value, dict):
            less[key] = {name: _smaller(inner) for name, inner in value.items()}
        elif key in _MANY and isinstance(value, list):
            less[key] = [_smaller(inner) for inner in value]
        elif key in (*_ONE, *_ONE_MORE):
            less[key] = [_smaller(inner) for inner in value] if isinstance(value, list) else _smaller(value)
        elif key == "description":
            less[key] = _first_sentence(as_string(value))
        else:
            less[key] = value
    return _joined(less)


def _is_empty(key: str, value: Any) -> bool:
    """Whether a keyword asks for nothing. `0` and `False` are equal in Python but not in JSON."""
    if key == "additionalProperties":
        return value is True or value == {}
    return key in _EMPTY and type(value) is type(_EMPTY[key]) and value == _EMPTY[key]


def _joined(schema: dict[str, Any]) -> dict[str, Any]:
    """Joins alternatives that differ in type only into one list of types."""
    branches = schema.get("anyOf")
    if not isinstance(branches, list) or not branches or "type" in schema:
        return schema
    types: list[Any] = []
    for branch in branches:
        if not isinstance(branch, dict) or list(branch) != ["type"]:
            return schema
        types += branch["type"] if isinstance(branch["type"], list) else [branch["type"]]
    if not all(isinstance(name, str) for name in types):
        return schema
    distinct = list(dict.fromkeys(types))
    joined = {"type": distinct if len(distinct) > 1 else distinct[0]}
    return joined | {key: value for key, value in schema.items() if key != "anyOf"}


# ---- descriptions ----------------------------------------------------------------------------------------------


def _described_once(schema: Any, described: dict[str, list[frozenset[str]]], tool: str) -> Any:
    """Without descriptions of arguments that say no more than the names, or than the description in an earlier tool."""
    if isinstance(schema, list):
        return [_described_once(inner, described, tool) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    less = dict(schema)
    for key in (*_ONE, *_MANY):
        if key in less:
            less[key] = _described_once(less[key], described, tool)
    properties = less.get("properties")
    if isinstance(properties, dict):
        less["properties"] = {
            name: _undescribed(name, _described_once(inner, described, tool), described, tool)
            for name, inner in properties.items()
        }
    return less


def _undescribed(name: str, schema: Any, described: dict[str, list[frozenset[str]]], tool: str) -> Any:
    description = schema.get("description") if isinstance(schema, dict) else None
    if not isinstance(description, str):
        return schema
    words = _words(description) - _words(f"{name} {tool}") - _FILLER
    if words and not any(2 * len(words & before) >= len(words) for before in described.get(name, ())):
        described.setdefault(name, []).append(words)
        return schema
    return {key: value for key, value in schema.items() if key != "description"}


def _words(text: str) -> frozenset[str]:
    """The words of a text in lower case, without the plural's s."""
    words = _WORD.findall(text.lower().replace("_", " "))
    return frozenset(word.removesuffix("s") if len(word) > 3 else word for word in words)


def _first_sentence(text: str) -> str:
    first = _SENTENCE.split(text.strip(), maxsplit=1)[0].strip()
    return _cut(first, _LONG_CHARACTERS)


def _cut(text: str, most: int) -> str:
    """Cuts a text to whole words of at most this length together."""
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"
