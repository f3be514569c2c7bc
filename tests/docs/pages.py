"""The pages that people read, and what stands in them: links, headings, blocks of code, and code within sentences."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = tuple(
    sorted([ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + list(ROOT.glob("docs/**/*.md")))
)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

_FENCED = re.compile(r"^(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)\s*$", re.M | re.S)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.M)
_HEREDOC = re.compile(r"<<-?'?(\w+)'?(.*?)\n(.*?)^\1$", re.M | re.S)
_ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=.*", re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block: `language` is empty where none is named."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(found["language"], found["text"]) for found in _FENCED.finditer(page.read_text(encoding="utf-8"))]


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def inline(page: Path) -> list[str]:
    return _INLINE.findall(prose(page))


def links(page: Path) -> list[str]:
    return _LINK.findall(_INLINE.sub("", prose(page)))


def anchors(page: Path) -> set[str]:
    """What can follow # in a link to the page."""
    made: set[str] = set()
    for heading in _HEADING.findall(prose(page)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        made.add(re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words)))
    return made


def commands(text: str) -> Iterator[list[str]]:
    """Yields every command of a script: its words, without variables before it and files it reads or writes."""
    text = _HEREDOC.sub(r"\2", text).replace("\\\n", " ")
    for line in text.splitlines():
        words = shlex.shlex(line.strip().removeprefix("$ "), posix=True, punctuation_chars=";&|<>")
        words.whitespace_split, words.commenters = True, "#"
        command: list[str] = []
        skip = False
        for word in [*words, ";"]:
            if set(word) <= set(";&|"):
                yield from _whole(command)
                command = []
            elif set(word) <= set("<>&"):
                skip = True
            elif skip:
                skip = False
            else:
                command.append(word)


def _whole(command: list[str]) -> Iterator[list[str]]:
    while command and _ASSIGNMENT.fullmatch(command[0]):
        command = command[1:]
    if command:
        yield command
