"""OpenCode sessions as `opencode export` writes them: one document, `{"info", "messages": [{"info", "parts"}]}`.

A step of an assistant message is one answer; a tool part is a call and its result. A summary that OpenCode wrote to
compact the session begins a new history.
"""

from collections.abc import Iterator
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text
from pagefold.wire.message import Block, BlockKind, Role, Usage
from pagefold.wire.transcripts.session import Builder, Session

_SOURCE = "opencode"


def looks_like(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("info"), dict) and isinstance(value.get("messages"), list)


def read(text: str, *, name: str) -> Iterator[Session]:
    """Raises WireError where the document is no session."""
    document = json_text.parse(text)
    if not looks_like(document):
        raise WireError('an OpenCode session has "info" and "messages"')
    identity = str(document["info"].get("id") or name)
    project = str(document["info"].get("directory") or "")
    builder = Builder(identity, _SOURCE, project=project)
    histories = 1
    for index, message in enumerate(document["messages"]):
        info = message.get("info") if isinstance(message, dict) else None
        if not isinstance(info, dict) or not isinstance(message.get("parts"), list):
            raise WireError(f'message {index}: expected "info" and "parts"')
        if info.get("summary") is True and info.get("role") == "assistant":
            if session := builder.session():
                yield session
            histories += 1
            builder = Builder(f"{identity}#{histories}", _SOURCE, project=project)
            builder.add(Role.USER, _texts(message["parts"]), _seconds(info))
        elif info.get("role") == "user":
            builder.add(Role.USER, _texts(message["parts"]), _seconds(info))
        else:
            builder.model = str(info.get("modelID") or builder.model)
            _answers(builder, info, message["parts"])
    if session := builder.session():
        yield session


def _answers(builder: Builder, info: dict[str, Any], parts: list[Any]) -> None:
    step, key, results = 0, "", list[Block]()
    for part in parts:
        if not isinstance(part, dict):
            continue
        key = f"{info.get('id')}/{step}"
        match part.get("type"):
            case "step-start":
                builder.add(Role.TOOL, results, _seconds(info))
                results, step = [], step + 1
            case "text":
                builder.answer(key, [Block(BlockKind.TEXT, str(part.get("text", "")))], _seconds(info))
            case "tool":
                call, result = _exchange(part)
                builder.answer(key, [call], _seconds(info))
                results += result
            case "step-finish":
                builder.used(_usage(part.get("tokens")))
    builder.add(Role.TOOL, results, None)


def _exchange(part: dict[str, Any]) -> tuple[Block, list[Block]]:
    state = said if isinstance(said := part.get("state"), dict) else {}
    call_id, name = str(part.get("callID", "")), str(part.get("tool", ""))
    call = Block(BlockKind.CALL, json_text.dumps(state.get("input") or {}), (), call_id, name)
    if state.get("status") not in ("completed", "error"):
        return call, []
    failed = state["status"] == "error"
    text = str(state.get("error") if failed else state.get("output") or "")
    return call, [Block(BlockKind.RESULT, text, (), call_id, name, failed)]


def _texts(parts: list[Any]) -> list[Block]:
    found = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return [Block(BlockKind.TEXT, text) for text in found if isinstance(text, str)]


def _usage(tokens: Any) -> Usage:
    said = tokens if isinstance(tokens, dict) else {}
    cache = cached if isinstance(cached := said.get("cache"), dict) else {}
    numbers = (said.get("input"), cache.get("read"), cache.get("write"), said.get("output"))
    return Usage(*(number if isinstance(number, int) else 0 for number in numbers))


def _seconds(info: dict[str, Any]) -> float | None:
    times = info.get("time")
    created = times.get("created") if isinstance(times, dict) else None
    return created / 1000 if isinstance(created, int | float) else None
