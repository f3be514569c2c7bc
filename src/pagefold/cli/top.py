"""`pagefold top`: shows sessions, context and faults in the terminal as they happen.

Asks the running `pagefold serve`; where none runs, it reads the trace (telemetry.trace = true) as it grows. --once
prints what is known now and ends; with --json that is one JSON object.

Examples:
  pagefold top
  pagefold top --once
  pagefold top --json | jq '.sessions[].tokens'
"""

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from pagefold.adapters.local_files import LocalFiles
from pagefold.cli import output, serve, telemetry_setup, terminal
from pagefold.cli.arguments import add_store, load_settings
from pagefold.cli.layout import BOLD, DIM, Line, Span, Table, folded
from pagefold.derive.quota import WindowWorth
from pagefold.errors import UpstreamError
from pagefold.number_format import money, share, short
from pagefold.printable import printable
from pagefold.settings.sections import Settings
from pagefold.telemetry.events import LEVELS
from pagefold.telemetry.live import LiveView, snapshot

_SECONDS = 0.5
_ANSWER_SECONDS = 5.0
_BAR = 24
_COLOURS = {"full": "37;44", "compressed": "37;42", "structured": "37;43", "pointer": "37;45"}
"""White on blue, green, yellow and magenta."""
_LATELY = 300.0
_WORTH_TELLING = 0.01  # USD
_NOWHERE = "no pagefold serve is reached, and there is no trace: telemetry.trace = true writes one"


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--once", action="store_true", help="print once and end")
    command.add_argument("--url", metavar="URL", help="the proxy to ask (default: by serve.host and serve.port)")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    settings = load_settings(options)
    ask = source_of(settings, options.url)
    if options.json:
        output.print_json(ask())
        return 0
    if options.once:
        for line in drawn(ask(), time.time(), terminal.room(sys.stdout)):
            print(terminal.painted(line, styles=terminal.has_styles(sys.stdout)))
        return 0
    with terminal.screen(sys.stdout) as show:
        while True:
            show(drawn(ask(), time.time(), terminal.room(sys.stdout), terminal.height()))
            time.sleep(_SECONDS)


def source_of(settings: Settings, url: str | None) -> Callable[[], dict[str, Any]]:
    """Returns a function that gets the view: from the proxy if one answers, else from the trace.

    It decides at each call, because a proxy may start or end meanwhile.

    The function raises UpstreamError if `url` was given and no proxy answers there.
    """
    address = (
        url or serve.url_of(settings.serve.host, settings.serve.port, tls=bool(settings.serve.tls_certificate))
    ).rstrip("/")
    live, store_view = LiveView(), telemetry_setup.store_view_of(settings)
    path = telemetry_setup.store_path(settings)
    following = telemetry_setup.TraceFollower(LocalFiles(path).trace, live) if path else None

    def ask() -> dict[str, Any]:
        try:
            return {"source": address, **_asked(address, telemetry_setup.dashboard_key(settings))}
        except (OSError, ValueError, TypeError) as error:
            if url:
                raise UpstreamError(f"{address}: no dashboard is reached there ({error})", status=0) from error
        if following is not None:
            following()
        source = str(LocalFiles(path).trace) if path and LocalFiles(path).trace.exists() else ""
        return {"source": source, **snapshot(live), "figures": asdict(store_view.ask())}

    return ask


def _asked(address: str, key: str) -> dict[str, Any]:
    request = urllib.request.Request(f"{address}/pagefold/live.json", headers={"x-pagefold-token": key})  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_ANSWER_SECONDS) as answer:
        return dict(json.load(answer))


# ---- what is drawn --------------------------------------------------------------------------------------------------


def drawn(view: Mapping[str, Any], now: float, room: int, height: int = 60) -> list[Line]:
    """Returns the view for a terminal of this size."""
    sessions = view["sessions"][: max(3, height - 16)]
    columns = ["session", "context", "tokens", "saved", "cache", "turns", "folds", "faults", "recalls", "heard"]
    lines = [*_summary(view, now).lines(room), ()]
    if sessions:
        lines += Table("Sessions", columns, [_row(one, now) for one in sessions]).lines(room)
    else:
        lines.append((Span("No session has been seen yet."),))
    lines += [(Span(part, DIM),) for line in resumes(view, now) for part in folded(printable(line), room)]
    if view["happened"]:
        lines += [(), *_events(view["happened"][:8]).lines(room)]
    return [*lines, (), *((Span(part, DIM),) for part in folded(printable(view["source"] or _NOWHERE), room))]


def resumes(view: Mapping[str, Any], now: float, most: int = 3) -> list[str]:
    """What it costs to go on with the sessions that have been silent for so long that their cache expires soon, or has;
    in money and, where that is known, in percent of a five-hour window. The dearest first."""
    worth = WindowWorth(view["totals"].get("windows", 0.0), view["totals"].get("usd", 0.0))
    lines: list[str] = []
    for one in sorted(view["sessions"], key=lambda one: -float(one.get("cold_usd", 0.0))):
        life, silent, cold = one.get("life", 0.0), now - one["last"], one.get("cold_usd", 0.0)
        if not life or silent < life / 2 or cold < _WORTH_TELLING or len(lines) >= most:
            continue
        part = worth.share(cold)
        costs = money(cold) + (f", {100 * part:.1f} % of a five-hour window" if part is not None else "")
        until = time.strftime("%H:%M", time.localtime(one["last"] + life))
        state = (
            f"is cold since {until}: going on costs {costs}"
            if silent > life
            else (f"is cached until {until}: going on costs {money(one['warm_usd'])}, later {costs}")
        )
        lines.append(f"{one['name'][:10]} {state}")
    return lines


def _summary(view: Mapping[str, Any], now: float) -> Table:
    totals, figures = view["totals"], view["figures"]
    prompt = sum(totals.get(name, 0) for name in ("fresh", "cache_read", "cache_write"))
    mcp = figures.get("mcp", {})
    faults = sum(count for kind, count in view["faults"].items() if kind != "duplicate_alert")
    recalls = sum(view["recalls"].values()) + mcp.get("own calls context_recall", 0)
    lately = sum(now - one["last"] < _LATELY for one in view["sessions"])
    before, after = mcp.get("tokens before", 0), mcp.get("tokens after", 0)
    cells = {
        "sessions now": str(lately),
        "turns": short(totals.get("turns", 0)),
        "saved": f"{short(totals.get('saved', 0))} tokens",
        "cache reads": share(totals.get("cache_read", 0), prompt),
        "folds": short(totals.get("folds", 0)),
        "faults": short(faults),
        "recalls": short(recalls),
        "tool results": f"{share(before - after, before)} off" if before else "-",
        "prefetch": f"{mcp.get('calls answered early', 0):,} of {mcp.get('early calls', 0):,} used",
        "store": f"{short(figures['pages'])} pages",
        "cost": money(totals.get("usd", 0.0)),
        "saved at least": money(totals.get("usd_saved", 0.0)),
        **_window(view),
    }
    names = list(cells)
    names += [""] * (15 - len(names))
    rows: list[list[str | Line]] = []
    for some in (names[:5], names[5:10], names[10:]):
        rows.append([(Span(name, DIM),) for name in some])
        rows.append([(Span(cells.get(name, ""), BOLD),) for name in some])
    return Table("", [""] * 5, rows, left=True)


def _window(view: Mapping[str, Any]) -> dict[str, str]:
    """What is known of the subscription's five-hour window; nothing where the provider does not report it."""
    window, totals = view.get("window"), view["totals"]
    if not window:
        return {}
    used, usd = totals.get("windows", 0.0), totals.get("usd", 0.0)
    saved = WindowWorth(used, usd).share(totals.get("usd_saved", 0.0))
    ends = f", ends {time.strftime('%H:%M', time.localtime(window['resets']))}" if window["resets"] else ""
    return {
        "five-hour window": f"{100 * window['used']:.0f} % used{ends}",
        "used here": f"{100 * used:.1f} %",
        "saved of it": f"{100 * saved:.1f} %" if saved is not None else "-",
    }


def _row(one: Mapping[str, Any], now: float) -> list[str | Line]:
    prompt = one["fresh"] + one["cache_read"] + one["cache_write"]
    ago = max(0.0, now - one["last"])
    heard = f"{ago:.0f} s" if ago < 120 else f"{ago / 60:.0f} min" if ago < 7200 else f"{ago / 3600:.0f} h"
    return [
        printable(f"{one['name'][:10]} {one['agent'] or one['api']}", keep=""),
        _bar(one["levels"]),
        short(one["tokens"]),
        short(one["saved"]),
        share(one["cache_read"], prompt),
        str(one["turns"] or one["calls"]),
        str(one["folds"]),
        str(one["faults"]),
        str(one["recalls"]),
        heard,
    ]


def _bar(levels: Mapping[str, int]) -> Line:
    """Returns a bar of the context by level, with a letter for each level: some people do not see the colours."""
    total = sum(levels.values())
    made: list[Span] = []
    edge = before = 0
    for level in LEVELS if total else ():
        edge += levels.get(level, 0)
        cells = round(_BAR * edge / total) - before
        before += cells
        made.append(Span(level[0].upper() * cells, _COLOURS[level]))
    return tuple(made)


def _events(happened: list[Mapping[str, Any]]) -> Table:
    rows = []
    for one in happened:
        at = time.strftime("%H:%M:%S", time.localtime(one["at"]))
        rows.append((at, one["what"].replace("_", " "), one["reason"], one["page"], one["session"][:10]))
    return output.table("What happened", ["at", "what", "why", "page", "session"], rows, left=True)
