"""`POST /v1/compress`: messages in, the same messages with shorter tool results out. For gateways that ask a service.

LiteLLM's guardrail `headroom` calls this contract: a request has `messages` in the spelling of Chat Completions and
maybe `model`; the answer has as many messages in the same order, and `tokens_before`, `tokens_after`, `tokens_saved`
and `compression_ratio`. A gateway keeps back the model's own messages, so nothing can be folded here: every result is
said in its shortest lossless form. A fault of pagefold gives the messages back as they came. Nothing is forwarded.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pagefold.adapters.asgi import Receive, Send
from pagefold.door import TOKEN_HEADER, Door
from pagefold.errors import WireError
from pagefold.model_proxy.http import ClientLeftError, Upload, refuse, reply
from pagefold.stateless import Deriver, tokens_of
from pagefold.wire import json_text
from pagefold.wire.api import error_json
from pagefold.wire.apis import message_of
from pagefold.wire.json_text import as_object, as_string

PATH = b"/v1/compress"
_BEARER = b"bearer "
_EXPECTED = 'expected a JSON object with "messages", a list of objects'


class CompressEndpoint:
    """Answers at `PATH`. Its token is asked for in x-pagefold-token, or as gateways send theirs: as a bearer token.
    `fault` is told of each fault; `most` bytes of a body are read."""

    def __init__(self, door: Door, fault: Callable[[Exception], None], most: int) -> None:
        self._door, self._fault, self._most = door, fault, most
        self._deriver = Deriver(policy="lossless")

    async def __call__(self, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        if not self._lets_in(headers):
            await refuse(send, 401, error_json("authentication_error", "this pagefold asks for its token"))
            return
        upload = Upload(receive)
        try:
            body = await upload.read(self._most)
        except ClientLeftError:
            return
        if not upload.whole:
            await refuse(send, 413, error_json("request_too_large", f"more than {self._most} bytes"))
            return
        try:
            answer = await asyncio.to_thread(self._answer, body)
        except WireError as error:
            await refuse(send, 400, error_json("invalid_request_error", f"/v1/compress: {error}"))
        else:
            await reply(send, 200, json_text.bytes_of(json_text.dumps(answer)))

    def _lets_in(self, headers: Mapping[bytes, bytes]) -> bool:
        shown = headers.get(b"authorization", b"")
        bearer = shown[len(_BEARER) :] if shown[: len(_BEARER)].lower() == _BEARER else b""
        return self._door.lets_in(headers) or self._door.lets_in({TOKEN_HEADER: bearer})

    def _answer(self, body: bytes) -> dict[str, Any]:
        """Raises WireError for what is no such request."""
        request = as_object(json_text.parse(json_text.text_of(body)))
        rows, model = request.get("messages"), as_string(request.get("model"))
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise WireError(_EXPECTED)
        before = tokens_of(*(message_of(row).text for row in rows), model=model)
        try:
            derived = self._deriver.messages(rows, model=model)
            after = tokens_of(*(message.text for message in derived), model=model)
            shorter = [json_text.parse(message.raw) for message in derived]
        except Exception as error:  # noqa: BLE001 - the single fail-open point of this endpoint
            self._fault(error)
            shorter, after = rows, before
        return {
            "messages": shorter,
            "tokens_before": before,
            "tokens_after": after,
            "tokens_saved": before - after,
            "compression_ratio": after / before if before else 1.0,
            "transforms_applied": ["pagefold:lossless"] if after < before else [],
        }
