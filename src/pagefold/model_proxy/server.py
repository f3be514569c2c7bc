"""Serves an ASGI application over HTTP or HTTPS: until a signal arrives, or on loopback while a block runs."""

import asyncio
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from math import ceil
from types import FrameType
from typing import NamedTuple

import uvicorn

from pagefold.adapters.asgi import App, new_event_loop
from pagefold.adapters.descriptors import most_connections, raise_limit
from pagefold.adapters.gc_tuning import tune_gc
from pagefold.errors import ConfigError
from pagefold.model_proxy.limited_http import ConnectionLimits, within
from pagefold.settings.sections import ServeSettings

_IDLE_SECONDS = 300
_GRACE_SECONDS = 30.0
_SWITCH_SECONDS = 0.0005  # how long a thread that derives a long history may hold up the event loop


class ProxyServer(uvicorn.Server):
    """Ends on a signal as on any other call to stop: raising it again would keep the caller from saying a last word.

    `draining` is called at once when a signal arrives, so that nobody sends new requests here.
    """

    def __init__(self, configured: uvicorn.Config, draining: Callable[[], None]) -> None:
        super().__init__(configured)
        self._draining = draining

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._draining()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()


class Tls(NamedTuple):
    """Files of a certificate chain and of its key; an empty key is in the chain's file."""

    certificate: str
    key: str = ""

    def check(self) -> None:
        """Raises ConfigError where they are no certificate and its key."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key or None)
        except OSError as error:
            reason = error.strerror or "they do not fit together"
            said = f"serve.tls_certificate = {self.certificate!r}, serve.tls_key = {self.key!r}"
            raise ConfigError(f"{said}: expected a certificate chain and its key as PEM ({reason})") from error


def tls_of(settings: ServeSettings) -> Tls | None:
    return Tls(settings.tls_certificate, settings.tls_key) if settings.tls_certificate else None


class Service(NamedTuple):
    """How an application is served: with which certificate, within which limits, and how long answers may go on after
    a signal. `draining` is called when that arrives, and `reload` on SIGHUP. `listening` is a socket that listens
    already, if one does."""

    tls: Tls | None = None
    limits: ConnectionLimits | None = None
    grace_seconds: float = _GRACE_SECONDS
    draining: Callable[[], None] = lambda: None
    reload: Callable[[], None] | None = None
    listening: socket.socket | None = None


PLAIN = Service()


def limits_here() -> ConnectionLimits:
    """As many connections as the descriptors of this process allow, once their limit was raised."""
    return ConnectionLimits(most_connections(raise_limit()))


def server_for(app: App, service: Service = PLAIN) -> ProxyServer:
    tls = service.tls
    return ProxyServer(
        uvicorn.Config(
            app,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key or None if tls else None,
            http=within(service.limits or limits_here()),
            ws="none",
            lifespan="on",
            loop="none",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=ceil(service.grace_seconds),
        ),
        service.draining,
    )


def listen(host: str, port: int) -> socket.socket:
    """Raises ConfigError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise ConfigError(f"serve.port = {port}: cannot listen on {host} ({reason}); 0 takes any free port") from error


async def serve(app: App, host: str, port: int, *, started: Callable[[int], None], service: Service = PLAIN) -> None:
    """Serves until it is cancelled or a signal arrives, and then lets running answers end. `started` gets the port.

    Raises ConfigError where it cannot listen, or not with this certificate.
    """
    if service.tls:
        service.tls.check()
    with service.listening or listen(host, port) as listening:
        server = server_for(app, service)
        serving = asyncio.ensure_future(server.serve([listening]))
        if service.reload is not None and sys.platform != "win32":
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, service.reload)
        await asyncio.sleep(0)  # it takes signals from here on: whoever reads that it runs may end it
        started(listening.getsockname()[1])
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.should_exit = True
            await serving
            raise


def run(app: App, host: str, port: int, *, started: Callable[[int], None], service: Service = PLAIN) -> None:
    """`serve` on the fastest event loop there is, until a signal arrives. Raises ConfigError."""
    tune_gc()
    sys.setswitchinterval(_SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve(app, host, port, started=started, service=service))


@contextmanager
def running(app: App, port: int = 0, service: Service = PLAIN) -> Iterator[str]:
    """The address of the application, served on loopback by a thread of its own until the block ends.

    A port of 0 is any that is free. Raises ConfigError where it cannot listen."""
    server = server_for(app, service)
    listening = listen("127.0.0.1", port)

    def work() -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(server.serve([listening]))

    thread = threading.Thread(target=work, name="pagefold")
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
