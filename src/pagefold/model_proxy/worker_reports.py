"""What workers have counted, added up: the counts of those that ended stay in the sums."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pagefold.model_proxy.totals import Totals
from pagefold.telemetry.events import TraceEvent
from pagefold.telemetry.metrics import METRICS, Sample


class WorkerReport(NamedTuple):
    """All that a worker has counted so far, and the events since its last report."""

    totals: Totals = Totals()
    samples: tuple[Sample, ...] = ()
    events: tuple[TraceEvent, ...] = ()


class WorkerReports:
    """The newest report of every worker, by the number of the process: one that was started again is another."""

    def __init__(self) -> None:
        self._newest: dict[int, WorkerReport] = {}
        self._past = WorkerReport()

    def add(self, process: int, report: WorkerReport) -> None:
        self._newest[process] = report

    def end(self, process: int) -> None:
        """A worker has ended: what it has counted stays, what it had at the time does not."""
        report = self._newest.pop(process, None)
        if report is not None:
            kept = (sample for sample in report.samples if METRICS[sample.name][0] != "gauge")
            self._past = WorkerReport(self._past.totals + report.totals, tuple(summed((*self._past.samples, *kept))))

    @property
    def totals(self) -> Totals:
        totals = self._past.totals
        for report in list(self._newest.values()):
            totals += report.totals
        return totals

    def samples(self) -> Iterator[Sample]:
        return summed(sample for report in (self._past, *list(self._newest.values())) for sample in report.samples)


def summed(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yields one sample for each name and labels, in the order in which they come first."""
    sums: dict[tuple[str, tuple[tuple[str, str], ...], str], float] = {}
    for sample in samples:
        key = (sample.name, sample.labels, sample.ending)
        sums[key] = sums.get(key, 0) + sample.value
    return (Sample(name, value, labels, ending) for (name, labels, ending), value in sums.items())
