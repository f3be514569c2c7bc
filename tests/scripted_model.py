"""A model for tests that answers Anthropic Messages requests by a script, streamed or not, and keeps the requests.

The number of answers in a request tells which turn is played: a retry gets the same turn again, and conversations do
not disturb each other. Every answer has a message id of its own. A request without tools is a side question and gets
plain text where the turn would call a tool.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import anthropic, json_text, sse
from pagefold.wire.message import Request, Role, Usage

_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
_PIECE_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """One answer. `fail` are error statuses that come first, one per request; without `usage` it is estimated.
    `cache_miss` is why the provider could not read its cache, as it says that to clients that ask for it."""

    text: str = ""
    thinking: str = ""
    calls: Sequence[ScriptedCall] = ()
    usage: Usage | None = None
    fail: Sequence[int] = ()
    cache_miss: Mapping[str, Any] | None = None


LAST = ScriptedTurn("End of script.")
ASIDE = ScriptedTurn("Noted.")


class ScriptedModel:
    """The ASGI application. `requests` are the bodies of the Messages requests, as they arrived.

    A folded history holds fewer answers than were given. With `counting`, each request gets the next turn instead.
    """

    def __init__(self, turns: Sequence[ScriptedTurn], *, counting: bool = False) -> None:
        self.turns = turns
        self._counting = counting
        self.requests: list[bytes] = []
        self._failures = {index: list(turn.fail) for index, turn in enumerate(turns)}

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        status, kind, pieces = self.answer(scope["method"], scope["path"], body)
        headers = [(b"content-type", kind)]
        if status >= 400:
            headers.append((b"retry-after", b"0"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes, Sequence[bytes]]:
        """Returns the status, the content type, and the pieces to send one by one."""
        if method != "POST":
            return 200, b"application/json", [b"{}"]
        if path == "/v1/messages/count_tokens":
            return 200, b"application/json", [_json({"input_tokens": len(body) // 4})]
        if path != "/v1/messages":
            return 404, b"application/json", [_error("not_found_error", "a script has only messages")]
        self.requests.append(body)
        try:
            request = anthropic.parse_request(body)
        except WireError as error:
            return 400, b"application/json", [_error("invalid_request_error", str(error))]
        answers = sum(message.role is Role.ASSISTANT for message in request.messages)
        index = len(self.requests) - 1 if self._counting else answers
        if failures := self._failures.get(index):
            status = failures.pop(0)
            return status, b"application/json", [_error(_ERRORS.get(status, "api_error"), "as the script says")]
        message = self._message(request, index)
        if request.stream:
            return 200, b"text/event-stream; charset=utf-8", list(_events(message))
        return 200, b"application/json", [_json(message)]

    def _message(self, request: Request, index: int) -> dict[str, Any]:
        turn = self.turns[index] if index < len(self.turns) else LAST
        if turn.calls and not request.tools:
            turn = ASIDE
        content: list[dict[str, Any]] = []
        if turn.thinking:
            content.append({"type": "thinking", "thinking": turn.thinking, "signature": f"signed-{index}"})
        if turn.text:
            content.append({"type": "text", "text": turn.text})
        for number, call in enumerate(turn.calls):
            identity = f"toolu_{index:04}_{number}"
            content.append({"type": "tool_use", "id": identity, "name": call.name, "input": dict(call.arguments)})
        usage = turn.usage or Usage(fresh=len(request.body) // 4, output=len(json_text.dumps(content)) // 4)
        return {
            "id": f"msg_{len(self.requests):06}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": content,
            "stop_reason": "tool_use" if turn.calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.fresh,
                "cache_creation_input_tokens": usage.cache_write,
                "cache_read_input_tokens": usage.cache_read,
                "output_tokens": usage.output,
            },
            **({"diagnostics": {"cache_miss_reason": dict(turn.cache_miss)}} if turn.cache_miss else {}),
        }


def _events(message: dict[str, Any]) -> Iterator[bytes]:
    opening: dict[str, Any] = {"content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield _event("message_start", message={**message, **opening})
    for index, block in enumerate(message["content"]):
        yield _event("content_block_start", index=index, content_block={**block, **_empty(block)})
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage={"output_tokens": message["usage"]["output_tokens"]})
    yield _event("message_stop")


def _empty(block: dict[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "thinking":
            return {"thinking": "", "signature": ""}
        case "text":
            return {"text": ""}
    return {"input": {}}


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, str]]:
    match block["type"]:
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in _pieces(block["text"]))
        case _:
            arguments = json_text.dumps(block["input"])
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in _pieces(arguments))


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE_CHARACTERS] for at in range(0, len(text), _PIECE_CHARACTERS))


def _event(name: str, **members: Any) -> bytes:
    return sse.render_event(name, json_text.dumps({"type": name, **members}))


def _json(value: Any) -> bytes:
    return json_text.bytes_of(json_text.dumps(value))


def _error(kind: str, message: str) -> bytes:
    return _json({"type": "error", "error": {"type": kind, "message": message}})
