"""What an HTTP exchange is made of: the body as it arrives, headers that are passed on, answers of our own.

Promises: headers keep their order and their repetitions, and only those of one connection are left out; an error quotes
no words of a request.
"""

import asyncio
import io
import os
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias

import aiohttp

from pagefold import zstd
from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.door import TOKEN_HEADER
from pagefold.wire import json_text
from pagefold.wire.apis import window_asked

Headers: TypeAlias = list[tuple[bytes, bytes]]

WISH_HEADER, WINDOW_HEADER, PROJECT_HEADER = b"x-pagefold", b"x-pagefold-window", b"x-pagefold-project"
HANDED_ON_HEADER = b"x-pagefold-handed-on"
CAME_WITH = "pagefold.headers"
"""Where a scope has the headers that a client sent, if those in their place are others."""
_MEANT_FOR_US = (TOKEN_HEADER, WISH_HEADER, WINDOW_HEADER, PROJECT_HEADER, HANDED_ON_HEADER)
NOT_PASSED_ON = frozenset((b"host", b"expect", *_MEANT_FOR_US))
"""Headers that are not for the upstream."""
_LARGEST_WINDOW = 100_000_000
_OF_ONE_CONNECTION = frozenset((b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade"))
_VALUE = itemgetter(1)
# Headers that aiohttp adds where a request has none of its own, unless it is told to leave them out.
_ADDED = {name: name.decode() for name in (b"accept", b"accept-encoding", b"content-type", b"user-agent")}
_PLAIN_BYTES = 1 << 20
CONNECT_SECONDS = 20
_WATCH_SECONDS = 0.05  # an answer that is there sooner is not worth a task that waits for the client to leave


class ClientLeftError(Exception):
    """The client closed its connection before it had the whole answer."""


class Upload:
    """Receives the body of a request, and notices when the client leaves."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._waiting: asyncio.Event | None = None
        self.bytes = 0
        self.whole = False
        self.gone = False

    async def read(self, most: int) -> bytes:
        """Returns the whole body, or its beginning where it is longer than `most`. Raises ClientLeftError."""
        pieces: list[bytes] = []
        while not self.whole and self.bytes <= most:
            pieces.append(self._data(await self._receive()))
        return b"".join(pieces)

    async def rest(self, first: bytes) -> AsyncIterator[bytes]:
        yield first
        while not self.whole and not self.gone:
            yield self._data(await self._receive())

    async def watch(self) -> None:
        """Waits for the client to leave, and then raises ClientLeftError. Never returns."""
        if not self.whole and not self.gone:  # somebody else is reading it
            self._waiting = asyncio.Event()
            await self._waiting.wait()
        while True:
            self._data(await self._receive())

    def _data(self, event: Event) -> bytes:
        if event["type"] == "http.disconnect":
            self.gone = True
        else:
            data: bytes = event.get("body", b"")
            self.bytes += len(data)
            self.whole = not event.get("more_body", False)
        if self._waiting is not None and (self.gone or self.whole):
            self._waiting.set()
        if self.gone:
            raise ClientLeftError
        return data


class EndsWithClient:
    """A context manager whose block ends with ClientLeftError when the client leaves."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._task: asyncio.Task[Any] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._left: BaseException | None = None

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._soon = asyncio.get_running_loop().call_later(_WATCH_SECONDS, self._watch)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        task, self._task = self._task, None
        self._soon.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if self._left is not None and task is not None and not task.uncancel() and kind is asyncio.CancelledError:
            raise self._left from None  # otherwise the server ends it as well

    def _watch(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._upload.watch())
        self._watcher.add_done_callback(self._ended)

    def _ended(self, watcher: asyncio.Task[None]) -> None:
        if self._task is not None and not watcher.cancelled():
            self._left = watcher.exception()
            self._task.cancel()


def asked_path(scope: Event) -> str:
    """The path of a request, with its query behind it."""
    path: bytes = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    return path.decode("ascii", "replace")


def passed_on(headers: Sequence[tuple[bytes, bytes]], dropped: frozenset[bytes] = frozenset()) -> Headers:
    """Returns the headers that are not of one connection, in their order, repeated ones included."""
    kept: Headers = []
    listed: list[bytes] = []
    for header in headers:
        if _travels(header[0], dropped):
            kept.append(header)
        elif header[0].lower() == b"connection":
            listed += header[1].lower().split(b",")
    if listed:
        words = {word.strip() for word in listed}
        return [header for header in kept if header[0].lower() not in words]
    return kept


@lru_cache(maxsize=1024)
def _travels(name: bytes, dropped: frozenset[bytes]) -> bool:
    low = name.lower()
    return low not in _OF_ONE_CONNECTION and low not in dropped and not low.startswith(b"proxy-")


def not_to_add(named: Mapping[bytes, bytes]) -> list[str] | None:
    """Returns the headers that a request with these goes on without, though aiohttp would add them."""
    return [text for name, text in _ADDED.items() if name not in named] or None


def sendable(body: bytes) -> bytes | io.BytesIO | None:
    """Returns a body as aiohttp sends it: plain bytes it writes in one go, and warns about that where they are many."""
    return io.BytesIO(body) if len(body) > _PLAIN_BYTES else body or None


def are_text(headers: Headers) -> bool:
    """Returns whether the values of all headers are UTF-8; others cannot be passed on."""
    try:
        b"\n".join(map(_VALUE, headers)).decode()
    except UnicodeDecodeError:
        return False
    return True


ILLEGIBLE = (zlib.error, zstd.ZstdError, EOFError)  # zstd: what follows the end of a frame


def decoder_for(encoding: str) -> Callable[[bytes], bytes] | None:
    """Returns a function that decodes a content encoding piece by piece, or None for one that is not known.

    The function raises ILLEGIBLE.
    """
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(wbits=32 + zlib.MAX_WBITS).decompress
    return zstd.ZstdDecompressor().decompress if encoding == "zstd" else None


def only_legible(headers: Headers) -> Headers:
    """The headers with no encoding in `accept-encoding` but those that `decoder_for` knows: what an answer says has to
    be read where it is charged."""
    return [(name, _legible(value) if name == b"accept-encoding" else value) for name, value in headers]


def _legible(accepted: bytes) -> bytes:
    asked = accepted.decode("latin-1").split(",")
    kept = [one.strip() for one in asked if decoder_for(one.split(";")[0].strip().lower()) is not None]
    return ", ".join(kept).encode("latin-1") or b"identity"


async def beginning(answer: aiohttp.ClientResponse, most: int) -> bytes:
    """Returns the first `most` bytes of an answer, in however many pieces they come."""
    found = b""
    while len(found) < most and (data := await answer.content.read(most - len(found))):
        found += data
    return found


def cause_of(error: Exception) -> str:
    """Says why there was no answer, without quoting the request."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return "its name could not be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return f"its certificate is not accepted ({error.certificate_error})"
        case TimeoutError():
            return f"no connection within {CONNECT_SECONDS} s"
        case aiohttp.ClientPayloadError():
            return "its answer was cut off"
        case aiohttp.ServerDisconnectedError():
            return "it closed the connection before answering"
        case aiohttp.ClientResponseError():
            return "what it answered is not HTTP"
        case OSError() if error.errno:
            return os.strerror(error.errno)
    return type(error).__name__


async def reply(send: Send, status: int, body: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, status: int, body: str) -> None:
    """Sends an error of our own, in the API's spelling of errors."""
    more = [(b"connection", b"close"), (b"upgrade", b"HTTP/1.1")] if status == 426 else []
    await reply(send, status, json_text.bytes_of(body), *more)


def window_in(headers: Mapping[bytes, bytes], *, given: bool = False) -> int:
    """How many tokens fit, as far as the headers of a request say; 0 where they do not. The client's flag for a larger
    window says what the provider would take: where the user has `given` a window, it does not count."""
    said = headers.get(WINDOW_HEADER, b"")
    if said.isdigit():
        return min(int(said[:12]), _LARGEST_WINDOW)
    return 0 if given else window_asked(headers)


def needs_upgrade(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request asks for another protocol in a way that cannot be ignored.

    An offer (of HTTP/2, say) can, unless there is a body: the parser takes what follows for the other protocol.
    """
    if b"upgrade" not in headers.get(b"connection", b"").lower() or b"upgrade" not in headers:
        return False
    has_body = b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
    return has_body or headers[b"upgrade"].lower() == b"websocket"
