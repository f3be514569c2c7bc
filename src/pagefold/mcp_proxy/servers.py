"""Several servers behind one: who is asked what, and what the client is told in their place.

Each server has a relay of its own, which keeps its promises. Here a call finds its server by the name of the tool or
prompt, the address of the resource or the id of the task; a list is everybody's; a greeting is what they can together.
Calls of the servers to the client get ids of ours, since two servers may use the same. A server that is gone answers
nothing, and nobody waits for it: the others stand in the lists without it.

Several servers agree with their client by the `initialize` handshake, which servers of both eras understand; a client
that asks for the stateless era first is told that it is not known here, and then greets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.errors import WireError
from pagefold.mcp_proxy import merge
from pagefold.mcp_proxy.commands import Command, ForgetShown, Shorten, ToClient
from pagefold.mcp_proxy.lines import Overlong
from pagefold.mcp_proxy.relay import COMPACTED, DESCRIBE, OWN, ListPage, Options, Relay, own_answer
from pagefold.mcp_proxy.replies import SERVER_LOST, failure, reply, respelled, text_reply, with_primer
from pagefold.mcp_proxy.server_calls import ServerCalls
from pagefold.wire import json_text, jsonrpc
from pagefold.wire.json_text import as_list, as_object, as_string
from pagefold.wire.jsonrpc import Batch, Call, Failure, Notification, Reply

_NO_METHOD = -32601
_BAD_PARAMS = -32602
_BAD_REQUEST = -32600
_KEPT_TASKS = 10_000
_TASK = b'"taskId"'


@dataclass(slots=True)
class FanOut:
    """One call of the client's that several servers answer. `first` where one good answer is enough."""

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
    relays: Mapping[str, Relay]
    options: Options = field(default_factory=Options)
    version: str = ""
    ours: frozenset[str] = frozenset()
    _down: set[str] = field(default_factory=set)
    _capable: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _gatherings: dict[int, FanOut] = field(default_factory=dict)
    _asked: dict[str, tuple[int, str]] = field(default_factory=dict)
    _counted: int = 0
    _names: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    _owners: dict[str, dict[str, str]] = field(default_factory=dict)
    _tasks: dict[str, str] = field(default_factory=dict)
    _routed: dict[str, str] = field(default_factory=dict)
    _theirs: ServerCalls = field(default_factory=ServerCalls)

    def __post_init__(self) -> None:
        self.ours = frozenset(self.options.tools)

    # ---- what the client says ----------------------------------------------------------------------------------

    def from_client(self, data: bytes) -> list[Command]:
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return [ToClient(failure("", -32700, "pagefold: not a JSON-RPC message"))]
        match message:
            case Call():
                return self._call(message, data)
            case Notification():
                return self._notice(message, data)
            case Batch():
                words = "pagefold: several servers take no batches"
                calls = [call for call in message.messages if isinstance(call, Call)]
                return [ToClient(failure(call.id, _BAD_REQUEST, words)) for call in calls]
        server, answer = self._theirs.answered(message)
        return self._through(server, answer) if server else []

    def _call(self, call: Call, data: bytes) -> list[Command]:
        params = as_object(as_object(json_text.parse(call.raw)).get("params"))
        method = call.method
        match method:
            case "server/discover":
                return [ToClient(failure(call.id, _NO_METHOD, "Method not found"))]
            case "ping":
                return [ToClient(reply(call.id, {}))]
            case "tools/call" if params.get("name") in self.ours:
                return [self._own(call.id, params)]
            case "tools/call" | "prompts/get":
                return self._by_name(call, data, "tools" if method == "tools/call" else "prompts", params)
        if method in merge.LISTS or method in ("initialize", "logging/setLevel"):
            return self._gather(call.id, method, params, self._able(method))
        if server := self._owner(method, params):
            return self._to(server, call)
        return self._gather(call.id, method, params, self._able(method), first=True)

    def _own(self, id: str, params: Mapping[str, Any]) -> Command:
        if params["name"] != DESCRIBE:
            return own_answer(self.options, id, params)
        names = as_list(as_object(params.get("arguments")).get("tools"))
        told = "\n\n".join(self._described(as_string(name)) for name in names)
        return ToClient(text_reply(id, told or 'Name the tools in a list: {"tools": ["…"]}.'))

    def _described(self, tool: str) -> str:
        server, name = self._names.get("tools", {}).get(tool, ("", ""))
        describe = self.relays[server].options.describe if server else None
        return describe({"tools": [name]}) if describe else f"Of {tool!r} nothing was left out."

    def _by_name(self, call: Call, data: bytes, kind: str, params: Mapping[str, Any]) -> list[Command]:
        if kind not in self._names:
            # A client that calls before it has listed: the list says whose the name is.
            return self._gather("", f"{kind}/list", {}, self._able(f"{kind}/list"), then=(data,))
        server, name = self._names[kind].get(as_string(params.get("name")), ("", ""))
        if not server:
            words = f"pagefold: no server has {params.get('name')!r} among its {kind}"
            return [ToClient(failure(call.id, _BAD_PARAMS, words))]
        self._routed[call.id] = server
        if name == params["name"]:
            return self._through(server, data)
        return self._through(server, respelled(call.raw, ("params", "name"), json_text.dumps(name)))

    def _owner(self, method: str, params: Mapping[str, Any]) -> str:
        """Whose the thing is that a call names, or "" where that is not known."""
        if method.startswith("tasks/"):
            return self._tasks.get(as_string(params.get("taskId")), "")
        ref = as_object(params.get("ref"))
        if "name" in ref:
            return self._names.get("prompts", {}).get(as_string(ref["name"]), ("", ""))[0]
        uri = as_string(params.get("uri") or ref.get("uri"))
        known = self._owners.get("resources", {}).get(uri) or self._owners.get("resourceTemplates", {}).get(uri)
        if known or not uri:
            return known or ""
        templates = self._owners.get("resourceTemplates", {})
        return next((server for template, server in templates.items() if merge.matches(template, uri)), "")

    def _to(self, server: str, call: Call) -> list[Command]:
        self._routed[call.id] = server
        raw = call.raw
        if call.method == "completion/complete":
            spot = as_object(as_object(json_text.parse(raw)).get("params")).get("ref")
            name = as_object(spot).get("name")
            if name is not None:
                there = json_text.dumps(self._names["prompts"][name][1])
                return self._through(server, respelled(raw, ("params", "ref", "name"), there))
        return self._through(server, json_text.bytes_of(raw))

    def _notice(self, notice: Notification, data: bytes) -> list[Command]:
        params = as_object(as_object(json_text.parse(notice.raw)).get("params"))
        if notice.method == COMPACTED:
            return [ForgetShown()]
        if notice.method == "notifications/cancelled" and "requestId" in params:
            id = json_text.dumps(params["requestId"])
            if server := self._routed.pop(id, ""):
                return self._through(server, data)
            return []
        if notice.method == "notifications/progress":
            server = self._theirs.owner(json_text.dumps(params.get("progressToken")))
            if server:
                return self._through(server, data)
        return [command for server in self._able("") for command in self._through(server, data)]

    # ---- what a server says ------------------------------------------------------------------------------------

    def from_server(self, server: str, data: bytes) -> list[Command]:
        found: list[Command] = []
        for command in self.relays[server].from_server(server, data):
            if isinstance(command, ToClient):
                told = self._told(server, command.data)
                if len(told) == 1 and isinstance(told[0], ToClient):
                    told = [ToClient(told[0].data, command.call)]
                found += told
                continue
            if isinstance(command, Shorten):
                self._closed(jsonrpc.parse(command.data), server, command.data)
            found.append(command)
        return found

    def _told(self, server: str, data: bytes) -> list[Command]:
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return [ToClient(data)]
        if isinstance(message, Reply | Failure) and message.id in self._asked:
            return self._gathered(server, message)
        self._closed(message, server, data)
        if isinstance(message, Call):
            return [ToClient(self._theirs.called(server, message))]
        if isinstance(message, Notification) and message.method == "notifications/cancelled":
            gone = self._theirs.cancelled(server, message)
            return [ToClient(gone)] if gone else []
        return [ToClient(data)]

    def _closed(self, message: object, server: str, data: bytes) -> None:
        if isinstance(message, Reply | Failure):
            self._routed.pop(message.id, None)
        if isinstance(message, Reply) and _TASK in data:
            result = as_object(as_object(json_text.parse(message.raw)).get("result"))
            task = as_string(as_object(result.get("task")).get("taskId"))
            if task:
                self._tasks[task] = server
                if len(self._tasks) > _KEPT_TASKS:
                    del self._tasks[next(iter(self._tasks))]

    # ---- calls that several servers answer ---------------------------------------------------------------------

    def _gather(
        self,
        id: str,
        method: str,
        params: Mapping[str, Any],
        servers: Sequence[str],
        *,
        first: bool = False,
        then: tuple[bytes, ...] = (),
    ) -> list[Command]:
        number = self._count()
        gathering = FanOut(id, method, params, set(servers), first=first, then=then)
        self._gatherings[number] = gathering
        if not servers:
            return self._finished(number)
        wanted = {key: value for key, value in params.items() if key != "cursor"}
        return [command for server in servers for command in self._ask(number, server, method, wanted)]

    def _ask(self, number: int, server: str, method: str, params: Mapping[str, Any]) -> list[Command]:
        id = f'{OWN}{self._count()}"'
        self._asked[id] = (number, server)
        said = f'{{"jsonrpc":"2.0","id":{id},"method":{json_text.dumps(method)},"params":{json_text.dumps(params)}}}'
        return self._through(server, json_text.bytes_of(said))

    def _gathered(self, server: str, message: Reply | Failure) -> list[Command]:
        number, _ = self._asked.pop(message.id)
        gathering = self._gatherings.get(number)
        if gathering is None:
            return self._came_late(server, message)
        if isinstance(message, Failure):
            gathering.errors[server] = message.raw
        else:
            result = as_object(json_text.parse(message.raw)).get("result")
            if kind := merge.LISTS.get(gathering.method):
                gathering.answers.setdefault(server, []).extend(as_list(as_object(result).get(kind)))
                if cursor := as_object(result).get("nextCursor"):
                    return self._ask(number, server, gathering.method, {**gathering.params, "cursor": cursor})
            else:
                gathering.answers[server] = result
                if gathering.method == "initialize":
                    self._capable[server] = as_object(as_object(result).get("capabilities"))
        gathering.waiting.discard(server)
        if gathering.waiting and not (gathering.first and server in gathering.answers):
            return []
        return self._finished(number)

    def _came_late(self, server: str, message: Reply | Failure) -> list[Command]:
        """A greeting that nobody waited for any more: the server joins the others now."""
        result = as_object(as_object(json_text.parse(message.raw)).get("result"))
        if "protocolVersion" not in result or server in self._capable:
            return []
        self._capable[server] = as_object(result.get("capabilities"))
        self._names.clear()
        hello = self._through(server, b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return [*hello, ToClient(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')]

    def overdue(self) -> list[Command]:
        """Enough waited for greetings: those who have not answered join later."""
        late = [number for number, one in self._gatherings.items() if one.method == "initialize" and one.answers]
        return [command for number in late for command in self._finished(number)]

    def _finished(self, number: int) -> list[Command]:
        gathering = self._gatherings.pop(number)
        again: list[Command] = []
        if kind := merge.LISTS.get(gathering.method):
            result = self._merged(kind, gathering.answers)
            again = [command for data in gathering.then for command in self.from_client(data)]
        elif not gathering.answers:
            error = next(iter(gathering.errors.values()), "")
            if not error:
                words = "pagefold: no server is there to answer"
                return [ToClient(failure(gathering.id, SERVER_LOST, words))]
            return [ToClient(respelled(error, ("id",), gathering.id))]
        elif gathering.method == "initialize":
            result = merge.greeting(gathering.answers, self.version)
            greeting = json_text.text_of(reply(gathering.id, result))
            return [ToClient(json_text.bytes_of(with_primer(greeting, self.options.primer)))]
        else:
            result = next(iter(gathering.answers.values()))
        return [*([ToClient(reply(gathering.id, result))] if gathering.id else []), *again]

    def _merged(self, kind: str, answers: Mapping[str, Sequence[Any]]) -> Any:
        ordered = {server: answers[server] for server in self.relays if server in answers}
        if kind in ("tools", "prompts"):
            names = self._names[kind] = merge.public_names(ordered)
            result: Any = {kind: merge.renamed(ordered, names)}
            if kind == "tools" and self.options.listing is not None:
                self.ours = frozenset(self.options.tools) - names.keys()
                page = ListPage(last=True, only_text=False)  # each server's relay has seen to that
                return json_text.parse(self.options.listing(json_text.dumps(result), page))
            return result
        things, owners = merge.distinct(ordered, merge.KEYS[kind])
        self._owners[kind] = owners
        if kind == "tasks":
            self._tasks |= owners
        return {kind: things}

    # ---- when a server goes, and comes again -------------------------------------------------------------------

    def overlong(self, server: str, line: Overlong) -> list[Command]:
        self._routed.pop(line.id, None)
        return self.relays[server].overlong(server, line)

    def lost(self, server: str, why: str) -> list[Command]:
        found = self.relays[server].lost(server, why)
        self._down.add(server)
        return [*found, *self._without(server)]

    def _without(self, server: str) -> list[Command]:
        found: list[Command] = []
        for id, (number, asked) in list(self._asked.items()):
            if asked != server or number not in self._gatherings:
                continue
            del self._asked[id]
            gathering = self._gatherings[number]
            gathering.waiting.discard(server)
            if not gathering.waiting:
                found += self._finished(number)
        return found

    def back(self, server: str) -> list[Command]:
        self._down.discard(server)
        return self.relays[server].back(server)

    def refused(self, server: str, data: bytes, why: str) -> list[Command]:
        message = jsonrpc.parse(data)
        if isinstance(message, Call) and message.id in self._asked:
            self.relays[server].calls.pop(message.id, None)
            return self._told(server, failure(message.id, SERVER_LOST, f"pagefold: the server {server} {why}"))
        return self.relays[server].refused(server, data, why)

    def drop(self, server: str, id: str) -> None:
        self._routed.pop(id, None)
        self.relays[server].drop(server, id)

    @property
    def annotations(self) -> Mapping[str, Mapping[str, Any]]:
        return {tool: said for relay in self.relays.values() for tool, said in relay.annotations.items()}

    @property
    def envelope(self) -> Mapping[str, Any]:
        return {}

    def is_known(self, server: str) -> bool:
        return self.relays[server].is_known(server)

    # ---- small words -------------------------------------------------------------------------------------------

    def _able(self, method: str) -> list[str]:
        """The servers that are there and can answer a method, as far as they have said what they can."""
        there = [server for server in self.relays if server not in self._down]
        wanted = merge.CAPABILITY.get(method)
        if method == "initialize":
            return there
        greeted = [server for server in there if server in self._capable]
        return [server for server in greeted if wanted is None or wanted in self._capable[server]]

    def _through(self, server: str, data: bytes) -> list[Command]:
        return self.relays[server].from_client(data)

    def _count(self) -> int:
        self._counted += 1
        return self._counted
