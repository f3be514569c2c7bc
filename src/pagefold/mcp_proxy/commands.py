"""The commands by which the pure half of the MCP proxy says what a session has to do, in order."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

from pagefold.frozen import frozen
from pagefold.mcp_proxy.tool_result import ToolResult
from pagefold.wire.jsonrpc import Batch, Single


@frozen
class ToolCall:
    """A client's call of a server's tool. `arguments` are those that the tool itself knows."""

    id: str
    server: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)


@frozen
class ToServer:
    """Sends a message to a server. `call` is set where the message begins the call of a tool.

    `now` marks what greets a new process: it goes before everything that waits for that process.
    """

    server: str
    data: bytes
    now: bool = False
    call: ToolCall | None = field(default=None, compare=False)


@frozen
class ToClient:
    """Sends a message to the client. `call` is set where it ends the call of a tool, `message` where it is parsed."""

    data: bytes
    call: ToolCall | None = field(default=None, compare=False)
    message: Single | Batch | None = field(default=None, compare=False)


@frozen
class Quote:
    """Sends the client an answer to a tool's call that is not read as a result, such as an error, with those lines
    quoted that could be taken for pagefold's."""

    data: bytes
    call: ToolCall | None = field(default=None, compare=False)
    message: Single | Batch | None = field(default=None, compare=False)


@frozen
class Shorten:
    """Sends a tool's result to the client, its texts in their cheapest form."""

    result: ToolResult
    call: ToolCall
    output_request: Any = None
    """The format, budget or chunk that the agent asked for (`encode.output_parameters`)."""
    only_text: bool = False
    """Whether the client would show its model `structuredContent` and not the texts that say the same."""


@frozen
class AnswerOwnTool:
    """Answers a call of one of pagefold's own tools."""

    call: ToolCall
    stateless: bool = False


@frozen
class OwnCallAnswered:
    """A server has answered a call that the proxy made; `result` is None where it failed or nobody waits for it."""

    id: str
    result: ToolResult | None = None


@frozen
class ReportLine:
    """Shows people a line of a server that is not a message. No client gets it."""

    server: str
    line: bytes


@frozen
class ServerReady:
    """A new process has been greeted: sends it what waits."""

    server: str


@frozen
class CallCancelled:
    """The client cancelled a call, so no answer will end it."""

    call: ToolCall


@frozen
class ForgetShown:
    """The client says that its model no longer sees what was shown so far."""


Command: TypeAlias = (
    ToServer
    | ToClient
    | Quote
    | Shorten
    | AnswerOwnTool
    | OwnCallAnswered
    | ReportLine
    | ServerReady
    | CallCancelled
    | ForgetShown
)
