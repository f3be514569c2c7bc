"""Lines with names that stand nowhere else in a request: what a later answer may need to name.

They are quoted from results that are no files, and from files only where the line still stands in the file.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from pagefold.derive.entry import Entry
from pagefold.derive.line_selection import keep, settle
from pagefold.derive.quotable import Speaker
from pagefold.derive.values import Mentions, Priors, expected
from pagefold.derive.working_set.parts import Part
from pagefold.derive.working_set.quoted import quoted
from pagefold.frozen import frozen
from pagefold.pages.exchanges import Work
from pagefold.pages.files.changes import Act

_BEFORE_LINE = re.compile(r"^(?:[^\s:]*[:-])?\d+[:-]|^[+ ]")  # what search hits and diffs put before a line
_MENTIONED = 0.3  # of its worth, for the line of a name that stands elsewhere without what is said about it


@frozen
class Names:
    """Facts that may be quoted, with their mentions so far; `foreseen` ones are needed for certain."""

    known: Mapping[str, Mentions]
    priors: Priors
    rate: float
    turn: int
    foreseen: frozenset[str] = frozenset()


@frozen
class Standing:
    """Names that stand elsewhere: `shown` with what a tool says of them, `mentioned` without."""

    shown: Collection[str]
    mentioned: Collection[str]


def name_parts(
    names: Names, entries: Sequence[Entry], cut: int, work: Work, standing: Standing, budget: int
) -> list[tuple[int, Part]]:
    """The best lines before the cut for names that are not shown elsewhere, within about so many tokens; each part with
    the place of the message that it is from."""
    asked = [(fact, told) for fact, told in names.known.items() if fact not in standing.shown and told[-1] < cut]
    worth: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for (fact, told), expected_need in zip(asked, expected(asked, names.turn, names.priors), strict=True):
        need = 1.0 if fact in names.foreseen else expected_need
        worth[told[-1]][fact] = need * (_MENTIONED if fact in standing.mentioned else 1.0)
    passages = [(place, entries[place].passages) for place in range(cut) if place in worth]
    kept = keep(passages, worth, settle(passages, worth, {}), rate=names.rate, budget=budget)
    about_files = {exchange.call_id for exchange in work.exchanges if exchange.act is not Act.OTHER}
    labels = {exchange.call_id: exchange.label for exchange in work.exchanges}
    current = _current_lines(work)
    parts: list[tuple[int, Part]] = []
    for place, _ in passages:
        for selected in kept[place]:
            passage, lines = selected.passage, selected.lines
            if passage.call_id in about_files:
                is_call = passage.speaker is Speaker.CALL
                lines = [line for line in lines if (is_call and not line[1]) or _is_current(line[0], current)]
            if lines:
                title = labels.get(passage.call_id) or f"message {place + 1}"
                parts.append((place, Part(f"from {title}:", tuple(quoted(lines)))))
    return parts


def _current_lines(work: Work) -> set[str]:
    """The lines that surely still stand in a file, but for their form."""
    return {
        line
        for file in work.files.files.values()
        for region in file.text.regions
        for line, seen in zip(region.lines, region.seen, strict=True)
        if not file.text.is_doubted(seen)
    }


def _is_current(line: str, current: Collection[str]) -> bool:
    """Whether a line that a tool showed, maybe behind a path or a mark, still stands in a file."""
    return line in current or _BEFORE_LINE.sub("", line, count=1) in current
