"""What is known of one file's text: regions of lines, with line numbers while they are certain.

Every operation returns a new `FileText`. An operation that cannot be placed makes less known, never something untrue:
line numbers are given up before lines, and a line that may have been replaced is not shown as present.
"""

# ruff: noqa: SLF001 - the private members are those of other values of the same class
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pagefold.frozen import frozen
from pagefold.pages.files.alignment import aligned, beside, in_order
from pagefold.pages.files.doubt import Doubts, with_doubt
from pagefold.pages.files.edges import uncut, uncut_lines
from pagefold.pages.files.hunk import Hunk
from pagefold.pages.files.region import Region, is_telling


@frozen
class FileText:
    """The known regions of one file: numbered ones in order, without overlap, then those without a number.

    `length` is the number of lines in the file, where a tool showed or wrote its end. `doubts` are what may have
    changed the file since a line of it was seen; `reformatted_by` names the formatter that may have changed
    the form of its lines at `reformatted_at`. `open_end` is whether its last line may have no line break.
    """

    regions: tuple[Region, ...] = ()
    length: int | None = None
    doubts: Doubts = ()
    reformatted_by: str = ""
    reformatted_at: int = -1
    open_end: bool = False

    def shown(self, start: int | None, lines: Sequence[str], place: int, *, ends: bool = False) -> "FileText":
        """A tool showed these lines. `ends` says that the last of them is the last line of the file."""
        if not lines:
            return self
        fresh = self._with_changes(Region.of(start, lines, place))
        if start is None:
            return replace(self, regions=_with_loose(self.regions, fresh))
        length = fresh.end - 1 if ends else self.length
        if not ends and length is not None and length < fresh.end - 1:
            length = None
        if ends and start == 1:
            return replace(self, regions=(fresh,), length=length)
        parts = [part for part in self._parts() if not (ends and part.start is not None and part.start >= fresh.end)]
        regions = aligned([part for part in parts if not self._is_doubted(part)], fresh)
        if doubted := [part for part in parts if self._is_doubted(part)]:
            regions = beside(regions, aligned(doubted, fresh))
        return replace(self, regions=regions, length=length)

    def written(self, text: str, place: int) -> "FileText":
        """The whole file was replaced by this text."""
        lines = lines_of(text)
        regions = (Region.of(1, lines, place, place),) if lines else ()
        return FileText(regions, len(lines), open_end=bool(text) and not text.endswith("\n"))

    def edited(self, old: str, new: str, place: int, *, every: bool = False) -> "FileText":
        """A tool replaced `old` by `new`, once or wherever it stood. Once means that it stood in one place only."""
        old, new = plain_breaks(old), plain_breaks(new)
        if old == new or not old:
            return self
        if old.endswith("\n") and not new.endswith("\n") and not self.open_end:
            return replace(self, open_end=True).edited(old, new, place, every=every)
        parts = self._parts()
        times = [part.times(old) for part in parts]
        sure = sum(count for part, count in zip(parts, times, strict=True) if self._is_sure(part))
        if not any(times) and self._is_whole:  # a tool that says otherwise, or a file that has changed unseen
            return self.doubted("an edit of a text that was not known to be there", place)
        is_open = (every or any(_is_open_above(part, old) for part in parts)) and _overlaps_itself(old)
        if not any(times) or (not every and (sure > 1 or max(times) > 1)) or is_open:
            return self._unplaced(old, new, place)
        added, shift = new.count("\n") - old.count("\n"), 0
        whole, regions = self._is_whole, list[Region]()
        for part, count in zip(parts, times, strict=True):
            changed = part
            if every or (not count and (part.start is None or not sure)):
                changed = uncut(part, old, new, from_top=whole)
            if count:
                changed = _replaced(changed, old, new, place, doubted=self._is_doubted(part))
            if count and not self._is_sure(part):
                changed = changed.unnumbered()
            regions.append(changed.moved(shift))
            shift += added * count if self._is_sure(part) else 0
        length = None if self.length is None else self.length + added
        if whole and every:
            length = (
                len(regions[0].lines) if len(uncut(parts[0], old, new, from_top=True).lines) == self.length else None
            )
        elif added and not whole and (every or not sure):  # where else lines have moved is not known
            regions, length = [region.unnumbered() for region in regions], None
        return replace(self, regions=in_order(_nonempty(regions)), length=length)

    def patched(self, hunks: Iterable[tuple[Sequence[str], Sequence[str]]], place: int) -> "FileText":
        """A tool replaced runs of whole lines by others, in order."""
        file = self
        after: int | None = 1  # the number that the next hunk cannot stand above, None where it is not known
        for old, new in hunks:
            if not old:
                file = file._appended(new, place)
            elif list(old) == list(new):
                after = file._behind(old, after)
            else:
                file, after = file._hunk(list(old), list(new), place, after)
        return file

    def appended(self, lines: Sequence[str], place: int) -> "FileText":
        """These lines, or others where there are none, were put behind the last one. They stand without numbers, since
        nobody knows whether the file had ended with a line break; all other lines stand as they did. Where the last one
        may have had no line break it has become another, and so has the first of these."""
        known = self.regions
        if self.open_end:
            ends = [region.start is None or region is max(known, key=lambda one: one.start or 0) for region in known]
            known = _nonempty(
                [one.part(0, len(one.lines) - 1) if end else one for one, end in zip(known, ends, strict=True)]
            )
            lines = lines[1:]
        regions = _with_loose(known, Region.of(None, lines, place, place)) if lines else known
        return replace(self, regions=regions, length=None, open_end=False)

    def compared(self, hunks: Iterable[Hunk], place: int) -> "FileText":
        """A diff showed these hunks of the file as it is. Where the lines before a hunk stand in its place, it tells an
        edit that nobody else told, unless lines were seen since then where the hunk has them."""
        file = self
        for hunk in hunks:
            new, old = list(hunk.new), list(hunk.old)
            if old and not (new and any(region.holds(new) for region in file.regions)):
                at = [found for found in _places(file.regions, old) if file._number_at(found) == hunk.start]
                if at and file._was_seen_after(hunk):
                    file = file._unnumbered_from(hunk.start + len(new))
                elif at and not _is_begun(file.regions[at[0][0]].lines[at[0][1] :], len(old), new):
                    file = file._spliced(at[0], len(old), new, place)
                gone = {line for line in old if is_telling(line)} - set(new)
                parts = [part for region in file.regions for part in region.without(gone)]
                file = replace(file, regions=tuple(parts))
            file = file.shown(hunk.start, hunk.new, place)
        return file

    def doubted(self, reason: str, place: int, *, mild: bool = False) -> "FileText":
        """Something may have changed the file: lines that were not seen since are in doubt. `mild` is a formatter."""
        if mild:
            return replace(self, reformatted_by=reason, reformatted_at=place)
        return replace(self, doubts=with_doubt(self.doubts, reason, place, self.regions))

    @property
    def doubted_at(self) -> int:
        """The place of the last that may have changed the file; -1 where nothing may have."""
        return self.doubts[-1].place if self.doubts else -1

    def doubts_since(self, seen: int) -> Doubts:
        """What may have changed a line since it was seen at this place."""
        return tuple([doubt for doubt in self.doubts if doubt.place > seen])

    def state_of(self, seen: int) -> int:
        """How many doubts had come when a line was seen: two lines of the same state stood in the file together."""
        return len(self.doubts) - len(self.doubts_since(seen))

    def is_doubted(self, seen: int) -> bool:
        """Whether a line that was last seen at this place may be gone."""
        return seen < self.doubted_at

    def is_certain(self, seen: int) -> bool:
        """Whether a line that was last seen at this place surely stands as it did, with its number."""
        return seen >= max(self.doubted_at, self.reformatted_at)

    @property
    def _is_whole(self) -> bool:
        """Whether every line is known and none is in doubt."""
        if len(self.regions) != 1 or self.regions[0].start != 1 or self.length != len(self.regions[0].lines):
            return False
        return min(self.regions[0].seen) >= self.doubted_at

    def _parts(self) -> list[Region]:
        """The regions in runs of lines that are all in doubt or all not."""
        if self.doubted_at < 0:
            return list(self.regions)
        return [part for region in self.regions for part in region.split_by_age(self.doubted_at)]

    def _is_doubted(self, part: Region) -> bool:
        return part.seen[0] < self.doubted_at

    def _is_sure(self, part: Region) -> bool:
        """Whether a run of lines stands where its number says."""
        return part.start is not None and not self._is_doubted(part)

    def _number_at(self, found: tuple[int, int]) -> int | None:
        start = self.regions[found[0]].start
        return None if start is None else start + found[1]

    def _was_seen_after(self, hunk: Hunk) -> bool:
        """Whether a line below those that a hunk replaced is known to stand where the hunk has it."""
        first = hunk.start + len(hunk.old)
        below = dict(enumerate(hunk.new[len(hunk.old) :], first))
        return any(
            below.get(number) == line
            for region in self.regions
            if region.start is not None and region.end > first
            for number, line in enumerate(region.lines, region.start)
        )

    def _unnumbered_from(self, number: int) -> "FileText":
        """The file where nobody knows whether the regions from this number on were seen before or after an edit."""
        regions = [one if one.start is None or one.start < number else one.unnumbered() for one in self.regions]
        return replace(self, regions=in_order(regions))

    def _with_changes(self, fresh: Region) -> Region:
        """A fresh view with the edits that are known to have written its lines."""
        changed: dict[str, int] = {}
        for region in self.regions:
            if max(region.changed, default=-1) >= 0:
                changed.update((line, at) for line, at in zip(region.lines, region.changed, strict=True) if at >= 0)
        if not changed:
            return fresh
        return replace(fresh, changed=tuple([changed.get(line, -1) for line in fresh.lines]))

    def _first(
        self, places: Sequence[tuple[int, int]], old: Sequence[str], after: int | None
    ) -> tuple[int, int] | None:
        """Which of these places a hunk means, which is the first below `after`.

        That is certain where all lines up to it are known; it is taken for certain where one place alone is known and
        its lines are no everyday ones.
        """
        sure = [found for found in places if self._is_sure(self.regions[found[0]])]
        below = [found for found in sure if (self._number_at(found) or 0) >= (after or 1)]
        if after is not None and below and (self.regions[below[0][0]].start or 0) <= after:
            return below[0]
        if len(places) != 1 or sure != below or not any(map(is_telling, old)):
            return None
        return places[0]

    def _behind(self, lines: Sequence[str], after: int | None) -> int | None:
        """The number behind lines that a patch names to say where it goes on."""
        found = self._first(_places(self.regions, lines), lines, after)
        number = None if found is None else self._number_at(found)
        return None if number is None else number + len(lines)

    def _hunk(self, old: list[str], new: list[str], place: int, after: int | None) -> tuple["FileText", int | None]:
        """One hunk, and the number behind it: later hunks stand below."""
        file = replace(self, regions=tuple(self._parts()))
        places = _places(file.regions, old)
        first = file._first(places, old, after)
        if first is None:
            file = file._unplaced("\n".join(old), "\n".join(new), place, places=places, whole_lines=True)
            return file, None
        is_sure, number = file._is_sure(file.regions[first[0]]), file._number_at(first)
        regions = list[Region]()
        for at, region in enumerate(file.regions):
            if at == first[0]:
                first = (len(regions), first[1])
                regions.append(region)
            elif is_sure and file._is_sure(region):
                regions.append(region)
            else:  # it may hold the same lines
                spans = [line for index, line in places if index == at]
                regions += [uncut_lines(part, old) for part in region.without_spans(spans, len(old))]
        file = replace(file, regions=tuple(regions))._spliced(first, len(old), new, place)
        after = number + len(new) if is_sure and number is not None else None
        return replace(file, regions=in_order(file.regions)), after

    def _spliced(self, found: tuple[int, int], count: int, new: Sequence[str], place: int) -> "FileText":
        """The file with so many lines from a place on replaced by others."""
        index, line = found
        region, shift = self.regions[index], len(new) - count
        changed, behind = region.spliced(line, count, new, place), self.regions[index + 1 :]
        length = None if self.length is None else self.length + shift
        if self._is_sure(region):
            regions = (*self.regions[:index], changed, *(later.moved(shift) for later in behind))
        else:  # which numbered lines are behind this one is not known
            regions = (*self.regions[:index], changed.unnumbered(), *behind)
            if shift:
                regions, length = tuple([one.unnumbered() for one in regions]), None
        return replace(self, regions=_nonempty(regions), length=length)

    def _appended(self, new: Sequence[str], place: int) -> "FileText":
        """Lines that a patch without lines to replace has put at the end of the file, or before its last empty line."""
        file = self
        for index, region in enumerate(self.regions):
            if region.lines[-1] == "":
                file = replace(file, regions=(*file.regions[:index], region.part(0, len(region.lines) - 1)))
                file = replace(file, regions=(*file.regions, *self.regions[index + 1 :]))
        length = None if self.length is None else self.length + len(new)
        fresh = Region.of(None, new, place, place)
        return replace(file, regions=_with_loose(_nonempty(file.regions), fresh), length=length)

    def _unplaced(
        self,
        old: str,
        new: str,
        place: int,
        *,
        places: Sequence[tuple[int, int]] = (),
        whole_lines: bool = False,
    ) -> "FileText":
        """An edit somewhere in the file: what it may have removed is no longer shown, and what it wrote stands without
        a number. Of a text that is no run of whole lines the first and the last line may be parts of lines."""
        before, after = old.split("\n"), new.split("\n") if new or not whole_lines else []
        gone = {line.strip() for line in before if is_telling(line)} - {line.strip() for line in after}
        regions = list[Region]()
        for at, region in enumerate(self._parts()):
            spans = [line for index, line in places if index == at] if whole_lines else _lines_with(region, old)
            for part in region.without_spans(spans, len(before)):
                rest = uncut_lines(part, before) if whole_lines else uncut(part, old, new)
                regions += rest.without({line for line in rest.lines if line.strip() in gone})
        moved = len(before) != len(after)
        if moved:
            regions = [region.unnumbered() for region in regions]
        written = after if whole_lines else after[1:-1]
        if len(written) > 1:
            regions = list(_with_loose(regions, Region.of(None, written, place, place)))
        return replace(self, regions=in_order(regions), length=None if moved else self.length)


def lines_of(text: str) -> list[str]:
    """The lines of a text; a line break at its end begins no further line, and one of Windows is as any other."""
    lines = plain_breaks(text).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def plain_breaks(text: str) -> str:
    """A text with the line breaks of Windows as others: tools show and take them either way."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def _is_begun(lines: Sequence[str], old: int, new: Sequence[str]) -> bool:
    """Whether known lines are the first of the new ones, and more than there were old ones: the edit is known."""
    return old < len(lines) < len(new) and tuple(lines) == tuple(new[: len(lines)])


def _nonempty(regions: Iterable[Region]) -> tuple[Region, ...]:
    return tuple(region for region in regions if region.lines)


def _replaced(region: Region, old: str, new: str, place: int, *, doubted: bool) -> Region:
    """The region with a text replaced wherever it stands. A line in doubt of which a part is left stays in doubt."""
    text = "\n".join(region.lines)
    at = text.find(old)
    while at >= 0:
        begin = text.count("\n", 0, at)
        head = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at + len(old))
        end = len(text) if end < 0 else end
        lines = (text[head:at] + new + text[at + len(old) : end]).split("\n")
        partly = doubted and (head < at or at + len(old) < end)
        region = region.spliced(begin, text.count("\n", head, end) + 1, lines, region.seen[begin] if partly else place)
        text = text[:at] + new + text[at + len(old) :]
        at = text.find(old, at + len(new))
    return region


def _lines_with(region: Region, text: str) -> list[int]:
    """The indexes of the lines in which a text begins."""
    whole, found = "\n".join(region.lines), list[int]()
    at = whole.find(text)
    while at >= 0:
        found.append(whole.count("\n", 0, at))
        at = whole.find(text, at + 1)
    return found


def _is_open_above(region: Region, text: str) -> bool:
    """Whether a text stands so near to the top of a region that it may begin above it as well."""
    return region.start != 1 and any(line < text.count("\n") for line in _lines_with(region, text))


def _overlaps_itself(text: str) -> bool:
    """Whether a text of several lines can stand in itself: then its places depend on where the first of them is."""
    return "\n" in text and any(text.endswith(text[:count]) for count in range(1, len(text)))


def _places(regions: Sequence[Region], old: Sequence[str]) -> list[tuple[int, int]]:
    """Where whole lines stand, as region and line: as they are, else with other space at their ends, else at their
    beginnings too."""
    for tidy in (None, str.rstrip, str.strip):
        sought = list(old) if tidy is None else [tidy(line) for line in old]
        found = list[tuple[int, int]]()
        for index, region in enumerate(regions):
            view = region if tidy is None else replace(region, lines=tuple([tidy(line) for line in region.lines]))
            found += [(index, line) for line in view.places(sought)]
        if found:
            return found
    return []


def _with_loose(regions: Sequence[Region], fresh: Region) -> tuple[Region, ...]:
    """The regions and one more without a number, unless its lines stand in a row already."""
    if any(region.holds(fresh.lines) for region in regions):
        return tuple(regions)
    kept = [region for region in regions if region.start is not None or not fresh.holds(region.lines)]
    return (*kept, fresh)
