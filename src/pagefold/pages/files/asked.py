"""What commands that print were asked for: the words of an `echo`, and which lines of which files."""

import re
from collections.abc import Sequence

from pagefold.pages.files.shell import ShellCommand
from pagefold.pages.files.text import lines_of

_RANGE = re.compile(r"^(\d+)(?:,(\d+|\$))?p$")


def said_by(command: ShellCommand) -> list[str] | None:
    """The lines that an echo prints, where its words are plain."""
    words = command.words[1:]
    if command.name == "echo" and not command.redirects and not any("$" in word or "`" in word for word in words):
        return lines_of(" ".join(word for word in words if word not in ("-e", "-n")) + "\n")
    if command.name == "printf" and words and not command.redirects:
        return _formatted(words[0], words[1:])
    return None


def _formatted(form: str, values: Sequence[str]) -> list[str] | None:
    """The lines that `printf` prints, where nothing but texts and line breaks is filled in."""
    text = form.replace("\\n", "\n")
    if "\\" in text or "%" in text.replace("%s", "") or any("$" in word or "`" in word for word in (form, *values)):
        return None
    slots = text.count("%s")
    if not slots:
        return None if values else lines_of(text)
    rounds = [values[at : at + slots] for at in range(0, len(values), slots)] or [[]]
    filled = ""
    for given in rounds:
        pieces = text.split("%s")
        filled += "".join(piece + value for piece, value in zip(pieces, [*given, *[""] * slots], strict=False))
    return lines_of(filled)


def file_of(command: ShellCommand) -> str:
    """The one file whose lines a command prints, or ""."""
    plain = [word for word in command.words[1:] if not word.startswith("-")]
    if command.name == "sed":
        plain = plain[1:] if "-n" in command.words else []
    elif (command.name == "head" and len(plain) == 2 and plain[0].isdigit()) or (
        command.name == "tail" and len(plain) == 2 and plain[0].lstrip("+").isdigit()
    ):
        plain = plain[1:]
    if command.name not in ("cat", "sed", "head", "tail", "nl") or len(plain) != 1:
        return ""
    if command.name == "cat" and any(word.startswith("-") and word != "-n" for word in command.words[1:]):
        return ""
    return "" if any(char in plain[0] for char in "*?$`") else plain[0]


def files_of(command: ShellCommand) -> list[str]:
    """The files behind `head` and `tail`, which print a title before each of several."""
    words = list(command.words[1:])
    if command.name not in ("head", "tail"):
        return []
    if "-n" in words[:-1]:
        del words[words.index("-n") : words.index("-n") + 2]
    plain = [word for word in words if not word.startswith(("-", "+"))]
    return [] if any(char in word for word in plain for char in "*?$`") else plain


def span_of(command: ShellCommand) -> tuple[int, int | None] | None:
    """Which lines of its input a command prints, as first and last; None where that is not plain."""
    words = command.words
    if command.name in ("cat", "nl"):
        return 1, None
    if command.name == "head":
        counts = [word.lstrip("-n=") for word in words[1:] if word.lstrip("-n=").isdigit()]
        return (1, int(counts[0])) if counts else (1, 10) if len(words) <= 2 else None
    if command.name == "tail":
        starts = [word.removeprefix("-n") for word in words[1:] if word.removeprefix("-n").startswith("+")]
        return (int(starts[0][1:]), None) if starts and starts[0][1:].isdigit() else None
    if command.name == "sed" and "-n" in words:
        ranges = [_RANGE.match(word) for word in words[1:] if word.endswith("p")]
        if len(ranges) == 1 and (span := ranges[0]):
            first, last = int(span.group(1)), span.group(2)
            return first, first if last is None else None if last == "$" else int(last)
    return None
