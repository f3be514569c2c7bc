"""Reads what Gemini's Interactions API reports: usage, model, and how an answer ended.

The provider holds its conversations, and steps of its own stand between the user's words and the answer. So requests
pass as they came, and only what they used is counted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.api import CallFormat
from pagefold.wire.json_text import as_count, as_object, as_string
from pagefold.wire.message import Block, BlockKind, Message, Request, RequestShape, Response, Role, Usage, parse_body

_UNREAD = Message(Role.ASSISTANT, (), "[]")
_ENDED = ("completed", "failed", "cancelled", "incomplete", "requires_action")


def _input(value: Any, raw: str, place: int = -1) -> Message:
    return Message(Role.USER, (Block(BlockKind.OTHER, json_text.dumps(value)),), raw, place)


SHAPE = RequestShape("input", _input)


def parse_request(body: bytes) -> Request:
    """Raises WireError, also where the input is not a list."""
    return parse_body(body, SHAPE)


def continues(request: Request) -> str:
    """Every request counts as one that goes on from what the provider holds: none is derived."""
    return as_string(json_text.parse(request.member("previous_interaction_id") or "null")) or "interaction"


def parse_response(body: bytes) -> Response:
    """Raises WireError, also for an error body."""
    value = as_object(json_text.parse(json_text.text_of(body)))
    if "usage" not in value and "status" not in value:
        raise WireError("an interaction has a status")
    return _response(value)


def _response(value: Mapping[str, Any]) -> Response:
    stop, model = as_string(value.get("status")), as_string(value.get("model"))
    return Response(_UNREAD, stop, parse_usage(value.get("usage")), model)


def parse_usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    names = ("input", "cached", "tool_use", "output", "thought")
    prompt, cached, tools, output, thoughts = (as_count(value.get(f"total_{name}_tokens")) for name in names)
    return Usage(max(0, prompt - cached) + tools, cached, 0, output + thoughts)


@dataclass(slots=True)
class InteractionStream(sse.StreamedAnswer):
    """Reads a stream; the event with an interaction that has ended ends it."""

    telling = (b'"interaction"',)

    _stop: str = ""
    _model: str = ""

    def response(self) -> Response:
        return Response(_UNREAD, self._stop, parse_usage(self._usage), self._model)

    def _take(self, name: str, data: str) -> None:
        if data.strip() == "[DONE]":
            self.ended = True
            return
        value = sse.object_of(name, data)
        if value.get("error"):
            self.error = data
        told = as_object(value.get("interaction"))
        self._usage = told.get("usage") or self._usage
        self._model = as_string(told.get("model")) or self._model
        if told.get("status") in _ENDED or as_string(value.get("event_type")).startswith("interaction.complete"):
            self.ended, self._stop = True, as_string(told.get("status"))


def _no_paths(value: Mapping[str, Any]) -> Iterator[json_text.Path]:
    return iter(())


CALLS = CallFormat(lambda value: False, _no_paths, lambda call_id, text, call: call, lambda message, ids: message)
