"""Sets up telemetry from the settings: the trace and its spans, the live view, and the dashboard of a proxy."""

import atexit
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pagefold import config
from pagefold.adapters.local_files import LocalFiles
from pagefold.errors import ConfigError
from pagefold.loopback import is_loopback
from pagefold.settings.sections import Settings
from pagefold.telemetry import trace
from pagefold.telemetry.events import CALL, CallEvent, TraceEvent, tool_name
from pagefold.telemetry.live import LiveView
from pagefold.telemetry.spans import spans_to
from pagefold.tools.defaults import default_tool_value_models

if TYPE_CHECKING:  # imported in functions, because only some commands need them
    from pagefold.dashboard.store_view import StoreView
    from pagefold.model_proxy.proxy import Proxy

_NEWEST_BYTES = 8_000_000
_LENGTHS = 10_000


def store_path(settings: Settings) -> Path | None:
    """Returns the store's file, or None if no path is set and there is no user data directory."""
    try:
        return config.store_path(settings)
    except ConfigError:
        return None


def dashboard_key(settings: Settings) -> str:
    """Returns the key that the dashboard asks for: the proxy's token, or else the key beside the store."""
    from pagefold.dashboard.auth import key_in

    path = store_path(settings)
    return settings.serve.token.strip() or (
        key_in(LocalFiles(path).dashboard_key) if path else secrets.token_urlsafe(24)
    )


def trace_writer(settings: Settings) -> trace.TraceWriter | None:
    """Returns a writer of the trace and of spans, or None if the settings ask for neither. Raises ConfigError."""
    telemetry, path = settings.telemetry, store_path(settings)
    spans = spans_to(telemetry.otel_endpoint)
    if not spans and not (telemetry.trace and path):
        return None
    from pagefold.cli import output

    file = LocalFiles(path).trace if telemetry.trace and path else None
    writer = trace.TraceWriter(
        file, max_bytes=telemetry.max_bytes, also=spans, report=lambda line: output.to_stderr(f"pagefold: {line}")
    )
    atexit.register(writer.close)
    return writer


def call_recorder(settings: Settings, session: str) -> Callable[[str, Mapping[str, int]], None] | None:
    """Returns a function that writes a tool call of an MCP proxy to the trace, or None without a trace."""
    writer, known = trace_writer(settings), frozenset(default_tool_value_models())
    if writer is None:
        return None
    see = writer.see

    def watch(tool: str, counts: Mapping[str, int]) -> None:
        name = tool_name(tool, known, spelled=settings.telemetry.content)
        before, after = counts.get("tokens before", 0), counts.get("tokens after", 0)
        see(CallEvent(at=time.time(), session=session, tool=name, before=before, after=after))

    return watch


class TraceFollower:
    """Adds what is new in the trace to a live view, each time it is called. With `only`, lines without it are skipped:
    the view gets those events in another way."""

    def __init__(self, path: Path, live: LiveView, only: bytes = b"") -> None:
        self._reader, self._live = trace.TraceReader(path, most_bytes=_NEWEST_BYTES, only=only), live

    def __call__(self) -> None:
        for event in self._reader.read():
            self._live.see(event)

    def notes(self) -> Iterator[str]:
        if self._reader.damaged:
            yield f"{self._reader.damaged:,} lines of the trace are damaged and were left out."


def session_lengths(settings: Settings) -> list[int]:
    """Returns the number of turns of each session in the trace; nothing if there is no trace."""
    path = store_path(settings)
    if path is None or not LocalFiles(path).trace.exists():
        return []
    live = LiveView(most=_LENGTHS)
    TraceFollower(LocalFiles(path).trace, live)()
    return [session.turns for session in live.newest() if session.turns]


def attach(proxy: "Proxy", settings: Settings) -> str:
    """Connects a model proxy to trace, spans and dashboard, as the settings say. Returns the dashboard's key, or ''."""
    from pagefold.dashboard.app import Dashboard
    from pagefold.dashboard.auth import DashboardAuth
    from pagefold.dashboard.overview import status_of
    from pagefold.model_proxy.turn_recorder import TurnRecorder
    from pagefold.telemetry import metrics

    writer, telemetry = trace_writer(settings), settings.telemetry
    if not telemetry.dashboard:
        if writer is not None:
            proxy.recorder = TurnRecorder(writer.see, spelled=telemetry.content)
        return ""
    live = LiveView()

    def see(event: TraceEvent) -> None:
        live.see(event)
        if writer is not None:
            writer.see(event)

    proxy.recorder = TurnRecorder(live.see if writer is None else see, spelled=telemetry.content)
    path, key = store_path(settings), dashboard_key(settings)
    others = TraceFollower(LocalFiles(path).trace, live, only=CALL) if path and telemetry.trace else None

    def refresh() -> None:
        proxy.catch_up()
        if others is not None:
            others()

    counts: Mapping[str, int] = writer.counts if writer else {}

    def samples() -> Iterator[metrics.Sample]:
        yield from metrics.of_model_proxy(asdict(proxy.totals))
        yield from metrics.of_trace(counts)

    def notes() -> Iterator[str]:
        if words := status_of(counts):
            yield words

    auth, shown = DashboardAuth(key, local=is_loopback(settings.serve.host)), store_view_of(settings)
    proxy.dashboard = Dashboard(live, shown, auth, samples=samples, notes=notes, refresh=refresh)
    return key


def store_view_of(settings: Settings) -> "StoreView":
    from pagefold.adapters.library import Library
    from pagefold.dashboard.store_view import StoreView

    path = store_path(settings)

    def opened() -> Library | None:
        return Library.open(path, settings.sink, sending=False) if path and path.exists() else None

    return StoreView(opened, LocalFiles(path).counters if path else None)
