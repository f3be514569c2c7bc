"""Sends turns and calls as OpenTelemetry spans, if the extra `otel` is installed and a collector is set.

A span is made when its event is written, on the trace writer's thread, so that no turn waits for it. Its attributes are
the event's figures under the names in `ATTRIBUTES`; they hold no text of clients, tools or models.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pagefold.errors import ConfigError
from pagefold.telemetry.events import TraceEvent, TurnEvent

ATTRIBUTES: Mapping[str, str] = {
    "gen_ai.request.model": "model",
    "gen_ai.usage.input_tokens": "prompt",
    "gen_ai.usage.output_tokens": "output",
    "http.response.status_code": "status",
    "pagefold.session": "session",
    "pagefold.agent": "agent",
    "pagefold.policy": "policy",
    "pagefold.tokens": "tokens",
    "pagefold.saved_tokens": "saved",
    "pagefold.cache_read_tokens": "cache_read",
    "pagefold.cache_write_tokens": "cache_write",
    "pagefold.fold": "fold",
    "pagefold.tool": "tool",
    "pagefold.before_tokens": "before",
    "pagefold.after_tokens": "after",
}
_NANO = 1_000_000_000


def spans_to(endpoint: str) -> Callable[[TraceEvent], None] | None:
    """Returns a function that sends an event to the collector at `endpoint` (OTLP over HTTP), or None without one.

    Raises ConfigError if the extra is not installed.
    """
    if not endpoint:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  an extra
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        needs = "spans need the extra otel: install it by pip install 'pagefold[otel]'"
        raise ConfigError(f"telemetry.otel_endpoint: {needs}") from error
    provider = TracerProvider(resource=Resource.create({"service.name": "pagefold"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")))
    return spans_by(provider.get_tracer("pagefold"))


def spans_by(tracer: Any) -> Callable[[TraceEvent], None]:
    """Returns a function that makes each event a span of this tracer."""

    def see(event: TraceEvent) -> None:
        seconds = event.seconds if isinstance(event, TurnEvent) else 0.0
        span = tracer.start_span(
            "pagefold.turn" if isinstance(event, TurnEvent) else "pagefold.call",
            start_time=int((event.at - seconds) * _NANO),
            attributes=attributes_of(event),
        )
        for name, parts in (("fault", event.faults), ("recall", event.recalls)) if isinstance(event, TurnEvent) else ():
            for part in parts:
                attributes = {f"pagefold.{key}": value for key, value in part._asdict().items()}
                span.add_event(f"pagefold.{name}", attributes, timestamp=int(event.at * _NANO))
        span.end(end_time=int(event.at * _NANO))

    return see


def attributes_of(event: TraceEvent) -> dict[str, Any]:
    """Returns the attributes of an event's span. Empty and zero values are left out."""
    values = {name: getattr(event, field, None) for name, field in ATTRIBUTES.items()}
    return {name: value for name, value in values.items() if value not in (None, "", 0, False)}
