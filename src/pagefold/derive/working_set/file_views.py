"""Files as they are now, as text: the chosen chunks of each with their numbers, and what is known but not shown."""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import groupby

from pagefold.derive.working_set.chunks import Chunk
from pagefold.derive.working_set.parts import Part
from pagefold.frozen import frozen
from pagefold.pages.files.doubt import told
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.region import Region
from pagefold.pages.files.shell_words import shell_words
from pagefold.pages.files.text import FileText
from pagefold.pages.kinds import PageKind
from pagefold.pages.ledger import Ledger, LedgerEntry
from pagefold.pages.page import Page
from pagefold.printable import printable

_EVERY = 10  # lines between two numbers
_MOST_REMOVED = 10  # files that are told to be gone, the newest
_REMOVES = re.compile(rf"(?:^|`)(?:git (?:rm|clean)|{'|'.join(sorted(shell_words().removes))})\b")


@frozen
class FileView:
    """`title` says what follows, `lines` are the file's own; None among them is a gap. `page` is all that is known.

    `numbered` are the lines with certain numbers, as later results may refer to them; None where there are none.
    `doubt` is what may have changed the lines since; `further` are lines that were seen at other times, each behind a
    title that says when.
    """

    key: str
    title: str
    lines: tuple[str | None, ...]
    page: Page
    numbered: LedgerEntry | None = None
    doubt: str = ""
    further: tuple[tuple[str, tuple[str | None, ...]], ...] = ()

    @property
    def parts(self) -> list[Part]:
        return [Part(self.title, self.lines, self.doubt), *(Part(title, lines) for title, lines in self.further)]


def file_views(files: Mapping[str, KnownFile], chosen: Sequence[Chunk]) -> list[FileView]:
    """One view for each file with chosen chunks, the last touched last."""
    by_file: dict[tuple[str, _Sure], list[Chunk]] = {}
    for chunk in chosen:
        by_file.setdefault((chunk.key, _sure(files[chunk.key], chunk)), []).append(chunk)
    order = sorted(by_file, key=lambda key: (files[key[0]].touched, key[0], key[1]))
    return [
        _view(key, files[key], sorted(by_file[key, sure], key=lambda chunk: (chunk.region, chunk.begin)), sure)
        for key, sure in order
    ]


class _Sure(IntEnum):
    """How sure the lines of a view are; the surest stand last."""

    DOUBTED = 0
    REFORMATTED = 1
    CERTAIN = 2


def _sure(file: KnownFile, chunk: Chunk) -> _Sure:
    seen = _oldest(file, chunk)
    if file.text.is_doubted(seen):
        return _Sure.DOUBTED
    return _Sure.CERTAIN if file.text.is_certain(seen) else _Sure.REFORMATTED


def _oldest(file: KnownFile, chunk: Chunk) -> int:
    """The place at which the line of a chunk was seen that nobody has seen for longest."""
    return min(file.text.regions[chunk.region].seen[chunk.begin : chunk.end])


def doubt_about(text: FileText, seen: int) -> str:
    """What may have happened to lines since they were seen at this place; nothing where they surely stand."""
    if text.is_doubted(seen):
        reasons = told(text.doubts_since(seen))
        return f"{reasons}, which may have changed {'or removed ' if _REMOVES.search(reasons) else ''}it"
    return "" if text.is_certain(seen) else f"`{text.reformatted_by}`, which may have changed their form"


def _view(key: str, file: KnownFile, chunks: Sequence[Chunk], sure: _Sure) -> FileView:
    runs = list(_runs(chunks))
    doubt = doubt_about(file.text, min([_oldest(file, chunk) for chunk in chunks]))
    pieces = _pieces(file.text, runs, sure)
    page = Page.of(PageKind.EVIDENCE, known_text(file), file.name)
    changed = ", changed in this session" if file.edits else ""
    title = f"{_name(file)}{changed}, lines" if doubt else _title(file, runs, page.handle)
    numbered = None if doubt else _numbered_lines(file, runs)
    return FileView(key, title, pieces[0][1], page, numbered, doubt, tuple(pieces[1:]))


def _pieces(
    text: FileText, runs: Sequence[tuple[int, int, int]], sure: _Sure
) -> list[tuple[str, tuple[str | None, ...]]]:
    """The lines of a view, in pieces under a title of their own where they were seen at different times: something may
    have changed the file in between, so that they never stood next to one another. The first goes on from the view's
    own title, under which lines are expected that were seen before all of that."""
    doubted = sure is _Sure.DOUBTED
    spans = [span for run in runs for span in (_by_state(text, run) if doubted else [(*run, 0)])]
    state = oldest = min(span[3] for span in spans)
    titles, named, lines = [""], set[int](), list[list[str | None]]([[]])
    cut = False  # where lines have no numbers, nothing else tells that known ones are left out at an end
    before: tuple[int, int] | None = None
    for index, begin, end, now in spans:
        region = text.regions[index]
        bare = sure is not _Sure.CERTAIN or region.start is None
        if before != (index, begin) and (before or (bare and begin > 0)):
            lines[-1].append(None)
        if now != state:
            titles.append(f"file above, seen {_when(text, now, oldest, named=now in named)}:")
            lines.append([])
            named.add(now)
        lines[-1] += _numbered(region, begin, end, certain=sure is _Sure.CERTAIN)
        state, before, cut = now, (index, end), bare and end < len(region.lines)
    lines[-1] += [None] if cut else []
    return [(title, tuple(piece)) for title, piece in zip(titles, lines, strict=True)]


def _when(text: FileText, state: int, oldest: int, *, named: bool = False) -> str:
    """When lines of a state were seen, of a file whose lines may be as old as the oldest state. What was named before
    is told by its message alone."""
    if state == oldest:
        first = text.doubts[state]
        when, what, place = "before", first.first, first.since
    else:
        last = text.doubts[state - 1]
        when, what, place = "after", last.last, last.place
    return f"{when} message {place + 1}" if named else f"{when} `{what}` (message {place + 1})"


def _by_state(text: FileText, run: tuple[int, int, int]) -> Iterator[tuple[int, int, int, int]]:
    """A run in parts of which all lines were seen between the same two changes of the file, each with its state."""
    index, begin, end = run
    seen = text.regions[index].seen[begin:end]
    states = {place: text.state_of(place) for place in set(seen)}
    for state, group in groupby([states[place] for place in seen]):
        yield index, begin, (end := begin + len(list(group))), state
        begin = end


def removed_lines(removed: Mapping[str, int]) -> list[str]:
    """A line for each file that was known and is gone, the newest last."""
    names = sorted(removed, key=lambda name: (removed[name], name))
    more = [f"{len(names) - _MOST_REMOVED} before"] if len(names) > _MOST_REMOVED else []
    return [*more, *(f"{printable(name, keep='')} (message {removed[name] + 1})" for name in names[-_MOST_REMOVED:])]


def ledger_of(views: Sequence[FileView]) -> Ledger:
    """The ledger of a request that shows these views: a later result may refer to their lines by the title of the view.
    Of two views with the same title only the first is referred to."""
    ledger = Ledger()
    for view in views:
        if view.numbered is not None and ledger.labelled(view.numbered.label) is None:
            ledger = ledger.with_text(view.numbered)
    return ledger


def _numbered_lines(file: KnownFile, runs: Sequence[tuple[int, int, int]]) -> LedgerEntry | None:
    """The lines of these runs that have numbers, under how the title of their view begins."""
    shown: dict[int, str] = {}
    text: list[str] = []
    for region, begin, end in runs:
        part = file.text.regions[region].part(begin, end)
        if part.start is not None and printable(file.name, keep="") == file.name:
            shown.update(enumerate(part.lines, part.start))
            text += _numbered(part, 0, len(part.lines), certain=True)
    if not shown:
        return None
    first, last = min(shown), max(shown)
    lines = tuple([shown.get(number) for number in range(first, last + 1)])
    return LedgerEntry(_name(file), lines, first, text="\n".join(text))


def _name(file: KnownFile) -> str:
    return f"file {file.name}"


def _runs(chunks: Sequence[Chunk]) -> Iterator[tuple[int, int, int]]:
    """Chunks that follow one another as one run: region, first line and end."""
    run: tuple[int, int, int] | None = None
    for chunk in chunks:
        if run is not None and run[0] == chunk.region and chunk.begin == run[2]:
            run = (run[0], run[1], chunk.end)
            continue
        if run is not None:
            yield run
        run = (chunk.region, chunk.begin, chunk.end)
    if run is not None:
        yield run


def _numbered(region: Region, begin: int, end: int, *, certain: bool) -> Iterator[str]:
    """Lines of a region, the first and every tenth with its number where that is certain."""
    for index in range(begin, end):
        line = region.lines[index]
        if region.start is None or not certain:
            yield line
        elif index == begin or (region.start + index) % _EVERY == 0 or _looks_numbered(line):
            yield f"{region.start + index}\t{line}"
        else:
            yield line


def _looks_numbered(line: str) -> bool:
    """Whether a line could be taken for one with a number of ours."""
    return line.lstrip()[:1].isdigit()


def _title(file: KnownFile, runs: Sequence[tuple[int, int, int]], handle: str) -> str:
    regions, text = file.text.regions, file.text
    spans = [span_of(regions[region].part(begin, end)) for region, begin, end in runs]
    last = max((region.end - 1 for region in regions if region.start is not None), default=0)
    of = f" of {text.length}" if text.length is not None and text.length >= last else ""
    words = [f"{_name(file)}, as it is now: lines {', '.join([*filter(None, spans), *_loose(spans)])}{of}"]
    if file.edits:
        words.append("changed in this session")
    left = left_out(file, runs)
    if left:
        words.append(f'also known: {", ".join(left)} by context_recall("{handle}")')
    return "; ".join(words)


def _loose(spans: Sequence[str]) -> list[str]:
    """What a title says of runs without numbers, which have no spans: in what order they stand, and whether one repeats
    lines of another, is not known."""
    count = spans.count("")
    if not count:
        return []
    return ["without certain numbers" if len(spans) == 1 else "pieces without certain numbers, which may overlap"]


def left_out(file: KnownFile, runs: Sequence[tuple[int, int, int]]) -> list[str]:
    """The spans of a file that are surely known and not shown."""
    spans: list[str] = []
    for index, region in enumerate(file.text.regions):
        at = 0
        for _, begin, end in [run for run in runs if run[0] == index] + [(index, len(region.lines), len(region.lines))]:
            if begin > at and file.text.is_certain(min(region.seen[at:begin])):
                spans.append(span_of(region.part(at, begin)))
            at = end
    return [span for span in spans if span]


def span_of(region: Region) -> str:
    return "" if region.start is None else f"{region.start}-{region.end - 1}"


def known_text(file: KnownFile) -> str:
    """All that is known of a file, with numbers where they are certain."""
    parts: list[str] = []
    for index, region in enumerate(file.text.regions):
        if region.start is not None and file.text.is_certain(min(region.seen)):
            parts.append("\n".join([f"{number}\t{line}" for number, line in enumerate(region.lines, region.start)]))
            continue
        states = list(_by_state(file.text, (index, 0, len(region.lines))))
        oldest = min(state for _, _, _, state in states)
        lines: list[str] = []
        for _, begin, end, state in states:
            when = f", {_when(file.text, state, oldest)}" if len(states) > 1 else ""
            lines.append(f"[lines as last seen{when}, without certain numbers]")
            lines += [f"\t{line}" for line in region.lines[begin:end]]  # every line of the file stands behind a tab
        parts.append("\n".join(lines))
    return "\n…\n".join(parts)
