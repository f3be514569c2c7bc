"""Sets up telemetry from the settings: the trace and its spans, the live view, and the dashboard of a proxy."""

import atexit
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pagefold import config
from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.protection import protection_of
from pagefold.errors import ConfigError, StoreError
from pagefold.loopback import is_loopback
from pagefold.settings.sections import Settings
from pagefold.telemetry import trace
from pagefold.telemetry.events import CALL, CallEvent, TraceEvent, tool_name
from pagefold.telemetry.live import LiveView, status_rows
from pagefold.telemetry.spans import spans_to
from pagefold.tools.defaults import default_tool_value_models

if TYPE_CHECKING:  # imported in functions, because only some commands need them
    from pagefold.dashboard.app import Dashboard
    from pagefold.dashboard.store_view import StoreView
    from pagefold.model_proxy.proxy import Proxy
    from pagefold.telemetry import metrics

_NEWEST_BYTES = 8_000_000
_LENGTHS = 10_000


def store_path(settings: Settings) -> Path | None:
    """Returns the store's file, or None if no path is set and there is no user data directory."""
    try:
        return config.store_path(settings)
    except ConfigError:
        return None


def store_place(settings: Settings) -> str | Path | None:
    """Returns where the store is, or None if none is set and there is no user data directory."""
    return config.store_place(settings) if settings.store.url else store_path(settings)


def dashboard_key(settings: Settings) -> str:
    """Returns the key that the dashboard asks for: the proxy's token, or else the key beside the store, or one for this
    process alone where that cannot be kept."""
    from pagefold.dashboard.auth import key_in

    path = store_path(settings)
    if settings.serve.token.strip() or path is None:
        return settings.serve.token.strip() or secrets.token_urlsafe(24)
    try:
        return key_in(LocalFiles(path).dashboard_key)
    except StoreError:
        return secrets.token_urlsafe(24)


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
    from pagefold.cli.proxy_metrics import of_proxy
    from pagefold.model_proxy.turn_recorder import TurnRecorder
    from pagefold.telemetry import metrics

    def samples() -> Iterator[metrics.Sample]:
        yield from metrics.of_model_proxy(asdict(proxy.totals))
        yield from of_proxy(proxy)

    telemetry = telemetry_of(settings, samples, proxy.catch_up)
    if telemetry.see is not None:
        proxy.recorder = TurnRecorder(telemetry.see, spelled=settings.telemetry.content)
    proxy.dashboard = telemetry.dashboard
    live = telemetry.live
    if live is not None:

        async def sessions() -> str:
            proxy.catch_up()
            return json.dumps(status_rows(live))

        proxy.sessions = sessions
    return telemetry.key


class Telemetry(NamedTuple):
    """Where events go, or None if nobody wants them; the dashboard, if there is one, its key, and what it shows."""

    see: Callable[[TraceEvent], None] | None
    dashboard: "Dashboard | None" = None
    key: str = ""
    live: LiveView | None = None


def telemetry_of(
    settings: Settings,
    samples: Callable[[], Iterable["metrics.Sample"]],
    catch_up: Callable[[], None],
    notes: Callable[[], Iterable[str]] = tuple,
) -> Telemetry:
    """Trace, spans and dashboard as the settings say. `samples` are further metrics, `catch_up` is called before
    anything is shown, `notes` are further sentences for the top of the page."""
    from pagefold.dashboard.app import Dashboard
    from pagefold.dashboard.auth import DashboardAuth
    from pagefold.dashboard.overview import status_of
    from pagefold.telemetry import metrics

    writer = trace_writer(settings)
    if not settings.telemetry.dashboard:
        return Telemetry(writer.see if writer else None)
    live = LiveView()

    def see(event: TraceEvent) -> None:
        live.see(event)
        if writer is not None:
            writer.see(event)

    path, key = store_path(settings), dashboard_key(settings)
    others = TraceFollower(LocalFiles(path).trace, live, only=CALL) if path and settings.telemetry.trace else None

    def refresh() -> None:
        catch_up()
        if others is not None:
            others()

    counts: Mapping[str, int] = writer.counts if writer else {}

    def shown() -> Iterator[str]:
        yield from notes()
        if settings.serve.trial and path is not None:
            yield _trial_so_far(path)
        if words := status_of(counts):
            yield words

    auth = DashboardAuth(key, local=is_loopback(settings.serve.host))
    dashboard = Dashboard(
        live,
        store_view_of(settings),
        auth,
        samples=lambda: (*samples(), *metrics.of_trace(counts)),
        notes=shown,
        refresh=refresh,
    )
    return Telemetry(live.see if writer is None else see, dashboard, key, live)


def _trial_so_far(store: Path) -> str:
    """What the sessions of a trial show by now, in a sentence."""
    from pagefold.adapters.sqlite import session_rows
    from pagefold.analysis.trial import compared

    try:
        return f"Trial so far: {compared(session_rows.read(LocalFiles(store).counters)).verdict}"
    except StoreError as error:
        return f"The trial cannot be shown: {error}"


def store_view_of(settings: Settings) -> "StoreView":
    from pagefold.adapters.library import Library
    from pagefold.dashboard.store_view import StoreView

    path, place = store_path(settings), store_place(settings)

    def opened() -> Library | None:
        if place is None or (isinstance(place, Path) and not place.exists()):
            return None
        return Library.open(
            place, settings.sink, sending=False, protection=protection_of(settings.store, settings.sink)
        )

    return StoreView(opened, LocalFiles(path).counters if path else None)
