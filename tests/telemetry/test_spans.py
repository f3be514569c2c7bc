"""Spans: what they say, that nobody needs the library, and that a collector gets them."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from pagefold.errors import ConfigError
from pagefold.telemetry.events import CallEvent, TracedFault, TurnEvent
from pagefold.telemetry.spans import ATTRIBUTES, attributes_of, spans_by, spans_to

FAULTS = (TracedFault("refetch", "pf-a", "gone"),)
TURN = TurnEvent(at=12.0, session="a", model="claude", status=200, seconds=2.0, cache_read=5, faults=FAULTS)


def test_without_a_collector_there_are_no_spans_and_no_library_is_asked_for() -> None:
    assert spans_to("") is None


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ConfigError, match=r"telemetry\.otel_endpoint: .*pagefold\[otel\]"):
        spans_to("http://127.0.0.1:4318")


def test_attributes_are_figures_under_documented_names() -> None:
    assert attributes_of(TURN) == {
        "gen_ai.request.model": "claude",
        "gen_ai.usage.input_tokens": 5,
        "http.response.status_code": 200,
        "pagefold.session": "a",
        "pagefold.cache_read_tokens": 5,
    }
    call = CallEvent(at=1.0, session="m", tool="Read", before=9, after=4)
    assert attributes_of(call)["pagefold.after_tokens"] == 4
    page = (Path(__file__).parent.parent.parent / "docs" / "telemetry.md").read_text(encoding="utf-8")
    assert [name for name in ("pagefold.turn", "pagefold.call", *ATTRIBUTES) if f"`{name}`" not in page] == []


def test_a_turn_is_a_span_with_its_own_times_and_faults() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="the extra otel is not installed")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    provider, kept = sdk.TracerProvider(), memory.InMemorySpanExporter()
    provider.add_span_processor(export.SimpleSpanProcessor(kept))
    spans_by(provider.get_tracer("test"))(TURN)
    (span,) = kept.get_finished_spans()
    assert (span.name, span.start_time, span.end_time) == ("pagefold.turn", 10_000_000_000, 12_000_000_000)
    assert [(one.name, one.attributes["pagefold.reason"]) for one in span.events] == [("pagefold.fault", "gone")]
    provider.shutdown()


def test_a_collector_gets_them_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is not installed")
    came: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Collector)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    try:
        see = spans_to(f"http://127.0.0.1:{server.server_port}")
        assert see is not None
        see(TURN)
        for _ in range(400):
            if came:
                break
            threading.Event().wait(0.05)
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
    assert came[0][0] == "/v1/traces"
    assert b"pagefold.turn" in came[0][1]
