"""Names the small files of this machine that belong to a store and are no part of it: counts, trace, key, lock
and, where teams share it, their tokens."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files beside the store at `store`, named after it."""

    store: Path

    @property
    def counters(self) -> Path:
        return self._beside("counts.sqlite3")

    @property
    def access(self) -> Path:
        return self._beside("access.sqlite3")

    @property
    def trace(self) -> Path:
        return self._beside("trace.jsonl")

    @property
    def dashboard_key(self) -> Path:
        return self._beside("key")

    @property
    def model_proxy_lock(self) -> Path:
        return self._beside("serving")

    def _beside(self, ending: str) -> Path:
        return self.store.with_name(f"{self.store.stem}.{ending}")
