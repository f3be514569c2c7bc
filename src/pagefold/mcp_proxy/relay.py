"""The pure half of the MCP proxy for one server: a message in, commands out.

Promises: what is not changed is passed on as the very bytes that came, in the order they came, in both directions and
both eras of the protocol (the `initialize` handshake, and the stateless one with its envelope in `_meta`): requests,
answers, errors, notifications, batches, methods that nobody knows yet, and what is not JSON-RPC at all. Only three
kinds of answers are touched: the texts of `tools/call`, the tools of `tools/list`, the instructions of the greeting.

Waits for nothing and holds no text of an answer. It remembers which calls are open, so that each is answered even where
the server dies, and how the client greeted, so that a new process of the server can be greeted the same way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pagefold.errors import RecallError, WireError
from pagefold.frozen import frozen
from pagefold.mcp_proxy.commands import (
    AnswerOwnTool,
    CallCancelled,
    Command,
    ForgetShown,
    OwnCallAnswered,
    ReportLine,
    ServerReady,
    Shorten,
    ToClient,
    ToolCall,
    ToServer,
)
from pagefold.mcp_proxy.lines import Overlong, id_of
from pagefold.mcp_proxy.replies import SERVER_LOST, failure, respelled, text_reply, with_primer
from pagefold.wire import json_text, jsonrpc
from pagefold.wire.json_text import as_object, as_string
from pagefold.wire.jsonrpc import Batch, Call, Failure, Notification, Reply

READ_BYTES = 8 << 20
"""A longer message is passed on without being read: no text of it would be encoded anyway."""

OWN = '"pagefold-'
"""How the ids of our own calls begin, as JSON text."""

COMPACTED = "notifications/pagefold/compacted"
"""By which a client says that its model sees no more of what was shown so far."""

DESCRIBE = "context_describe"
"""The tool of ours that says what a short list left out."""

_KEPT_CALLS = 100_000
_ENVELOPE = "io.modelcontextprotocol/"
_CLIENT, _VERSION = f"{_ENVELOPE}clientInfo", f"{_ENVELOPE}protocolVersion"


@frozen
class OpenCall:
    """An open call of the client's."""

    method: str
    tool: str = ""
    modern: bool = False
    call: ToolCall | None = None
    wish: Any = None


@dataclass(frozen=True, slots=True)
class Options:
    """What is offered and changed beyond the texts. `listing` changes the result of `tools/list`, as JSON text."""

    tools: Sequence[str] = ()
    listing: Callable[[str, "ListPage"], str] | None = None
    describe: Callable[[Mapping[str, Any]], str] | None = None
    """Answers `DESCRIBE`."""
    taken_out: Callable[[str, Mapping[str, Any]], tuple[Mapping[str, Any], Any] | None] | None = None
    """A tool's own arguments, and what an agent asked of us among them; None where the tool has no such parameters."""
    primer: str = ""
    text_only_for: frozenset[str] = frozenset()
    """Clients that show their model `structuredContent` alone, by the name they give themselves."""


@dataclass(frozen=True, slots=True)
class ListPage:
    """Whom a list of tools is for, and whether it is the last page of it."""

    last: bool
    only_text: bool


@dataclass(slots=True)
class Relay:
    server: str = ""
    options: Options = field(default_factory=Options)
    client: str = ""
    calls: dict[str, OpenCall] = field(default_factory=dict)
    greeted: bool = False
    annotations: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the server says of its tools."""
    envelope: Mapping[str, Any] = field(default_factory=dict)
    """What a call of the stateless era carries, as the client's last one did."""
    ours: frozenset[str] = frozenset()
    """The tools of ours that the server has none of the same name for."""
    _greeting: str = ""
    _standing: dict[str, str] = field(default_factory=dict)
    _again: int = 0

    def __post_init__(self) -> None:
        self.ours = frozenset(self.options.tools)

    # ---- what the client says ----------------------------------------------------------------------------------

    def from_client(self, data: bytes) -> list[Command]:
        if len(data) > READ_BYTES:
            return [ToServer(self.server, data)]
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return [ToServer(self.server, data)]
        match message:
            case Call():
                return self._asked(message, data)
            case Notification(method="notifications/cancelled"):
                return [ToServer(self.server, data), *self._cancelled(message)]
            case Notification(method="notifications/pagefold/compacted"):
                return [ForgetShown()]  # it is for us, and no server knows it
            case Notification(method="notifications/initialized"):
                self._standing["initialized"] = message.raw
            case Batch():
                for call in message.messages:
                    if isinstance(call, Call):
                        self._remember(call)
        return [ToServer(self.server, data)]

    def _asked(self, call: Call, data: bytes) -> list[Command]:
        asked, params = self._remember(call)
        if asked.tool in self.ours:
            del self.calls[call.id]
            return [own_answer(self.options, call.id, params, modern=asked.modern)]
        match call.method:
            case "initialize":
                self._greeting, self._standing = call.raw, {}
            case "logging/setLevel":
                self._standing["level"] = call.raw
            case "resources/subscribe":
                self._standing[f"subscribe {params.get('uri')}"] = call.raw
            case "resources/unsubscribe":
                self._standing.pop(f"subscribe {params.get('uri')}", None)
        if asked.call is not None and self.options.taken_out is not None:
            return [self._without_ours(call, asked, asked.call, data)]
        return [ToServer(self.server, data, call=asked.call)]

    def _without_ours(self, call: Call, asked: OpenCall, calling: ToolCall, data: bytes) -> Command:
        """A call with the arguments that its tool knows."""
        assert self.options.taken_out is not None
        try:
            taken = self.options.taken_out(asked.tool, calling.arguments)
        except RecallError as error:
            del self.calls[call.id]
            return ToClient(text_reply(call.id, str(error), failed=True, modern=asked.modern))
        if taken is None:
            return ToServer(self.server, data, call=calling)
        own, wish = taken
        given, calling = calling.arguments, replace(calling, arguments=own)
        self.calls[call.id] = replace(asked, call=calling, wish=wish)
        if own != given:
            data = respelled(call.raw, ("params", "arguments"), json_text.dumps(own))
        return ToServer(self.server, data, call=calling)

    def _remember(self, call: Call) -> tuple[OpenCall, Mapping[str, Any]]:
        params = as_object(call.params)
        meta = as_object(params.get("_meta"))
        if info := as_object(params.get("clientInfo") or meta.get(_CLIENT)):
            self.client = as_string(info.get("name")) or self.client
        tool = as_string(params.get("name")) if call.method == "tools/call" else ""
        calling = ToolCall(call.id, self.server, tool, as_object(params.get("arguments"))) if tool else None
        asked = OpenCall(call.method, tool, _VERSION in meta, calling)
        if asked.modern:
            self.envelope = {key: value for key, value in meta.items() if key.startswith(_ENVELOPE)}
        self.calls[call.id] = asked
        if len(self.calls) > _KEPT_CALLS:
            del self.calls[next(iter(self.calls))]
        return asked, params

    def _cancelled(self, message: Notification) -> list[Command]:
        # Nothing answers a cancelled call, so nothing else would ever close it.
        try:
            start, end = json_text.find(message.raw, ("params", "requestId"))
        except WireError:
            return []
        gone = self.calls.pop(message.raw[start:end], None)
        return [CallCancelled(gone.call)] if gone is not None and gone.call is not None else []

    # ---- what the server says ----------------------------------------------------------------------------------

    def from_server(self, server: str, data: bytes) -> list[Command]:
        if len(data) > READ_BYTES:
            passed = self.calls.pop(id_of(data[:4096], data[-4096:]), None)
            return [ToClient(data, passed.call if passed else None)]
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return [ToClient(data)] if _is_closed(data) else [ReportLine(self.server, data)]
        self.greeted = True
        match message:
            case Reply():
                return self._answered(message, data)
            case Failure():
                failed = self.calls.pop(message.id, None)
                return self._of_ours(message.id, data) or [ToClient(data, failed.call if failed else None)]
        return [ToClient(data)]

    def overlong(self, server: str, line: Overlong) -> list[Command]:
        """What is said in place of an answer that is too long to be held."""
        asked = self.calls.pop(line.id, None)
        if asked is None:
            note = f"a message of {line.length:,} bytes is longer than mcp.max_message_bytes and was dropped"
            return [ReportLine(self.server, note.encode())]
        words = f"the answer has {line.length:,} bytes, more than mcp.max_message_bytes allows; ask for less of it"
        return [ToClient(failure(line.id, SERVER_LOST, f"pagefold: {words}"), asked.call)]

    def _answered(self, reply: Reply, data: bytes) -> list[Command]:
        asked = self.calls.pop(reply.id, None)
        if asked is None:
            return self._of_ours(reply.id, data) or [ToClient(data)]
        match asked.method:
            case "tools/call":
                only_text = self.client in self.options.text_only_for
                return [Shorten(data, asked.tool, self.server, asked.call, asked.wish, only_text)]
            case "tools/list":
                return [ToClient(self._listed(reply, data))]
            case "initialize" | "server/discover":
                return [ToClient(self._with_primer(reply, data))]
        return [ToClient(data)]

    def _with_primer(self, reply: Reply, data: bytes) -> bytes:
        return json_text.bytes_of(with_primer(reply.raw, self.options.primer)) if self.options.primer else data

    def _listed(self, reply: Reply, data: bytes) -> bytes:
        result = as_object(as_object(json_text.parse(reply.raw)).get("result"))
        tools = [as_object(tool) for tool in json_text.as_list(result.get("tools"))]
        said = {as_string(tool.get("name")): as_object(tool.get("annotations")) for tool in tools}
        self.annotations |= {
            (f"mcp__{self.server}__{tool}" if self.server else tool): told for tool, told in said.items()
        }
        self.ours -= said.keys()
        if self.options.listing is None:
            return data
        page = ListPage(last=not result.get("nextCursor"), only_text=self.client in self.options.text_only_for)
        start, end = json_text.find(reply.raw, ("result",))
        changed = self.options.listing(reply.raw[start:end], page)
        return json_text.bytes_of(json_text.splice(reply.raw, [(start, end, changed)]))

    # ---- when the server goes, and comes again -----------------------------------------------------------------

    def lost(self, server: str, why: str) -> list[Command]:
        """Answers for every call that the server can answer no more."""
        open_calls, self.calls = self.calls, {}
        words = f"pagefold: the server {why} before it answered; the call may or may not have had an effect"
        return [
            ToClient(failure(id, SERVER_LOST, words), asked.call)
            for id, asked in open_calls.items()
            if not id.startswith(OWN)
        ]

    def back(self, server: str) -> list[Command]:
        """What a new process of the server is told first: what the old one had been told."""
        if not self._greeting or not self.greeted:
            return [ServerReady(self.server)]
        return [self._repeat("greeting", self._greeting)]

    def refused(self, server: str, data: bytes, why: str) -> list[Command]:
        """An answer for what could not be given to the server."""
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return []
        asked = message.messages if isinstance(message, Batch) else (message,)
        gone = {call.id: self.calls.pop(call.id, None) for call in asked if isinstance(call, Call)}
        words = f"pagefold: the server {why}"
        return [ToClient(failure(id, SERVER_LOST, words), was.call) for id, was in gone.items() if was is not None]

    def drop(self, server: str, id: str) -> None:
        """A call that was answered without the server."""
        self.calls.pop(id, None)

    def is_known(self, server: str) -> bool:
        """Whether the server has ever answered: one that has not is not worth starting again."""
        return self.greeted

    def overdue(self) -> list[Command]:
        return []

    def _of_ours(self, id: str, data: bytes) -> list[Command]:
        """What becomes of an answer to a call of ours; nothing where it is none."""
        if id.startswith(f"{OWN}early-"):
            return [OwnCallAnswered(id, data)]
        if id.startswith(f"{OWN}standing-"):
            return [OwnCallAnswered(id, b"")]  # to something that was said once more: nobody waits for it
        return self._greeted_again() if id.startswith(f"{OWN}greeting-") else []

    def _greeted_again(self) -> list[Command]:
        told: list[Command] = []
        for what, raw in self._standing.items():
            if what == "initialized":
                told.append(ToServer(self.server, json_text.bytes_of(raw), now=True))
            else:
                told.append(self._repeat("standing", raw))
        return [*told, ServerReady(self.server)]

    def _repeat(self, what: str, raw: str) -> ToServer:
        self._again += 1
        return ToServer(self.server, respelled(raw, ("id",), f'{OWN}{what}-{self._again}"'), now=True)


def own_answer(options: Options, id: str, params: Mapping[str, Any], *, modern: bool = False) -> Command:
    """What becomes of a call of a tool of ours. Descriptions are at hand; the rest is for others to know."""
    tool, arguments = as_string(params.get("name")), as_object(params.get("arguments"))
    if tool == DESCRIBE and options.describe is not None:
        return ToClient(text_reply(id, options.describe(arguments), modern=modern))
    return AnswerOwnTool(id, tool, arguments, modern)


def _is_closed(data: bytes) -> bool:
    """Whether it may be a message of a kind that is not known here; half a message, or a word of thanks, is not."""
    text = data.strip(b" \t\r\n")
    return (text[:1] + text[-1:]) in (b"{}", b"[]")
