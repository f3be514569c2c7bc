"""Reads generateContent requests as the provider does: contents with their hash, tokens, calls, responses and
signatures."""

from collections.abc import Mapping, Sequence
from typing import Any

from pagefold.frozen import frozen
from pagefold.provider.messages_content import hash_of_value
from pagefold.provider.signature import sealed_of
from pagefold.tokens import FRAME, Counter
from pagefold.wire import json_text
from pagefold.wire.gemini import CALL, DECLARED, RESPONSE, SIGNED, member_of
from pagefold.wire.json_text import as_list, as_object, as_string

SKIPS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""Signatures by which a client says that it has none (thought-signatures)."""
_MEDIA_TOKENS = 258
_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")


@frozen
class NamedCall:
    """A function's name, the id of a call or response, and the signature of its part."""

    name: str
    id: str
    signature: str = ""


@frozen
class InputContent:
    """One content. `broken` says why its parts cannot be read, `forged` that it has a signature which the provider did
    not write; `signed` is how many signatures it has."""

    role: str
    content: bytes
    tokens: int
    calls: tuple[NamedCall, ...] = ()
    responses: tuple[NamedCall, ...] = ()
    broken: str = ""
    forged: bool = False
    signed: int = 0


def content_of(value: Any, counter: Counter) -> InputContent:
    fields = as_object(value)
    parts = fields.get("parts")
    listed: Sequence[Any] = parts if isinstance(parts, list) else [parts] if isinstance(parts, dict) else ()
    calls: list[NamedCall] = []
    responses: list[NamedCall] = []
    forged, signed, tokens = False, 0, FRAME
    broken = "" if listed else "contents.parts must not be empty."
    for part in listed:
        signature = as_string(member_of(part, SIGNED)[1])
        forged = forged or bool(signature and signature not in SKIPS and sealed_of(_plain(signature)) is None)
        signed += bool(signature)
        call, response = member_of(part, CALL)[1], member_of(part, RESPONSE)[1]
        if isinstance(call, dict):
            calls.append(NamedCall(as_string(call.get("name")), as_string(call.get("id")), signature))
            tokens += counter.count(f"{call.get('name')} {json_text.dumps(call.get('args', {}))}")
        elif isinstance(response, dict):
            responses.append(NamedCall(as_string(response.get("name")), as_string(response.get("id"))))
            tokens += counter.count(json_text.dumps(response.get("response", {})))
            if not isinstance(response.get("response"), dict):
                broken = broken or "function_response.response: expected a Struct."
        elif set(as_object(part)) - {*SIGNED, "thought"}:
            tokens += _MEDIA_TOKENS if member_of(part, _MEDIA)[0] else _tokens(part, counter)
        else:
            broken = broken or "required oneof field 'data' must have one initialized field"
    role = as_string(fields.get("role")) or "user"
    content = hash_of_value({"role": role, "parts": parts})
    return InputContent(role, content, tokens, tuple(calls), tuple(responses), broken, forged, signed)


def _plain(signature: str) -> str:
    """Bytes in either alphabet of base64: Google's own SDK spells what it got in the other one."""
    return signature.translate(str.maketrans("-_", "+/"))


def declared(tools: Any) -> list[str]:
    """The names of all functions that tools declare."""
    listed = [member_of(tool, DECLARED)[1] for tool in as_list(tools)]
    return [as_string(as_object(each).get("name")) for one in listed for each in as_list(one)]


def _tokens(part: Mapping[str, Any], counter: Counter) -> int:
    text = part.get("text")
    return counter.count(text if isinstance(text, str) else json_text.dumps(part))
