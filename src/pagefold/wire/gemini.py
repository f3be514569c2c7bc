"""Parses requests, responses and streams of Gemini's generateContent, and writes its contents and function responses.

The model and whether the answer is streamed are not in the body but in the path. Keys may be spelled `functionCall` or
`function_call`; what is written is spelled like the former. Thought signatures and unknown parts are kept: parts with a
signature are never written anew. A call or a response need not have an id: then a call is known by its place in the
request, and a response by the call of that name in the content before (`link`). Refuses, with WireError, what is not a
generateContent body at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.api import CallFormat, error_members
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import (
    PLACED,
    Block,
    BlockKind,
    Message,
    Request,
    RequestShape,
    Response,
    Role,
    Usage,
    parse_body,
)
from pagefold.wire.shared_parsing import as_result, text_parts, typed_part

CALL, RESPONSE = ("functionCall", "function_call"), ("functionResponse", "function_response")
DECLARED = ("functionDeclarations", "function_declarations")
SIGNED = ("thoughtSignature", "thought_signature")
_MEDIA = ("inlineData", "inline_data", "fileData", "file_data")
_ROLES = {"user": Role.USER, "model": Role.ASSISTANT, "function": Role.USER, "": Role.USER}
_STATUSES = {  # of errors that pagefold writes, by their kind
    "invalid_request_error": (400, "INVALID_ARGUMENT"),
    "authentication_error": (401, "UNAUTHENTICATED"),
    "permission_error": (403, "PERMISSION_DENIED"),
    "not_found_error": (404, "NOT_FOUND"),
}


def member_of(value: Any, spellings: Sequence[str]) -> tuple[str, Any]:
    """The key under which an object has one of these members, and its value; ("", None) where it has none."""
    for key in spellings if isinstance(value, dict) else ():
        if key in value:
            return key, value[key]
    return "", None


def parse_content(value: Any, raw: str, place: int = -1) -> Message:
    """Raises WireError."""
    role = _ROLES.get(as_string(value.get("role"))) if isinstance(value, dict) else None
    if role is None:
        raise WireError(f"expected a content whose role is user or model, found {json_text.dumps(value)[:40]}")
    parts = value.get("parts")
    if not isinstance(parts, list):
        return Message(role, (Block(BlockKind.OTHER, json_text.dumps(parts)),) if parts else (), raw, place)
    blocks: list[Block] = []
    numbers: dict[str, int] = {}
    for index, part in enumerate(parts):
        blocks += _blocks(part, ("parts", index), place, numbers)
    return Message(role, tuple(blocks), raw, place)


def link(before: Message, message: Message) -> Message:
    """A message whose responses have the ids of the calls before it: where theirs are not among those, responses answer
    calls of their name in order."""
    responses = dict.fromkeys((b.call_id, b.name) for b in message.blocks if b.kind is BlockKind.RESULT)
    answered = {call_id for call_id, _ in responses}
    calls = [block for block in before.blocks if block.kind is BlockKind.CALL] if responses else []
    known, left = {call.call_id for call in calls}, [call for call in calls if call.call_id not in answered]
    ids: dict[str, str] = {}
    for call_id, name in responses:
        call = next((each for each in left if each.name == name), None) if call_id not in known else None
        if call is not None:
            left.remove(call)
            ids[call_id] = call.call_id
    if not ids:
        return message
    blocks = [replace(block, call_id=ids.get(block.call_id, block.call_id)) for block in message.blocks]
    return replace(message, blocks=tuple(blocks))


def _system(value: Any, raw: str) -> Message:
    if isinstance(value, str):
        return Message(Role.SYSTEM, (Block(BlockKind.TEXT, value),), raw)
    return replace(parse_content({**as_object(value), "role": "user"}, raw), role=Role.SYSTEM)


def _tools_end(tools: str) -> int:
    """Where in the JSON of the tools another declaration is put: behind the first tool's that has some."""
    for index, tool in enumerate(as_list(json_text.parse(tools))):
        key, declared = member_of(tool, DECLARED)
        if isinstance(declared, list) and declared:
            return json_text.find(tools, (index, key))[1] - 1
    return 0


SHAPE = RequestShape(
    "contents",
    parse_content,
    "systemInstruction",
    _system,
    also_system="system_instruction",
    tools_end=_tools_end,
    link=link,
)
parse_request = partial(parse_body, shape=SHAPE)


def continues(request: Request) -> str:
    """The cached content that a request goes on from in the middle of a turn, or "". Where its own contents begin with
    the user, what is cached only stands before them, and they can be derived."""
    cached = as_string(json_text.parse(request.member("cachedContent") or request.member("cached_content") or "null"))
    first = request.messages[0] if request.messages else None
    inside = first is None or first.role is not Role.USER or any(b.kind is BlockKind.RESULT for b in first.blocks)
    return cached if inside else ""


# ---- parts


def _blocks(part: Any, path: json_text.Path, place: int, numbers: dict[str, int]) -> Sequence[Block]:
    """The blocks of one part. `numbers` counts calls and responses of one content by their names."""
    key, call = member_of(part, CALL)
    if isinstance(call, dict):
        name = as_string(call.get("name"))
        call_id = as_string(call.get("id")) or _placed(place, name, numbers)
        return (Block(BlockKind.CALL, json_text.dumps(call.get("args", {})), (), call_id, name),)
    key, response = member_of(part, RESPONSE)
    if isinstance(response, dict):
        name = as_string(response.get("name"))
        call_id = as_string(response.get("id")) or _placed(place - 1, name, numbers)
        said = response.get("response")
        content = _response_content(said, (*path, key, "response"))
        failed = as_object(said).get("isError") is True or list(as_object(said)) == ["error"]
        return as_result(content, call_id, name, failed=failed)
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        kind = BlockKind.THINKING if part.get("thought") is True else BlockKind.TEXT
        return (Block(kind, part["text"], () if member_of(part, SIGNED)[0] else (*path, "text")),)
    if member_of(part, _MEDIA)[0]:
        return (Block(BlockKind.MEDIA, ""),)
    return (Block(BlockKind.OTHER, json_text.dumps(part)),)


def _placed(place: int, name: str, numbers: dict[str, int]) -> str:
    number = numbers[name] = numbers.get(name, -1) + 1
    return f"{PLACED}{place}.{name}.{number}"


def _response_content(response: Any, path: json_text.Path) -> Iterator[Block]:
    """The texts of a function's response, its lists and objects as JSON, and the rest of it as one block."""
    rest: dict[str, Any] = {}
    for key, value in as_object(response).items():
        if isinstance(value, str):
            yield Block(BlockKind.TEXT, value, (*path, key))
        elif key == "content" and isinstance(value, list):
            yield from text_parts(value, (*path, key), lambda part, spot: typed_part(part, spot, {"text": "text"}, ()))
        elif value and isinstance(value, dict | list):
            yield Block(BlockKind.TEXT, json_text.dumps(value), (*path, key), within=())
        else:
            rest[key] = value
    if rest or (response is not None and not isinstance(response, dict)):
        yield Block(BlockKind.OTHER, json_text.dumps(rest or response))


# ---- calls and texts as pagefold writes them


def content(role: str, parts: Sequence[Any]) -> str:
    return json_text.dumps({"role": role, "parts": parts})


def user_text(text: str) -> Message:
    raw = content("user", [{"text": text}])
    return parse_content(json_text.parse(raw), raw)


def response_part(call_id: str, name: str, text: str) -> dict[str, Any]:
    """A function's response. A call that came without an id is answered without one."""
    known = {"id": call_id} if call_id and not call_id.startswith(PLACED) else {}
    return {"functionResponse": {**known, "name": name, "response": {"output": text}}}


def _speaks(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("parts"), list) and "content" not in value


def _call_id_paths(value: Mapping[str, Any]) -> Iterator[json_text.Path]:
    for index, part in enumerate(as_list(value.get("parts"))):
        key, call = member_of(part, CALL)
        if as_string(as_object(call).get("id")):
            yield ("parts", index, key, "id")


def _result(call_id: str, text: str, call: Message) -> Message:
    name = next((block.name for block in call.blocks if block.call_id == call_id), "")
    raw = content("user", [response_part(call_id, name, text)])
    path = ("parts", 0, "functionResponse", "response", "output")
    return Message(Role.USER, (Block(BlockKind.RESULT, text, path, call_id, name),), raw)


def _with_results(message: Message, ids: Mapping[int, str]) -> Message | None:
    kept: list[Any] = []
    number = -1
    value = as_object(json_text.parse(message.raw))
    for part in as_list(value.get("parts")):
        key, response = member_of(part, RESPONSE)
        if not isinstance(response, dict):
            kept.append(part)
            continue
        number += 1
        if number in ids:
            own = {} if ids[number].startswith(PLACED) else {"id": ids[number]}
            kept.append({**part, key: {**response, **own}})
    return _with_parts(message, value, kept, [ids[at] for at in sorted(ids)]) if kept else None


def _parted(message: Message) -> tuple[Message, Message]:
    value = as_object(json_text.parse(message.raw))
    parts = as_list(value.get("parts"))
    results = [part for part in parts if member_of(part, RESPONSE)[0]]
    words = [part for part in parts if not member_of(part, RESPONSE)[0]]
    ids = list(dict.fromkeys(block.call_id for block in message.blocks if block.kind is BlockKind.RESULT))
    return _with_parts(message, value, results, ids), _with_parts(message, value, words, [])


def _with_parts(message: Message, value: Mapping[str, Any], parts: list[Any], ids: Sequence[str]) -> Message:
    """A message of these parts, whose responses answer the calls with these ids, in order."""
    made = {**value, "parts": parts}
    parsed = parse_content(made, json_text.dumps(made), message.place)
    given = dict.fromkeys(block.call_id for block in parsed.blocks if block.call_id)
    names = dict(zip(given, ids, strict=False))
    blocks = [replace(block, call_id=names.get(block.call_id, block.call_id)) for block in parsed.blocks]
    return replace(parsed, blocks=tuple(blocks))


CALLS = CallFormat(_speaks, _call_id_paths, _result, _with_results, _parted)


# ---- answers and errors


def parse_response(body: bytes) -> Response:
    """Parses an answer that does not come as events: whole, or the list of chunks that a stream without `alt=sse` is.
    Raises WireError, also for an error body."""
    text = json_text.text_of(body)
    value = json_text.parse(text)
    if isinstance(value, list) and value:
        stream = GeminiStream()
        for chunk in value:
            stream.take_chunk(as_object(chunk))
        if stream.error or not stream.ended:
            raise WireError("a list of chunks that is an error, or no whole answer")
        return stream.response()
    candidates = as_list(as_object(value).get("candidates"))
    if not candidates and "promptFeedback" not in as_object(value):
        raise WireError("a generateContent response has a list of candidates")
    candidate = as_object(candidates[0]) if candidates else {}
    said = candidate.get("content")
    raw = text[slice(*json_text.find(text, ("candidates", 0, "content")))] if isinstance(said, dict) else ""
    message = parse_content({"role": "model"} | said, raw) if isinstance(said, dict) else _UNHEARD
    return Response(message, stop_of(value), parse_usage(value.get("usageMetadata")), _model_of(value))


def stop_of(chunk: Mapping[str, Any]) -> str:
    """Why an answer ended, or "" where it has not."""
    candidates = as_list(chunk.get("candidates"))
    reason = as_object(candidates[0]).get("finishReason") if candidates else None
    return as_string(reason or as_object(chunk.get("promptFeedback")).get("blockReason")).lower()


def parse_usage(value: Any) -> Usage | None:
    """The prompt's count holds the tokens of cached content, which are told, and what tools of the provider added is
    counted beside it."""
    if not isinstance(value, dict):
        return None
    cached, prompt = as_count(value.get("cachedContentTokenCount")), as_count(value.get("promptTokenCount"))
    output = as_count(value.get("candidatesTokenCount")) + as_count(value.get("thoughtsTokenCount"))
    return Usage(max(0, prompt - cached) + as_count(value.get("toolUsePromptTokenCount")), cached, 0, output)


def _model_of(value: Mapping[str, Any]) -> str:
    return as_string(value.get("modelVersion"))


def error_json(kind: str, message: str) -> str:
    code, status = _STATUSES.get(kind, (502, "UNAVAILABLE"))
    return json_text.dumps({"error": {"code": code, "message": message, "status": status}})


def read_error(body: bytes) -> Mapping[str, Any]:
    """The members of an error, also of one in the list that a stream without `alt=sse` is."""
    found = error_members(body.strip().removeprefix(b"[").removesuffix(b"]"))
    return {"type": as_string(found.get("status")).lower(), "message": found.get("message")} if found else {}


_UNHEARD = Message(Role.ASSISTANT, (), '{"role":"model","parts":[]}')


@dataclass(slots=True)
class GeminiStream(sse.StreamedAnswer):
    """Reads the first candidate of a stream; the chunk that says why it ended ends it."""

    telling = (b'"finishReason"', b'"blockReason"')

    _parts: list[dict[str, Any]] = field(default_factory=list)
    _stop: str = ""
    _model: str = ""

    def response(self) -> Response:
        """Returns the answer as far as it has come."""
        message = _UNHEARD
        if self._parts:
            raw = content("model", self._parts)
            message = parse_content(json_text.parse(raw), raw)
        return Response(message, self._stop, parse_usage(self._usage), self._model)

    def _take(self, name: str, data: str) -> None:
        self.take_chunk(sse.object_of(name, data))

    def take_chunk(self, chunk: Mapping[str, Any]) -> None:
        if chunk.get("error"):
            self.error = json_text.dumps(chunk)
        self._usage = chunk.get("usageMetadata") or self._usage
        self._model = _model_of(chunk) or self._model
        self._stop = stop_of(chunk) or self._stop
        self.ended = self.ended or bool(self._stop)
        candidates = as_list(chunk.get("candidates"))
        if candidates and not self.gist:
            for part in as_list(as_object(as_object(candidates[0]).get("content")).get("parts")):
                self._add(as_object(part))

    def _add(self, part: dict[str, Any]) -> None:
        """Adds a part; a text goes on from the text before it, unless either is signed."""
        last = self._parts[-1] if self._parts else {}
        rest = {key: value for key, value in part.items() if key != "text"}
        alike = "text" in part and "text" in last and rest == {key: last[key] for key in last if key != "text"}
        if alike and not member_of(rest, SIGNED)[0]:
            last["text"] = as_string(last["text"]) + as_string(part["text"])
        else:
            self._parts.append(dict(part))
