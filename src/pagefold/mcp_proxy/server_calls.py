"""Calls that several servers make to one client: sampling, elicitation, roots.

Two servers may use the same id, so the client is asked under ids of the proxy, by which answers find their server.
"""

from dataclasses import dataclass, field

from pagefold.mcp_proxy.replies import respelled, value_text
from pagefold.wire import json_text
from pagefold.wire.json_text import as_object
from pagefold.wire.jsonrpc import Call, Failure, Notification, Reply

_OWN = '"pagefold-for-'


@dataclass(slots=True)
class ServerCalls:
    """The calls that wait for the client, each with its server, the server's id for it and its progress token."""

    _waiting: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    _counted: int = 0

    def called(self, server: str, call: Call) -> bytes:
        """A server's call as the client gets it."""
        self._counted += 1
        id = f'{_OWN}{self._counted}"'
        token = as_object(as_object(call.params).get("_meta")).get("progressToken")
        self._waiting[id] = (server, call.id, "" if token is None else json_text.dumps(token))
        return respelled(call.raw, ("id",), id)

    def answered(self, message: Reply | Failure) -> tuple[str, bytes]:
        """The server that waits for this answer of the client's, and the answer as it gets it; "" where none does."""
        server, id, _ = self._waiting.pop(message.id, ("", "", ""))
        return server, respelled(message.raw, ("id",), id) if server else b""

    def cancelled(self, server: str, notice: Notification) -> bytes:
        """A server's cancellation as the client gets it; empty where it cancels no call that waits."""
        call = (server, value_text(notice.raw, ("params", "requestId")))
        id = next((id for id, waiting in self._waiting.items() if waiting[:2] == call), "")
        if not id:
            return b""
        del self._waiting[id]
        return respelled(notice.raw, ("params", "requestId"), id)

    def owner(self, token: str) -> str:
        """The server whose call a progress token of the client's belongs to, or ""."""
        return next((server for server, _, waiting in self._waiting.values() if waiting == token), "")
