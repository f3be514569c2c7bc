"""hits: writes the path of search results `path:line:text` once above the lines of a file, as `rg --heading` does.

    [hits by file]
    tests/test_loans.py:
    12:    def test_renews(self) -> None:
    13-        loan = self.loans[barcode]
    --
    71:    def test_returns(self) -> None:
    tests/test_fines.py:30:    def test_starts_at_zero(self) -> None:

Paths, numbers and texts stay whole. A hit that is alone in its file stays as it is, and so does a line that is no hit.
Where a search cut the beginning of paths in some lines only, the header says which lines had it. Refuses texts with few
hits and those in which another line could be taken for a path or a hit.
"""

import re
from collections.abc import Iterator, Sequence

from pagefold.encode.codec import Codec, Inner

_HIT = re.compile(r"((?:[A-Za-z]:)?[^:\s][^:]*?):(\d+):(.*)")
_PLACE = re.compile(r":\d+:")  # what every hit holds
_NUMBERED = re.compile(r"\d+[:-]")
_MAY_BE_CONTEXT = re.compile(r"-\d+-")
_HOUR = re.compile(r"(?:.*[\sT])?\d\d:\d\d:\d\d(?!\d)")
_SHARE = 0.6
_LEAST = 3
_AGAIN = 25  # lines after which the path is written again, so that it is never far
_BETWEEN = "--"
_LOOKED = 100  # lines in which a beginning that some paths lack is looked for


class HitsCodec(Codec):
    name = "hits"
    header = re.compile(r"\[hits by file(?:; (.+) stood before the path in lines without a colon)?\]")
    least_saving = 0.1

    def encode(self, text: str, inner: Inner) -> str | None:
        if text.count(":") < 2 * _LEAST or len(_PLACE.findall(text)) < _LEAST:
            return None
        lines = text.split("\n")
        hits = [_HIT.fullmatch(line) for line in lines]
        matched = [hit for hit in hits if hit]
        others = sum(1 for line, hit in zip(lines, hits, strict=True) if hit is None and line and not _is_context(line))
        if len(matched) < max(_LEAST, _SHARE * (len(matched) + others)) or _are_times(matched):
            return None
        root = _root(lines, hits)
        said = f"; {root} stood before the path in lines without a colon" if root else ""
        form = "\n".join([f"[hits by file{said}]", *_grouped(lines, hits, root)])
        return form if self.decode(form, inner) == text else None

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        root, lines = header[1] or "", body.split("\n")
        text: list[str] = []
        path: str | None = None
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if path is not None and (number := _NUMBERED.match(line)):
                begins = root if ":" not in line else ""
                text.append(f"{begins}{path}{number[0][-1]}{line}")
            elif line[-1:] == ":" and _NUMBERED.match(following):
                path = line[:-1]
            else:
                text.append(line)
        return "\n".join(text)


def _grouped(lines: Sequence[str], hits: Sequence[re.Match[str] | None], root: str) -> Iterator[str]:
    """Yields the lines of a form: those of one file below its path, the others as they are."""
    parts = _parts(lines, hits, root)
    path, below = "", 0
    for at, (line, (file, rest)) in enumerate(zip(lines, parts, strict=True)):
        if line == _BETWEEN:
            yield line
        elif not file or (file != path and not _continues(parts, lines, at)):
            path, below = "", 0
            yield line
        else:
            if file != path or below % _AGAIN == 0:
                yield f"{file}:"
            path, below = file, 0 if file != path else below
            below += 1
            yield rest


def _continues(parts: Sequence[tuple[str, str]], lines: Sequence[str], at: int) -> bool:
    """Whether the next line, or the one after a rule between hits, is in the same file."""
    following = at + 1
    if following < len(lines) and lines[following] == _BETWEEN:
        following += 1
    return following < len(lines) and parts[following][0] == parts[at][0]


def _parts(lines: Sequence[str], hits: Sequence[re.Match[str] | None], root: str) -> list[tuple[str, str]]:
    """Returns the file that each line is in, and the line without it; two empty texts for any other line."""
    ahead: list[str] = []
    path = ""
    for line, hit in zip(reversed(lines), reversed(hits), strict=True):
        path = hit[1] if hit is not None else "" if line == _BETWEEN else path
        ahead.append(path)
    parts: list[tuple[str, str]] = []
    path = ""
    for line, hit, coming in zip(lines, hits, reversed(ahead), strict=True):
        part = ("", "")
        if hit is not None:
            part = (hit[1], line[len(hit[1]) + 1 :])
        else:
            for file in filter(None, (path, coming)):
                begins = f"{root}{file}-" if root and ":" not in line else f"{file}-"
                if line.startswith(begins) and _NUMBERED.match(line, len(begins)):
                    part = (file, line[len(begins) :])
                    break
        path = part[0] or path
        parts.append(part)
    return parts


def _root(lines: Sequence[str], hits: Sequence[re.Match[str] | None]) -> str:
    """Returns what stands before the path in lines around a hit that have no colon, or "" where it is nothing."""
    files = list(dict.fromkeys(hit[1] for hit in hits[:_LOOKED] if hit))
    for line in lines[:_LOOKED]:
        if ":" not in line and (number := _MAY_BE_CONTEXT.search(line)):
            path = line[: number.start()]
            file = next((file for file in files if path.endswith(file)), None)
            if file is not None:
                return path[: len(path) - len(file)]
    return ""


def _is_context(line: str) -> bool:
    return line == _BETWEEN or _MAY_BE_CONTEXT.search(line) is not None


def _are_times(hits: Sequence[re.Match[str]]) -> bool:
    """Whether most hits are hours and minutes that were taken for files and lines."""
    return 2 * sum(1 for hit in hits if len(hit[2]) == 2 and _HOUR.match(hit[0])) > len(hits)
