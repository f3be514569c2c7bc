"""hits: groups search results `path:line:text` by file, and states once what all paths or all texts have in common.

    [hits by file; "FILE:LINE:*" is short for "/home/ada/shop/FILE:LINE:    def test_*(self) -> None:"]
    tests/test_loans.py
    12:renews_three_times
    71-        loan = self.loans[barcode]
    --
    tests/test_fines.py:30:starts_at_zero
    |a line that is no hit

A hit keeps its number, and a column if it has one; a line of context keeps its dash. Refuses texts with few hits, and
those with a file name that decoding would take for a line. Decoded line by line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pagefold.encode.codec import Codec, Inner, common_prefix

_HIT = re.compile(r"((?:[A-Za-z]:)?[^:\s][^:]*):(\d+):(.*)")
_PLACE = re.compile(r":\d+:")  # what every hit holds
_NUMBERED = re.compile(r"(\d+)([:-])(.*)")
_MAY_BE_CONTEXT = re.compile(r"-\d+-")
_HOUR = re.compile(r"(?:.*[\sT])?\d\d:\d\d:\d\d(?!\d)")
_SHARE = 0.6
_LEAST = 3
_FRAME = 12


@dataclass(frozen=True, slots=True)
class SharedHitParts:
    """Holds what all paths begin with (`root`), and what all texts begin and end with."""

    root: str = ""
    before: str = ""
    after: str = ""

    @property
    def header(self) -> str:
        if self == SharedHitParts():
            return "[hits by file]"
        return f'[hits by file; "FILE:LINE:*" is short for "{self.root}FILE:LINE:{self.before}*{self.after}"]'

    def short(self, text: str) -> str:
        return text[len(self.before) : len(text) - len(self.after)]

    def whole(self, shown: str, path: str) -> tuple[str | None, str]:
        """Restores a line, and tells which file the next is in. The line is None where `shown` only names a file."""
        if shown in ("", "--"):
            return shown, path
        if shown.startswith("|"):
            return shown[1:], path
        numbered = _NUMBERED.fullmatch(shown)
        if numbered is not None:
            text = f"{self.before}{numbered[3]}{self.after}" if numbered[2] == ":" else numbered[3]
            return f"{path}{numbered[2]}{numbered[1]}{numbered[2]}{text}", path
        hit = _HIT.fullmatch(shown)
        if hit is not None:
            path = f"{self.root}{hit[1]}"
            return f"{path}:{hit[2]}:{self.before}{hit[3]}{self.after}", path
        return None, f"{self.root}{shown}"


class HitsCodec(Codec):
    name = "hits"
    header = re.compile(
        r'\[hits by file(?:; "FILE:LINE:\*" is short for "([^:]*?|[A-Za-z]:.*?)FILE:LINE:([^*]*)\*(.*)")?\]'
    )
    least_saving = 0.6

    def encode(self, text: str, inner: Inner) -> str | None:
        if text.count(":") < 2 * _LEAST or len(_PLACE.findall(text)) < _LEAST:
            return None
        lines = text.split("\n")
        hits = [_HIT.fullmatch(line) for line in lines]
        matched = [hit for hit in hits if hit]
        others = sum(1 for line, hit in zip(lines, hits, strict=True) if hit is None and line and not _is_context(line))
        if len(matched) < max(_LEAST, _SHARE * (len(matched) + others)) or _are_times(matched):
            return None
        shared = _shared_parts(matched)
        shown = [shared.header]
        files = _files(lines, hits)
        path = ""
        for index, (line, hit) in enumerate(zip(lines, hits, strict=True)):
            made = _short(line, hit, files[index], shared)
            if files[index] != path:
                path = files[index]
                file = path[len(shared.root) :]
                if hit is not None and not _continues(path, lines[index + 1 : index + 2]):
                    made = f"{file}:{made}"
                elif shared.whole(file, "") == (None, path):
                    shown.append(file)
                else:
                    return None
            elif shared.whole(made, path) != (line, path):
                made = f"|{line}"
            if shared.whole(made, path) != (line, path):
                return None
            shown.append(made)
        return "\n".join(shown)

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        shared = SharedHitParts(*(part or "" for part in header.groups()))
        lines: list[str] = []
        path = ""
        for line in body.split("\n"):
            whole, path = shared.whole(line, path)
            if whole is not None:
                lines.append(whole)
        return "\n".join(lines)


def _is_context(line: str) -> bool:
    return line == "--" or _MAY_BE_CONTEXT.search(line) is not None


def _continues(path: str, following: Sequence[str]) -> bool:
    return any(line.startswith((f"{path}:", f"{path}-")) for line in following)


def _are_times(hits: Sequence[re.Match[str]]) -> bool:
    """Whether most hits are hours and minutes that were taken for files and lines."""
    return 2 * sum(1 for hit in hits if len(hit[2]) == 2 and _HOUR.match(hit[0])) > len(hits)


def _files(lines: Sequence[str], hits: Sequence[re.Match[str] | None]) -> list[str]:
    """Returns the file that each line is in: a hit's own; for lines around hits, that of the last or the next hit."""
    ahead: list[str] = []
    path = ""
    for line, hit in zip(reversed(lines), reversed(hits), strict=True):
        path = hit[1] if hit is not None else "" if line == "--" else path
        ahead.append(path)
    files: list[str] = []
    path = ""
    for line, hit, coming in zip(lines, hits, reversed(ahead), strict=True):
        if hit is not None or (coming and line.startswith(f"{coming}-") and not line.startswith(f"{path}-")):
            path = coming
        files.append(path)
    return files


def _short(line: str, hit: re.Match[str] | None, path: str, shared: SharedHitParts) -> str:
    if hit is not None:
        return f"{hit[2]}:{shared.short(hit[3])}"
    if path and line.startswith(f"{path}-") and _NUMBERED.match(line, len(path) + 1):
        return line[len(path) + 1 :]
    return line if line in ("", "--") else f"|{line}"


def _shared_parts(hits: Sequence[re.Match[str]]) -> SharedHitParts:
    root = common_prefix([hit[1] for hit in hits])
    root = root[: max(root.rfind("/"), root.rfind("\\")) + 1]
    texts = [hit[3] for hit in hits]
    before = common_prefix(texts).partition("*")[0]
    while before and before[-1].isalnum():
        before = before[:-1]
    after = common_prefix([text[len(before) :][::-1] for text in texts])[::-1]
    while after and after[0].isalnum():
        after = after[1:]
    return SharedHitParts(root, before, after) if len(before) + len(after) >= _FRAME else SharedHitParts(root)
