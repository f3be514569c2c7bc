"""Known lines of files as passages, so that single lines can be quoted by the names they hold.

A line is quoted from the file as it is known now, never from a result that once showed it: what was changed or removed
since cannot be quoted.
"""

from collections.abc import Collection, Iterator, Mapping

from pagefold.derive.quotable import LONGEST, Line, Passage, Speaker, cost_of, is_defining
from pagefold.derive.working_set.file_views import doubt_about
from pagefold.pages.facts import facts_in_line
from pagefold.pages.files.known_file import KnownFile


def file_passages(files: Mapping[str, KnownFile], asked: Collection[str]) -> Iterator[Passage]:
    """For each file, its known lines that hold one of these names; lines in doubt apart from certain ones."""
    wanted = frozenset(asked)
    for file in sorted(files.values(), key=lambda file: (-file.touched, file.name)):
        by_doubt: dict[str, list[Line]] = {}
        where: dict[str, dict[str, list[int]]] = {}
        place = 0
        for region in file.text.regions:
            for index, (text, seen) in enumerate(zip(region.lines, region.seen, strict=True)):
                place += 1
                if not text or len(text) > LONGEST or not (held := facts_in_line(text) & wanted):
                    continue
                doubt = doubt_about(file.text, seen)
                lines = by_doubt.setdefault(doubt, [])
                homes = where.setdefault(doubt, {})
                for fact in sorted(held):
                    homes.setdefault(fact, []).append(len(lines))
                lines.append((text, place, None if doubt or region.start is None else region.start + index, 0))
            place += 1
        for doubt, lines in by_doubt.items():
            yield _passage(file.name, doubt, lines, where[doubt])


def _passage(name: str, doubt: str, lines: list[Line], where: Mapping[str, list[int]]) -> Passage:
    title = f"file {name}, seen before {doubt}" if doubt else f"file {name} as it is now"
    costs = tuple([cost_of(line[0]) for line in lines])
    defining = frozenset([index for index, line in enumerate(lines) if is_defining(line[0])])
    return Passage(Speaker.RESULT, title, "", tuple(lines), where, costs, defining=defining)
