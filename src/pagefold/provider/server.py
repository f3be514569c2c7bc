"""The referee as an ASGI application: three APIs under the paths that clients expect, and the totals.

One request after the other is judged, in the order in which they arrived. Compressed bodies are read as the APIs read
them (zstd, gzip). `GET /referee` returns what was counted, `GET /v1/models` a few names.
"""

import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any

from pagefold import zstd
from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.provider.referee import Referee
from pagefold.provider.reply import RequestRecord
from pagefold.wire import json_text

_MODELS = (
    "claude-opus-5-5",
    "claude-fable-5-2",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-opus-5",
    "gpt-5.6-sol",
)
_LARGEST = 64 << 20


class ProviderApp:
    """`clock` says what time it is; `seen` is called for every request, with its body as it was read."""

    def __init__(
        self,
        referee: Referee,
        *,
        clock: Callable[[], float] = time.time,
        seen: Callable[[RequestRecord, bytes], None] = lambda record, body: None,
    ) -> None:
        self.referee, self._clock, self._seen = referee, clock, seen

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["method"] != "POST":
            await _send(send, 200, "application/json", [self._get(scope["path"])])
            return
        body = _decoded(await _body(receive), headers.get("content-encoding", "").strip().lower())
        query = scope["query_string"].decode("ascii", "replace")
        path = f"{scope['path']}?{query}" if query else scope["path"]
        reply = self.referee.answer(path, headers, body, self._clock())
        self._seen(reply.record, body)
        await _send(send, reply.status, reply.kind, reply.pieces)

    def _get(self, path: str) -> bytes:
        if path == "/referee":
            return _json(self.referee.totals.to_json())
        if path == "/v1/models":
            listed = [{"id": name, "type": "model", "object": "model", "display_name": name} for name in _MODELS]
            return _json({"data": listed, "object": "list", "has_more": False})
        return _json({})


async def _body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    more = True
    while more:
        event = await receive()
        pieces.append(event.get("body", b""))
        more = event.get("more_body", False)
    return b"".join(pieces)


def _decoded(body: bytes, encoding: str) -> bytes:
    """A body without its content encoding; as it came where that cannot be undone, and then it is no JSON."""
    try:
        if encoding == "zstd":
            return zstd.ZstdDecompressor().decompress(body, _LARGEST)
        if encoding in ("gzip", "deflate"):
            return zlib.decompressobj(wbits=32 + zlib.MAX_WBITS).decompress(body, _LARGEST)
    except (zlib.error, zstd.ZstdError):
        return body
    return body


async def _send(send: Send, status: int, kind: str, pieces: Any) -> None:
    headers = [(b"content-type", kind.encode()), (b"request-id", b"req_referee")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body"})


def _json(value: Mapping[str, Any]) -> bytes:
    return json_text.bytes_of(json_text.dumps(value))
