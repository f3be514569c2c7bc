"""Says whether something slow or broken is worth asking now. Times come in as values."""

from dataclasses import dataclass

_QUICK = 0.02  # seconds of a call that nobody minds
_SHARE = 0.25  # of the time, what calls may wait beyond that
_PATIENCE = 4  # times the deadline: how much waiting is put up with at once


@dataclass(slots=True)
class Breaker:
    """Opens when a call failed or missed its deadline, or when calls together waited too long; closed by `close`.

    While it is open nobody asks; whoever owns it looks in the background whether it can be closed. `kind` is why it is
    open, "" where it is closed, and `since` the time at which that began.
    """

    deadline: float
    kind: str = ""
    since: float = 0.0
    _waited: float = 0.0
    _at: float = 0.0

    @property
    def is_open(self) -> bool:
        return bool(self.kind)

    def open(self, kind: str, now: float) -> bool:
        """Returns whether that is news: it was closed, or open for another reason."""
        news = kind != self.kind
        if not self.kind:
            self.since = now
        self.kind = kind
        return news

    def close(self, now: float) -> None:
        self.kind, self.since, self._waited, self._at = "", now, 0.0, now

    def took(self, seconds: float, now: float) -> bool:
        """Counts a call that succeeded. Returns whether calls have waited so long together that it opens."""
        self._waited = max(0.0, self._waited - _SHARE * (now - self._at)) + max(0.0, seconds - _QUICK)
        self._at = now
        return self._waited > _PATIENCE * self.deadline and self.open("slow", now)
