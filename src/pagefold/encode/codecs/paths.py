"""paths and listing: shorten lists of files.

paths writes the directory that all paths are below once, and so a directory that several in a row are in.

    [paths below /home/ada/shop/; a name without / is in the directory above it]
    |Found 4 files
    README.md
    src/loans/
    model.py
    rules.py
    tests/test_rules.py

listing leaves out of the lines of `ls -l` what most of them say.

    [ls -l: owner and group "root root" left out, "-rw-r--r--  1" where no mode stands, the date where as above]
    drwxr-xr-x  2 4096 Nov 22  2024 src
    96 setup.cfg

Both are decoded line by line. A line that is no path, or that would not come back, stays whole behind a bar.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pagefold.encode.codec import Codec, Inner, common_prefix

T = TypeVar("T")

_PATH = re.compile(r"(?!//|\?\?)(?:[A-Za-z]:)?[^\s:|,;\"'()<>=][^:|,;\"'()<>=\t]*")
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


class PathsCodec(Codec):
    name = "paths"
    header = re.compile(r"\[paths(?: below (.*?))?(?:; a name without ([/\\]) is in the directory above it)?\]")
    least_saving = 0.6

    def encode(self, text: str, inner: Inner) -> str | None:
        slash = "/" if text.count("/") >= text.count("\\") else "\\"
        if text.count(slash) < max(_LEAST, _SHARE * text.count("\n")) or text.count("\n") + 1 < _LEAST:
            return None
        lines = text.split("\n")
        paths = [line for line in lines if len(line) < _LENGTH and slash in line and _PATH.fullmatch(line)]
        if len(paths) < max(_LEAST, _SHARE * sum(1 for line in lines if line)):
            return None
        prefix = common_prefix(paths)
        root = prefix[: prefix.rfind(slash) + 1]
        shown = _grouped(lines, root, slash)
        below = f" below {root}" if root else ""
        grouped = len(shown) > len(lines) or slash != "/"
        rule = f"; a name without {slash} is in the directory above it" if grouped else ""
        return "\n".join([f"[paths{below}{rule}]", *shown]) if grouped or root else None

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        root, slash = header[1] or "", header[2] or "/"
        text: list[str] = []
        directory = ""
        for line in body.split("\n"):
            if line.startswith("|"):
                text.append(line[1:])
            elif line.endswith(slash):
                directory = "" if line == f".{slash}" else line
            else:
                text.append(_whole_path(line, root, directory, slash) if line else "")
        return "\n".join(text)


class ListingCodec(Codec):
    name = "listing"
    header = re.compile(
        r'\[ls -l: owner and group "([^"]*)" left out, "(\S+)( +\d+)" where no mode stands, the date where as above'
        r"(?:; sizes (\d+) wide)?\]"
    )
    least_saving = 0.3

    def encode(self, text: str, inner: Inner) -> str | None:
        if text.count("rw") < _LEAST:
            return None
        lines = text.split("\n")
        files = [_LINE.fullmatch(line) if len(line) < _LENGTH else None for line in lines]
        matched = [file for file in files if file]
        if len(matched) < _LEAST or len(matched) < _SHARE * len(lines):
            return None
        defaults = ListingDefaults.of(matched)
        if '"' in defaults.who:
            return None
        shown = [defaults.header]
        date = ""
        for line, file in zip(lines, files, strict=True):
            made = line if file is None else defaults.short(file, date)
            back, after = defaults.whole(made, date)
            shown.append(made if back == line else f"|{line}")
            date = after if back == line else date
        return "\n".join(shown)

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        defaults = ListingDefaults(header[1], header[2], header[3], int(header[4] or 0))
        text: list[str] = []
        date = ""
        for line in body.split("\n"):
            whole, date = defaults.whole(line, date)
            text.append(whole)
        return "\n".join(text)


@dataclass(frozen=True, slots=True)
class ListingDefaults:
    """Holds what most lines of a listing say: owner and group, mode and links, and how wide their sizes are."""

    who: str
    mode: str
    links: str
    width: int

    @classmethod
    def of(cls, files: Sequence[re.Match[str]]) -> "ListingDefaults":
        mode, links = _most((file["mode"], file["links"]) for file in files)
        return cls(_most(file["who"] for file in files), mode, links, _most(len(file["bytes"]) for file in files))

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
        """Restores a line, and returns the date that the next line may leave out."""
        if shown.startswith("|"):
            return shown[1:], date
        file = _SHORT.fullmatch(shown)
        if file is None:
            return shown, date
        mode, links = (file["mode"], f"{file['links']:>{len(self.links)}}") if file["mode"] else (self.mode, self.links)
        date = file["date"] or date
        return f"{mode}{links} {self.who}{file['bytes']:>{self.width}} {date} {file['name']}", date


def _most(values: Iterable[T]) -> T:
    return Counter(values).most_common(1)[0][0]


def _grouped(lines: Sequence[str], root: str, slash: str) -> list[str]:
    """Writes paths below the root, with a line for each directory that two or more in a row are in."""
    directories = [_directory(line, root, slash) for line in lines]
    shown: list[str] = []
    current = ""
    for line, directory, following in zip(lines, directories, [*directories[1:], None], strict=True):
        if directory is not None and directory != current and (directory == following or not directory):
            current = directory
            shown.append(directory or f".{slash}")
        made = line[len(root) :]
        if directory == current:
            made = made[len(current) :]
        comes_back = directory is not None and _whole_path(made, root, current, slash) == line
        shown.append(made if comes_back or not line else f"|{line}")
    return shown


def _directory(line: str, root: str, slash: str) -> str | None:
    """Returns the directory of a file below the root, or None for any other line."""
    if not line.startswith(root) or len(line) >= _LENGTH or not _PATH.fullmatch(line) or line.endswith(slash):
        return None
    directory = line[len(root) : max(len(root), line.rfind(slash) + 1)]
    # A heading `./` is the root itself.
    return None if directory == f".{slash}" else directory


def _whole_path(shown: str, root: str, directory: str, slash: str) -> str:
    return f"{root}{shown}" if slash in shown else f"{root}{directory}{shown}"
