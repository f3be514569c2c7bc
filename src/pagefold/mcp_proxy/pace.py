"""How fast a server may write what nobody asked for, so that one that floods does not keep the others waiting."""

from dataclasses import dataclass

_A_SECOND = 500.0
_AT_ONCE = 100.0


@dataclass(slots=True)
class Pace:
    """`after` is told of every notification, and says for how many seconds its server is not read from. Nothing is
    dropped: a server that is not read from waits. Times come in as values."""

    a_second: float = _A_SECOND
    at_once: float = _AT_ONCE
    _left: float = _AT_ONCE
    _at: float = 0.0

    def after(self, now: float) -> float:
        self._left = min(self.at_once, self._left + self.a_second * (now - self._at)) - 1.0
        self._at = now
        return 0.0 if self._left > 0 else self.at_once / 2 / self.a_second
