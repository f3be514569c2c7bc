"""listing: leaves out of the lines of `ls -l` what most of them say.

    [ls -l: owner and group "root root" left out, "-rw-r--r--  1" where no mode stands, the date where as above]
    drwxr-xr-x  2 4096 Nov 22  2024 src
    96 setup.cfg

Decoded line by line. A line that is no file, or that would not come back, stays whole behind a bar.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pagefold.encode.codec import Codec, Inner

T = TypeVar("T")

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
