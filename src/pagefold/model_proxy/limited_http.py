"""HTTP/1.1 connections within limits: how many there are, how long and large a head may be, and how slow a body.

Who comes when there are too many gets a 503 with Retry-After as soon as its request is there; who comes even then is
hung up on. So is a client whose head is not there after a while, however it drips in, or whose body hardly goes on; an
answer may take any time.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from pagefold.adapters.asgi import Event, Receive, Send

_RETRY_SECONDS = 2
_BUSY = b'{"type":"error","error":{"type":"overloaded_error","message":"pagefold serves as many clients as it can"}}'
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_HEAD_BYTES = 256 << 10
_GOING_ON = 1024  # bytes that a body has to bring until it is given more time
_REFUSED_AT_ONCE = 16  # connections above the limit that are answered; more are hung up on


@dataclass(slots=True)
class ConnectionLimits:
    """`refused` counts clients that were turned away, by why."""

    connections: int = 10_000
    head_seconds: float = 30.0
    body_seconds: float = 120.0
    open: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class LimitedHttp(HttpToolsProtocol):
    """A connection. `limits` is set by `within`."""

    limits: ConnectionLimits

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._awaited = ""  # the part of a request that has begun to arrive and is not there yet
        self._received = 0  # bytes since the timer was set

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        limits = self.limits
        limits.open += 1
        if limits.open > limits.connections:
            limits.refused["too many"] += 1
            self.app = _busy
            if limits.open > limits.connections + _REFUSED_AT_ONCE:
                transport.abort()
                return
        self._wait(limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self.limits.open -= 1
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._received += len(data)
        if self._awaited == "body":
            if self._timer is None or self._received >= _GOING_ON:
                self._wait(self.limits.body_seconds)
        elif self._awaited or self._is_idle:  # blank lines may go before a head
            if self._timer is None:
                self._wait(self.limits.head_seconds)
            elif self._received > _HEAD_BYTES:
                self._hang_up("large head", _TOO_LARGE)
        else:
            self._stop_waiting()

    @property
    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def on_message_begin(self) -> None:
        self._awaited = "head"
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes headers of the head alone. Those behind a chunked body (trailers) would come after all that was
        checked, and go upstream with it."""
        if self._awaited == "head":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._awaited = "body"
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._awaited = ""
        super().on_message_complete()

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._received = 0
        self._timer = self.loop.call_later(seconds, self._late)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if self.flow.read_paused:  # it is we who do not read on
            self._wait(self.limits.body_seconds)
            return
        if self._awaited:
            self._hang_up(f"slow {self._awaited}", _TIMEOUT if self._awaited == "head" else b"")
        else:
            self.transport.close()

    def _hang_up(self, why: str, answer: bytes) -> None:
        self.limits.refused[why] += 1
        self._stop_waiting()
        self.transport.write(answer)
        self.transport.close()


def within(limits: ConnectionLimits) -> type[LimitedHttp]:
    """Returns the protocol with these limits: uvicorn takes a class."""
    return type("LimitedHttp", (LimitedHttp,), {"limits": limits})


async def _busy(scope: Event, receive: Receive, send: Send) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(_BUSY)),
        (b"retry-after", b"%d" % _RETRY_SECONDS),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _BUSY})
