"""Names that stand nowhere else in a request: what a later answer may need to name.

From results that are no files, the lines that hold them are quoted; of files as they are known now, the names are
listed with the numbers of lines. Where a name stands in a file is what an agent needs in order to read it there: the
line itself costs seven times as much and says little without its neighbours.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf

from pagefold.derive.entry import Entry
from pagefold.derive.line_selection import LONGEST_LABEL, KeptLines, keep, settle
from pagefold.derive.quotable import Passage, Speaker
from pagefold.derive.values import Mentions, Priors, expected
from pagefold.derive.working_set.attention import LONG_AGO
from pagefold.derive.working_set.file_names import name_passages
from pagefold.derive.working_set.parts import GAP, Part
from pagefold.derive.working_set.quoted import ends_of, quoted
from pagefold.derive.working_set.reading import WorkReading
from pagefold.derive.working_set.said import launches
from pagefold.frozen import frozen
from pagefold.pages.facts import is_identifier
from pagefold.pages.files.changes import Act
from pagefold.pages.voices import Voice, Words, without_reminders, words_of

BY_PATH = ", JSON values by their paths"
SINGLE = ", single lines"
IN_FILES = -1  # in place of a message: lines of files are at home there
_WHO = {
    Voice.AGENT: "report of an agent",
    Voice.SUMMARY: "the client's summary",
    Voice.CLIENT: "put in by the client, not by the user",
    Voice.TOOL: "from a tool, late",
}
# Calls whose answer is another one without some lines: files stand under a heading that says what became of them.
_WHOLE_OR_NOT = re.compile(r"\bgit (?:-[Cc] \S+ )*status\b(?![^|;&]* (?:-\w*s\b|--short|--porcelain))")
_HEADING = re.compile(r"\s*(?:={2,}>? ?\S|-{3,} ?\S|\*{3,} ?\S|diff --git )")
_WHOLE_LONGEST = 40  # lines of such an answer
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
    names: Names, entries: Sequence[Entry], cut: int, reading: WorkReading, standing: Standing, budget: int
) -> list[tuple[int, Part]]:
    """The best names before the cut that are not shown elsewhere, within about so many tokens; each part with the place
    of the message that it is from, or `IN_FILES`."""
    asked = [
        (fact, told)
        for fact, told in names.known.items()
        if fact not in standing.shown and told[-1] < cut and (is_identifier(fact) or fact in names.foreseen)
    ]
    work, oldest = reading.work, bisect_left(reading.turns, names.turn - LONG_AGO)
    about_files = {exchange.call_id: exchange for exchange in work.exchanges if exchange.act is not Act.OTHER}
    in_files = {exchange.answered for exchange in about_files.values()}
    worth: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for (fact, told), expected_need in zip(asked, expected(asked, names.turn, names.priors), strict=True):
        need = 1.0 if fact in names.foreseen else expected_need
        home = IN_FILES if told[-1] in in_files else told[-1]
        worth[home][fact] = need * (_MENTIONED if fact in standing.mentioned else 1.0)
    passages: list[tuple[int, Sequence[Passage]]] = [
        (place, [_outside_files(passage, about_files) for passage in entries[place].passages])
        for place in range(cut)
        if place in worth
    ]
    passages.append((IN_FILES, list(name_passages(work.files.files, worth[IN_FILES], oldest))))
    kept = keep(passages, worth, settle(passages, worth, {}), rate=names.rate, budget=budget)
    labels = {exchange.call_id: exchange.label for exchange in work.exchanges}

    def launched(before: int) -> bool:
        return bool(launches(entries[before].message, work.answered_between(before, before + 1)))

    return [
        (place, _part(selected, place, labels, put_in=place > 0 and launched(place - 1)))
        for place, _ in passages
        for selected in _uncut(kept[place], labels)
        if selected.indexes
    ]


def _uncut(kept: Sequence[KeptLines], labels: Mapping[str, str]) -> Iterator[KeptLines]:
    """What is kept; of an answer that says something else without some of its lines, all of it or nothing."""
    for selected in map(_under_headings, kept):
        passage = selected.passage
        if selected.whole or not _WHOLE_OR_NOT.search(labels.get(passage.call_id, "")):
            yield selected
        elif selected.indexes and len(passage.lines) <= _WHOLE_LONGEST:
            yield KeptLines(passage, range(len(passage.lines)))


def _under_headings(selected: KeptLines) -> KeptLines:
    """What is kept, with the heading of each line where an answer has several: they say which file, or which command, a
    line is of."""
    lines = selected.passage.lines
    heads = [at for at, line in enumerate(lines) if _HEADING.match(line[0])] if selected.indexes else []
    if len(heads) < 2 or selected.whole:
        return selected
    above = {heads[found - 1] for at in selected.indexes if (found := bisect_right(heads, at))}
    return KeptLines(selected.passage, sorted({*selected.indexes, *above}))


def _outside_files(passage: Passage, about_files: Collection[str]) -> Passage:
    """A passage without the text of files: of a call that is about one, the line that names the call stays."""
    if passage.call_id not in about_files:
        return passage
    named = {fact: (0,) for fact, lines in passage.where.items() if lines[0] == 0}
    is_call = passage.speaker is Speaker.CALL
    costs = (*passage.costs[:1], *(inf for _ in passage.costs[1:2]))  # one line more, never quoted: it is not the whole
    return replace(passage, lines=passage.lines[:2], costs=costs, where=named if is_call else {})


def _part(selected: KeptLines, place: int, labels: Mapping[str, str], *, put_in: bool) -> Part:
    """Quoted lines, or names of a file. Where lines were left out, also before or behind them, the title says so once:
    a mark for each gap would cost as much as another line."""
    passage, doubt = selected.passage, selected.passage.doubt
    if place == IN_FILES:
        return Part(passage.label if doubt else f"{passage.label}:", (_listed(selected),), doubt)
    title = _title(selected, place, labels, put_in=put_in) + (BY_PATH if passage.by_path else "")
    title += "" if selected.whole else SINGLE
    lines = tuple([line for line in quoted(selected.lines, ends_of(passage.lines)) if line is not None])
    return Part(title if doubt else f"{title}:", lines, doubt, cuts=True)


def _listed(selected: KeptLines) -> str:
    return ", ".join([name if number is None else f"{number} {name}" for name, _, number, _ in selected.lines])


def _title(selected: KeptLines, place: int, labels: Mapping[str, str], *, put_in: bool) -> str:
    """Whose the quoted lines are. `put_in`: the client put the message in where the user speaks."""
    passage = selected.passage
    label = labels.get(passage.call_id) or passage.label
    if len(label) > LONGEST_LABEL:
        label = label[: LONGEST_LABEL - 1] + GAP
    match passage.speaker:
        case Speaker.RESULT:
            return f"from {label or 'a tool'}"
        case Speaker.CALL:  # its first line is the label itself
            return "you, in a call" if 0 in selected.indexes else f"you, calling {label}"
        case Speaker.USER:
            words = Words(Voice.CLIENT, "") if put_in else words_of(without_reminders(passage.text))
            whose = _WHO.get(words.voice, "user")
            return f"{whose}{f', behind {words.behind}' if words.behind else ''}, message {place + 1}, in part"
    return f"{'you' if passage.speaker is Speaker.ASSISTANT else 'system'}, message {place + 1}, in part"
