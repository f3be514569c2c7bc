"""Several servers behind one connection: decides which server gets a message, and merges what all of them answer.

Each server has a relay of its own, which keeps its promises. A call finds its server by the name of the tool or prompt,
the address of the resource or the id of the task. A list joins the lists of all servers; a greeting offers what they
can do together. Calls of the servers to the client get ids of the proxy, since two servers may use the same id. Nobody
waits for a server that is gone: the lists are made of the others.

Several servers speak with their client by the `initialize` handshake, which servers of both eras understand. A client
that tries the stateless era first gets the error that the method is unknown, and then greets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.errors import WireError
from pagefold.mcp_proxy import merge, replies
from pagefold.mcp_proxy.commands import Command, ForgetShown, Shorten, ToClient, ToolCall
from pagefold.mcp_proxy.relay import COMPACTED, DESCRIBE, OWN, VERSION, ListPage, Options, Relay, own_answer
from pagefold.mcp_proxy.server_calls import ServerCalls
from pagefold.mcp_proxy.tool_result import ToolResult
from pagefold.wire import json_text, jsonrpc
from pagefold.wire.json_text import as_list, as_object, as_string
from pagefold.wire.jsonrpc import Batch, Call, Failure, Notification, Reply

_NO_METHOD = -32601
_BAD_PARAMS = -32602
_BAD_REQUEST = -32600
_OTHER_VERSION = -32022
_KEPT_TASKS = 10_000


@dataclass(slots=True)
class FanOut:
    """A client's call that several servers answer. With `first`, one good answer is enough.

    `id` is "" where the client did not ask; `then` are messages of the client's that wait for the answer.
    """

    id: str
    method: str
    params: Mapping[str, Any]
    waiting: set[str]
    answers: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    first: bool = False
    then: tuple[bytes, ...] = ()


@dataclass(slots=True)
class Servers:
    """The state of one client's connection to several servers. It has the methods of `Relay`, which handles one."""

    relays: Mapping[str, Relay]
    options: Options = field(default_factory=Options)
    version: str = ""
    own_tools: frozenset[str] = frozenset()
    _down: set[str] = field(default_factory=set)
    _capable: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The capabilities of each server that has greeted."""
    _fan_outs: dict[int, FanOut] = field(default_factory=dict)
    _asked: dict[str, tuple[int, str]] = field(default_factory=dict)
    """For each call of the proxy's: the number of its fan-out, and the server."""
    _counted: int = 0
    _names: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    """For tools and prompts: the name that the client sees, with the server and its own name."""
    _owners: dict[str, dict[str, str]] = field(default_factory=dict)
    _tasks: dict[str, str] = field(default_factory=dict)
    _server_calls: ServerCalls = field(default_factory=ServerCalls)

    def __post_init__(self) -> None:
        self.own_tools = frozenset(self.options.tools)

    # ---- from the client ---------------------------------------------------------------------------------------

    def from_client(self, data: bytes) -> list[Command]:
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return [ToClient(replies.failure("", -32700, "pagefold: not a JSON-RPC message"))]
        match message:
            case Call():
                return self._call(message, data)
            case Notification():
                return self._notice(message, data)
            case Batch():
                words = "pagefold: several servers take no batches"
                calls = [call for call in message.messages if isinstance(call, Call)]
                return [ToClient(replies.failure(call.id, _BAD_REQUEST, words)) for call in calls]
        server, answer = self._server_calls.answered(message)
        return self._through(server, answer) if server else []

    def _call(self, call: Call, data: bytes) -> list[Command]:
        params = as_object(call.params)
        method = call.method
        match method:
            case "server/discover":
                return [ToClient(replies.failure(call.id, _NO_METHOD, "Method not found"))]
            case _ if VERSION in as_object(params.get("_meta")):
                # Not all of the servers may speak it; a client that can do both greets when discovering fails.
                words = "pagefold: several servers behind one are greeted with initialize, and take no calls before"
                return [ToClient(replies.failure(call.id, _OTHER_VERSION, words))]
            case "ping":
                return [ToClient(replies.reply(call.id, {}))]
            case "tools/call" if as_string(params.get("name")) in self.own_tools:
                return [self._own(ToolCall(call.id, "", params["name"], as_object(params.get("arguments"))))]
            case "tools/call" | "prompts/get":
                return self._by_name(call, data, "tools" if method == "tools/call" else "prompts", params)
        if method in merge.LISTS or method in ("initialize", "logging/setLevel"):
            return self._fan_out(call.id, method, params)
        if server := self._owner(method, params):
            return self._to_owner(server, call, params)
        return self._fan_out(call.id, method, params, first=True)

    def _own(self, call: ToolCall) -> Command:
        if call.tool != DESCRIBE:
            return own_answer(self.options, call)
        text = "\n\n".join(self._described(as_string(name)) for name in as_list(call.arguments.get("tools")))
        return ToClient(replies.text_reply(call.id, text or 'Name the tools in a list: {"tools": ["…"]}.'))

    def _described(self, tool: str) -> str:
        server, name = self._names.get("tools", {}).get(tool, ("", ""))
        describe = self.relays[server].options.describe if server else None
        return describe({"tools": [name]}) if describe else f"Of {tool!r} nothing was left out."

    def _by_name(self, call: Call, data: bytes, kind: str, params: Mapping[str, Any]) -> list[Command]:
        if kind not in self._names:
            # The client calls before it has listed: the list is needed to find the server of the name.
            return self._fan_out("", f"{kind}/list", {}, then=(data,))
        called = as_string(params.get("name"))
        server, name = self._names[kind].get(called, ("", ""))
        if not server or not called:
            words = f"pagefold: no server has {params.get('name')!r} among its {kind}"
            return [ToClient(replies.failure(call.id, _BAD_PARAMS, words))]
        if name == called:
            return self._through(server, data)
        return self._through(server, replies.respelled(call.raw, ("params", "name"), json_text.dumps(name)))

    def _owner(self, method: str, params: Mapping[str, Any]) -> str:
        """Returns the server of the task, prompt or resource that a call names, or "" where that is not known."""
        if method.startswith("tasks/"):
            return self._tasks.get(as_string(params.get("taskId")), "")
        ref = as_object(params.get("ref"))
        if "name" in ref:
            return self._names.get("prompts", {}).get(as_string(ref["name"]), ("", ""))[0]
        uri = as_string(params.get("uri") or ref.get("uri"))
        templates = self._owners.get("resourceTemplates", {})
        owner = self._owners.get("resources", {}).get(uri) or templates.get(uri)
        if owner or not uri:
            return owner or ""
        return next((server for template, server in templates.items() if merge.matches(template, uri)), "")

    def _to_owner(self, server: str, call: Call, params: Mapping[str, Any]) -> list[Command]:
        name = as_string(as_object(params.get("ref")).get("name"))
        if call.method == "completion/complete" and name:
            name_there = json_text.dumps(self._names["prompts"][name][1])
            return self._through(server, replies.respelled(call.raw, ("params", "ref", "name"), name_there))
        return self._through(server, json_text.bytes_of(call.raw))

    def _notice(self, notice: Notification, data: bytes) -> list[Command]:
        params = as_object(notice.params)
        if notice.method == COMPACTED:
            return [ForgetShown()]
        if notice.method == "notifications/cancelled" and "requestId" in params:
            id = replies.value_text(notice.raw, ("params", "requestId"))
            server = next((name for name, relay in self.relays.items() if id in relay.calls), "")
            return self._through(server, data) if server else []
        if notice.method == "notifications/progress":
            server = self._server_calls.owner(json_text.dumps(params.get("progressToken")))
            if server:
                return self._through(server, data)
        return [command for server in self._able("") for command in self._through(server, data)]

    # ---- from a server -----------------------------------------------------------------------------------------

    def from_server(self, server: str, data: bytes) -> list[Command]:
        commands = self.relays[server].from_server(server, data)
        return [changed for command in commands for changed in self._from_relay(server, command)]

    def _from_relay(self, server: str, command: Command) -> list[Command]:
        """Returns a relay's command as changed for several servers: merged answers, and ids that do not collide."""
        if isinstance(command, Shorten):
            self._note_task(server, command.result)
        if not isinstance(command, ToClient):
            return [command]
        try:
            message = command.message or jsonrpc.parse(command.data)
        except WireError:
            return [command]
        match message:
            case Reply() | Failure() if message.id in self._asked:
                return self._gathered(server, message)
            case Reply():
                self._note_task(server, ToolResult(message, command.data))
            case Call():
                return [ToClient(self._server_calls.called(server, message))]
            case Notification(method="notifications/cancelled"):
                notice = self._server_calls.cancelled(server, message)
                return [ToClient(notice)] if notice else []
        return [command]

    def _note_task(self, server: str, result: ToolResult) -> None:
        """Remembers the server of a task that answers a call: later calls about the task go to the same server."""
        spot = result.member("task")
        task = as_string(as_object(spot.value).get("taskId")) if spot else ""
        if task:
            self._tasks[task] = server
            if len(self._tasks) > _KEPT_TASKS:
                del self._tasks[next(iter(self._tasks))]

    # ---- calls that several servers answer ---------------------------------------------------------------------

    def _fan_out(
        self, id: str, method: str, params: Mapping[str, Any], *, first: bool = False, then: tuple[bytes, ...] = ()
    ) -> list[Command]:
        number, servers = self._count(), self._able(method)
        self._fan_outs[number] = FanOut(id, method, params, set(servers), first=first, then=then)
        if not servers:
            return self._finished(number)
        wanted = {key: value for key, value in params.items() if key != "cursor"}
        return [command for server in servers for command in self._ask(number, server, method, wanted)]

    def _ask(self, number: int, server: str, method: str, params: Mapping[str, Any]) -> list[Command]:
        id = f'{OWN}{self._count()}"'
        self._asked[id] = (number, server)
        return self._through(server, replies.request(id, method, params))

    def _gathered(self, server: str, message: Reply | Failure) -> list[Command]:
        number, _ = self._asked.pop(message.id)
        fan_out = self._fan_outs.get(number)
        result = as_object(json_text.parse(message.raw)).get("result")
        if fan_out is None:
            return self._came_late(server, as_object(result))
        if isinstance(message, Failure):
            fan_out.errors[server] = message.raw
        elif kind := merge.LISTS.get(fan_out.method):
            fan_out.answers.setdefault(server, []).extend(as_list(as_object(result).get(kind)))
            if cursor := as_object(result).get("nextCursor"):
                return self._ask(number, server, fan_out.method, {**fan_out.params, "cursor": cursor})
        else:
            fan_out.answers[server] = result
            if fan_out.method == "initialize":
                self._capable[server] = as_object(as_object(result).get("capabilities"))
        fan_out.waiting.discard(server)
        if fan_out.waiting and not (fan_out.first and server in fan_out.answers):
            return []
        return self._finished(number)

    def _came_late(self, server: str, result: Mapping[str, Any]) -> list[Command]:
        """Adds a server that greets after the client was greeted without it; the client is to list tools again."""
        if "protocolVersion" not in result or server in self._capable:
            return []
        self._capable[server] = as_object(result.get("capabilities"))
        self._names.clear()
        hello = self._through(server, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return [*hello, ToClient(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')]

    def overdue(self) -> list[Command]:
        """Greets the client without the servers that have not greeted yet; they join later."""
        late = [
            number for number, fan_out in self._fan_outs.items() if fan_out.method == "initialize" and fan_out.answers
        ]
        return [command for number in late for command in self._finished(number)]

    def _finished(self, number: int) -> list[Command]:
        """Answers the client's call with what has been gathered."""
        fan_out = self._fan_outs.pop(number)
        waiting: list[Command] = []
        if kind := merge.LISTS.get(fan_out.method):
            result = self._merged(kind, fan_out.answers)
            waiting = [command for data in fan_out.then for command in self.from_client(data)]
        elif not fan_out.answers and (self.relays or fan_out.method != "initialize"):
            error = next(iter(fan_out.errors.values()), "")
            if not error:
                words = "pagefold: no server is there to answer"
                return [ToClient(replies.failure(fan_out.id, replies.SERVER_LOST, words))]
            return [ToClient(replies.respelled(error, ("id",), fan_out.id))]
        elif fan_out.method == "initialize":
            greeting = json_text.text_of(replies.reply(fan_out.id, merge.greeting(fan_out.answers, self.version)))
            return [ToClient(json_text.bytes_of(replies.with_primer(greeting, self.options.primer)))]
        else:
            result = next(iter(fan_out.answers.values()))
        return [*([ToClient(replies.reply(fan_out.id, result))] if fan_out.id else []), *waiting]

    def _merged(self, kind: str, answers: Mapping[str, Sequence[Any]]) -> Any:
        ordered = {server: answers[server] for server in self.relays if server in answers}
        if kind in ("tools", "prompts"):
            names = self._names[kind] = merge.public_names(ordered, self.own_tools if kind == "tools" else ())
            result: Any = {kind: merge.renamed(ordered, names)}
            if kind == "tools" and self.options.listing is not None:
                page = ListPage(last=True, only_text=False)  # each server's relay has taken out what it had to
                return json_text.parse(self.options.listing(json_text.dumps(result), page))
            return result
        things, owners = merge.distinct(ordered, merge.KEYS[kind])
        self._owners[kind] = owners
        if kind == "tasks":
            self._tasks |= owners
        return {kind: things}

    # ---- when a server's process ends, and a new one starts ----------------------------------------------------

    def lost(self, server: str, why: str) -> list[Command]:
        commands = self.relays[server].lost(server, why)
        self._down.add(server)
        for id, (number, asked) in list(self._asked.items()):
            if asked != server or number not in self._fan_outs:
                continue
            del self._asked[id]
            fan_out = self._fan_outs[number]
            fan_out.waiting.discard(server)
            if not fan_out.waiting:
                commands += self._finished(number)
        return commands

    def restarted(self, server: str) -> list[Command]:
        self._down.discard(server)
        return self.relays[server].restarted(server)

    def refused(self, server: str, data: bytes, why: str) -> list[Command]:
        commands = self.relays[server].refused(server, data, f"{server} {why}")
        return [changed for command in commands for changed in self._from_relay(server, command)]

    def relay_of(self, server: str) -> Relay:
        return self.relays[server]

    @property
    def annotations(self) -> Mapping[str, Mapping[str, Any]]:
        return {tool: hints for relay in self.relays.values() for tool, hints in relay.annotations.items()}

    @property
    def envelope(self) -> Mapping[str, Any]:
        return {}

    # ---- helpers -----------------------------------------------------------------------------------------------

    def _able(self, method: str) -> list[str]:
        """Returns the running servers that declare the capability for a method; for `initialize`, all running ones."""
        there = [server for server in self.relays if server not in self._down]
        if method == "initialize":
            return there
        wanted = merge.capability(method)
        return [name for name in there if name in self._capable and (not wanted or wanted in self._capable[name])]

    def _through(self, server: str, data: bytes) -> list[Command]:
        return self.relays[server].from_client(data)

    def _count(self) -> int:
        self._counted += 1
        return self._counted
