"""`pagefold dashboard`: serves a web page that shows the trace and the store.

A running `pagefold serve` has its own dashboard below /pagefold/, live and without a trace. This one needs no proxy: it
shows the store, the counts of MCP proxies and, where `telemetry.trace` is on, every session in the trace, as it grows.
It listens on this machine only and asks for a key, which is in the address that it prints.

Examples:
  pagefold dashboard
  pagefold dashboard --port 8400
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace

from pagefold import config
from pagefold.adapters.local_files import LocalFiles
from pagefold.cli import serve, telemetry_setup
from pagefold.cli.arguments import add_store, load_settings
from pagefold.dashboard.app import Dashboard
from pagefold.dashboard.auth import DashboardAuth
from pagefold.model_proxy import server
from pagefold.telemetry.live import LiveView


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (default: any free one)")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    settings = load_settings(options, {"serve.port": options.port})
    settings = replace(settings, serve=replace(settings.serve, host="127.0.0.1"))
    path = LocalFiles(config.store_path(settings)).trace
    key, live = telemetry_setup.dashboard_key(settings), LiveView()
    following = telemetry_setup.TraceFollower(path, live)

    def notes() -> Iterator[str]:
        yield from following.notes()
        if not settings.telemetry.trace and not path.exists():
            yield "No trace is written: set telemetry.trace = true to see sessions here, or open pagefold serve's own."

    dashboard = Dashboard(
        live, telemetry_setup.store_view_of(settings), DashboardAuth(key), refresh=following, notes=notes
    )

    def started(port: int) -> None:
        url = serve.dashboard_of(serve.url_of("127.0.0.1", port), key)
        print(json.dumps({"url": url}) if options.json else f"dashboard: {url}; Ctrl-C ends it", flush=True)

    server.run(dashboard, "127.0.0.1", options.port, started=started)
    return 0
