"""The tools that a request offers, in the spelling of any API: by name, with what a call of each has to say."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagefold.frozen import frozen
from pagefold.wire.gemini import DECLARED, member_of
from pagefold.wire.json_text import as_list, as_object, as_string


@frozen
class OfferedTool:
    """`custom` tools take a text instead of arguments. `namespace` is the group of the Responses API it stands in."""

    custom: bool = False
    namespace: str = ""


def tools_in(tools: Any, namespace: str = "") -> Iterator[tuple[str, OfferedTool]]:
    """The tools of one list, those inside namespaces and declarations too."""
    for tool in map(as_object, as_list(tools)):
        kind = as_string(tool.get("type"))
        if kind == "namespace":
            yield from tools_in(tool.get("tools"), as_string(tool.get("name")))
            continue
        yield from tools_in(member_of(tool, DECLARED)[1])
        name = as_string(tool.get("name") or as_object(tool.get("function") or tool.get("custom")).get("name"))
        if name:
            yield name, OfferedTool(kind == "custom", namespace)


def offered_tools(request: Mapping[str, Any]) -> dict[str, OfferedTool]:
    """All tools of a request: those of `tools`, and those that items of its input add."""
    added: Sequence[Any] = [item for item in as_list(request.get("input")) if isinstance(item, dict)]
    lists = [request.get("tools"), *(item.get("tools") for item in added if item.get("type") == "additional_tools")]
    return dict(entry for listed in lists for entry in tools_in(listed))
