"""Texts so large that encoding or counting all of them takes longer than it is worth: which those are, what is tried on
a part of them, and how their tokens and those of their forms are counted or estimated."""

from collections.abc import Callable

from pagefold.tokens import counter

_MOST_CHARACTERS = 1_000_000
_MOST_LINES = 60_000
SAMPLED_ABOVE = 150_000  # characters; of a longer text a sample is tried first, and its tokens are estimated
_STRETCH, _STRETCHES = 8_000, 3
_SLICE, _EVERY = 2_000, 5  # one slice in five is counted
ESTIMATE_ERROR = 0.05
_MONOTONOUS_RUN = 4096  # of one character: counting its tokens takes too long
_RUN_CHECKED_ABOVE = 40_000  # characters; the tokens of shorter texts are counted fast enough even then
_TOO_MANY_LINES = 15_000  # lines that are not compared one by one


def why_unfit(text: str) -> str:
    """Returns why a text is not encoded and not even counted, or "": both would take longer than they are worth."""
    if len(text) > _MOST_CHARACTERS:
        return f"more than {_MOST_CHARACTERS:,} characters"
    if "\x00" in text:
        return "binary"
    if text.count("\n") > _MOST_LINES:
        return f"more than {_MOST_LINES:,} lines"
    return "one character over and over" if len(text) > _RUN_CHECKED_ABOVE and _is_monotonous(text) else ""


def _is_monotonous(text: str) -> bool:
    # Any run of _MONOTONOUS_RUN characters fully covers at least one aligned block of half that length, so checking
    # those blocks is enough.
    half = _MONOTONOUS_RUN // 2
    for start in range(0, len(text) - half + 1, half):
        sign = text[start]
        if (
            text.startswith(sign * half, start)
            and sign * _MONOTONOUS_RUN in text[max(0, start - half) : start + 2 * half]
        ):
            return True
    return False


def has_too_many_lines(text: str) -> bool:
    """Whether comparing the lines of a text one by one would take too long."""
    return len(text) > _TOO_MANY_LINES and text.count("\n") > _TOO_MANY_LINES


def estimate(count: Callable[[str], int], text: str) -> int:
    """Estimates the tokens of a large text from slices of it; counts other texts."""
    if len(text) <= SAMPLED_ABOVE:
        return count(text)
    slices = "\n".join(text[at : at + _SLICE] for at in range(0, len(text), _SLICE * _EVERY))
    return round(count(slices) * len(text) / len(slices))


class FormCounter:
    """Counts the tokens of a text, once, and of its forms; those of a large text are estimated."""

    def __init__(self, text: str, count: Callable[[str], int] | None) -> None:
        self._text, self._given = text, count
        self._count = count or counter("o200k").count
        self.before = estimate(self._count, text)

    def form(self, form: str) -> int:
        if form == self._text:
            return self.before
        header = form.removesuffix(self._text)
        if header != form and header.endswith("]\n") and self._given is None and len(self._text) <= SAMPLED_ABOVE:
            return counter("o200k").count_below(header, self._text, self.before)
        return estimate(self._count, form) if len(self._text) > SAMPLED_ABOVE else self._count(form)


def sample(text: str) -> str:
    """Returns some stretches of a large text, in whole lines, to try codecs on."""
    step = (len(text) - _STRETCH) // (_STRETCHES - 1)
    stretches = (text[at : at + _STRETCH] for at in range(0, len(text), step))
    return "\n".join(it[it.find("\n") + 1 : it.rfind("\n") + 1 or len(it)].rstrip("\n") for it in stretches)
