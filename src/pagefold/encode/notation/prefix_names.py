"""Chooses prefixes of strings that get a one-letter name: URLs with the same first half, ids that recur."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pagefold.encode.notation.scalar import is_clear

_LEAST = 16  # characters of a prefix: shorter words save no tokens
_MOST = 8
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_NAME = 6  # characters that a definition costs besides what it says
_USE = 3  # characters that a use costs


@dataclass(slots=True, eq=False)
class _Prefix:
    """A prefix of `left` strings that no longer name covers; `covered` characters of it a shorter name covers."""

    text: str
    left: int
    covered: int = _USE
    picked: bool = False
    above: "_Prefix | None" = None
    below: list["_Prefix"] = field(default_factory=list)

    def gain(self) -> int:
        return self.left * (len(self.text) - self.covered)


class PrefixNames:
    """Names for the prefixes that are worth one: `letters` maps prefixes to letters, the longest first."""

    def __init__(self, strings: Mapping[str, int]) -> None:
        names = _picked(strings)
        longest = sorted(names, key=lambda name: (-len(name), name))
        self.letters = dict(zip(longest, _LETTERS, strict=False))
        self._ordered: list[str] = []
        self._shorter: dict[str, str] = {}
        for name in sorted(names):
            self._shorter[name] = self.prefix_of(name)
            self._ordered.append(name)

    def prefix_of(self, string: str) -> str:
        """Returns the longest named prefix of a string, or the empty string."""
        if len(string) < _LEAST:
            return ""
        at = bisect_right(self._ordered, string)
        # Every named prefix of the string is also a prefix of the last name before it in the alphabet.
        name = self._ordered[at - 1] if at else ""
        while not string.startswith(name):
            name = self._shorter[name]
        return name


def _picked(strings: Mapping[str, int]) -> list[str]:
    """Picks the prefix that saves most, again and again; each pick lowers the gain of those that share its strings."""
    gains = {prefix: prefix.gain() for prefix in _linked(*_prefixes(strings))}
    picked: list[str] = []
    while gains and len(picked) < len(_LETTERS):
        most = max(gains.values())
        best = max([prefix for prefix, gain in gains.items() if gain == most], key=lambda prefix: prefix.text)
        if most <= len(best.text) + _NAME:
            break
        picked.append(best.text)
        del gains[best]
        for other in _pick(best):
            gains[other] = other.gain()
    return picked


def _prefixes(strings: Mapping[str, int]) -> tuple[dict[str, int], dict[str, str]]:
    """Counts how many strings have each prefix, and finds the next shorter prefix of each.

    A prefix ends before a slash, or is a whole string that recurs or that others begin with.
    """
    times: dict[str, int] = {}
    above: dict[str, str] = {}
    for string, count in strings.items():
        end = string.rfind("/", _LEAST)
        if end > 0 and string.count("/", _LEAST) > _MOST:
            end = _cut(string)
        stem = string[:end] if end > 0 else ""
        if stem:
            times[stem] = times.get(stem, 0) + count
        if count > 1 and len(string) >= _LEAST:
            above[string] = stem
    for stem in list(times):
        longer = stem
        while longer and longer not in above:
            shorter = longer[: max(0, longer.rfind("/", _LEAST))]
            above[longer], longer = shorter, shorter
    for longer in sorted(above, key=len, reverse=True):
        if (shorter := above[longer]) and longer in times:
            times[shorter] = times.get(shorter, 0) + times[longer]
    for string in above:
        if string in strings:
            times[string] = times.get(string, 0) + strings[string]
    return times, above


def _cut(string: str) -> int:
    """Returns where the last slash stands that is considered."""
    end, at = 0, string.find("/", _LEAST)
    for _ in range(_MOST):
        if at > 0:
            end, at = at, string.find("/", at + 1)
    return end


def _linked(times: Mapping[str, int], above: Mapping[str, str]) -> Iterable[_Prefix]:
    """Returns the prefixes that pay, each linked to the next shorter one. Picks lower gains, so no other ever pays."""
    paying = {
        text: _Prefix(text, count)
        for text, count in times.items()
        if count * (len(text) - _USE) > len(text) + _NAME and is_clear(text)
    }
    for text, prefix in paying.items():
        shorter = above[text]
        while shorter and shorter not in paying:
            shorter = above[shorter]
        if shorter:
            prefix.above = paying[shorter]
            paying[shorter].below.append(prefix)
    return paying.values()


def _pick(best: _Prefix) -> list[_Prefix]:
    """Marks a prefix as picked, and returns those that save less now: shorter ones lose its strings, longer ones
    the characters it covers."""
    best.picked = True
    changed: list[_Prefix] = []
    above = best.above
    while above is not None and not above.picked:
        above.left -= best.left
        changed.append(above)
        above = above.above
    below = list(best.below)
    while below:
        longer = below.pop()
        if not longer.picked:
            longer.covered = len(best.text)
            changed.append(longer)
            below += longer.below
    return changed
