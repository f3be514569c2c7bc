"""The scripted model that `pagefold demo` puts behind the proxy: it streams the turns of a script, one a request."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.wire import sse


class DemoModel:
    """An ASGI application that answers Messages requests. A turn is the list of the answer's content blocks."""

    def __init__(self, turns: Sequence[list[dict[str, Any]]]) -> None:
        self._turns = turns
        self.requests: list[bytes] = []

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event["body"], event["more_body"]
        content = self._turns[len(self.requests)]
        self.requests.append(body)
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in _stream(content, len(body) // 4):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


def _stream(content: list[dict[str, Any]], prompt_tokens: int) -> Iterator[bytes]:
    message = {"type": "message", "role": "assistant", "model": "scripted", "content": []}
    yield _event("message_start", message={**message, "usage": {"input_tokens": prompt_tokens, "output_tokens": 1}})
    for index, block in enumerate(content):
        empty: dict[str, Any]
        if block["type"] == "text":
            empty, delta = {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty, delta = {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event("content_block_start", index=index, content_block=block | empty)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = "end_turn" if content[-1]["type"] == "text" else "tool_use"
    usage = {"output_tokens": len(json.dumps(content)) // 4}
    yield _event("message_delta", delta={"stop_reason": stop}, usage=usage)
    yield _event("message_stop")


def _event(name: str, **members: Any) -> bytes:
    return sse.render_event(name, json.dumps({"type": name, **members}))
