"""`pagefold doctor`: checks whether proxies, store and agents work together, and says what to do if not.

Checks the settings, the store, the addresses of the providers, how a running proxy says it is, the environment that an
agent started from here would have, and the address in Claude Code's settings. Exit code 1: something has to be done.

Examples:
  pagefold doctor
  pagefold doctor --offline       without connecting to the providers
"""

import argparse
import shutil
import socket
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from urllib.parse import urlsplit

from pagefold import config
from pagefold.adapters.library import Library
from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.model_proxy_lock import running_policy
from pagefold.adapters.protection import protection_of
from pagefold.cli import output, telemetry_setup
from pagefold.cli.arguments import add_store, load_settings
from pagefold.cli.serve import url_of
from pagefold.cli.serve_setup import upstreams_of
from pagefold.derive.policies import policy_named
from pagefold.errors import ConfigError, StoreError
from pagefold.model_proxy import agents
from pagefold.model_proxy.agents import SetupFinding
from pagefold.model_proxy.neighbour import is_free, is_pagefold, port_here, shown_address
from pagefold.number_format import several
from pagefold.settings.sections import Settings
from pagefold.telemetry import health
from pagefold.wire.apis import accounts

_AGENTS = ("claude", "codex", "opencode")
_SECONDS = 3.0


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--offline", action="store_true", help="connect to nothing but this computer")
    add_store(command)


def run(options: argparse.Namespace) -> int:
    settings = load_settings(options)
    findings = [*_policy(settings), *_store(settings), *_proxy(settings)]
    if not options.offline:
        unused = () if config.codex_has_login() else [account.name for account in accounts()]
        for name, url in upstreams_of(settings).addresses.items():
            findings += _upstream(name, url) if name not in unused else ()
    environment, files = config.process_environment({}), config.claude_variables()
    told = [("the environment", environment), *((str(file), variables) for file, variables in files)]
    won = {name: value for _, variables in told for name, value in variables.items()}
    findings += [*_programs(), *_pointed(told, settings), *agents.looked_at(won), agents.LEAVING_AT_WILL]
    if options.json:
        output.print_json([{"about": one.about, "found": one.found, "remedy": one.remedy} for one in findings])
    else:
        for one in findings:
            output.to_stdout(f"{'!' if one.remedy else ' '} {one.about}: {one.found}")
            if one.remedy:
                output.to_stdout(f"    → {one.remedy}")
    return int(any(one.remedy for one in findings))


def _policy(settings: Settings) -> Iterator[SetupFinding]:
    try:
        policy_named(settings.serve.policy)
    except ConfigError as error:
        yield SetupFinding("policy", str(error), "change serve.policy")
        return
    path = telemetry_setup.store_path(settings)
    running = running_policy(LocalFiles(path).model_proxy_lock) if path else ""
    if running in ("", settings.serve.policy):
        yield SetupFinding("policy", f"live requests are derived by {settings.serve.policy}")
    else:
        said = f"the proxy that runs now derives requests by {running}; the settings say {settings.serve.policy}"
        yield SetupFinding("policy", said)


def _store(settings: Settings) -> Iterator[SetupFinding]:
    try:
        with closing(
            Library.open(
                config.store_place(settings), settings.sink, protection=protection_of(settings.store, settings.sink)
            )
        ) as library:
            status = library.status()
    except (ConfigError, StoreError) as error:
        yield SetupFinding("store", str(error), "change store.path or store.url, or what keeps it from being written")
    else:
        yield SetupFinding("store", f"{status.path}: {several(status.pages, 'page')}")


def _proxy(settings: Settings) -> Iterator[SetupFinding]:
    serve = settings.serve
    if not _reached(serve.host, serve.port):
        yield SetupFinding("proxy", f"nothing listens on {serve.host}:{serve.port}; pagefold run starts one of its own")
        return
    url = url_of(serve.host, serve.port, tls=bool(serve.tls_certificate))
    try:
        metrics = health.parsed(_metrics(url, telemetry_setup.dashboard_key(settings)))
    except (OSError, ValueError) as error:
        said = f"something listens on {serve.host}:{serve.port}, and does not tell how it is ({error})"
        yield SetupFinding("proxy", said)
        return
    yield SetupFinding("proxy", f"a pagefold serves on {url}")
    for line in health.health_lines(metrics):
        yield SetupFinding("proxy", line.text, line.remedy)


def _pointed(told: Iterable[tuple[str, Mapping[str, str]]], settings: Settings) -> Iterator[SetupFinding]:
    """Where agents are sent by whoever names an address, and whether a pagefold serves there."""
    usual = settings.serve.port
    for who, variables in told:
        address = variables.get(agents.ANTHROPIC, "")
        port, shown = port_here(address), shown_address(address)
        leave = f"take {agents.ANTHROPIC} out of {who}"
        if who == str(config.claude_settings()):
            leave += " (pagefold init claude-code --proxy --undo)"
        if port and is_pagefold(port):
            yield SetupFinding("address", f"{who} sends Claude Code to {shown}, where a pagefold serves")
        elif port and is_free(port):
            said = f"{who} sends Claude Code to {shown}, where nothing listens: without pagefold run it gets no answer"
            yield SetupFinding("address", said, f"start pagefold serve --port {port}, or {leave}")
        elif port:
            said = f"{who} sends Claude Code to {shown}, where something else than a pagefold listens"
            yield SetupFinding("address", said, leave)
        elif address and is_pagefold(usual):
            said = f"{who} sends Claude Code to {shown}, past the pagefold that runs on port {usual}"
            yield SetupFinding("address", said, f"{leave}, or start it by pagefold run claude")
        elif address:
            yield SetupFinding("address", f"{who} sends Claude Code to {shown}")


def _metrics(url: str, key: str) -> str:
    request = urllib.request.Request(f"{url}/pagefold/metrics", headers={"x-pagefold-token": key})  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_SECONDS) as answer:
        return str(answer.read().decode("utf-8", "replace"))


def _upstream(name: str, url: str) -> Iterator[SetupFinding]:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if _reached(parts.hostname or "", port):
        yield SetupFinding(name, f"{parts.hostname} is reached")
    else:
        yield SetupFinding(name, f"{parts.hostname}:{port} is not reached", "look at the network, or at the address")


def _programs() -> Iterator[SetupFinding]:
    for program in _AGENTS:
        if found := shutil.which(program):
            yield SetupFinding(program, found)


def _reached(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except OSError:
        return False
    return True
