"""A stand-in for a cloud that serves Anthropic's models."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.provider.referee import Referee
from pagefold.wire.aws_signature import SignedRequest
from tests.agents import converse_stand_in
from tests.wire.aws_framing import framed

MODEL = "claude-opus-5-5"


@dataclass
class Cloud:
    """Serves Anthropic's bodies and Converse's under a cloud's paths, to whoever `problem` says nothing against. Each
    is judged by the referee."""

    problem: Callable[[SignedRequest], str]
    referee: Referee
    asked: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    answers: int = 0

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        path = unquote(scope["path"])
        self.asked.append(path)
        self.bodies.append(body)
        path_on_the_wire, query = scope["raw_path"].decode(), scope["query_string"].decode()
        if problem := self.problem(
            SignedRequest(scope["method"], path_on_the_wire, query, list(headers.items()), body)
        ):
            self.refused.append(f"{problem} at {path}")
            await reply(send, 403, "application/json", [b'{"message":"not authorized"}'])
            return
        if scope["method"] != "POST" or "count-tokens" in path or "count_tokens" in path:
            await reply(send, 200, "application/json", [b'{"input_tokens": 10}'])
            return
        request = json.loads(body)
        if path.endswith(("/converse", "/converse-stream")):
            await self._converse(request, path.endswith("-stream"), send)
            return
        version = request.pop("anthropic_version")
        betas = request.pop("anthropic_beta", headers.get("anthropic-beta", "").split(","))
        assert version.startswith(("vertex", "bedrock"))
        streams = path.endswith(("streamRawPredict", "invoke-with-response-stream"))
        request |= {"model": MODEL, "stream": streams}
        told = {"anthropic-beta": ",".join(filter(None, betas))}
        given = self.referee.answer("/v1/messages", told, json.dumps(request).encode(), 0.0)
        if given.record.rule:
            self.refused.append(given.record.reason)
        bedrock = path.startswith("/model/")
        framing: Callable[[bytes], bytes] = framed if streams and bedrock and given.accepted else bytes
        kind = "application/vnd.amazon.eventstream" if framing is framed else given.kind
        self.answers += given.accepted
        await reply(send, given.status, kind, [framing(piece) for piece in given.pieces])

    async def _converse(self, request: dict[str, Any], streams: bool, send: Send) -> None:
        problem = converse_stand_in.problem_with(request)
        translated = converse_stand_in.as_messages(request, MODEL, stream=False)
        given = self.referee.answer("/v1/messages", {}, json.dumps(translated).encode(), 0.0)
        problem = problem or (given.record.reason if given.record.rule else "")
        if problem:
            self.refused.append(problem)
            await reply(send, 400, "application/json", [json.dumps({"message": problem}).encode()])
            return
        self.answers += 1
        if streams:
            await reply(send, 200, "application/vnd.amazon.eventstream", converse_stand_in.frames(given.message))
        else:
            await reply(
                send, 200, "application/json", [json.dumps(converse_stand_in.as_converse(given.message)).encode()]
            )


async def reply(send: Send, status: int, kind: str, pieces: Iterable[bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body"})
