"""context: search hits with lines around them. Lines around a hit that name nothing leave out the path it has said.

A hit stays as it is, and so does every line that names something: it can be found and quoted as it came. Braces, blank
lines and bare returns, most of what stands around a hit, do not need the path a second time.

    [lines around hits lack their path, which begins with /home/ada/shop/ where no colon follows]
    365-	}
    cmd/resume.go:366:	sessionDir, err := ag.GetSessionDir(cwd)
    367-	if err != nil {
    --

A block between two `--` belongs to one file. Undone block by block.
"""

import re
from collections.abc import Iterator, Sequence

from pagefold.encode.codec import Inner
from pagefold.pages.facts import facts_of

_HEADER = re.compile(r"\[lines around hits lack their path(?:, which begins with (.*) where no colon follows)?\]")
_HIT = re.compile(r"((?:[A-Za-z]:)?[^:\s][^:]*?):(\d+):(.*)")
_PLACE = re.compile(r":\d+:")  # what every hit holds
_BARE = re.compile(r"\d+-.*")
_LEAST = 4


class GrepContextCodec:
    name = "context"

    def owns(self, line: str) -> bool:
        return _HEADER.fullmatch(line) is not None

    def encode(self, text: str, inner: Inner) -> str | None:
        if not _PLACE.search(text):
            return None
        lines = text.split("\n")
        if text.count("\n--\n") == 0 and not any(_HIT.fullmatch(line) for line in lines[:12]):
            return None
        root = _root(lines)
        shown: list[str] = []
        shortened = 0
        for block in _blocks(lines):
            path = _path(block)
            for line in block:
                bare = _without(line, path, root) if path else None
                if bare is None and _BARE.fullmatch(line):
                    return None  # it would be taken for one of ours
                shortened += bare is not None
                shown.append(line if bare is None else bare)
        if shortened < _LEAST:
            return None
        begins = f", which begins with {root} where no colon follows" if root else ""
        return "\n".join([f"[lines around hits lack their path{begins}]", *shown])

    def decode(self, shown: str, inner: Inner) -> str:
        header, *lines = shown.split("\n")
        found = _HEADER.fullmatch(header)
        assert found is not None
        root = found[1] or ""
        text: list[str] = []
        for block in _blocks(lines):
            path = _path(block)
            text += [_with(line, path, root) if path and _BARE.fullmatch(line) else line for line in block]
        return "\n".join(text)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Runs of lines, each `--` a run of its own."""
    block: list[str] = []
    for line in lines:
        if line == "--":
            if block:
                yield block
            yield [line]
            block = []
        else:
            block.append(line)
    if block:
        yield block


def _path(block: Sequence[str]) -> str | None:
    """The one file that a block's hits are in."""
    paths = {found[1] for line in block if (found := _HIT.fullmatch(line))}
    return paths.pop() if len(paths) == 1 else None


def _root(lines: Sequence[str]) -> str:
    """What stands before the paths of lines without a colon, where some do not stand as the hits do."""
    for block in _blocks(lines):
        path = _path(block)
        if path is None:
            continue
        for line in block:
            at = line.find(f"{path}-")
            if at > 0 and ":" not in line and re.match(r"\d+-", line[at + len(path) + 1 :]):
                return line[:at]
    return ""


def _without(line: str, path: str, root: str) -> str | None:
    """The line without its path, or None where that could not be put back."""
    head = f"{path}-" if ":" in line or not root else f"{root}{path}-"
    if not line.startswith(head):
        return None
    bare = line[len(head) :]
    if not _BARE.fullmatch(bare) or facts_of(bare.partition("-")[2]) or _with(bare, path, root) != line:
        return None
    return bare


def _with(bare: str, path: str, root: str) -> str:
    return f"{path}-{bare}" if ":" in bare or not root else f"{root}{path}-{bare}"
