"""paths: lists of files. What all paths begin with is said once, and so is a directory that several in a row are in.

    [paths below /home/ada/shop/; a name without / is in the directory above it]
    |Found 4 files
    README.md
    src/loans/
    model.py
    rules.py
    tests/test_rules.py

A line that is no such path has a bar before it. Also listing: what `ls -l` says of every file.

    [ls -l: owner and group "root root" left out, "-rw-r--r--  1" where no mode stands, the date where as above]
    drwxr-xr-x  2 4096 Nov 22  2024 src
    96 setup.cfg

Undone line by line; a line that would not come back stays whole behind a bar.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pagefold.encode.codec import Inner

T = TypeVar("T")

_PATH = re.compile(r"(?!//|\?\?)(?:[A-Za-z]:)?[^\s:|,;\"'()<>=][^:|,;\"'()<>=\t]*")
_PATHS = re.compile(r"\[paths(?: below (.*?))?(?:; a name without ([/\\]) is in the directory above it)?\]")
_LEAST = 4
_SHARE = 0.7
_LENGTH = 400

_DATE = r"(?P<date>(?:[A-Z][a-z]{2} [ \d]\d|[ \d]\d [A-Z][a-z]{2})  ?[\d:]{4,5}|\d{4}-\d\d-\d\d \d\d:\d\d)"
_LINE = re.compile(
    r"(?P<mode>[-dlcbps][-rwxsStT]{9}[@+.]?)(?P<links> +\d+) (?P<who>\S+ +\S+)(?P<bytes> +\d+) "
    rf"{_DATE} (?P<name>.*)"
)
_SHORT = re.compile(
    r"(?:(?P<mode>[-dlcbps][-rwxsStT]{9}[@+.]?) (?P<links>\d+) )?(?P<bytes>\d+) "
    rf"(?:{_DATE} )?(?P<name>.*)"
)
_LISTING = re.compile(
    r'\[ls -l: owner and group "([^"]*)" left out, "(\S+)( +\d+)" where no mode stands, the date where as above'
    r"(?:; sizes (\d+) wide)?\]"
)


class PathsCodec:
    name = "paths"

    def owns(self, line: str) -> bool:
        return _PATHS.fullmatch(line) is not None

    def encode(self, text: str, inner: Inner) -> str | None:
        slash = "/" if text.count("/") >= text.count("\\") else "\\"
        if text.count(slash) < max(_LEAST, _SHARE * text.count("\n")) or text.count("\n") + 1 < _LEAST:
            return None
        lines = text.split("\n")
        paths = [line for line in lines if len(line) < _LENGTH and slash in line and _PATH.fullmatch(line)]
        if len(paths) < max(_LEAST, _SHARE * sum(1 for line in lines if line)):
            return None
        root = _root(paths, slash)
        shown = _grouped(lines, root, slash)
        below = f" below {root}" if root else ""
        grouped = len(shown) > len(lines) or slash != "/"
        rule = f"; a name without {slash} is in the directory above it" if grouped else ""
        return "\n".join([f"[paths{below}{rule}]", *shown]) if grouped or root else None

    def decode(self, shown: str, inner: Inner) -> str:
        header, *lines = shown.split("\n")
        found = _PATHS.fullmatch(header)
        assert found is not None
        root, slash = found[1] or "", found[2] or "/"
        text: list[str] = []
        place = ""
        for line in lines:
            if line.startswith("|"):
                text.append(line[1:])
            elif line.endswith(slash):
                place = "" if line == f".{slash}" else line
            else:
                text.append(_file(line, root, place, slash) if line else "")
        return "\n".join(text)


class ListingCodec:
    name = "listing"

    def owns(self, line: str) -> bool:
        return _LISTING.fullmatch(line) is not None

    def encode(self, text: str, inner: Inner) -> str | None:
        if text.count("rw") < _LEAST:
            return None
        lines = text.split("\n")
        files = [_LINE.fullmatch(line) if len(line) < _LENGTH else None for line in lines]
        found = [file for file in files if file]
        if len(found) < _LEAST or len(found) < _SHARE * len(lines):
            return None
        usual = ListingDefaults.of(found)
        if usual is None:
            return None
        shown = [usual.header]
        date = ""
        for line, file in zip(lines, files, strict=True):
            made = line if file is None else usual.short(file, date)
            back, after = usual.whole(made, date)
            shown.append(made if back == line else f"|{line}")
            date = after if back == line else date
        return "\n".join(shown)

    def decode(self, shown: str, inner: Inner) -> str:
        header, *lines = shown.split("\n")
        found = _LISTING.fullmatch(header)
        assert found is not None
        usual = ListingDefaults(found[1], found[2], found[3], int(found[4] or 0))
        text: list[str] = []
        date = ""
        for line in lines:
            whole, date = usual.whole(line, date)
            text.append(whole)
        return "\n".join(text)


@dataclass(frozen=True, slots=True)
class ListingDefaults:
    """What most lines of a listing say: owner and group, mode and links, and how wide their sizes are."""

    who: str
    mode: str
    links: str
    width: int

    @classmethod
    def of(cls, files: Sequence[re.Match[str]]) -> "ListingDefaults | None":
        who = _most(file["who"] for file in files)
        mode, links = _most((file["mode"], file["links"]) for file in files)
        width = _most(len(file["bytes"]) for file in files)
        return None if '"' in who else cls(who, mode, links, width)

    @property
    def header(self) -> str:
        return (
            f'[ls -l: owner and group "{self.who}" left out, "{self.mode}{self.links}" where no mode stands, '
            f"the date where as above; sizes {self.width} wide]"
        )

    def short(self, file: re.Match[str], date: str) -> str:
        rest = f"{file['bytes'].strip()} {'' if file['date'] == date else file['date'] + ' '}{file['name']}"
        same = (file["mode"], file["links"]) == (self.mode, self.links)
        return rest if same else f"{file['mode']} {file['links'].strip()} {rest}"

    def whole(self, shown: str, date: str) -> tuple[str, str]:
        """A line as it was, and the date that the next one may leave out."""
        if shown.startswith("|"):
            return shown[1:], date
        found = _SHORT.fullmatch(shown)
        if found is None:
            return shown, date
        mode, links = (
            (found["mode"], f"{found['links']:>{len(self.links)}}") if found["mode"] else (self.mode, self.links)
        )
        date = found["date"] or date
        return f"{mode}{links} {self.who}{found['bytes']:>{self.width}} {date} {found['name']}", date


def _most(values: Iterable[T]) -> T:
    return Counter(values).most_common(1)[0][0]


def _root(paths: Sequence[str], slash: str) -> str:
    """The directory that all paths are below."""
    first, last = min(paths), max(paths)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[: first.rfind(slash, 0, same) + 1]


def _grouped(lines: Sequence[str], root: str, slash: str) -> list[str]:
    directories = [_directory(line, root, slash) for line in lines]
    shown: list[str] = []
    place = ""
    for line, directory, following in zip(lines, directories, [*directories[1:], None], strict=True):
        if directory is not None and directory != place and (directory == following or not directory):
            place = directory
            shown.append(directory or f".{slash}")
        made = line[len(root) :]
        if directory == place:
            made = made[len(place) :]
        comes_back = directory is not None and _file(made, root, place, slash) == line
        shown.append(made if comes_back or not line else f"|{line}")
    return shown


def _directory(line: str, root: str, slash: str) -> str | None:
    """The directory of a file below the root, or None for any other line."""
    if not line.startswith(root) or len(line) >= _LENGTH or not _PATH.fullmatch(line) or line.endswith(slash):
        return None
    directory = line[len(root) : max(len(root), line.rfind(slash) + 1)]
    # A heading `./` is the root itself.
    return None if directory == f".{slash}" else directory


def _file(shown: str, root: str, place: str, slash: str) -> str:
    return f"{root}{shown}" if slash in shown else f"{root}{place}{shown}"
