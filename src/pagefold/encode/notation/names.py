"""Which beginnings of strings deserve a name: URLs that share their first half, ids that come again and again."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from pagefold.encode.notation.scalar import is_clear

_LEAST = 12
_SHORT = 8  # what comes often enough deserves a name even if it is short
_OFTEN = 8
_MOST = 8
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_NAME = 6  # characters that a definition costs besides what it says
_USE = 3  # characters that a use costs


def chosen(strings: Mapping[str, int]) -> dict[str, str]:
    """Names for beginnings worth one, the longest first: of two that fit a string, the longer says more."""
    # Only strings that begin like another, or come again, can share anything.
    heads: Counter[str] = Counter()
    for string, count in strings.items():
        if len(string) >= _SHORT:
            heads[string[:_LEAST]] += count
    beginnings = {
        string: _cuts(string, count)
        for string, count in strings.items()
        if len(string) >= _SHORT and heads[string[:_LEAST]] > 1
    }
    times: Counter[str] = Counter()
    for string, cuts in beginnings.items():
        for cut in cuts:
            times[cut] += strings[string]
    # Names only take from each other, so what does not pay at first never will.
    gains = {
        cut: count * (len(cut) - _USE)
        for cut, count in times.items()
        if count * (len(cut) - _USE) > len(cut) + _NAME and is_clear(cut)
    }
    under: dict[str, list[str]] = defaultdict(list)
    for string, cuts in beginnings.items():
        for cut in cuts:
            if cut in gains:
                under[cut].append(string)
    covered = dict.fromkeys(beginnings, 0)
    picked: list[str] = []
    while gains and len(picked) < len(_LETTERS):
        most = max(gains.values())
        best = max(cut for cut, gain in gains.items() if gain == most)
        if gains.pop(best) <= len(best) + _NAME:
            break
        picked.append(best)
        for string in under[best]:
            was = covered[string]
            if len(best) > was:
                covered[string] = len(best)
                _lower(gains, beginnings[string], was, len(best), strings[string])
    ordered = sorted(picked, key=lambda name: (-len(name), name))
    return {name: _LETTERS[index] for index, name in enumerate(ordered)}


def _cuts(string: str, times: int) -> list[str]:
    """The beginnings of a string that others may share, itself included."""
    if len(string) < _LEAST and times < _OFTEN:
        return []
    found = [string]
    at = string.find("/", _LEAST)
    while at > 0 and len(found) <= _MOST:
        found.append(string[:at])
        at = string.find("/", at + 1)
    return found


def _lower(gains: dict[str, int], cuts: list[str], was: int, now: int, times: int) -> None:
    """A string is covered up to `now` instead of `was`: other names save less on it."""
    for cut in cuts:
        if cut in gains:
            gains[cut] -= times * (max(0, len(cut) - (was or _USE)) - max(0, len(cut) - now))
