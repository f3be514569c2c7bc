"""context: drops the path from lines around search hits, where the hit has named it and the line names nothing.

    [lines around hits lack their path, which begins with /home/ada/shop/ where no colon follows]
    365-	}
    cmd/resume.go:366:	sessionDir, err := ag.GetSessionDir(cwd)
    367-	if err != nil {
    --

Hits stay as they are, and so does every line that names something, so that an agent can find and quote them. Braces,
blank lines and bare returns, most of what stands around a hit, do not need the path again. A block between two `--`
belongs to one file and is decoded by itself.
"""

import re
from collections.abc import Iterator, Sequence

from pagefold.encode.codec import Codec, Inner
from pagefold.pages.facts import facts_of

_HIT = re.compile(r"((?:[A-Za-z]:)?[^:\s][^:]*?):(\d+):(.*)")
_PLACE = re.compile(r":\d+:")  # what every hit holds
_BARE = re.compile(r"\d+-.*")
_LEAST = 4


class GrepContextCodec(Codec):
    name = "context"
    header = re.compile(r"\[lines around hits lack their path(?:, which begins with (.*) where no colon follows)?\]")

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
                bare = _without_path(line, path, root) if path else None
                if bare is None and _BARE.fullmatch(line):
                    return None  # decoding would take it for a shortened line
                shortened += bare is not None
                shown.append(line if bare is None else bare)
        if shortened < _LEAST:
            return None
        begins = f", which begins with {root} where no colon follows" if root else ""
        return "\n".join([f"[lines around hits lack their path{begins}]", *shown])

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        text: list[str] = []
        for block in _blocks(body.split("\n")):
            path = _path(block)
            text += [
                _with_path(line, path, header[1] or "") if path and _BARE.fullmatch(line) else line for line in block
            ]
        return "\n".join(text)


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yields runs of lines; each `--` is a run of its own."""
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
    """Returns the one file that a block's hits are in, or None where there are several or none."""
    paths = {hit[1] for line in block if (hit := _HIT.fullmatch(line))}
    return paths.pop() if len(paths) == 1 else None


def _root(lines: Sequence[str]) -> str:
    """Returns what stands before the paths of lines without a colon, where hits write their paths without it."""
    for block in _blocks(lines):
        path = _path(block)
        if path is None:
            continue
        for line in block:
            start = line.find(f"{path}-")
            if start > 0 and ":" not in line and re.match(r"\d+-", line[start + len(path) + 1 :]):
                return line[:start]
    return ""


def _without_path(line: str, path: str, root: str) -> str | None:
    """Returns a line without its path, or None where it has to keep it."""
    head = f"{path}-" if ":" in line or not root else f"{root}{path}-"
    if not line.startswith(head):
        return None
    bare = line[len(head) :]
    if not _BARE.fullmatch(bare) or facts_of(bare.partition("-")[2]) or _with_path(bare, path, root) != line:
        return None
    return bare


def _with_path(bare: str, path: str, root: str) -> str:
    return f"{path}-{bare}" if ":" in bare or not root else f"{root}{path}-{bare}"
