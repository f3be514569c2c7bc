"""Finds the arguments of a likely next call in the answer of the call before.

An answer may be a value, JSON text, a Python literal, an MCP envelope or plain text; it is opened first. Then the first
of these that applies is used: a projection made for the two tools of a provider, one for a built-in pair of tools, or a
generic search for the field that the link names. Nothing is invented: a line that is a status message and not a path
yields no call.

What a link's `projection` may name:

    path, id, …        the values of that field at any depth, also in `Name: value` lines and in JSON cut short
    sheets[]           each value of the list in that field
    $items             the lines of a text, or the values of a list
    $files, $folders   the entries of a directory listing, below the path that was listed; $files.pdf those of a kind
    $urls              the addresses in a text
    $call              nothing of the answer: the arguments that the link keeps are all there is
"""

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, TypeAlias

from pagefold.settings.tools import MAX_CALLS_PER_LINK, FollowUpLink

Arguments: TypeAlias = dict[str, Any]
Provider: TypeAlias = Callable[[Any, Mapping[str, Any]], Iterator[Arguments]]

CALL = "$call"
MAX_CANDIDATES = 64
"""How many candidates of one answer are looked at: of more than that nobody knows which is next."""

_LITERAL_CHARACTERS = 20_000
_OPENED_CHARACTERS = 400_000
_ENVELOPES = 4
_STATUS = re.compile(
    r"(no\s+(files?|matches|results?|emails?|entries)\b.*|found \d+ .*|\(?(results?|output)\b.*\btruncated\b.*"
    r"|error(:| \w+ing ).*|access denied\b.*|allowed directories:?|.*: (no such file or directory|permission denied)"
    r"|\.{3}.*|…|-{2,}|\[?\d+ (more|lines?)\b.*)",
    re.IGNORECASE,
)
_DRIVE = re.compile(r"[A-Za-z]:[\\/][^:]*")
_AROUND_A_HIT = re.compile(r"(\S+?)-\d+-")
_NAMED_LINE = re.compile(r"^[ \t]*(?:[-*][ \t]+|\d+\.[ \t]+)?([A-Za-z][\w ]{0,40}):[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_ADDRESS = re.compile(r"https?://[^\s\"'<>)\]}]+")


def candidates(tool: str, result: Any, link: FollowUpLink, arguments: Mapping[str, Any]) -> list[Arguments]:
    """Returns the arguments that an answer offers for the call that `link` expects, in the answer's order.

    `tool`, `arguments` and `result` are of the call before. The list ends at MAX_CANDIDATES, and is empty where the
    answer offers more than `link.most`.
    """
    value = opened(result)
    offered: Iterator[Arguments]
    if provider := _provider(tool, link):
        offered = provider(value, arguments)
    elif pair := _PAIRS.get((tool, link.tool)):
        offered = pair(value, link)
    else:
        offered = _generic(value, link, arguments)
    listed = list(islice(offered, MAX_CANDIDATES))
    return [] if link.most is not None and len(listed) > link.most else listed


def likeliest(listed: Sequence[Arguments], link: FollowUpLink) -> Sequence[Arguments]:
    """Returns the first candidates, as many as one answer may lead to: the link's limit, and never more than three."""
    return listed[: min(link.limit, MAX_CALLS_PER_LINK)]


# ---- opening an answer ----------------------------------------------------------------------------------------------


def opened(result: Any) -> Any:
    """Returns the value inside JSON text, Python literals and MCP envelopes; other text is returned as it is."""
    value = result
    for _ in range(_ENVELOPES):
        if isinstance(value, str):
            inner = _parsed(value)
        elif isinstance(value, dict | list):
            inner = _unwrapped(value)
        else:
            return value
        if inner is value:
            return value
        value = inner
    return value


def _parsed(text: str) -> Any:
    start = text.lstrip()[:1]
    if start not in ("{", "[", '"') or len(text) > _OPENED_CHARACTERS:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if "'" not in text or len(text) > _LITERAL_CHARACTERS:
        return text
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _unwrapped(value: dict[str, Any] | list[Any]) -> Any:
    """Returns what an MCP result holds: the structured content, or else its text blocks as one text."""
    if isinstance(value, dict):
        if isinstance(structured := value.get("structuredContent"), dict):
            # A server whose tool returns text or a list wraps it in an object with one member.
            wrapped = next(iter(structured)) if len(structured) == 1 else ""
            return structured[wrapped] if wrapped in ("content", "result") else structured
        if value.get("type") == "text" and isinstance(value.get("text"), str):
            return value["text"]
        content = value.get("content")
        if isinstance(content, list) and content and all(map(_is_block, content)):
            return _unwrapped(content)
        return value
    if value and all(map(_is_block, value)):
        return "\n".join(block["text"] for block in value if isinstance(block.get("text"), str))
    return value


def _is_block(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in ("text", "image", "audio", "resource", "resource_link")


# ---- built-in pairs --------------------------------------------------------------------------------------------------


def _listed_files(value: Any, link: FollowUpLink) -> Iterator[Arguments]:
    name = link.projection_arg or "file_path"
    if isinstance(value, list):
        for entry in value:
            path = entry if isinstance(entry, str) else _string(entry, "path") or _string(entry, "match_path")
            if path:
                yield {name: path}
    elif isinstance(value, str):
        for path in filter(None, map(str.strip, value.splitlines())):
            if not _STATUS.fullmatch(path):
                yield {name: path}


def _files_to_search(value: Any, link: FollowUpLink) -> Iterator[Arguments]:
    """Yields nothing for a link without a projection: no search pattern follows from a path."""
    return _listed_files(value, link) if link.projection else iter(())


def _files_with_hits(value: Any, link: FollowUpLink) -> Iterator[Arguments]:
    name = link.projection_arg or "file_path"
    paths: Iterator[str | None]
    if isinstance(value, list):
        paths = (_string(entry, "path") or _string(entry, "file") for entry in value)
    elif isinstance(value, str):
        paths = map(_path_of_hit, value.splitlines())
    else:
        return
    for path in dict.fromkeys(filter(None, paths)):
        yield {name: path}


def _path_of_hit(line: str) -> str | None:
    line = line.strip()
    if not line or _STATUS.fullmatch(line):
        return None
    if drive := _DRIVE.match(line):
        return drive[0].strip()
    path, colon, _ = line.partition(":")
    if not colon and (around := _AROUND_A_HIT.match(line)):
        path = around[1]
    return path.strip() or None


def _first_address(value: Any, link: FollowUpLink) -> Iterator[Arguments]:
    """Yields the first address only: agents rarely open the results below it."""
    entries = value.get("results") if isinstance(value, dict) else value
    if isinstance(entries, list):
        urls = (url for entry in entries if (url := _string(entry, "url")))
        yield from ({link.projection_arg or "url": url} for url in islice(urls, 1))


def _string(entry: Any, name: str) -> str | None:
    value = entry.get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else None


_PAIRS: Mapping[tuple[str, str], Callable[[Any, FollowUpLink], Iterator[Arguments]]] = {
    ("Glob", "Read"): _listed_files,
    ("Glob", "Grep"): _files_to_search,
    ("Grep", "Read"): _files_with_hits,
    ("Grep", "Edit"): _files_with_hits,
    ("WebSearch", "WebFetch"): _first_address,
}


# ---- the generic search ----------------------------------------------------------------------------------------------


def _generic(value: Any, link: FollowUpLink, arguments: Mapping[str, Any]) -> Iterator[Arguments]:
    kept = _kept(arguments, link.keep)
    if link.projection is None or kept is None:
        return
    common = {**dict(link.constants), **kept}
    if link.projection == CALL:
        yield common
    elif link.projection_arg is not None:
        for projected in values_of(value, link.projection, arguments):
            yield {**common, link.projection_arg: projected}


def values_of(value: Any, projection: str, arguments: Mapping[str, Any]) -> Iterator[Any]:
    """Yields what a projection finds in an opened answer, in the answer's order."""
    if projection == "$items":
        yield from _items(value)
    elif projection == "$folders":
        yield from _entries(value, "[DIR]", arguments)
    elif projection.startswith("$files"):
        kind = projection.removeprefix("$files")
        yield from (path for path in _entries(value, "[FILE]", arguments) if path.endswith(kind))
    elif projection == "$urls":
        yield from dict.fromkeys(_ADDRESS.findall(value) if isinstance(value, str) else ())
    elif projection.endswith("[]"):
        for listed in _walk(value, projection[:-2]):
            yield from filter(_is_scalar, listed) if isinstance(listed, list) else ()
    elif isinstance(value, str):
        yield from _named_in_text(value, projection)
    else:
        yield from _walk(value, projection)


def _walk(value: Any, name: str) -> Iterator[Any]:
    """Yields the values of a field at any depth, a value before what is inside it.

    A stack takes the place of recursion, so that no answer is nested too deeply.
    """
    stack: list[tuple[bool, Any]] = [(False, value)]
    while stack:
        is_wanted, inner = stack.pop()
        if is_wanted:
            yield inner
        if isinstance(inner, dict):
            stack.extend((key == name, below) for key, below in reversed(inner.items()))
        elif isinstance(inner, list):
            stack.extend((False, below) for below in reversed(inner))


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from filter(_is_scalar, value)
    elif isinstance(value, str):
        for line in filter(None, map(str.strip, value.splitlines())):
            if not _STATUS.fullmatch(line) and len(line) <= 1024:
                yield line


def _entries(value: Any, mark: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yields the paths of a directory listing's entries that begin with `mark`."""
    folder = arguments.get("path")
    if not isinstance(value, str) or not isinstance(folder, str):
        return
    joint = "\\" if "\\" in folder and "/" not in folder else "/"
    for line in value.splitlines():
        if line.startswith(mark) and (name := line.removeprefix(mark).strip()):
            yield folder.rstrip("/\\") + joint + name


def _named_in_text(text: str, name: str) -> Iterator[Any]:
    if text.lstrip()[:1] in ("{", "["):
        # JSON that was cut off: what is left of it can still be read member by member.
        for member in re.finditer(rf'"{re.escape(name)}"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+(?=[\s,}}\]]))', text):
            try:
                yield json.loads(member[1])
            except ValueError:
                continue
        return
    for line in _NAMED_LINE.finditer(text):
        if line[1].strip() == name:
            yield line[2]


# ---- providers -------------------------------------------------------------------------------------------------------


def _provider(prev_tool: str, link: FollowUpLink) -> Provider | None:
    for before, after, provider in PROVIDERS:
        if fnmatchcase(prev_tool, before) and fnmatchcase(link.tool, after):
            return provider
    return None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the objects of a list, or of the only list in an object (`items`, `issues`, `nodes` …)."""
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        value = lists[0] if len(lists) == 1 else [value]
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def _kept(arguments: Mapping[str, Any], names: Sequence[str]) -> Arguments | None:
    """Returns the named arguments, or None where one of them is missing."""
    return {name: arguments[name] for name in names} if all(name in arguments for name in names) else None


def _each(field: str, argument: str, *keep: str) -> Provider:
    """Makes a projection that yields one call for each listed object: its `field` becomes the argument `argument`.

    The arguments named by `keep` are taken over from the call before.
    """

    def calls(value: Any, arguments: Mapping[str, Any]) -> Iterator[Arguments]:
        kept = _kept(arguments, keep)
        for entry in _objects(value) if kept is not None else ():
            if isinstance(entry.get(field), str | int):
                yield {**(kept or {}), argument: entry[field]}

    return calls


_NOT_TEXT = re.compile(
    r".*\.(pdf|xlsx?|docx?|pptx?|png|jpe?g|gif|webp|ico|mp[34]|wav|zip|gz|xz|bz2|tar|7z|exe|dll|so|o|a|bin|db|sqlite3?"
    r"|parquet|pyc|woff2?|ttf|lock)",
    re.IGNORECASE | re.DOTALL,
)


def _text_files(value: Any, arguments: Mapping[str, Any]) -> Iterator[Arguments]:
    """Yields each text file of a listing by the filesystem server, below the folder that was listed."""
    for path in _entries(value, "[FILE]", arguments):
        name = path.replace("\\", "/").rpartition("/")[2]
        if not _NOT_TEXT.fullmatch(name) and not name.startswith("."):
            yield {"path": path}


_DISCUSSIONS = _each("iid", "merge_request_iid", "project_id")
PROVIDERS: tuple[tuple[str, str, Provider], ...] = (
    ("*gitlab*list_merge_requests", "*gitlab*mr_discussions", _DISCUSSIONS),
    ("*gitlab*list_merge_requests", "*gitlab*list_merge_request_discussions", _DISCUSSIONS),
    ("*get_merge_requests", "*get_merge_request_discussions", _each("id", "merge_request_id")),
    ("*github*list_issues", "*github*get_issue", _each("number", "issue_number", "owner", "repo")),
    ("*github*list_pull_requests", "*github*get_pull_request", _each("number", "pullNumber", "owner", "repo")),
    ("*filesystem*list_directory", "*filesystem*read_file", _text_files),
    ("*filesystem*list_directory", "*filesystem*read_text_file", _text_files),
)
"""The projections made for providers: the tool before, the tool after, and how an answer of the one becomes arguments
of the other."""


# ---- hosts -----------------------------------------------------------------------------------------------------------

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def extract_host(url: str) -> str | None:
    """Returns the host of an address in ASCII lower case, without user and port; None where there is no host."""
    _, mark, rest = url.partition("://")
    if not mark:
        return None
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    if authority.startswith("["):
        inside, closed, _ = authority[1:].partition("]")
        host = f"[{inside}]" if closed else ""
    else:
        host = authority.rpartition(":")[0] if ":" in authority else authority
    return host.translate(_LOWER) or None
