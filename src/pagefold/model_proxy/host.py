"""What the requests of a proxy use of it."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from yarl import URL

from pagefold.adapters.store_thread import Pending
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.other_version import OtherVersion
from pagefold.model_proxy.readiness import Readiness
from pagefold.model_proxy.saving import Saving
from pagefold.model_proxy.session_rows import SessionRows
from pagefold.model_proxy.totals import Seen, Totals
from pagefold.model_proxy.turn_recorder import TurnRecorder


class FinishedRequest(Protocol):
    """A request that is yet to be counted. `held` bytes are kept in memory until then."""

    @property
    def held(self) -> int: ...

    def count(self) -> None: ...


class Host(Protocol):
    """The part of the proxy that its requests use."""

    conversations: Conversations
    exchange: Callable[..., Exchange]
    saving: Saving
    readiness: Readiness
    answers: Callable[..., str]
    read_bytes: int
    http_proxies: Mapping[str, str]
    other_version: OtherVersion
    recorder: TurnRecorder | None
    session_rows: SessionRows | None
    meter: Callable[[Seen, Mapping[bytes, bytes]], None]
    unanswered: Callable[[str, str], None]

    soon: Callable[[Callable[[], object]], Pending]

    def is_free(self) -> bool: ...

    async def work(self, step: Callable[[], Any]) -> Callable[[], Any]: ...

    async def work_aside(self, step: Callable[[], Any]) -> Callable[[], Any]: ...

    def aside(self, step: Callable[[], None]) -> None: ...

    def fault(self, error: Exception) -> None: ...

    def enqueue_finished(self, request: FinishedRequest) -> None: ...

    def count_finished(self) -> None: ...

    def record_seen(self, seen: Seen, headers: Mapping[bytes, bytes]) -> None: ...

    def add(self, counts: Totals) -> None: ...

    def goes_on(self, exchange: Exchange | None) -> None: ...

    def fell_silent(
        self, exchange: Exchange, seen: Seen, target: URL, upstream: tuple[list[tuple[str, str]], bytes]
    ) -> None: ...
