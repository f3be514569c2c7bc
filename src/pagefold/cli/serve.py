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
  kill -HUP PID                   reload settings; streams go on (not with --workers)
  pagefold serve --workers 4      four processes on the one port, for a host with as many cores
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from urllib.parse import quote

from pagefold import config
from pagefold.cli import output, serve_setup, telemetry_setup
from pagefold.cli.arguments import add_policy, add_store, load_settings
from pagefold.cli.proxy_summary import summary
from pagefold.cli.serve_setup import counted, opened_proxy, problem_log
from pagefold.model_proxy import agents
from pagefold.model_proxy.neighbour import port_here, shown_address
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.reloading import ReloadingApp, ServedApp
from pagefold.model_proxy.totals import Totals
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.settings.sections import ServeSettings, Settings

_FIXED = ("host", "port", "tls_certificate", "tls_key", "workers", "teams")
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

        reread = partial(_reread, options, flags, settings)
        totals, crowded = serve_teams.run(settings, partial(_started, options, settings), reread), ""
    elif serve.workers > 1:
        from pagefold.cli import serve_workers

        told = partial(_started, options, settings)
        totals, crowded = serve_workers.run(settings, told, opened_proxy, counted), ""
    else:
        totals, crowded = _serve_one(
            settings, partial(_started, options, settings), partial(_reread, options, flags, settings)
        )
    if options.json:
        print(totals.to_json())
    else:
        output.to_stderr(f"pagefold: {summary(totals, crowded, observed=serve.observe)}")
    return 0


def _serve_one(
    settings: Settings, started: Callable[[int, str], None], reread: Callable[[], Settings]
) -> tuple[Totals, str]:
    """Serves one proxy until a signal arrives; SIGHUP replaces it by one with the settings of then."""
    past = Totals()

    @contextmanager
    def opened() -> Iterator[Proxy]:
        with working_proxy(reread()) as (proxy, _):
            yield proxy

    def ended(proxy: ServedApp) -> None:
        nonlocal past
        assert isinstance(proxy, Proxy)
        past += proxy.totals

    with working_proxy(settings) as (first, key):
        app = ReloadingApp(first, opened, report=problem_log(settings), replaced=ended)
        serve_setup.run_reloading(app, settings, lambda port: started(port, key))
    last = app.app
    assert isinstance(last, Proxy)
    return past + last.totals, last.conversations.crowded


def _reread(options: argparse.Namespace, flags: Mapping[str, object], began: Settings) -> Settings:
    """The settings as they are now. What a running server cannot change stays, and that is told. Raises ConfigError."""
    now = load_settings(options, flags)
    for name in _FIXED:
        if getattr(now.serve, name) != getattr(began.serve, name):
            output.to_stderr(f"pagefold: serve.{name} takes a restart; it stays as it was")
    kept = {name: getattr(began.serve, name) for name in _FIXED}
    return replace(now, serve=replace(now.serve, **kept))


def _started(options: argparse.Namespace, settings: Settings, port: int, key: str) -> None:
    """Says where the proxy is, and its dashboard."""
    serve = settings.serve
    url = url_of(serve.host, port, tls=bool(serve.tls_certificate))
    # A token that the user set is not printed.
    shown = dashboard_of(url, "" if serve.token else key) if key else ""
    if options.json:
        print(json.dumps({"url": url, **({"dashboard": shown} if shown else {})}), flush=True)
        return
    for line in not_followed(config.process_environment({}), serve, port):
        output.to_stderr(f"pagefold: {line}")
    does = "observes" if serve.observe else f"derives requests by {serve.policy}"
    by = f" with {serve.workers} workers" if serve.workers > 1 else ""
    usual = serve_setup.upstreams_of(Settings()).addresses
    used = serve_setup.upstreams_of(settings).addresses.items()
    others = [f"{name} at {shown_address(address)}" for name, address in used if usual.get(name) != address]
    by += f" for {', '.join(others)}" if others else ""
    print(f"pagefold {does} on {url}{by} (try ANTHROPIC_BASE_URL={url} claude); Ctrl-C ends it", flush=True)
    if shown:
        print(f"dashboard: {shown}{' (its key is the token)' if serve.token else ''}", flush=True)


def not_followed(environment: Mapping[str, str], serve: ServeSettings, port: int) -> Iterator[str]:
    """Says which addresses in the environment are not where requests go on to: those are for clients."""
    for variable, used, name in (
        (agents.ANTHROPIC, serve.anthropic_url, "anthropic_url"),
        (agents.OPENAI, serve.openai_url, "openai_url"),
    ):
        address = environment.get(variable, "").rstrip("/").removesuffix("/v1")
        if address and address != used.rstrip("/").removesuffix("/v1") and port_here(address) != port:
            where, flag = shown_address(used), f"--{name.replace('_', '-')}"
            yield f"{variable} is not followed: requests go on to {where}; serve.{name} ({flag}) sets that"


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
