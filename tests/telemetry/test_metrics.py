"""Metrics: the text format, and that names and counts are those of the proxies."""

import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from pagefold.access.team import Attribution, TeamUse
from pagefold.adapters.steady_store import StoreHealth
from pagefold.cli.proxy_metrics import of_proxy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.totals import CostCheck, Ending, Prefix, Seen, Totals, Work
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.telemetry.events import TracedFault, TracedRecall, TurnEvent
from pagefold.telemetry.live import LiveView
from pagefold.telemetry.metrics import (
    METRICS,
    Sample,
    of_budgets,
    of_live,
    of_mcp,
    of_model_proxy,
    of_store,
    of_teams,
    of_trace,
    of_workers,
    render,
)
from pagefold.wire.message import Usage

LINE = re.compile(r'[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\.)*"(,[a-z_]+="(?:[^"\\\n]|\\.)*")*\})? -?\d+(\.\d+)?')


def watched() -> Proxy:
    """A proxy with something of everything that is watched."""
    health = StoreHealth(out="full", errors=Counter(full=2))
    proxy = Proxy(Upstreams({}), Conversations(), store_health=lambda: health)
    proxy.readiness.limits.refused["too many"] += 1
    proxy.readiness.times["prepare"].add(0.004)
    return proxy


def everything() -> str:
    seen = Seen(
        api="messages",
        ending=Ending.WHOLE,
        status=200,
        model="claude",
        bytes_up=5,
        prefix=Prefix(kept=3, moved=1),
        work=Work(changed=1, folds=1, saved=70, shrunk=1),
        reckoned=CostCheck(1.5, 2.5, 1),
        usage=Usage(1, 2, 3, 4),
    )
    bad = Seen(api="messages", ending=Ending.CUT_OFF, error="cut off")
    live = LiveView()
    levels = {"full": 7}
    live.see(
        TurnEvent(
            at=1.0,
            session="a",
            status=200,
            tokens=7,
            levels=levels,
            faults=(TracedFault("refetch", "", ""),),
            recalls=(TracedRecall("", "by MCP"),),
        )
    )
    return render(
        (
            *of_model_proxy(asdict(Totals.of(seen, bad))),
            *of_live(live, 2.0),
            *of_mcp({"calls": 3, "tokens before": 9, "tokens after": 4, "faults": 1, "early calls": 2}),
            *of_store(5, 60, 40, (3, 30)),
            *of_trace({"written": 8, "dropped": 0}),
            *of_proxy(watched()),
            *of_workers(2, 1),
            *of_teams({Attribution("red", "", "api", "Codex", "m"): TeamUse(1, 2)}, is_out=False),
            *of_budgets("red", [("day", "usd", 0.5, 2.0)]),
        )
    )


def test_every_metric_has_a_meaning_a_type_and_lines_of_the_format() -> None:
    text = everything()
    names = set()
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) [a-z_]+ .+", line)
        else:
            assert LINE.fullmatch(line), line
            names.add(re.sub(r"(?<=_seconds)_(bucket|sum|count)$", "", re.split(r"[{ ]", line)[0]))
    assert names == set(METRICS)
    assert all(name.endswith("_total") is (kind == "counter") for name, (kind, _) in METRICS.items())


FIGURES = [
    "pagefold_requests_total 2",
    'pagefold_requests_failed_total{error="cut off"} 1',
    'pagefold_tokens_total{model="claude",part="cache_read"} 2',
    "pagefold_tokens_saved_total 70",
    "pagefold_folds_total 1",
    'pagefold_cost_tokens_total{how="real"} 2.5',
    'pagefold_page_faults_total{kind="refetch"} 1',
    'pagefold_recalls_total{how="by MCP"} 1',
    'pagefold_context_tokens{level="full"} 7',
    'pagefold_mcp_tokens_total{as="read"} 4',
    'pagefold_mcp_counts_total{name="early calls"} 2',
    'pagefold_own_faults_total{surface="mcp"} 1',
    'pagefold_store_bytes{as="stored"} 40',
    'pagefold_sink_backlog{what="pages"} 3',
    "pagefold_worker_restarts_total 1",
]


@pytest.mark.parametrize("line", FIGURES)
def test_a_figure_is_the_proxys_own_count(line: str) -> None:
    assert line in everything().splitlines()


def test_a_label_cannot_break_a_line() -> None:
    text = render([Sample("pagefold_requests_failed_total", 1, (("error", 'a"b\\c\nd'),))])
    assert text.splitlines()[-1] == r'pagefold_requests_failed_total{error="a\"b\\c\nd"} 1'


def test_a_session_that_is_silent_for_long_is_not_counted_as_one_of_now() -> None:
    live = LiveView()
    live.see(TurnEvent(at=1.0, session="a", status=200))
    assert [one.value for one in of_live(live, 1.0) if one.name == "pagefold_sessions"] == [1]
    assert [one.value for one in of_live(live, 999.0) if one.name == "pagefold_sessions"] == [0]


def test_the_page_of_telemetry_lists_every_metric() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "telemetry.md").read_text(encoding="utf-8")
    assert [name for name in METRICS if f"`{name}`" not in page] == []


def test_a_histogram_has_buckets_that_grow_a_sum_and_a_count() -> None:
    lines = [line for line in everything().splitlines() if 'step="prepare"' in line]
    assert 'pagefold_added_seconds_bucket{step="prepare",le="0.0025"} 0' in lines
    assert 'pagefold_added_seconds_bucket{step="prepare",le="0.005"} 1' in lines
    assert 'pagefold_added_seconds_bucket{step="prepare",le="+Inf"} 1' in lines
    assert lines[-2:] == [
        'pagefold_added_seconds_sum{step="prepare"} 0.004',
        'pagefold_added_seconds_count{step="prepare"} 1',
    ]
