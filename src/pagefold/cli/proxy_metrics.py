"""Metrics by which a model proxy is watched: the time it adds, its store, its limits and its memory."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pagefold.telemetry.metrics import Sample, of_times

if TYPE_CHECKING:
    from pagefold.model_proxy.proxy import Proxy


def of_proxy(proxy: "Proxy") -> Iterator[Sample]:
    readiness = proxy.readiness
    store, limits = readiness.store(), readiness.limits
    yield from of_times("pagefold_added_seconds", readiness.times)
    yield from of_times("pagefold_store_seconds", {"": store.times})
    for kind, count in store.errors.items():
        yield Sample("pagefold_store_errors_total", count, (("kind", kind),))
    yield Sample("pagefold_store_out", int(bool(store.out)))
    yield Sample("pagefold_store_mended_total", store.mended)
    yield Sample("pagefold_store_lost_pages_total", store.lost_pages)
    yield Sample("pagefold_unsaved", store.unsaved_notes, (("what", "notes"),))
    yield Sample("pagefold_unsaved", proxy.saving.waiting, (("what", "histories"),))
    yield Sample("pagefold_connections", limits.open, (("what", "open"),))
    yield Sample("pagefold_connections", limits.connections, (("what", "most"),))
    for why, count in limits.refused.items():
        yield Sample("pagefold_refused_total", count, (("why", why),))
    memory = proxy.conversations.memory
    yield Sample("pagefold_histories", len(memory))
    yield Sample("pagefold_histories_bytes", memory.used, (("what", "used"),))
    yield Sample("pagefold_histories_bytes", memory.most, (("what", "most"),))
    yield Sample("pagefold_draining", int(readiness.draining))
    if resident := _memory():
        yield Sample("pagefold_memory_bytes", resident)


def _memory() -> int:
    """The resident memory of this process; 0 where the system does not tell it so."""
    if sys.platform != "linux":
        return 0
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096
