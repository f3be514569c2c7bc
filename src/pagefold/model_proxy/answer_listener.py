"""Shows an exchange the answer that passes by: decoded, and in a few large pieces.

Nothing here holds the answer up: the client has a piece before it is shown.
"""

from collections.abc import Callable

import aiohttp

from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.http import ILLEGIBLE, decoder_for
from pagefold.wire.quota import limits_in

_SLICE_BYTES = 1024
_WAITING_BYTES = 32 << 10


class AnswerListener:
    """Collects the pieces of an answer for one exchange. `is_due` says that enough wait to be shown."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._decode: Callable[[bytes], bytes] | None = None
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._listens = False

    def began(self, response: aiohttp.ClientResponse) -> None:
        """The head of the answer is there."""
        encoding = response.headers.get("content-encoding", "").strip().lower()
        self._decode = decoder_for(encoding) if encoding else None
        legible = self._decode is not None or encoding in ("", "identity")
        limits = limits_in(response.headers)
        self._exchange.answer_began(
            response.status, response.headers.get("content-type", ""), legible=legible, limits=limits
        )
        self._listens = self._exchange.listening

    def add(self, data: bytes) -> None:
        if self._listens:
            self._waiting.append(data)
            self._waiting_bytes += len(data)

    @property
    def is_due(self) -> bool:
        return self._waiting_bytes > _WAITING_BYTES

    def show(self) -> None:
        """Shows the exchange what has come since the last time."""
        if not self._waiting:
            return
        data = b"".join(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        if self._decode is None:
            self._exchange.hear(data)
        else:
            # In slices, because a few compressed bytes can become very many, and the exchange sets the bound.
            for start in range(0, len(data), _SLICE_BYTES):
                if not self._exchange.listening:
                    break
                try:
                    self._exchange.hear(self._decode(data[start : start + _SLICE_BYTES]))
                except ILLEGIBLE:
                    self._exchange.not_legible()
        self._listens = self._exchange.listening
