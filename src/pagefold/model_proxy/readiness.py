"""Whether the proxy lives, whether it may be sent requests, and how it is: for balancers and for those who watch it.

Ready is a proxy that serves, store or not: without one requests go on too. One that is to end is not ready any more.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version

from pagefold.adapters.steady_store import StoreHealth
from pagefold.adapters.timings import Histogram
from pagefold.model_proxy.limited_http import ConnectionLimits
from pagefold.wire import json_text

PATHS = frozenset((b"/live", b"/ready", b"/pagefold/live", b"/pagefold/ready", b"/pagefold/health"))


@dataclass(slots=True)
class Readiness:
    """`store` tells how the store is. `asks_token` says that clients need one. Times are of what this proxy adds:
    `prepare` from the end of a request's body until it leaves, `queue` in front of the worker, `work` in it, and
    `first sight` for histories that this process had not seen."""

    limits: ConnectionLimits
    asks_token: bool = False
    store: Callable[[], StoreHealth] = StoreHealth
    draining: bool = False
    times: dict[str, Histogram] = field(
        default_factory=lambda: {step: Histogram() for step in ("prepare", "queue", "work", "first sight")}
    )

    def answer(self, path: bytes) -> tuple[int, bytes]:
        """Status and body for one of `PATHS`."""
        if path == b"/pagefold/health":
            return 200, b'{"status":"ok"}'
        if path.endswith(b"/live"):
            live = {"status": "live", "program": "pagefold", "version": version("pagefold"), "token": self.asks_token}
            return 200, json_text.bytes_of(json_text.dumps(live))
        store = self.store().out or "ok"
        status = "draining" if self.draining else "ready"
        return 503 if self.draining else 200, json_text.bytes_of(json_text.dumps({"status": status, "store": store}))
