"""The three APIs that are read, each as one value: where it is asked, and how its requests and answers are read.

Every other path is passed on unread. Nothing here knows a socket.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import anthropic, json_text, openai_chat, openai_responses, sse
from pagefold.wire.anthropic_turn import MessagesTurn
from pagefold.wire.message import Message, Request, RequestShape, Response
from pagefold.wire.openai_chat_turn import ChatTurn
from pagefold.wire.openai_responses_turn import ResponsesTurn
from pagefold.wire.turn import TurnView

_KIND = re.compile(r"[a-z_]{1,40}")
# As the providers and the servers that speak like them put it.
_TOO_LONG = re.compile(
    r"context_length_exceeded|prompt is too long|maximum context|context (?:window|length|limit)|too many tokens"
    r"|exceeds? the (?:model's )?(?:context|maximum)|request_too_large",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Api:
    """One way to ask a model. `follow` reads a stream; `turn` is what a client sees of a turn with hidden calls in it;
    `continues` tells what the provider holds of a conversation."""

    name: str
    path: str
    shape: RequestShape
    parse_request: Callable[[bytes], Request]
    parse_response: Callable[[bytes], Response]
    follow: Callable[..., sse.AnswerStream]
    turn: type[TurnView]
    continues: Callable[[Request], str] = lambda request: ""

    def parse_message(self, raw: str) -> Message:
        """Raises WireError."""
        return self.shape.parse(json_text.parse(raw), raw)


MESSAGES = Api(
    "messages",
    "/v1/messages",
    anthropic.SHAPE,
    anthropic.parse_request,
    anthropic.parse_response,
    anthropic.MessagesStream,
    MessagesTurn,
)
CHAT = Api(
    "chat",
    "/v1/chat/completions",
    openai_chat.SHAPE,
    openai_chat.parse_request,
    openai_chat.parse_response,
    openai_chat.ChatStream,
    ChatTurn,
)
RESPONSES = Api(
    "responses",
    "/v1/responses",
    openai_responses.SHAPE,
    openai_responses.parse_request,
    openai_responses.parse_response,
    openai_responses.ResponsesStream,
    ResponsesTurn,
    openai_responses.continues,
)
APIS: Mapping[str, Api] = {api.path: api for api in (MESSAGES, CHAT, RESPONSES)}


def api_of(method: str, path: str) -> Api | None:
    return APIS.get(path) if method == "POST" else None


def error_kind(body: bytes) -> str:
    """The kind that an error body names, or "" where it names none."""
    inner = _error(body)
    kind = inner.get("type") or inner.get("code")
    return kind if isinstance(kind, str) and _KIND.fullmatch(kind) else ""


def is_too_long(status: int, body: bytes) -> bool:
    """Whether a provider refused a request because it does not fit into the model's window."""
    if status not in (400, 413, 422):
        return False
    inner = _error(body)
    return any(isinstance(said, str) and _TOO_LONG.search(said) is not None for said in inner.values())


def _error(body: bytes) -> dict[str, Any]:
    try:
        value = json_text.parse(json_text.text_of(body))
    except WireError:
        return {}
    inner = value.get("error") if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}
