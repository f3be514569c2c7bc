"""Writes answers of generateContent, whole, streamed as events, and streamed as one list."""

from collections.abc import Iterator, Mapping
from typing import Any

from pagefold.provider.answer import Answer
from pagefold.provider.billing import Charge
from pagefold.provider.models import GeminiModel
from pagefold.provider.signature import Sealed, seal
from pagefold.wire import json_text

_PIECE = 200


def response_of(
    name: str, model: GeminiModel, number: int, answer: Answer, charge: Charge, thoughts: int
) -> dict[str, Any]:
    """A response. A model that signs does so at the first call, or at the end of its text."""
    own = f"r{number:06}"
    signature = {"thoughtSignature": seal(Sealed("thought", own, thoughts))} if model.signs else {}
    parts: list[dict[str, Any]] = [{"text": answer.text}] if answer.text else []
    for at, call in enumerate(answer.calls):
        said = {"id": call.id or f"call_{own}c{at}", "name": call.name, "args": call.arguments}
        if not model.signs:
            del said["id"]
        parts.append({"functionCall": said, **(signature if at == 0 else {})})
    if not answer.calls and parts:
        parts[-1] |= signature
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage_of(charge, thoughts),
        "modelVersion": name,
        "responseId": f"resp_{own}",
    }


def usage_of(charge: Charge, thoughts: int) -> dict[str, Any]:
    used: dict[str, Any] = {"promptTokenCount": charge.prompt, "candidatesTokenCount": charge.output - thoughts}
    used |= {"cachedContentTokenCount": charge.read} if charge.read else {}
    used |= {"thoughtsTokenCount": thoughts} if thoughts else {}
    return used | {"totalTokenCount": charge.prompt + charge.output}


def chunks_of(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The pieces of a streamed answer: texts in parts, each call whole, the end by itself."""
    common = {key: response[key] for key in ("modelVersion", "responseId")}
    early = {"promptTokenCount": response["usageMetadata"]["promptTokenCount"]}
    for part in response["candidates"][0]["content"]["parts"]:
        for piece in _pieces(part):
            content = {"role": "model", "parts": [piece]}
            yield {"candidates": [{"content": content, "index": 0}], "usageMetadata": early, **common}
    last = {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}
    yield {"candidates": [last], "usageMetadata": response["usageMetadata"], **common}


def _pieces(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "text" not in part:
        yield part
        return
    text, rest = part["text"], {key: value for key, value in part.items() if key != "text"}
    for at in range(0, len(text), _PIECE):
        yield {"text": text[at : at + _PIECE]}
    if rest:
        yield {"text": "", **rest}


def events_of(response: Mapping[str, Any]) -> list[bytes]:
    return [b"data: " + json_text.bytes_of(json_text.dumps(chunk)) + b"\r\n\r\n" for chunk in chunks_of(response)]


def list_of(response: Mapping[str, Any]) -> list[bytes]:
    chunks = [json_text.bytes_of(json_text.dumps(chunk)) for chunk in chunks_of(response)]
    return [b"[" + chunks[0], *(b",\r\n" + chunk for chunk in chunks[1:]), b"]"]
