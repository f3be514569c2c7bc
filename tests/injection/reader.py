"""Reads what pagefold shows by the rules of docs/security.md and says whose each line is. It knows nothing else."""

import re
from collections.abc import Iterator

_TITLES = (
    ("user, ", "user"),
    ("you, ", "assistant"),
    ("the plan as you last wrote it", "assistant"),
    ("your plan, which the user approved", "assistant"),
    ("what was done, ", "account"),
    ("put in by the client, ", "client"),
    ("the client's summary", "client"),
    ("system, ", "system"),
    *((begin, "tool") for begin in ("from ", "file ", "files that ", "names in file ", "report of ")),
    ("a result that you recalled", "tool"),
)
_OPENING = re.compile(r"\[(\w+)\] pagefold wrote this message to save context\. ")
_FRAME = re.compile(
    r"\[(?:message \d+ of this conversation, (?P<who>said by the user|said by you|a call and its result)|before it: "
    r"|after it: |file .* as it was known after message |changed since: |nothing has changed it since"
    r"|it is no longer known under this name|the same file: |pagefold's record of this conversation)"
)
_WHO = {"said by the user": "user", "said by you": "assistant"}
NOTICE = re.compile(
    r"\[(?:left out|part of|missing|shortened|cut here|held by pagefold|pagefold|pf-)|\[.*context_recall\(\"pf-"
    r"|\[R\d+(?:\.\d+)?(?: lines [^\]]*|, changed since[^\]]*)?\]$|\[lines \d+-\d+[^\]]*\]$|= lines? \d.* of "
    r"|\[(?:the call|what became of it)\] |\[its result\]$|\[\w+\] pagefold wrote this message"
    r"|\[The result of an earlier"
)


def digest(text: str) -> Iterator[tuple[str, str]]:
    """Whose each line of a digest is, and the line."""
    opening = _OPENING.match(text)
    assert opening, "a digest begins with pagefold's own line"
    tag, whose = f"[{opening[1]}] ", ""
    for line in text.split("\n"):
        if not line.startswith(tag):
            yield whose, line
            continue
        yield "pagefold", line
        title = line.removeprefix(tag)
        if title != "…" and not title.startswith("pagefold wrote"):
            (whose,) = [who for begin, who in _TITLES if title.startswith(begin)] or ["nobody"]


def form(text: str) -> Iterator[tuple[str, str]]:
    """Whose each line of a result is. Below `[as it is]` all is the tool's."""
    lines = text.split("\n")
    if lines[0] == "[as it is]":
        yield "pagefold", lines[0]
        yield from (("tool", line) for line in lines[1:])
        return
    yield from (("pagefold" if NOTICE.match(line) else "tool", line) for line in lines)


def recalled(text: str) -> Iterator[tuple[str, str]]:
    """Whose each line of a recalled page is."""
    lines, whose = text.split("\n"), "tool"
    while lines and (frame := _FRAME.match(lines[0])):
        whose = _WHO.get(frame["who"] or "", whose)
        yield "pagefold", lines.pop(0)
    if lines and lines[0] == "[as it is]":
        yield "pagefold", lines.pop(0)
    elif lines and lines[0].startswith("[the call] "):
        while lines[0] != "[its result]":
            yield "pagefold", lines.pop(0)
        yield "pagefold", lines.pop(0)
    yield from ((whose, line) for line in lines)
