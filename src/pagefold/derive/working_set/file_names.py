"""An index of the names in known files, so that a name can be listed with where it stands.

A name is listed from the file as it is known now, never from a result that once showed it: what was changed or removed
since cannot be listed.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from pagefold.derive.quotable import LONGEST, Line, Passage, Speaker, is_defining
from pagefold.derive.working_set.file_views import doubt_about
from pagefold.pages.facts import lines_with_facts
from pagefold.pages.files.known_file import KnownFile

_NAME = re.compile(
    r"(?![A-Fa-f0-9]{6,}\Z)[A-Za-z_]\w*\Z"
)  # neither a number nor a colour or hash in hexadecimal digits


class _Found(NamedTuple):
    """A line that holds a name; in order of how well it stands for it: certain, defining, early in the file."""

    doubt: str
    uses: bool  # and does not define it
    place: int
    number: int | None


def name_passages(files: Mapping[str, KnownFile], asked: Collection[str], oldest: int = -1) -> Iterator[Passage]:
    """For each file, those of these names that its known text holds, each behind the number of a line that holds it, in
    runs of which something was seen at the `oldest` place or later; names in doubt apart and without numbers."""
    wanted = frozenset(filter(_NAME.match, asked))
    recent = [file for file in files.values() if file.touched >= oldest]
    for file in sorted(recent, key=lambda file: (-file.touched, file.name)):
        by_doubt: dict[str, list[tuple[_Found, str]]] = {}
        for name, found in _homes(file, wanted, oldest).items():
            by_doubt.setdefault(found.doubt, []).append((found, name))
        for doubt, homes in sorted(by_doubt.items()):
            yield _passage(file.name, doubt, sorted(homes, key=lambda home: (home[0].place, home[1])))


def _homes(file: KnownFile, wanted: frozenset[str], oldest: int) -> dict[str, _Found]:
    """By each of these names that the file holds, the line that stands for it best."""
    homes: dict[str, _Found] = {}
    oldest_seen = min([min(region.seen) for region in file.text.regions], default=-1)
    doubts: dict[int, str] = {}
    before = 0
    for region in file.text.regions:
        places = lines_with_facts(region.lines) if max(region.seen) >= oldest else {}
        held = places.keys() & wanted
        defining = _defining(region.lines) if held else frozenset[int]()
        for name in held:
            for index in places[name]:
                best = homes.get(name)
                # Lines come in their order: one that is certain gives way to no later one unless that alone defines it.
                if best is not None and not best.doubt and not (best.uses and index in defining):
                    continue
                if len(region.lines[index]) > LONGEST:
                    continue
                seen = region.seen[index]
                if (doubt := doubts.get(seen)) is None:
                    # What is in doubt stands together, whatever it was seen before.
                    at = oldest_seen if file.text.is_doubted(seen) else seen
                    doubt = doubts[seen] = doubt_about(file.text, at)
                number = None if doubt or region.start is None else region.start + index
                found = _Found(doubt, index not in defining, before + index, number)
                if best is None or found < best:
                    homes[name] = found
        before += len(region.lines) + 1
    return homes


@lru_cache(maxsize=1 << 10)
def _defining(lines: tuple[str, ...]) -> frozenset[int]:
    """The indexes of the lines that define something; remembered, as known runs of files stay."""
    return frozenset([index for index, line in enumerate(lines) if is_defining(line)])


def _numbered(homes: list[tuple[_Found, str]]) -> str:
    """What a title says of the numbers before these names."""
    known = [found.number is not None for found, _ in homes]
    certain = "" if all(known) else " where that is certain"
    return f", each behind the number of its line{certain}" if any(known) else ""


def _passage(file: str, doubt: str, homes: list[tuple[_Found, str]]) -> Passage:
    title = f"names in file {file}" if doubt else f"names in file {file} as it is now{_numbered(homes)}"
    lines: tuple[Line, ...] = tuple([(name, found.place, found.number, 0) for found, name in homes])
    where = {name: (index,) for index, (_, name) in enumerate(homes)}
    costs = tuple([len(name) / 3.4 + 0.5 for _, name in homes])
    return Passage(Speaker.RESULT, title, "", lines, where, costs, doubt=doubt)
