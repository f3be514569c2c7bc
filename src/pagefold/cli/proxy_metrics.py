"""Metrics by which a model proxy is watched: the time it adds, its store, its limits and its memory."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pagefold.adapters.process_memory import resident_bytes
from pagefold.telemetry.metrics import Sample, of_times

if TYPE_CHECKING:
    from pagefold.model_proxy.proxy import Proxy
    from pagefold.model_proxy.readiness import Readiness


def of_proxy(proxy: "Proxy") -> Iterator[Sample]:
    yield from of_times("pagefold_added_seconds", proxy.readiness.times)
    yield from of_process(proxy.readiness)
    yield Sample("pagefold_unsaved", proxy.saving.waiting, (("what", "histories"),))
    memory = proxy.conversations.memory
    yield Sample("pagefold_histories", len(memory))
    yield Sample("pagefold_histories_bytes", memory.used, (("what", "used"),))
    yield Sample("pagefold_histories_bytes", memory.most, (("what", "most"),))


def of_added_time(proxies: "Iterable[Proxy]") -> Iterator[Sample]:
    """The time that several proxies of one process add, all together."""
    sums: dict[tuple[tuple[tuple[str, str], ...], str], float] = {}
    for proxy in proxies:
        for sample in of_times("pagefold_added_seconds", proxy.readiness.times):
            sums[sample.labels, sample.ending] = sums.get((sample.labels, sample.ending), 0) + sample.value
    return (Sample("pagefold_added_seconds", value, *key) for key, value in sums.items())


def of_process(readiness: "Readiness") -> Iterator[Sample]:
    """What a process has once: its store, its connections and its memory."""
    store, limits = readiness.store(), readiness.limits
    yield from of_times("pagefold_store_seconds", {"": store.times})
    for kind, count in store.errors.items():
        yield Sample("pagefold_store_errors_total", count, (("kind", kind),))
    yield Sample("pagefold_store_out", int(bool(store.out)))
    yield Sample("pagefold_store_mended_total", store.mended)
    yield Sample("pagefold_store_lost_pages_total", store.lost_pages)
    yield Sample("pagefold_unsaved", store.unsaved_notes, (("what", "notes"),))
    yield Sample("pagefold_connections", limits.open, (("what", "open"),))
    yield Sample("pagefold_connections", limits.connections, (("what", "most"),))
    for why, count in limits.refused.items():
        yield Sample("pagefold_refused_total", count, (("why", why),))
    yield Sample("pagefold_draining", int(readiness.draining))
    if resident := resident_bytes():
        yield Sample("pagefold_memory_bytes", resident)
