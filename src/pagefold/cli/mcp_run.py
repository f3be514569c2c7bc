"""Runs `pagefold mcp` once its server has been started: reads the settings, connects client and servers, ends them."""

import argparse
import asyncio
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pagefold import config
from pagefold.adapters.asgi import new_event_loop
from pagefold.cli import counter_writer
from pagefold.errors import ConfigError
from pagefold.mcp_proxy import stdio
from pagefold.mcp_proxy.connection import ConnectionFactory
from pagefold.mcp_proxy.launch import ChildProcess
from pagefold.mcp_proxy.session import ProxySession
from pagefold.mcp_proxy.signals import asked_to_end
from pagefold.mcp_proxy.specs import Spec, specs_of
from pagefold.settings.sections import Settings, StoreSettings

if TYPE_CHECKING:  # imported with the store, when a session first opens it
    from pagefold.adapters.protection import Protection
    from pagefold.adapters.retention import Retention

_LAST_PORT = 65_535
_Counting: TypeAlias = AbstractContextManager[None]


def run(options: argparse.Namespace, child: ChildProcess | None = None) -> int:
    """`child` is the server, where it has been started already."""
    # --config names a client's list of servers, which is JSON, or pagefold's settings, which are TOML.
    servers_file = options.config if options.config and options.config.endswith(".json") else None
    names = ("tools", "slim_tools", "references", "budget", "parameters", "as_is", "structured")
    flags: dict[str, object] = {f"mcp.{name}": getattr(options, name) for name in names}
    settings = config.load(
        flags={**flags, **config.store_flags(options.store), "config": None if servers_file else options.config}
    ).settings
    # uvloop would take a number out of range for another port.
    if options.http is not None and not 0 <= options.http <= _LAST_PORT:
        raise ConfigError(f"--http {options.http}: expected a port from 0 to {_LAST_PORT}")
    specs = _specs(options.server, servers_file, options.name)
    counts: Counter[str] = Counter()
    retention = _SharedRetention(settings.store)
    factory = ConnectionFactory(
        specs,
        settings.mcp,
        config.process_environment,
        open_store=partial(_open_result_store, settings, retention),
        remote=_remote(settings) if any(spec.url for spec in specs) else None,
        open_prefetch=partial(_open_prefetch, settings, counts) if settings.prefetch.enabled else None,
        counts=counts,
        children={options.name: child} if child else {},
        watch=_watch(settings),
    )
    counting = counter_writer.counting(settings, "mcp", lambda: counts)
    if options.http is not None:
        with closing(retention), asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_http(factory, counting, options, settings.serve.token))
        return 0
    try:
        with closing(retention), asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(_stdio(factory, counting))
    finally:
        stdio.leave()


async def _stdio(factory: ConnectionFactory, counting: _Counting) -> int:
    sessions: list[ProxySession] = []

    async def begin(output: stdio.Output) -> ProxySession:
        session = factory.session(output.tell)
        sessions.append(session)
        await factory.start(session)
        return session

    with counting:
        try:
            return await stdio.serve(begin)
        finally:
            for session in sessions:
                session.processor.close()


async def _http(factory: ConnectionFactory, counting: _Counting, options: argparse.Namespace, token: str) -> None:
    from pagefold.mcp_proxy import http
    from pagefold.mcp_proxy.http_passthrough import HttpPassthrough

    def started(port: int) -> None:
        url = f"http://127.0.0.1:{port}/mcp"
        print(json.dumps({"url": url}) if options.json else f"pagefold serves MCP on {url}; Ctrl-C ends it", flush=True)

    speaks_http = len(factory.specs) == 1 and factory.specs[0].url
    endpoint = HttpPassthrough(factory) if speaks_http else http.HttpEndpoint(factory)
    with counting:
        try:
            await http.run(endpoint, options.http, started=started, until=asked_to_end(), token=token)
        finally:
            await endpoint.close()


def _specs(command: Sequence[str], file: str | None, name: str) -> list[Spec]:
    if file:
        try:
            text = Path(file).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot be read: {error}") from error
        return specs_of(config.with_variables(text), file)
    if not command:
        raise ConfigError("pagefold mcp: expected -- and a command, the address of a server, or --config mcp.json")
    if command[0].startswith(("http://", "https://")):
        if len(command) > 1:
            raise ConfigError(f"pagefold mcp: expected nothing behind the address {command[0]}")
        return [Spec(name, url=command[0])]
    return [Spec(name, tuple(command))]


def _open_result_store(
    settings: Settings, retention: "_SharedRetention", counts: Counter[str], forget: Callable[[], None]
) -> Any:
    from pagefold.adapters.library import Library
    from pagefold.adapters.local_files import LocalFiles
    from pagefold.adapters.model_proxy_lock import model_proxy_is_running
    from pagefold.adapters.protection import protection_of
    from pagefold.mcp_proxy.result_store import ResultStore

    def opened() -> Library:
        place, protection = config.store_place(settings), protection_of(settings.store, settings.sink)
        retention.start(place, protection)
        return Library.open(place, settings.sink, scope=config.project_scope(settings), protection=protection)

    def is_read() -> bool:
        with suppress(ConfigError):  # without a place for a store there is none to share
            return model_proxy_is_running(LocalFiles(config.store_path(settings)).model_proxy_lock)
        return False

    history = _history() if settings.mcp.tools else ""
    return ResultStore(opened, history, counts, reset=forget, is_read=is_read)


class _SharedRetention:
    """Collects the store while the process runs, however many sessions open it: from the first that does."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings, self._lock = settings, threading.Lock()
        self._running: Retention | None = None

    def start(self, place: str | Path, protection: "Protection") -> None:
        from pagefold.adapters.stores import retention_of

        with self._lock:
            if self._running is None:
                self._running = retention_of(place, self._settings, protection)
                self._running.start()

    def close(self) -> None:
        if self._running is not None:
            self._running.close()


def _history() -> str:
    """The name of the conversation. A client may start a proxy for each of its servers: they share what was shown."""
    return f"mcp-{os.getppid()}-{datetime.now(tz=UTC):%Y%m%d}"


def _open_prefetch(settings: Settings, counts: Counter[str]) -> Any:
    from pagefold.mcp_proxy.prefetch_driver import PrefetchDriver

    return PrefetchDriver(settings, counts)


def _watch(settings: Settings) -> Callable[[str, Mapping[str, int]], None] | None:
    """Writes every call to the decision trace, where there is one."""
    if not (settings.telemetry.trace or settings.telemetry.otel_endpoint):
        return None
    from pagefold.cli import telemetry_setup

    return telemetry_setup.call_recorder(settings, _history())


def _remote(settings: Settings) -> Callable[[Spec, ProxySession], Any]:
    from pagefold.mcp_proxy.remote import Remote

    return lambda spec, session: Remote(spec, session, longest_bytes=settings.mcp.max_message_bytes)
