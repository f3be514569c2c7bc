"""Lines of one passage as a digest quotes them: with their numbers, list values by column, gaps marked."""

from collections.abc import Iterator, Mapping, Sequence

from pagefold.derive.json_lines import value_of
from pagefold.derive.quotable import Line
from pagefold.derive.working_set.parts import LEFT_OUT

NO_ENDS: Mapping[int, int] = {}


def quoted(lines: Sequence[Line], ends: Mapping[int, int] = NO_ENDS) -> Iterator[str | None]:
    """The lines in order; a run is numbered at its first line, None stands for lines that were left out, and `LEFT_OUT`
    for a part of a line. `ends` has the last piece of the line at each place."""
    previous, piece_before = -1, 0
    pieces: list[str] = []
    for said, place, label, piece in lines:
        text = said.replace(LEFT_OUT, "")
        if place == previous:
            pieces.append(_further(text, label, follows=piece == piece_before + 1))
            piece_before = piece
            continue
        if pieces:
            yield _whole(pieces, goes_on=piece_before < ends.get(previous, 0))
        follows = place == previous + 1 and previous >= 0
        if not follows and place > 0:
            yield None
        begun = piece > 0 and not isinstance(label, str)
        pieces = [_first(f"{LEFT_OUT} {text}" if begun else text, label, follows=follows)]
        previous, piece_before = place, piece
    if pieces:
        yield _whole(pieces, goes_on=piece_before < ends.get(previous, 0))


def ends_of(lines: Sequence[Line]) -> dict[int, int]:
    """The last piece of each line that was cut into pieces, by its place."""
    return {place: piece for _, place, label, piece in lines if piece and not isinstance(label, str)}


def _whole(pieces: Sequence[str], *, goes_on: bool) -> str:
    return f"{''.join(pieces).rstrip()} {LEFT_OUT}" if goes_on else "".join(pieces)


def _first(text: str, label: int | str | None, *, follows: bool) -> str:
    """The beginning of a line: with the name of its column, or with its number where a run begins."""
    if isinstance(label, str):
        return f"{label}: {text}"
    return text if label is None or follows else f"{label}\t{text}"


def _further(text: str, column: int | str | None, *, follows: bool) -> str:
    """One more piece of a line. A value that follows the one before it in its column needs no place of its own."""
    if isinstance(column, str):
        return f" | {value_of(text)}" if follows else f" {text}"
    return text if follows else f" {LEFT_OUT} {text}"
