"""The arguments of a likely next call, out of the answer of the one before.

An answer may be a value, JSON text, a Python literal, an MCP envelope or plain text; it is opened first. Then, in this
order: a provider's own projection, a built-in pair of tools, the generic walk for the field that the link names, and
else nothing. A link yields at most three calls. Nothing is invented: text that is a status and not a path yields none.

What a link's `projection` may name:

    path, id, …        the values of that field wherever it stands, also in `Name: value` lines and in JSON cut short
    sheets[]           each value of the list in that field
    $items             the lines of a text, or the values of a list
    $files, $folders   the entries of a directory listing, under the path that was listed; $files.pdf those of a kind
    $urls              the addresses in a text
    $call              nothing of the answer: the arguments that the link keeps are all there is
"""

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from pagefold.settings import MAX_CALLS_PER_LINK, FollowUpLink

Arguments: TypeAlias = dict[str, Any]
Provider: TypeAlias = Callable[[Any, Mapping[str, Any]], Iterator[Arguments]]

CALL = "$call"
LONGEST_LIST = 64
"""How many candidates of one answer are looked at: more than that, and nobody knows which is next."""

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


def extract_args(
    prev_tool: str, prev_result: Any, link: FollowUpLink, prev_args: Mapping[str, Any] | None = None
) -> list[Arguments]:
    """At most three argument objects for the call that `link` expects, the likeliest first."""
    return candidates(prev_tool, prev_result, link, prev_args)[: min(link.limit, MAX_CALLS_PER_LINK)]


def candidates(
    prev_tool: str, prev_result: Any, link: FollowUpLink, prev_args: Mapping[str, Any] | None = None
) -> list[Arguments]:
    """Everything the answer offers for `link`, in its order, up to LONGEST_LIST; nothing where it offers too much."""
    value = opened(prev_result)
    given = prev_args or {}
    found: Iterator[Arguments]
    if provider := _provider(prev_tool, link):
        found = provider(value, given)
    elif pair := _PAIRS.get((prev_tool, link.tool)):
        found = pair(value, link)
    else:
        found = _generic(value, link, given)
    taken: list[Arguments] = []
    for one in found:
        if len(taken) == LONGEST_LIST:
            break
        taken.append(one)
    return [] if link.most is not None and len(taken) > link.most else taken


# ---- opening an answer ----------------------------------------------------------------------------------------------


def opened(result: Any) -> Any:
    """The value inside JSON text, Python literals and MCP envelopes; text that is neither stays text."""
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
    """What an MCP result holds: the structured content, or else its text blocks as one text."""
    if isinstance(value, dict):
        if isinstance(structured := value.get("structuredContent"), dict):
            # Servers whose tools return text, or a list, wrap it in an object of one member.
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
    """No pattern follows from a path: without a projection of its own the link only informs."""
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
    """The first only: agents rarely open what stands below it."""
    entries = value.get("results") if isinstance(value, dict) else value
    if isinstance(entries, list):
        found = (url for entry in entries if (url := _string(entry, "url")))
        yield from ({link.projection_arg or "url": url} for _, url in zip(range(1), found, strict=False))


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


# ---- the generic walk ------------------------------------------------------------------------------------------------


def _generic(value: Any, link: FollowUpLink, given: Mapping[str, Any]) -> Iterator[Arguments]:
    if link.projection is None or any(name not in given for name in link.keep):
        return
    base = {**dict(link.constants), **{name: given[name] for name in link.keep}}
    if link.projection == CALL:
        yield base
    elif link.projection_arg is not None:
        yield from ({**base, link.projection_arg: found} for found in values_of(value, link.projection, given))


def values_of(value: Any, projection: str, given: Mapping[str, Any]) -> Iterator[Any]:
    """What a projection finds in an opened answer, in the answer's order."""
    if projection == "$items":
        yield from _items(value)
    elif projection == "$folders":
        yield from _entries(value, "[DIR]", given)
    elif projection.startswith("$files"):
        kind = projection.removeprefix("$files")
        yield from (path for path in _entries(value, "[FILE]", given) if path.endswith(kind))
    elif projection == "$urls":
        yield from dict.fromkeys(_ADDRESS.findall(value) if isinstance(value, str) else ())
    elif projection.endswith("[]"):
        for found in _walk(value, projection[:-2]):
            yield from (one for one in found if _is_scalar(one)) if isinstance(found, list) else ()
    elif isinstance(value, str):
        yield from _named_in_text(value, projection)
    else:
        yield from _walk(value, projection)


def _walk(value: Any, name: str) -> Iterator[Any]:
    """Depth first; a field's value comes before what is inside it. A stack, so that no depth is too deep."""
    waiting: list[tuple[bool, Any]] = [(False, value)]
    while waiting:
        found, inner = waiting.pop()
        if found:
            yield inner
        if isinstance(inner, dict):
            waiting.extend((key == name, below) for key, below in reversed(inner.items()))
        elif isinstance(inner, list):
            waiting.extend((False, below) for below in reversed(inner))


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from filter(_is_scalar, value)
    elif isinstance(value, str):
        for line in filter(None, map(str.strip, value.splitlines())):
            if not _STATUS.fullmatch(line) and len(line) <= 1024:
                yield line


def _entries(value: Any, mark: str, given: Mapping[str, Any]) -> Iterator[str]:
    folder = given.get("path")
    if not isinstance(value, str) or not isinstance(folder, str):
        return
    joint = "\\" if "\\" in folder and "/" not in folder else "/"
    for line in value.splitlines():
        if line.startswith(mark) and (name := line.removeprefix(mark).strip()):
            yield folder.rstrip("/\\") + joint + name


def _named_in_text(text: str, name: str) -> Iterator[Any]:
    if text.lstrip()[:1] in ("{", "["):
        # JSON that was cut off: what is left of it can still be read member by member.
        for found in re.finditer(rf'"{re.escape(name)}"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+(?=[\s,}}\]]))', text):
            try:
                yield json.loads(found[1])
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
    """The entries of a list, or of the one list in an object (`items`, `issues`, `nodes` …)."""
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        value = lists[0] if len(lists) == 1 else [value]
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def _with(given: Mapping[str, Any], *names: str) -> Arguments | None:
    return {name: given[name] for name in names} if all(name in given for name in names) else None


def merge_request_discussions(value: Any, given: Mapping[str, Any]) -> Iterator[Arguments]:
    """GitLab: each merge request of a list, under the project that was asked about."""
    base = _with(given, "project_id")
    for entry in _objects(value) if base is not None else ():
        if (number := entry.get("iid")) is not None:
            yield {**(base or {}), "merge_request_iid": number}


def merge_request_by_id(value: Any, given: Mapping[str, Any]) -> Iterator[Arguments]:
    """Servers that name a merge request by one id alone."""
    del given  # the id says it all
    for entry in _objects(value):
        if isinstance(entry.get("id"), str | int):
            yield {"merge_request_id": entry["id"]}


def issue_of_list(value: Any, given: Mapping[str, Any]) -> Iterator[Arguments]:
    """GitHub: each issue of a list, in the repository that was asked about."""
    base = _with(given, "owner", "repo")
    for entry in _objects(value) if base is not None else ():
        if isinstance(number := entry.get("number"), int):
            yield {**(base or {}), "issue_number": number}


def pull_request_of_list(value: Any, given: Mapping[str, Any]) -> Iterator[Arguments]:
    base = _with(given, "owner", "repo")
    for entry in _objects(value) if base is not None else ():
        if isinstance(number := entry.get("number"), int):
            yield {**(base or {}), "pullNumber": number}


_NOT_TEXT = re.compile(
    r".*\.(pdf|xlsx?|docx?|pptx?|png|jpe?g|gif|webp|ico|mp[34]|wav|zip|gz|xz|bz2|tar|7z|exe|dll|so|o|a|bin|db|sqlite3?"
    r"|parquet|pyc|woff2?|ttf|lock)",
    re.IGNORECASE | re.DOTALL,
)


def files_of_directory(value: Any, given: Mapping[str, Any]) -> Iterator[Arguments]:
    """The filesystem server: each text file of a listing, under the folder that was listed."""
    for path in _entries(value, "[FILE]", given):
        name = path.replace("\\", "/").rpartition("/")[2]
        if not _NOT_TEXT.fullmatch(name) and not name.startswith("."):
            yield {"path": path}


PROVIDERS: tuple[tuple[str, str, Provider], ...] = (
    ("*gitlab*list_merge_requests", "*gitlab*mr_discussions", merge_request_discussions),
    ("*gitlab*list_merge_requests", "*gitlab*list_merge_request_discussions", merge_request_discussions),
    ("*get_merge_requests", "*get_merge_request_discussions", merge_request_by_id),
    ("*github*list_issues", "*github*get_issue", issue_of_list),
    ("*github*list_pull_requests", "*github*get_pull_request", pull_request_of_list),
    ("*filesystem*list_directory", "*filesystem*read_file", files_of_directory),
    ("*filesystem*list_directory", "*filesystem*read_text_file", files_of_directory),
)
"""Provider projections: the tool before, the tool after, and how the one's answer makes the other's arguments."""


# ---- hosts -----------------------------------------------------------------------------------------------------------

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def extract_host(url: str) -> str | None:
    """The host of an address, in ASCII lower case, without user and port; None for what is no address with a host."""
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
