"""Recall inside the turn: context tools are offered to the model, and their calls are answered without the client.

`RecallTurn` stands between the provider's answers and the one answer that the client gets; a `TurnView` knows their
format. Where the model waits for nothing but a context tool, the turn goes on with another request. What was really
said is stored as a note (`UpstreamTurn`), under the history and the gist of what the client saw: when the client sends
that back, the provider's own messages are put in its place, so that the next request extends the last one. Nothing here
answers a call or sends anything.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pagefold.pages.context_tools import RECALL, SEARCH
from pagefold.wire import json_text
from pagefold.wire.api import Api
from pagefold.wire.json_text import as_list, as_object
from pagefold.wire.message import PLACED, BlockKind, Message, Request
from pagefold.wire.turn import HiddenCall, TurnView

OFFERED = (RECALL, SEARCH)
NAMES = frozenset(tool.name for tool in OFFERED)
ENOUGH = "Nothing more can be recalled in this turn. Go on with what you have."


def offered(api: Api) -> list[str]:
    """Returns the context tools as requests of this API offer them."""
    return [api.turn.tool(tool.name, tool.description, tool.arguments) for tool in OFFERED] if api.turn else []


@dataclass(frozen=True, slots=True)
class UpstreamTurn:
    """The messages that were really exchanged in a turn that the client saw as one answer, and the results of hidden
    calls that belong beside the client's own."""

    messages: tuple[str, ...]
    results: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json_text.dumps({"messages": self.messages, "results": self.results})

    @classmethod
    def parse(cls, text: str) -> "UpstreamTurn":
        """Raises WireError."""
        value = as_object(json_text.parse(text))
        return cls(tuple(map(str, as_list(value.get("messages")))), tuple(map(str, as_list(value.get("results")))))


@dataclass(slots=True)
class RecallTurn:
    """One turn of the model, over as many answers of the provider as it takes, `rounds` more than one at most."""

    view: TurnView
    parse: Callable[[str], Message]
    rounds: int
    calls: Sequence[HiddenCall] = ()
    done: int = 0
    _said: list[str] = field(default_factory=list)
    _shown: list[str] = field(default_factory=list)
    _results: list[str] = field(default_factory=list)
    _last: Sequence[str] = ()
    _mixed: bool = False

    @property
    def stream(self) -> bool:
        return self.view.stream

    def feed(self, data: bytes) -> bytes:
        """Returns what the client gets for these bytes of the provider."""
        return self.view.feed(data)

    def answered(self) -> bytes:
        """Ends an answer and returns what the client still gets of it. `calls` are then those to be answered."""
        answer = self.view.answered()
        self.calls = ()
        if answer is None:
            return self.view.broken_off()
        # After the last round the turn ends here, and the last calls are dropped.
        cut = bool(answer.calls) and not answer.mixed and not answer.short and self.done >= self.rounds
        self.calls, self._mixed = () if cut or answer.short else answer.calls, answer.mixed
        self._last = answer.shown if cut or answer.short else answer.said
        self._said += self._last
        self._shown += answer.shown
        return b"" if self.calls and not answer.mixed else self.view.end(cut=cut)

    def results(self, texts: Sequence[str]) -> list[Message]:
        """Answers the calls with these texts and returns the messages that the next request adds. Returns none where
        the client has to answer calls of its own first."""
        made = self.view.results(list(zip(self.calls, texts, strict=True)))
        self.calls = ()
        self.done += 1
        if self._mixed:
            self._results = made
            return []
        self._said += made
        self.view.goes_on()
        return [self.parse(raw) for raw in (*self._last, *made)]

    @property
    def last_said(self) -> list[Message]:
        """What the provider said in its last answer."""
        return [self.parse(raw) for raw in self._last]

    def note(self) -> tuple[str, UpstreamTurn] | None:
        """Returns the gist of what the client saw, and what was really exchanged; None where that is the same."""
        if not self.done:
            return None
        return gist(list(map(self.parse, self._shown))), UpstreamTurn(tuple(self._said), tuple(self._results))


def turn_of(api: Api, request: Request, rounds: int) -> RecallTurn | None:
    """Returns the turn for a request, or None where context tools cannot be offered: the request has no tools, or it
    offers these tools itself, and the client answers them."""
    theirs = any(f'"{name}"' in tool for tool in request.tools for name in NAMES) if rounds else False
    view = api.turn.of(request, NAMES) if api.turn and rounds and request.tools and not theirs else None
    return RecallTurn(view, api.parse_message, rounds) if view else None


def gist(messages: Sequence[Message]) -> str:
    """Returns a hash of an answer's text without spaces and of its call ids. It stays the same when a client sends the
    answer back in several messages, or without marks and thinking."""
    blocks = [block for message in messages for block in message.blocks]
    words = "".join(block.text for block in blocks if block.kind is BlockKind.TEXT).split()
    # A call without an id is known by what it says: where it stands depends on what is hidden before it.
    calls = [
        f"{block.name} {block.text}" if block.call_id.startswith(PLACED) else block.call_id
        for block in blocks
        if block.kind is BlockKind.CALL
    ]
    said = "\0".join(("".join(words), *calls))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
