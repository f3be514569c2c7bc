"""What the requests of a proxy use of it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from yarl import URL

from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import Seen, Totals
from pagefold.model_proxy.turn_recorder import TurnRecorder
from pagefold.pages.page import PageId


class FinishedRequest(Protocol):
    """A request that is yet to be counted. `held` bytes are kept in memory until then."""

    @property
    def held(self) -> int: ...

    def count(self) -> None: ...


class Host(Protocol):
    """The part of the proxy that its requests use."""

    conversations: Conversations
    exchange: Callable[..., Exchange]
    put: Callable[..., PageId]
    write_back: Callable[..., object]
    answers: Callable[..., str]
    read_bytes: int
    http_proxies: Mapping[str, str]
    recorder: TurnRecorder | None

    def is_free(self) -> bool: ...

    async def work(self, step: Callable[[], Any]) -> Callable[[], Any]: ...

    def fault(self, error: Exception) -> None: ...

    def enqueue_finished(self, request: FinishedRequest) -> None: ...

    def count_finished(self) -> None: ...

    def record_seen(self, seen: Seen) -> None: ...

    def add(self, counts: Totals) -> None: ...

    def fell_silent(
        self, exchange: Exchange, seen: Seen, target: URL, upstream: tuple[list[tuple[str, str]], bytes]
    ) -> None: ...
