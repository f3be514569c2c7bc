"""What the pure half of the MCP proxy commands, and a session carries out: values, in the order they are to happen."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

from pagefold.frozen import frozen


@frozen
class ToolCall:
    """A call of a server's tool. `arguments` are the tool's own."""

    id: str
    server: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)


@frozen
class ToServer:
    """`now` where it belongs to the greeting of a new process, which comes before everything that waits for it.

    `call` where it begins the call of a tool; in what goes to the client, where it ends one.
    """

    server: str
    data: bytes
    now: bool = False
    call: ToolCall | None = field(default=None, compare=False)


@frozen
class ToClient:
    data: bytes
    call: ToolCall | None = field(default=None, compare=False)


@frozen
class Shorten:
    """The answer to a tool's call: its texts are to be said in their cheapest form before it goes to the client."""

    data: bytes
    tool: str
    server: str
    call: ToolCall | None = field(default=None, compare=False)
    wish: Any = None
    """How the agent asked for the answer, where its tool has parameters of ours."""
    only_text: bool = False
    """Whether the client would show the model `structuredContent` in place of the texts that say the same."""


@frozen
class AnswerOwnTool:
    """A call of a tool of ours."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    modern: bool = False


@frozen
class OwnCallAnswered:
    """The answer to a call that was ours and not the client's."""

    id: str
    data: bytes


@frozen
class ReportLine:
    """What a server wrote between its messages: for people to see, and for no client to parse."""

    server: str
    line: bytes


@frozen
class ServerReady:
    """A new process has been greeted: what waits for it can go."""

    server: str


@frozen
class CallCancelled:
    """A call that will have no answer: the client does not want one any more."""

    call: ToolCall


@frozen
class ForgetShown:
    """The client says that its model sees no more of what was shown so far."""


Command: TypeAlias = (
    ToServer
    | ToClient
    | Shorten
    | AnswerOwnTool
    | OwnCallAnswered
    | ReportLine
    | ServerReady
    | CallCancelled
    | ForgetShown
)
