"""Which beginnings of strings deserve a name: URLs that share their first half, ids that come again and again."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pagefold.encode.notation.scalar import is_clear

_LEAST = 12
_SHORT = 8  # what comes often enough deserves a name even if it is short
_OFTEN = 8
_MOST = 8
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_NAME = 6  # characters that a definition costs besides what it says
_USE = 3  # characters that a use costs


@dataclass(slots=True, eq=False)
class _Prefix:
    """A beginning that strings share. `left` of them no longer name covers yet, and `covered` signs of it a shorter."""

    text: str
    left: int
    covered: int = _USE
    picked: bool = False
    above: "_Prefix | None" = None
    below: list["_Prefix"] = field(default_factory=list)

    def gain(self) -> int:
        return self.left * (len(self.text) - self.covered)


class PrefixNames:
    """Names for beginnings worth one: `letters` says which, the longest first."""

    def __init__(self, strings: Mapping[str, int]) -> None:
        names = _picked(strings)
        longest = sorted(names, key=lambda name: (-len(name), name))
        self.letters = dict(zip(longest, _LETTERS, strict=False))
        self._ordered: list[str] = []
        self._shorter: dict[str, str] = {}
        for name in sorted(names):
            self._shorter[name] = self.beginning(name)
            self._ordered.append(name)

    def beginning(self, string: str) -> str:
        """The longest name that a string begins with, or the empty string."""
        if len(string) < _SHORT:
            return ""
        at = bisect_right(self._ordered, string)
        # Whatever name it begins with, the last one before it in the alphabet begins with that too.
        name = self._ordered[at - 1] if at else ""
        while not string.startswith(name):
            name = self._shorter[name]
        return name


def _picked(strings: Mapping[str, int]) -> list[str]:
    """The beginnings that save most, one after the other: each takes from those that share its strings."""
    gains = {beginning: beginning.gain() for beginning in _linked(*_beginnings(strings))}
    picked: list[str] = []
    while gains and len(picked) < len(_LETTERS):
        most = max(gains.values())
        best = max([one for one, gain in gains.items() if gain == most], key=lambda one: one.text)
        if most <= len(best.text) + _NAME:
            break
        picked.append(best.text)
        del gains[best]
        for other in _pick(best):
            gains[other] = other.gain()
    return picked


def _beginnings(strings: Mapping[str, int]) -> tuple[dict[str, int], dict[str, str]]:
    """How often strings have each beginning, and the next shorter one of each.

    A beginning ends before a slash, or is a whole string that comes again or that others go on from.
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
        if count > 1 and len(string) >= (_SHORT if count >= _OFTEN else _LEAST):
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
    """Where the last slash stands that is looked at."""
    end, at = 0, string.find("/", _LEAST)
    for _ in range(_MOST):
        if at > 0:
            end, at = at, string.find("/", at + 1)
    return end


def _linked(times: Mapping[str, int], above: Mapping[str, str]) -> Iterable[_Prefix]:
    """The beginnings that pay, each below the next shorter one. Names only take from each other: no other will."""
    found = {
        text: _Prefix(text, count)
        for text, count in times.items()
        if count * (len(text) - _USE) > len(text) + _NAME and is_clear(text)
    }
    for text, beginning in found.items():
        shorter = above[text]
        while shorter and shorter not in found:
            shorter = above[shorter]
        if shorter:
            beginning.above = found[shorter]
            found[shorter].below.append(beginning)
    return found.values()


def _pick(best: _Prefix) -> list[_Prefix]:
    """Those that save less once this one has a name: it covers all of its strings for shorter ones, most for longer."""
    best.picked = True
    changed: list[_Prefix] = []
    above = best.above
    while above is not None and not above.picked:
        above.left -= best.left
        changed.append(above)
        above = above.above
    below = list(best.below)
    while below:
        one = below.pop()
        if not one.picked:
            one.covered = len(best.text)
            changed.append(one)
            below += one.below
    return changed
