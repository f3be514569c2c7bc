"""Decides what happens to each message between the client and one MCP server: takes a message, returns commands.

This is the part of the MCP proxy without I/O. Everything that is not listed here passes as the bytes that came, in the
order they came, in both directions and in both eras of the protocol (the `initialize` handshake, and the stateless one
with its envelope in `_meta`): batches, unknown methods, and what is not JSON-RPC at all.

- From the client: arguments meant for pagefold are removed from `tools/call`. Calls of pagefold's own tools and the
  notification `COMPACTED` do not reach the server.
- From the server: the texts of `tools/call`, the tools of `tools/list` and the instructions of a greeting are changed.
  A line that is not JSON, such as a banner, becomes `ReportLine` and does not reach the client.

A batch passes whole: neither its calls nor the answers in it are changed. But where it answers calls of tools, and in
an error of a tool, lines that could be taken for pagefold's are quoted.

`Relay` keeps no text of an answer. It remembers the open calls, so that each is answered even if the server dies, and
what the client sent to set the server up, so that a new process can be set up the same way.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pagefold.errors import RecallError, WireError
from pagefold.frozen import frozen
from pagefold.mcp_proxy import commands as do
from pagefold.mcp_proxy.lines import Overlong, id_of
from pagefold.mcp_proxy.replies import (
    SERVER_LOST,
    failure,
    may_pose,
    plain_id,
    respelled,
    text_reply,
    value_text,
    with_primer,
)
from pagefold.mcp_proxy.tool_result import ToolResult
from pagefold.wire import json_text, jsonrpc
from pagefold.wire.json_text import as_object, as_string
from pagefold.wire.jsonrpc import Batch, Call, Failure, Notification, Reply

READ_BYTES = 8 << 20
"""A longer message is passed on without being parsed, unless a line in it may look like one of pagefold's: no text of
it would be encoded anyway."""

OWN = '"pagefold-'
"""How the ids of the proxy's own calls begin, as JSON text."""

COMPACTED = "notifications/pagefold/compacted"
"""The notification by which a client says that its model no longer sees what was shown so far."""

DESCRIBE = "context_describe"
"""The tool of pagefold's own that returns what a shortened list of tools left out."""

_ENVELOPE = "io.modelcontextprotocol/"
_CLIENT = f"{_ENVELOPE}clientInfo"
_KEPT_CALLS = 100_000
_KEPT_CANCELLED = 1_000
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
VERSION = f"{_ENVELOPE}protocolVersion"
"""The member of `_meta` by which a call of the stateless era names its version of the protocol."""


@frozen
class UnansweredCall:
    """A call of the client's that the server has not answered yet. `stateless`: it carries the `_meta` envelope."""

    method: str
    stateless: bool = False
    tool_call: do.ToolCall | None = None
    output_request: Any = None


@dataclass(frozen=True, slots=True)
class Options:
    """What a relay adds and changes besides the texts. `listing` changes the result of `tools/list`, as JSON text."""

    tools: Sequence[str] = ()
    listing: Callable[[str, "ListPage"], str] | None = None
    describe: Callable[[Mapping[str, Any]], str] | None = None
    """Answers `DESCRIBE`."""
    split_arguments: Callable[[str, Mapping[str, Any]], tuple[Mapping[str, Any], Any] | None] | None = None
    """Returns (arguments for the server, extra pagefold options), or None if this tool takes no pagefold options."""
    primer: str = ""
    text_only_for: frozenset[str] = frozenset()
    """Clients that show their model `structuredContent` alone, by the name they greet with."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """Whether a page of `tools/list` is the last, whether its client is sent texts without `structuredContent`, and
    which tools get another name."""

    last: bool
    only_text: bool
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Tools of the server that have a name of pagefold's, and the name under which the client sees them."""


@dataclass(slots=True)
class Relay:
    """The state of one connection between the client and one server. Each method returns what has to be done, in order.

    `Servers` has the same methods for several servers; they name a server, which a relay ignores because it has one.
    """

    server: str = ""
    options: Options = field(default_factory=Options)
    client: str = ""
    calls: dict[str, UnansweredCall] = field(default_factory=dict)
    greeted: bool = False
    """Whether the server has ever answered: one that has not is not worth starting again."""
    annotations: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The annotations of each tool, as the server listed them."""
    envelope: Mapping[str, Any] = field(default_factory=dict)
    """The `_meta` envelope of the client's last stateless call."""
    own_tools: frozenset[str] = frozenset()
    """The names of pagefold's own tools. They are reserved: a server's tool of the same name gets another."""
    _renamed: dict[str, str] = field(default_factory=dict)
    """By the name that the client sees, the server's own name of a tool that has one of pagefold's."""
    _cancelled_calls: dict[str, UnansweredCall] = field(default_factory=dict)
    """Calls that the client has given up: what the server still answers is treated as any other result."""
    _greeting: str = ""
    _set_up: dict[str, str] = field(default_factory=dict)
    """The messages by which the client set the server up after the greeting; a new process is sent them again."""
    _repeated: int = 0

    def __post_init__(self) -> None:
        self.own_tools = frozenset(self.options.tools)

    # ---- from the client ---------------------------------------------------------------------------------------

    def from_client(self, data: bytes) -> list[do.Command]:
        try:
            message = jsonrpc.parse(data) if len(data) <= READ_BYTES else None
        except WireError:
            message = None
        match message:
            case Call():
                return self._asked(message, data)
            case Notification(method="notifications/cancelled"):
                return [do.ToServer(self.server, data), *self._cancelled(message)]
            case Notification(method="notifications/pagefold/compacted"):
                return [do.ForgetShown()]  # for pagefold alone: no server knows it
            case Notification(method="notifications/initialized"):
                self._set_up["initialized"] = message.raw
            case Batch():
                for call in message.messages:
                    if isinstance(call, Call):
                        self._remember(call)
        return [do.ToServer(self.server, data)]

    def _asked(self, call: Call, data: bytes) -> list[do.Command]:
        open_call, params = self._remember(call)
        tool_call = open_call.tool_call
        if tool_call is not None and tool_call.tool in self.own_tools:
            del self.calls[call.id]
            return [own_answer(self.options, tool_call, stateless=open_call.stateless)]
        match call.method:
            case "initialize":
                self._greeting, self._set_up = call.raw, {}
            case "logging/setLevel":
                self._set_up["level"] = call.raw
            case "resources/subscribe":
                self._set_up[f"subscribe {params.get('uri')}"] = call.raw
            case "resources/unsubscribe":
                self._set_up.pop(f"subscribe {params.get('uri')}", None)
        if tool_call is not None and tool_call.tool in self._renamed:
            tool_call = replace(tool_call, tool=self._renamed[tool_call.tool])
            self.calls[call.id] = replace(open_call, tool_call=tool_call)
            data = respelled(call.raw, ("params", "name"), json_text.dumps(tool_call.tool))
            return [do.ToServer(self.server, data, call=tool_call)]
        if tool_call is not None and self.options.split_arguments is not None:
            return [self._strip_pagefold_arguments(call, open_call, tool_call, data)]
        return [do.ToServer(self.server, data, call=tool_call)]

    def _strip_pagefold_arguments(
        self, call: Call, open_call: UnansweredCall, tool_call: do.ToolCall, data: bytes
    ) -> do.Command:
        """Sends the call with only those arguments that its tool knows. Refuses it where an option is wrong."""
        assert self.options.split_arguments is not None
        try:
            taken = self.options.split_arguments(tool_call.tool, tool_call.arguments)
        except RecallError as error:
            del self.calls[call.id]
            return do.ToClient(text_reply(call.id, str(error), failed=True, stateless=open_call.stateless))
        if taken is None:
            return do.ToServer(self.server, data, call=tool_call)
        arguments, output_request = taken
        if arguments != tool_call.arguments:
            data = respelled(call.raw, ("params", "arguments"), json_text.dumps(arguments))
        tool_call = replace(tool_call, arguments=arguments)
        self.calls[call.id] = replace(open_call, tool_call=tool_call, output_request=output_request)
        return do.ToServer(self.server, data, call=tool_call)

    def _remember(self, call: Call) -> tuple[UnansweredCall, Mapping[str, Any]]:
        params = as_object(call.params)
        meta = as_object(params.get("_meta"))
        if info := as_object(params.get("clientInfo") or meta.get(_CLIENT)):
            self.client = as_string(info.get("name")) or self.client
        tool = as_string(params.get("name")) if call.method == "tools/call" else ""
        tool_call = do.ToolCall(call.id, self.server, tool, as_object(params.get("arguments"))) if tool else None
        open_call = UnansweredCall(call.method, VERSION in meta, tool_call)
        if open_call.stateless:
            self.envelope = {key: value for key, value in meta.items() if key.startswith(_ENVELOPE)}
        self.calls[call.id] = open_call
        if len(self.calls) > _KEPT_CALLS:
            del self.calls[next(iter(self.calls))]
        return open_call, params

    def _cancelled(self, notice: Notification) -> list[do.Command]:
        id = value_text(notice.raw, ("params", "requestId"))
        if id in self.calls:
            self._cancelled_calls[id] = self.calls[id]
            if len(self._cancelled_calls) > _KEPT_CANCELLED:
                del self._cancelled_calls[next(iter(self._cancelled_calls))]
        tool_call = self.close(id)
        return [do.CallCancelled(tool_call)] if tool_call is not None else []

    # ---- from the server ---------------------------------------------------------------------------------------

    def from_server(self, server: str, data: bytes) -> list[do.Command]:
        if len(data) > READ_BYTES and not may_pose(data):
            return [do.ToClient(data, self.close(id_of(data[:4096], data[-4096:])))]
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return [do.ToClient(data)] if _looks_like_json(data) else [do.ReportLine(self.server, data)]
        self.greeted = True
        match message:
            case Reply():
                return self._answered(message, data)
            case Failure():
                tool_call = self.close(message.id)
                sent = do.Quote if tool_call is not None and may_pose(data) else do.ToClient
                return self._own_call(message, data) or [sent(data, tool_call, message)]
            case Batch():
                ended = [self.close(one.id) for one in message.messages if isinstance(one, Reply | Failure)]
                if any(ended) and may_pose(data):
                    return [do.Quote(data, message=message)]
        return [do.ToClient(data, message=message)]

    def overlong(self, line: Overlong) -> list[do.Command]:
        """Answers a call whose answer is too long to be held."""
        if line.id not in self.calls:
            note = f"a message of {line.length:,} bytes is longer than mcp.max_message_bytes and was dropped"
            return [do.ReportLine(self.server, note.encode())]
        words = f"the answer has {line.length:,} bytes, more than mcp.max_message_bytes allows; ask for less of it"
        return [do.ToClient(failure(line.id, SERVER_LOST, f"pagefold: {words}"), self.close(line.id))]

    def answered_early(self, result: ToolResult) -> list[do.Command]:
        """Answers a call by a result that was fetched before the client asked."""
        return self._answered(result.reply, result.data, result)

    def _answered(self, reply: Reply, data: bytes, result: ToolResult | None = None) -> list[do.Command]:
        id = self._asked_as(reply.id)
        open_call = self.calls.pop(id, None) or self._cancelled_calls.pop(id, None)
        if open_call is None:
            return self._own_call(reply, data) or [do.ToClient(data, message=reply)]
        tool_call = open_call.tool_call
        if tool_call is not None:
            only_text = self.client in self.options.text_only_for
            result = result or ToolResult(reply, data)
            return [do.Shorten(result, tool_call, open_call.output_request, only_text)]
        match open_call.method:
            case "tools/list":
                return [do.ToClient(self._listed(reply, data))]
            case "initialize" | "server/discover" if self.options.primer:
                return [do.ToClient(json_text.bytes_of(with_primer(reply.raw, self.options.primer)))]
        return [do.ToClient(data, message=reply)]

    def _listed(self, reply: Reply, data: bytes) -> bytes:
        spot = json_text.member(reply.members, "result")
        assert spot is not None, "a reply has a result"
        text = reply.raw[spot.start : spot.end]
        result = as_object(json_text.parse(text))
        tools = [as_object(tool) for tool in json_text.as_list(result.get("tools"))]
        annotations = {as_string(tool.get("name")): as_object(tool.get("annotations")) for tool in tools}
        prefix = f"mcp__{self.server}__" if self.server else ""
        self.annotations |= {f"{prefix}{tool}": hints for tool, hints in annotations.items()}
        if self.options.listing is None or not isinstance(result.get("tools"), list):
            return data
        renamed = {name: self._public_name(name, annotations) for name in annotations if name in self.own_tools}
        self._renamed |= {public: name for name, public in renamed.items()}
        only_text = self.client in self.options.text_only_for
        page = ListPage(not result.get("nextCursor"), only_text, renamed)
        changed = self.options.listing(text, page)
        return json_text.bytes_of(json_text.splice(reply.raw, [(spot.start, spot.end, changed)]))

    def _public_name(self, name: str, taken: Collection[str]) -> str:
        """Returns the name under which the client sees a tool of the server that has one of pagefold's."""
        known = next((public for public, own in self._renamed.items() if own == name), "")
        public = known or f"{_NOT_IN_A_NAME.sub('_', self.server) or 'server'}_{name}"
        while public in taken:
            public += "_"
        return public

    # ---- when the server's process ends, and a new one starts --------------------------------------------------

    def lost(self, server: str, why: str) -> list[do.Command]:
        """Answers every call that the server can no longer answer."""
        open_calls, self.calls = self.calls, {}
        words = f"pagefold: the server {why} before it answered; the call may or may not have had an effect"
        return [
            do.ToClient(failure(id, SERVER_LOST, words), open_call.tool_call)
            for id, open_call in open_calls.items()
            if not id.startswith(OWN)
        ]

    def restarted(self, server: str) -> list[do.Command]:
        """Greets a server's new process as the client greeted the old one."""
        if not self._greeting or not self.greeted:
            return [do.ServerReady(self.server)]
        return [self._repeat("greeting", self._greeting)]

    def refused(self, server: str, data: bytes, why: str) -> list[do.Command]:
        """Answers what could not be given to the server."""
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return []
        sent = message.messages if isinstance(message, Batch) else (message,)
        ids = [call.id for call in sent if isinstance(call, Call) and call.id in self.calls]
        return [do.ToClient(failure(id, SERVER_LOST, f"pagefold: the server {why}"), self.close(id)) for id in ids]

    def relay_of(self, server: str) -> "Relay":
        """Returns itself: there is one server."""
        return self

    def overdue(self) -> list[do.Command]:
        """Returns nothing: the client's greeting waits for the only server."""
        return []

    def close(self, id: str) -> do.ToolCall | None:
        """Forgets an open call. Returns its ToolCall, or None if it did not call a tool."""
        open_call = self.calls.pop(self._asked_as(id), None)
        return open_call.tool_call if open_call else None

    def _asked_as(self, id: str) -> str:
        """An id as the client spelled it: a server may spell it otherwise, and the client takes both for the same."""
        return id if not id or id in self.calls or id in self._cancelled_calls else plain_id(id)

    def _own_call(self, message: Reply | Failure, data: bytes) -> list[do.Command]:
        """Returns what to do with the answer to a call that the proxy made, or nothing if the client made it."""
        if message.id.startswith(f"{OWN}early-"):
            return [do.OwnCallAnswered(message.id, ToolResult(message, data) if isinstance(message, Reply) else None)]
        if message.id.startswith(f"{OWN}setup-"):
            return [do.OwnCallAnswered(message.id)]  # a replayed setup message: nobody is waiting for this reply
        return self._greeted_again() if message.id.startswith(f"{OWN}greeting-") else []

    def _greeted_again(self) -> list[do.Command]:
        messages: list[do.Command] = []
        for what, raw in self._set_up.items():
            if what == "initialized":
                messages.append(do.ToServer(self.server, json_text.bytes_of(raw), now=True))
            else:
                messages.append(self._repeat("setup", raw))
        return [*messages, do.ServerReady(self.server)]

    def _repeat(self, what: str, raw: str) -> do.ToServer:
        self._repeated += 1
        return do.ToServer(self.server, respelled(raw, ("id",), f'{OWN}{what}-{self._repeated}"'), now=True)


def own_answer(options: Options, call: do.ToolCall, *, stateless: bool = False) -> do.Command:
    """Answers a call of one of pagefold's own tools: `DESCRIBE` at once, the others when the command is carried out."""
    if call.tool == DESCRIBE and options.describe is not None:
        return do.ToClient(text_reply(call.id, options.describe(call.arguments), stateless=stateless))
    return do.AnswerOwnTool(call, stateless)


def _looks_like_json(data: bytes) -> bool:
    """Whether it starts and ends with matching braces or brackets, so that it may be an unknown kind of message.

    A truncated line or a plain-text banner does not.
    """
    text = data.strip(b" \t\r\n")
    return (text[:1] + text[-1:]) in (b"{}", b"[]")
