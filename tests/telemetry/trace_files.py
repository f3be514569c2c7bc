"""Reads whole traces, for tests of those who write them."""

from pathlib import Path

from pagefold.telemetry.events import TraceEvent
from pagefold.telemetry.trace import TraceReader, older


def read(path: Path) -> tuple[list[TraceEvent], int]:
    """Returns all events of a trace, those of the older file first, and how many lines were damaged."""
    events: list[TraceEvent] = []
    damaged = 0
    for file in (older(path), path):
        reader = TraceReader(file)
        events += reader.read()
        damaged += reader.damaged
    return events, damaged
