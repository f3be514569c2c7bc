"""Several servers behind one: names, routes, greetings, and what happens when one of them is gone."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pagefold.errors import ConfigError
from pagefold.mcp_proxy import merge
from pagefold.mcp_proxy.commands import AnswerOwnTool, Command, Shorten, ToClient, ToolCall, ToServer
from pagefold.mcp_proxy.listing import ToolListing
from pagefold.mcp_proxy.relay import Options, Relay
from pagefold.mcp_proxy.servers import Servers
from pagefold.mcp_proxy.specs import Spec, specs_of
from pagefold.pages.context_tools import CONTEXT_TOOLS
from tests.mcp_proxy.peer import ODD, PAGEFOLD, Peer


class Talk:
    """Servers of names, each with the answers that a table gives."""

    def __init__(self, **tools: list[str]) -> None:
        self.tools = tools
        self.servers = Servers({name: Relay(name) for name in tools})
        self.received: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.silent: set[str] = set()

    def say(self, **message: Any) -> list[dict[str, Any]]:
        """What the client hears after saying this, with every server answering at once."""
        self.received = []
        self.carry_out(self.servers.from_client(line(**message)))
        return self.received

    def carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, ToClient | Shorten):
                data = command.data if isinstance(command, ToClient) else command.result.data
                self.received.append(json.loads(data))
            elif isinstance(command, ToServer):
                self.asked.append((command.server, asked := json.loads(command.data)))
                if command.server not in self.silent and "id" in asked and "method" in asked:
                    self.carry_out(self.servers.from_server(command.server, self.answer(command.server, asked)))

    def answer(self, server: str, asked: dict[str, Any]) -> bytes:
        match asked["method"]:
            case "initialize":
                version = {"a": "2025-11-25", "b": "2025-06-18"}.get(server, "2025-11-25")
                capabilities = {"tools": {"listChanged": server == "b"}, "logging": {}} | (
                    {"prompts": {}} if server == "a" else {}
                )
                result: Any = {
                    "protocolVersion": version,
                    "capabilities": capabilities,
                    "instructions": f"I am {server}.",
                }
            case "tools/list" if asked["params"].get("cursor") is None:
                result = {"tools": [{"name": name} for name in self.tools[server]], "nextCursor": "2"}
            case "tools/list":
                result = {"tools": [{"name": f"{server}_more"}]}
            case "prompts/list":
                result = {"prompts": [{"name": "p"}]}
            case "resources/read" if server == "b":
                result = {"contents": []}
            case "tools/call":
                result = {"content": [{"type": "text", "text": f"{server} {asked['params']['name']}"}]}
                if asked["params"]["name"] == "task":
                    result = {"task": {"taskId": f"t-{server}"}}
            case "tasks/get" | "logging/setLevel":
                result = {"by": server}
            case _:
                return line(id=asked["id"], error={"code": -32601, "message": f"not {server}"})
        return line(id=asked["id"], result=result)


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


@pytest.fixture
def talk() -> Talk:
    made = Talk(a=["x", "both", "task"], b=["y", "both"])
    made.say(id=0, method="initialize", params={"protocolVersion": "2025-11-25", "clientInfo": {"name": "c"}})
    made.say(method="notifications/initialized")
    return made


def test_they_greet_as_one(talk: Talk) -> None:
    (greeting,) = talk.say(id=1, method="initialize", params={"protocolVersion": "2025-11-25"})
    result = greeting["result"]
    assert result["protocolVersion"] == "2025-06-18", "the oldest that one of them chose"
    assert result["capabilities"] == {"tools": {"listChanged": True}, "logging": {}, "prompts": {}}
    assert result["instructions"] == "a: I am a.\n\nb: I am b."


def test_a_client_of_the_stateless_era_is_told_to_greet(talk: Talk) -> None:
    (answer,) = talk.say(id=1, method="server/discover", params={})
    assert answer["error"]["code"] == -32601


def test_only_names_that_collide_carry_the_servers_name(talk: Talk) -> None:
    (listed,) = talk.say(id=1, method="tools/list", params={})
    names = [tool["name"] for tool in listed["result"]["tools"]]
    assert names == ["x", "a_both", "task", "a_more", "y", "b_both", "b_more"]
    for public, words in (("x", "a x"), ("a_both", "a both"), ("b_both", "b both"), ("y", "b y")):
        (answer,) = talk.say(id="q", method="tools/call", params={"name": public, "arguments": {}})
        assert answer["id"] == "q"
        assert answer["result"]["content"][0]["text"] == words


def test_names_are_told_apart_whatever_they_are() -> None:
    names = merge.public_names({"a": [{"name": "x"}, {"name": "b_x"}], "b": [{"name": "x"}], "c!": [{"name": "x"}]})
    assert names == {"a_x": ("a", "x"), "b_x": ("a", "b_x"), "b_x_": ("b", "x"), "c__x": ("c!", "x")}


def test_names_of_ours_are_reserved_when_servers_are_merged() -> None:
    talk = Talk(one=["context_recall", "x"], two=["context_recall", "one_context_recall"])
    own = CONTEXT_TOOLS[:1]
    talk.servers = Servers(talk.servers.relays, Options([tool.name for tool in own], ToolListing(None, own)))
    talk.say(id=0, method="initialize", params={})
    tools = [tool["name"] for tool in talk.say(id=1, method="tools/list")[0]["result"]["tools"]]
    theirs = ["one_context_recall_", "x", "one_more", "two_context_recall", "one_context_recall", "two_more"]
    assert tools == [*theirs, "context_recall"]
    commands = talk.servers.from_client(line(id=2, method="tools/call", params={"name": "context_recall"}))
    assert commands == [AnswerOwnTool(ToolCall("2", "", "context_recall"))]
    talk.say(id=3, method="tools/call", params={"name": "one_context_recall_"})
    assert talk.asked[-1][0] == "one"
    assert talk.asked[-1][1]["params"]["name"] == "context_recall"


def test_a_call_before_any_list_finds_its_server(talk: Talk) -> None:
    (answer,) = talk.say(id=1, method="tools/call", params={"name": "b_both"})
    assert answer["result"]["content"][0]["text"] == "b both"
    (answer,) = talk.say(id=2, method="tools/call", params={"name": "nothing"})
    assert "'nothing'" in answer["error"]["message"]


def test_what_only_some_can_is_asked_of_those(talk: Talk) -> None:
    (answer,) = talk.say(id=1, method="prompts/list", params={})
    assert answer["result"] == {"prompts": [{"name": "p"}]}
    assert [server for server, asked in talk.asked if asked.get("method") == "prompts/list"] == ["a"]


def test_other_calls_get_the_first_good_answer_or_an_error(talk: Talk) -> None:
    (answer,) = talk.say(id=1, method="resources/read", params={"uri": "z://1"})
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": {"contents": []}}
    (answer,) = talk.say(id=2, method="future/x", params={})
    assert (answer["id"], answer["error"]["code"]) == (2, -32601)
    assert talk.say(id=3, method="ping") == [{"jsonrpc": "2.0", "id": 3, "result": {}}]


def test_a_task_stays_with_its_server(talk: Talk) -> None:
    talk.say(id=1, method="tools/call", params={"name": "task"})
    (answer,) = talk.say(id=2, method="tasks/get", params={"taskId": "t-a"})
    assert answer["result"] == {"by": "a"}


def test_two_servers_may_ask_the_client_under_one_id(talk: Talk) -> None:
    ids = []
    for server in ("a", "b"):
        talk.received = []
        talk.carry_out(talk.servers.from_server(server, line(id=1, method="sampling/createMessage", params={})))
        ids.append(talk.received[0]["id"])
    assert len(set(ids)) == 2
    talk.asked = []
    for id in reversed(ids):
        talk.say(id=id, result={"to": id})
    assert [(server, message["id"]) for server, message in talk.asked] == [("b", 1), ("a", 1)]


def test_a_cancelled_call_reaches_the_server_that_has_it(talk: Talk) -> None:
    talk.say(id=1, method="tools/list", params={})
    talk.silent = {"b"}
    talk.say(id=5, method="tools/call", params={"name": "y"})
    talk.asked = []
    talk.say(method="notifications/cancelled", params={"requestId": 5})
    assert [server for server, _ in talk.asked] == ["b"]


def test_one_that_is_gone_takes_nobody_with_it(talk: Talk) -> None:
    talk.say(id=1, method="tools/list", params={})
    talk.silent = {"b"}
    talk.say(id=2, method="tools/call", params={"name": "y"})
    talk.say(id=3, method="tools/list", params={})
    talk.received = []
    talk.carry_out(talk.servers.lost("b", "died"))
    answers = {answer["id"]: answer for answer in talk.received}
    assert "died" in answers[2]["error"]["message"]
    assert [tool["name"] for tool in answers[3]["result"]["tools"]] == ["x", "both", "task", "a_more"]
    assert talk.say(id=4, method="tools/call", params={"name": "x"})[0]["result"]["content"][0]["text"] == "a x"


def test_a_slow_one_joins_later() -> None:
    talk = Talk(a=["x"], b=["y"])
    talk.silent = {"b"}
    assert talk.say(id=0, method="initialize", params={"protocolVersion": "2025-11-25"}) == []
    talk.carry_out(talk.servers.overdue())
    assert talk.received[0]["id"] == 0
    (_, asked) = next((server, asked) for server, asked in talk.asked if server == "b")
    talk.received, talk.silent = [], set()
    talk.carry_out(talk.servers.from_server("b", talk.answer("b", asked)))
    assert [message["method"] for message in talk.received] == ["notifications/tools/list_changed"]
    (listed,) = talk.say(id=1, method="tools/list", params={})
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["x", "a_more", "y", "b_more"]


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        (
            '{"mcpServers":{"a":{"command":"x","args":["1"],"env":{"K":"v"}}}}',
            [Spec("a", ("x", "1"), environment={"K": "v"})],
        ),
        ('{"servers":{"a":{"url":"http://h/","headers":{"A":"b"}}}}', [Spec("a", url="http://h/", headers={"A": "b"})]),
        ('{"mcp":{"a":{"type":"local","command":["x","y"],"environment":{}}}}', [Spec("a", ("x", "y"))]),
        ('{"mcpServers":{"a":{"command":"x","disabled":true},"b":{"command":"y"}}}', [Spec("b", ("y",))]),
        (
            '{"mcpServers":{"a":{"command":"x","pagefold":{"encode":false}}}}',
            [Spec("a", ("x",), own={"encode": False})],
        ),
    ],
)
def test_the_files_of_clients_are_read(text: str, specs: list[Spec]) -> None:
    assert specs_of(text, "f") == specs


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "f: not valid JSON"),
        ("[]", "f: expected servers under"),
        ('{"mcpServers":{"a":{}}}', "f: a: expected a command with its args, or a url"),
        ('{"mcpServers":{"a":{"command":"x","url":"y"}}}', "f: a: expected a command with its args, or a url"),
        ('{"mcpServers":{"a":{"command":"x","env":{"K":1}}}}', "f: a: env: expected an object of texts"),
        ('{"mcpServers":{"a":{"command":"x","pagefold":{"slim":1}}}}', "f: a: pagefold.slim: known are"),
    ],
)
def test_a_file_that_names_no_server_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        specs_of(text, "f")


def test_each_server_has_its_own_settings_and_sees_none_of_our_parameters(tmp_path: Path) -> None:
    odd = {"command": ODD[0], "args": ODD[1:]}
    servers = {
        "one": {**odd, "pagefold": {"as_is": "rows", "slim_tools": "lazy"}},
        "two": {**odd, "pagefold": {"structured": "keep"}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with Peer([*PAGEFOLD, "--config", "mcp.json", "--parameters", "given,rows"], tmp_path) as peer:
        peer.greet("claude-code")
        tools = {tool["name"]: tool for tool in peer.ask("tools/list")["result"]["tools"]}
        assert {"one_echo", "two_echo", "context_recall", "context_describe"} <= tools.keys()
        assert {"count", "format", "budget", "chunk"} == set(tools["two_rows"]["inputSchema"]["properties"])
        assert len(json.loads(peer.text("one_rows", count=40))) == 40, "as it is, for this one"
        assert len(peer.text("two_rows", count=40)) < 400
        assert json.loads(peer.text("two_rows", count=40, format="json"))[39]["id"] == 39
        assert json.loads(peer.text("two_given", x=1, budget=500)) == {"x": 1}
        twins = ["structuredContent" in peer.call(f"{server}_twin")["result"] for server in servers]
        assert twins == [False, True]
        described = peer.text("context_describe", tools=["one_given", "two_given", "nothing"]).split("\n\n")
        assert json.loads(described[0])["inputSchema"]["properties"] == {"format": {"type": "string"}}
        assert described[1:] == ["Of 'two_given' nothing was left out.", "Of 'nothing' nothing was left out."]


def test_a_server_that_dies_leaves_the_others_over_real_pipes(tmp_path: Path) -> None:
    odd = {"command": ODD[0], "args": ODD[1:]}
    servers = {
        "one": odd,
        "two": {**odd, "env": {"ODD_START_SECONDS": "${PAUSE:-0}"}},
        "off": {"command": sys.executable, "args": ["-c", "import sys; sys.exit(4)"]},
        "plain": {**odd, "pagefold": {"encode": False}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with Peer([*PAGEFOLD, "--no-tools", "--config", "mcp.json"], tmp_path) as peer:
        peer.greet()
        names = {tool["name"] for tool in peer.ask("tools/list")["result"]["tools"]}
        assert {"one_echo", "two_echo"} <= names
        assert "signal 9" in peer.call("one_die")["error"]["message"]
        assert peer.text("two_echo", text="here") == "here"
        assert peer.text("one_echo", text="again") == "again"
        assert peer.text("two_rows", count=40) != peer.text("plain_rows", count=40)
        assert len(json.loads(peer.text("plain_rows", count=40))) == 40
        assert peer.end() == 0
    assert "the server off exited with code 4" in peer.stderr
