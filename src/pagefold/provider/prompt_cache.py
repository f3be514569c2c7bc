"""The prompt cache: what of a prompt is read from it, what is written, and how long that lives. The clock is passed in.

Entries exist only where a breakpoint stood. Claude's cache looks from each breakpoint back over at most twenty blocks;
OpenAI's from GPT-5.6 on matches entries at any distance. Using an entry renews it. (prompt-caching of both providers.)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pagefold.frozen import frozen

LOOK_BACK = 20
LIVES = {"5m": 300.0, "1h": 3600.0, "30m": 1800.0}


@frozen
class CachedPrefix:
    """A prompt for the cache: the hash of everything up to each block, the tokens up to it, and where breakpoints are
    with the life that each asks for."""

    hashes: Sequence[bytes]
    totals: Sequence[int]
    breakpoints: Sequence[tuple[int, str]]


@frozen
class BilledPrompt:
    """How the tokens of one prompt were billed. `written` says by life what was written."""

    read: int
    written: dict[str, int]
    fresh: int

    @property
    def write(self) -> int:
        return sum(self.written.values())


@dataclass(slots=True)
class _Entry:
    expires: float
    life: float


class PromptCache:
    """All that is cached for one account. `shortest` prefixes are the model's, because hashes begin with its name."""

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}

    def use(self, prompt: CachedPrefix, now: float, *, shortest: int, look_back: int = LOOK_BACK) -> BilledPrompt:
        """Reads the longest entry that a breakpoint reaches, and writes one for every breakpoint behind it."""
        total = prompt.totals[-1] if prompt.totals else 0
        breakpoints = [(at, life) for at, life in prompt.breakpoints if prompt.totals[at] >= shortest]
        hit = self._longest(prompt, [at for at, _ in breakpoints], now, look_back)
        read = prompt.totals[hit] if hit >= 0 else 0
        for at, _ in breakpoints:
            if at <= hit:
                self._renew(prompt.hashes[at], now)
        if hit >= 0:
            self._renew(prompt.hashes[hit], now)
        written: dict[str, int] = {}
        upto = read
        for at, life in breakpoints:
            if at > hit:
                self._entries[prompt.hashes[at]] = _Entry(now + LIVES[life], LIVES[life])
                written[life] = written.get(life, 0) + prompt.totals[at] - upto
                upto = prompt.totals[at]
        return BilledPrompt(read, {life: tokens for life, tokens in written.items() if tokens}, total - upto)

    def _longest(self, prompt: CachedPrefix, breakpoints: Sequence[int], now: float, look_back: int) -> int:
        for at in reversed(breakpoints):
            for place in range(at, max(-1, at - look_back), -1):
                entry = self._entries.get(prompt.hashes[place])
                if entry is not None and now <= entry.expires:
                    return place
        return -1

    def _renew(self, key: bytes, now: float) -> None:
        entry = self._entries.get(key)
        if entry is not None and now <= entry.expires:
            entry.expires = max(entry.expires, now + entry.life)
