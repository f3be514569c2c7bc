"""Patches and diffs as changes to files: the `*** Begin Patch` form of Codex, and unified diffs."""

import re
from collections.abc import Iterator

from pagefold.pages.files.changes import Compared, FileChange, FileRemoved, Moved, Patched, Written
from pagefold.pages.files.hunk import Hunk

_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$")
_MOVE = re.compile(r"^\*\*\* Move to: (.+)$")
_HUNK = re.compile(r"^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NEW_SIDE = re.compile(r'^\+\+\+ "?(?:b/)?([^"\t]+?)"?(?:\t.*)?$')


def patch_in(text: str) -> str:
    """The patch that stands in a text, such as a shell command, or "" where there is none. In a string literal of a
    program its line breaks are escaped."""
    start = text.find("*** Begin Patch")
    if start < 0:
        return ""
    end = text.find("*** End Patch", start)
    patch = text[start:] if end < 0 else text[start:end]
    return patch if "\n" in patch[:80] else patch.replace("\\n", "\n").replace('\\"', '"').replace("\\t", "\t")


def patched_files(patch: str) -> Iterator[FileChange]:
    """What a patch of the `*** Begin Patch` form does."""
    lines = patch.removesuffix("\n").split("\n")
    heads = [(at, match) for at, line in enumerate(lines) if (match := _FILE.match(line))]
    for (at, match), end in zip(heads, [*(at for at, _ in heads[1:]), len(lines)], strict=False):
        kind, path = match.group(1), match.group(2).strip()
        body = lines[at + 1 : end]
        if kind == "Add":
            yield Written(path, "".join(line[1:] + "\n" for line in body if line.startswith("+")))
        elif kind == "Delete":
            yield FileRemoved(path)
        else:
            move = next((found.group(1).strip() for line in body[:1] if (found := _MOVE.match(line))), "")
            yield Patched(path, tuple(_hunks(body)))
            if move:
                yield Moved(path, move)


def _hunks(body: list[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Old and new lines of each hunk; a hunk ends where the next begins. Lines that only say where the next hunk
    stands, behind `@@` or in a hunk of their own, come as a hunk that changes nothing."""
    old: list[str] = []
    new: list[str] = []
    for line in [*body, "@@"]:
        if line.startswith(("@@", "***")):
            if old or new:
                yield tuple(old), tuple(new)
            old, new = [], []
            if context := line[2:].strip() if line.startswith("@@ ") else "":
                yield (context,), (context,)
        elif line.startswith("+"):
            new.append(line[1:])
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith(" ") or line == "":
            old.append(line[1:])
            new.append(line[1:])


def compared_files(diff: str) -> Iterator[Compared]:
    """The files of a unified diff with its hunks."""
    path, hunks = "", list[Hunk]()
    lines = diff.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        side = _NEW_SIDE.match(line)
        if side or line.startswith("diff --git"):
            if path and hunks:
                yield Compared(path, tuple(hunks))
            path, hunks = side.group(1) if side and side.group(1) != "/dev/null" else "", []
        elif path and (head := _HUNK.match(line)):
            hunk, at = _read_hunk(lines, at, head)
            hunks.append(hunk)
    if path and hunks:
        yield Compared(path, tuple(hunks))


def _read_hunk(lines: list[str], at: int, head: re.Match[str]) -> tuple[Hunk, int]:
    """A hunk whose lines begin at an index, and the index behind it. It may be cut off."""
    old, new = list[str](), list[str]()
    old_left, new_left = int(head.group(1) or 1), int(head.group(3) or 1)
    while at < len(lines) and (old_left or new_left):
        mark, text = lines[at][:1], lines[at][1:]
        if mark == "+" and new_left:
            new.append(text)
            new_left -= 1
        elif mark == "-" and old_left:
            old.append(text)
            old_left -= 1
        elif mark in (" ", "") and old_left and new_left:  # somebody may have stripped the space of an empty line
            old.append(text)
            new.append(text)
            old_left, new_left = old_left - 1, new_left - 1
        elif mark != "\\":
            break
        at += 1
    return Hunk(int(head.group(2)), tuple(old), tuple(new)), at
