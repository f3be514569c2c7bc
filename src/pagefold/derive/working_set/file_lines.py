"""Known lines of files as passages, so that single lines can be quoted by the names they hold.

A line is quoted from the file as it is known now, never from a result that once showed it: what was changed or removed
since cannot be quoted.
"""

from collections.abc import Collection, Iterator, Mapping

from pagefold.derive.quotable import LONGEST, Line, Passage, Speaker, cost_of, is_defining
from pagefold.derive.working_set.file_views import doubt_about
from pagefold.pages.facts import lines_with_facts
from pagefold.pages.files.known_file import KnownFile


def file_passages(files: Mapping[str, KnownFile], asked: Collection[str], oldest: int = -1) -> Iterator[Passage]:
    """For each file, its known lines that hold one of these names, in runs of which something was seen at the `oldest`
    place or later; lines in doubt apart from certain ones."""
    wanted = frozenset(asked)
    recent = [file for file in files.values() if file.touched >= oldest]
    for file in sorted(recent, key=lambda file: (-file.touched, file.name)):
        by_doubt: dict[str, list[Line]] = {}
        where: dict[str, dict[str, list[int]]] = {}
        place = 0
        for region in file.text.regions:
            if max(region.seen) < oldest:
                place += len(region.lines) + 1
                continue
            for index, held in sorted(_lines_that_hold(wanted, region.lines).items()):
                text = region.lines[index]
                if len(text) > LONGEST:
                    continue
                doubt = doubt_about(file.text, region.seen[index])
                lines = by_doubt.setdefault(doubt, [])
                homes = where.setdefault(doubt, {})
                for fact in sorted(held):
                    homes.setdefault(fact, []).append(len(lines))
                number = None if doubt or region.start is None else region.start + index
                lines.append((text, place + index + 1, number, 0))
            place += len(region.lines) + 1
        for doubt, lines in by_doubt.items():
            yield _passage(file.name, doubt, lines, where[doubt])


def _lines_that_hold(wanted: frozenset[str], lines: tuple[str, ...]) -> dict[int, list[str]]:
    """By the index of each line that holds wanted facts, those facts."""
    held: dict[int, list[str]] = {}
    places = lines_with_facts(lines)
    for fact in places.keys() & wanted:
        for index in places[fact]:
            held.setdefault(index, []).append(fact)
    return held


def _passage(name: str, doubt: str, lines: list[Line], where: Mapping[str, list[int]]) -> Passage:
    title = f"file {name}" if doubt else f"file {name} as it is now"
    costs = tuple([cost_of(line[0]) for line in lines])
    defining = frozenset([index for index, line in enumerate(lines) if is_defining(line[0])])
    return Passage(Speaker.RESULT, title, "", tuple(lines), where, costs, defining=defining, doubt=doubt)
