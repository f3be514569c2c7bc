"""Makes metrics in the text format of Prometheus from the proxies' counts, the live view and the store.

`METRICS` lists every name with its type and meaning, as docs/telemetry.md does; names do not change between versions. A
label's value is one of pagefold's own words, or a model that a provider answered to.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pagefold.access.team import UseByAttribution
from pagefold.telemetry.live import LiveView

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

METRICS: Mapping[str, tuple[str, str]] = {
    "pagefold_requests_total": ("counter", "Requests to model APIs that were passed on."),
    "pagefold_requests_failed_total": ("counter", "Requests that failed, by kind of error."),
    "pagefold_requests_abandoned_total": ("counter", "Requests whose client left before the end."),
    "pagefold_requests_handed_on_total": ("counter", "Requests handed on to instances of another version."),
    "pagefold_own_faults_total": ("counter", "Faults of pagefold itself; the bytes went through as they came."),
    "pagefold_tokens_total": ("counter", "Tokens as providers counted them, by model and part."),
    "pagefold_tokens_saved_total": ("counter", "Tokens that requests held fewer than clients sent."),
    "pagefold_requests_changed_total": ("counter", "Requests that went on other than they came."),
    "pagefold_folds_total": ("counter", "Fold points."),
    "pagefold_shrunk_total": ("counter", "Requests sent again smaller because the provider found them too long."),
    "pagefold_keep_alives_total": ("counter", "Requests of pagefold's own that kept a prompt cache, or were refused."),
    "pagefold_usd_total": ("counter", "What reported usage costs at list prices, and what was saved."),
    "pagefold_recalls_total": ("counter", "Recalls of a page, by who answered."),
    "pagefold_page_faults_total": ("counter", "Faults by kind: the agent needed what was not there."),
    "pagefold_cache_cold_total": ("counter", "Requests whose prefix should have been cached and was not."),
    "pagefold_prefix_messages_total": ("counter", "Messages of requests that stood as sent before, or had moved."),
    "pagefold_cost_tokens_total": ("counter", "Cost in fresh input tokens, predicted and as usage says."),
    "pagefold_bytes_total": ("counter", "Bytes of request and answer bodies."),
    "pagefold_sessions": ("gauge", "Sessions heard of in the last five minutes."),
    "pagefold_context_tokens": ("gauge", "Tokens standing in those sessions' last requests, by level."),
    "pagefold_mcp_calls_total": ("counter", "Tool calls through MCP proxies."),
    "pagefold_mcp_tokens_total": ("counter", "Tokens of tool results, as sent by servers and as read by agents."),
    "pagefold_mcp_counts_total": ("counter", "Everything else that MCP proxies count, by name."),
    "pagefold_store_pages": ("gauge", "Pages in the store."),
    "pagefold_store_bytes": ("gauge", "Bytes of the store's pages, as they were put and as they are stored."),
    "pagefold_added_seconds": ("histogram", "Time that the proxy adds to a request, by step."),
    "pagefold_store_seconds": ("histogram", "Time of calls of the store, the wait for its thread included."),
    "pagefold_store_errors_total": ("counter", "Failures of the store, by kind."),
    "pagefold_store_out": ("gauge", "1 while requests go on without the store."),
    "pagefold_store_mended_total": ("counter", "How often the store was opened or made anew while serving."),
    "pagefold_store_lost_pages_total": ("counter", "Acknowledged pages that a new store could not be given again."),
    "pagefold_unsaved": ("gauge", "What waits for the store: notes, and histories with pages."),
    "pagefold_connections": ("gauge", "Connections of clients, and how many there may be."),
    "pagefold_refused_total": ("counter", "Clients that were turned away, by why."),
    "pagefold_memory_bytes": ("gauge", "Memory that the process has in use."),
    "pagefold_histories": ("gauge", "Histories that are remembered."),
    "pagefold_histories_bytes": ("gauge", "Bytes that is estimated to take, and how many it may take."),
    "pagefold_sink_backlog": ("gauge", "Pages and bytes that the history sink has not got yet."),
    "pagefold_workers": ("gauge", "Processes that serve, where there are several."),
    "pagefold_worker_restarts_total": ("counter", "Workers that ended and were started again."),
    "pagefold_draining": ("gauge", "1 once the proxy is to end."),
    "pagefold_team_used": ("gauge", "What a team has used in the period, all instances together, by unit."),
    "pagefold_team_limit": ("gauge", "What a team may use in the period, where there is a limit, by unit."),
    "pagefold_team_use_total": ("counter", "Requests, tokens and dollars by team, project, agent and model."),
    "pagefold_access_out": ("gauge", "1 while teams cannot be looked up."),
    "pagefold_trace_events_total": ("counter", "Events of the decision trace: written, dropped, or not writable."),
}

RECENT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()
    ending: str = ""  # of the name, where it is a part of a histogram


class Times(Protocol):
    """How long something took, by bucket."""

    seconds: float

    @property
    def count(self) -> int: ...

    def cumulative(self) -> list[tuple[str, int]]: ...


def render(samples: Iterable[Sample]) -> str:
    """Returns the samples as text, those of one name together below its meaning and type."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    lines: list[str] = []
    for name, (kind, meaning) in METRICS.items():
        if of_name := by_name.pop(name, None):
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            lines += map(_line, of_name)
    assert not by_name, f"metrics without a meaning: {', '.join(by_name)}"
    return "\n".join(lines) + "\n" if lines else "\n"


def _line(sample: Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
    value = f"{sample.value:.3f}".rstrip("0").rstrip(".")
    name = sample.name + sample.ending
    return f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"


def of_times(name: str, times: Mapping[str, Times], label: str = "step") -> Iterator[Sample]:
    """Yields the buckets, the sum and the count of histograms, each under the value of its label."""
    for value, time in times.items():
        own = ((label, value),) if value else ()
        for limit, count in time.cumulative():
            yield Sample(name, count, (*own, ("le", limit)), "_bucket")
        yield Sample(name, time.seconds, own, "_sum")
        yield Sample(name, time.count, own, "_count")


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def of_model_proxy(totals: Mapping[str, Any]) -> Iterator[Sample]:
    """Yields the model proxy's counts, as `/pagefold/status` shows them."""
    work, prefix, reckoned = totals["work"], totals["prefix"], totals["reckoned"]
    yield Sample("pagefold_requests_total", totals["requests"])
    yield Sample("pagefold_requests_abandoned_total", totals["abandoned"])
    yield Sample("pagefold_requests_handed_on_total", totals["handed_on"])
    yield Sample("pagefold_own_faults_total", totals["faults"], (("surface", "model"),))
    yield from _by("pagefold_requests_failed_total", "error", totals["errors"])
    for model, counts in totals["by_model"].items():
        for part, count in counts["usage"].items():
            yield Sample("pagefold_tokens_total", count, (("model", model), ("part", part)))
    yield Sample("pagefold_tokens_saved_total", work["saved"])
    yield Sample("pagefold_requests_changed_total", work["changed"])
    yield Sample("pagefold_folds_total", work["folds"])
    yield Sample("pagefold_shrunk_total", work["shrunk"])
    yield Sample("pagefold_cache_cold_total", reckoned["cold"])
    kept = {"sent": totals["keep_alives"], "refused": totals["keep_alives_refused"]}
    yield from _by("pagefold_keep_alives_total", "state", kept)
    yield from _by("pagefold_usd_total", "what", {"spent": reckoned["usd"], "saved": reckoned["usd_saved"]})
    yield from _by("pagefold_prefix_messages_total", "state", {state: prefix[state] for state in ("kept", "moved")})
    yield from _by("pagefold_cost_tokens_total", "how", {how: reckoned[how] for how in ("predicted", "real")})
    yield from _by("pagefold_bytes_total", "direction", {to: totals[f"bytes_{to}"] for to in ("up", "down")})


def of_live(live: LiveView, now: float) -> Iterator[Sample]:
    """Yields what only the events say: sessions, context by level, faults and recalls."""
    recent = [session for session in live.sessions.values() if now - session.last <= RECENT_SECONDS]
    levels: Counter[str] = Counter()
    for session in recent:
        levels.update(session.levels)
    yield Sample("pagefold_sessions", len(recent))
    yield from _by("pagefold_context_tokens", "level", levels)
    yield from _by("pagefold_page_faults_total", "kind", live.faults)
    yield from _by("pagefold_recalls_total", "how", live.recalls)


_MCP: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "calls": ("pagefold_mcp_calls_total", ()),
    "faults": ("pagefold_own_faults_total", (("surface", "mcp"),)),
    "tokens before": ("pagefold_mcp_tokens_total", (("as", "sent"),)),
    "tokens after": ("pagefold_mcp_tokens_total", (("as", "read"),)),
}


def of_mcp(counts: Mapping[str, int]) -> Iterator[Sample]:
    """Yields what MCP proxies count, from the names that `pagefold stats` uses."""
    for name, count in sorted(counts.items()):
        metric, labels = _MCP.get(name, ("pagefold_mcp_counts_total", (("name", name),)))
        yield Sample(metric, count, labels)


def of_store(pages: int, put: int, stored: int, unsent: tuple[int, int] = (0, 0)) -> Iterator[Sample]:
    """`unsent` are pages that the history sink has not got yet, and their bytes."""
    yield Sample("pagefold_store_pages", pages)
    yield from _by("pagefold_sink_backlog", "what", {"pages": unsent[0], "bytes": unsent[1]})
    yield from _by("pagefold_store_bytes", "as", {"put": put, "stored": stored})


def of_workers(running: int, restarted: int) -> Iterator[Sample]:
    yield Sample("pagefold_workers", running)
    yield Sample("pagefold_worker_restarts_total", restarted)


def of_teams(uses: UseByAttribution, *, is_out: bool) -> Iterator[Sample]:
    """What teams have used of this process; `is_out` says that they cannot be looked up."""
    yield Sample("pagefold_access_out", int(is_out))
    for use, counts in uses.items():
        labels = (("team", use.team), ("project", use.project), ("agent", use.agent), ("model", use.model))
        values = counts.to_dict()
        for what in ("requests", "prompt", "cached", "output", "saved", "usd", "usd_saved"):
            yield Sample("pagefold_team_use_total", values[what], (*labels, ("what", what)))


def of_budgets(team: str, budgets: Iterable[tuple[str, str, float, float]]) -> Iterator[Sample]:
    """A team's budgets: by period and unit, what was used, and the limit or 0."""
    for period, what, used, limit in budgets:
        labels = (("team", team), ("period", period), ("what", what))
        yield Sample("pagefold_team_used", used, labels)
        if limit:
            yield Sample("pagefold_team_limit", limit, labels)


def of_trace(counts: Mapping[str, int]) -> Iterator[Sample]:
    return _by("pagefold_trace_events_total", "state", counts)


def _by(metric: str, label: str, counts: Mapping[str, float]) -> Iterator[Sample]:
    """Yields a sample for each count, whose key is the value of the label."""
    return (Sample(metric, count, ((label, value),)) for value, count in counts.items())
