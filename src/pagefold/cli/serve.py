"""`pagefold serve`: runs the model proxy.

Every request is derived by a policy and goes on; answers come back as they are, streaming included. The default policy,
lossless, drops nothing and moves nothing that was sent. A header `x-pagefold: off` leaves one request as it came;
--observe leaves all of them. What passes is counted and told at /pagefold/status, and once more at the end; the
dashboard below /pagefold/ shows it as it happens.

Examples:
  pagefold serve
  ANTHROPIC_BASE_URL=http://127.0.0.1:8377 claude
  OPENAI_BASE_URL=http://127.0.0.1:8377/v1 python my_agent.py
  curl http://127.0.0.1:8377/pagefold/status
  pagefold serve --workers 4      four processes on the one port, for a host with as many cores
"""

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import quote

from pagefold.cli import output, telemetry_setup
from pagefold.cli.arguments import add_policy, add_store, load_settings
from pagefold.cli.proxy_summary import summary
from pagefold.cli.serve_setup import counted, opened_proxy
from pagefold.model_proxy import server
from pagefold.model_proxy.proxy import Proxy
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.settings.sections import Settings

_FLAGS = ("observe", "policy", "host", "port", "anthropic_url", "openai_url", "window", "recall", "workers", "trial")


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_policy(command)
    command.add_argument("--recall", metavar="WHO", help="who answers context tools: mcp (default) or inline")
    command.add_argument("--host", help="address to listen on (default: 127.0.0.1; others need a token)")
    command.add_argument("--port", type=int, metavar="N", help="port to listen on (default: 8377; 0: any free one)")
    command.add_argument("--workers", type=int, metavar="N", help="processes that serve on the one port (default: 1)")
    command.add_argument("--anthropic-url", metavar="URL", help="where Anthropic requests go")
    command.add_argument("--openai-url", metavar="URL", help="where OpenAI requests go")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    flags = {f"serve.{name}": getattr(options, name) for name in _FLAGS}
    settings = load_settings(options, flags)
    serve = settings.serve
    if serve.teams:
        from pagefold.cli import serve_teams

        totals, crowded = serve_teams.run(settings, partial(_started, options, settings)), ""
    elif serve.workers > 1:
        from pagefold.cli import serve_workers

        told = partial(_started, options, settings)
        totals, crowded = serve_workers.run(settings, told, opened_proxy, counted), ""
    else:
        with working_proxy(settings) as (proxy, key):
            service = server.Service(server.tls_of(serve), proxy.readiness.limits, serve.grace_seconds, proxy.drain)
            started = partial(_started, options, settings, key=key)
            server.run(proxy, serve.host, serve.port, started=started, service=service)
        totals, crowded = proxy.totals, proxy.conversations.crowded
    if options.json:
        print(totals.to_json())
    else:
        output.to_stderr(f"pagefold: {summary(totals, crowded, observed=serve.observe)}")
    return 0


def _started(options: argparse.Namespace, settings: Settings, port: int, key: str) -> None:
    """Says where the proxy is, and its dashboard."""
    serve = settings.serve
    url = url_of(serve.host, port, tls=bool(serve.tls_certificate))
    # A token that the user set is not printed.
    shown = dashboard_of(url, "" if serve.token else key) if key else ""
    if options.json:
        print(json.dumps({"url": url, **({"dashboard": shown} if shown else {})}), flush=True)
        return
    does = "observes" if serve.observe else f"derives requests by {serve.policy}"
    by = f" with {serve.workers} workers" if serve.workers > 1 else ""
    print(f"pagefold {does} on {url}{by} (try ANTHROPIC_BASE_URL={url} claude); Ctrl-C ends it", flush=True)
    if shown:
        print(f"dashboard: {shown}{' (its key is the token)' if serve.token else ''}", flush=True)


@contextmanager
def working_proxy(
    settings: Settings, *, token: str | None = None, scope: StoreScope = THIS_USER
) -> Iterator[tuple[Proxy, str]]:
    """Yields the proxy that the settings describe, watched and counted, and its dashboard's key. Raises ConfigError."""
    with opened_proxy(settings, token=token, scope=scope) as proxy:
        key = telemetry_setup.attach(proxy, settings)
        with counted(settings, lambda: proxy.totals_so_far):
            yield proxy, key


def dashboard_of(url: str, key: str) -> str:
    return f"{url}/pagefold/" + (f"?key={quote(key)}" if key else "")


def url_of(host: str, port: int, *, tls: bool = False) -> str:
    return f"http{'s' if tls else ''}://{f'[{host}]' if ':' in host else host}:{port}"
