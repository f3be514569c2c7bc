"""Calls that several servers make to one client: sampling, elicitation, roots.

Two servers may use the same id, so the client is asked under ids of ours, and answers find their way back by them.
"""

from dataclasses import dataclass, field

from pagefold.errors import WireError
from pagefold.mcp_proxy.replies import respelled
from pagefold.wire import json_text
from pagefold.wire.json_text import as_object
from pagefold.wire.jsonrpc import Call, Failure, Notification, Reply

_OWN = '"pagefold-for-'


@dataclass(slots=True)
class ServerCalls:
    """The calls that wait for the client, each with its server, its own id and its progress token."""

    _waiting: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    _counted: int = 0

    def called(self, server: str, call: Call) -> bytes:
        """A server's call as the client gets it."""
        self._counted += 1
        id = f'{_OWN}{self._counted}"'
        params = as_object(as_object(json_text.parse(call.raw)).get("params"))
        token = as_object(params.get("_meta")).get("progressToken")
        self._waiting[id] = (server, call.id, "" if token is None else json_text.dumps(token))
        return respelled(call.raw, ("id",), id)

    def answered(self, message: Reply | Failure) -> tuple[str, bytes]:
        """The server that waits for this answer of the client's, and the answer as it gets it; "" where nobody does."""
        server, id, _ = self._waiting.pop(message.id, ("", "", ""))
        return server, respelled(message.raw, ("id",), id) if server else b""

    def cancelled(self, server: str, notice: Notification) -> bytes:
        """A server's cancellation as the client gets it; nothing where it cancels no call that waits."""
        try:
            start, end = json_text.find(notice.raw, ("params", "requestId"))
        except WireError:
            return b""
        there = (server, notice.raw[start:end])
        id = next((id for id, theirs in self._waiting.items() if theirs[:2] == there), "")
        if not id:
            return b""
        del self._waiting[id]
        return respelled(notice.raw, ("params", "requestId"), id)

    def owner(self, token: str) -> str:
        """Whose call a progress token of the client's belongs to, or ""."""
        return next((server for server, _, theirs in self._waiting.values() if theirs == token), "")
