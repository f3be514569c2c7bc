"""Reads the metrics of a running proxy and says in sentences how it is: for somebody who has no Prometheus.

A sentence has a remedy where something has to be done. What was counted stays counted until the proxy ends, so faults
of the past are told too, and say so.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pagefold.number_format import several

_LINE = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'[a-z_]+="((?:[^"\\]|\\.)*)"')
_MEGABYTE = 1 << 20
_SLOW_SECONDS = 0.1
_BUSY_SHARE = 0.9
_FAILING_SHARE = 0.5


class HealthLine(NamedTuple):
    """What is so, and what to do about it, "" where nothing."""

    text: str
    remedy: str = ""


def parsed(text: str) -> dict[str, dict[str, float]]:
    """Values by name, and by their labels' values joined with commas. Lines that are no sample are skipped."""
    values: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match is not None:
            labels = ",".join(_LABEL.findall(match["labels"] or ""))
            values.setdefault(match["name"], {})[labels] = float(match["value"])
    return values


def health_lines(metrics: Mapping[str, Mapping[str, float]]) -> Iterator[HealthLine]:
    """How the proxy is, by its metrics."""

    def value(name: str, labels: str = "") -> float:
        return metrics.get(name, {}).get(labels, 0.0)

    asked, failed = value("pagefold_requests_total"), sum(metrics.get("pagefold_requests_failed_total", {}).values())
    workers = f" by {value('pagefold_workers'):.0f} workers" if "pagefold_workers" in metrics else ""
    often = failed and failed >= _FAILING_SHARE * asked
    yield HealthLine(
        f"{several(round(asked), 'request')} passed{workers}, {failed:,.0f} of them failed",
        "see whether its upstreams are reached and take the key; it writes to stderr why one gave no answer"
        if often
        else "",
    )
    if again := value("pagefold_worker_restarts_total"):
        yield HealthLine(f"workers ended {again:,.0f} times and were started again", "look at what it wrote to stderr")
    if faults := value("pagefold_own_faults_total", "model"):
        yield HealthLine(
            f"{faults:,.0f} faults of pagefold itself; those requests went on as they came",
            "report what it wrote to stderr",
        )
    yield from _store(metrics)
    queued, waits = value("pagefold_added_seconds_sum", "queue"), value("pagefold_added_seconds_count", "queue")
    if waits:
        mean = queued / waits
        remedy = "serve with more workers (--workers)" if mean > _SLOW_SECONDS else ""
        yield HealthLine(f"work waits {1000 * mean:,.1f} ms in its queue on average", remedy)
    memory, used = value("pagefold_memory_bytes"), value("pagefold_histories_bytes", "used")
    most, count = value("pagefold_histories_bytes", "most"), value("pagefold_histories")
    yield HealthLine(
        f"{memory / _MEGABYTE:,.0f} MB of memory; {count:,.0f} histories are remembered in "
        f"{used / _MEGABYTE:,.0f} of {most / _MEGABYTE:,.0f} MB"
    )
    if value("pagefold_connections", "open") > _BUSY_SHARE * value("pagefold_connections", "most"):
        yield HealthLine("nearly as many clients are connected as may be", "raise the limit of open files (ulimit -n)")
    for why, times in metrics.get("pagefold_refused_total", {}).items():
        yield HealthLine(f"{times:,.0f} clients were turned away ({why})")
    if value("pagefold_draining"):
        yield HealthLine("it is about to end and takes no new requests")


def _store(metrics: Mapping[str, Mapping[str, float]]) -> Iterator[HealthLine]:
    errors = metrics.get("pagefold_store_errors_total", {})
    kinds = ", ".join(f"{kind} {times:,.0f}" for kind, times in errors.items() if times)
    unsaved = metrics.get("pagefold_unsaved", {})
    if metrics.get("pagefold_store_out", {}).get(""):
        waits = ", ".join(f"{count:,.0f} {what}" for what, count in unsaved.items() if count) or "nothing"
        yield HealthLine(
            f"it goes on without its store ({kinds or 'no reason is known'}); {waits} wait for it",
            "see why store.path cannot be used: its disk, its rights, or who locks it",
        )
    elif kinds:
        mended = metrics.get("pagefold_store_mended_total", {}).get("", 0.0)
        yield HealthLine(f"the store works; it has failed before ({kinds}) and was opened anew {mended:,.0f} times")
    else:
        yield HealthLine("the store works and has not failed")
    if lost := metrics.get("pagefold_store_lost_pages_total", {}).get(""):
        yield HealthLine(f"{lost:,.0f} stored pages were lost with a file that was taken away", "restore a backup")
    if backlog := metrics.get("pagefold_sink_backlog", {}).get("pages"):
        yield HealthLine(f"{backlog:,.0f} pages have not reached the history sink yet")
