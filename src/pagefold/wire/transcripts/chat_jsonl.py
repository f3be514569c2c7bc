"""Chat JSONL: one session a line, `{"id", "messages": [OpenAI-style chat messages], "times"?, "tools"?, "source"?}`.

Each message keeps its exact text. A line that is not such a session raises WireError, with the place and what is wrong.
"""

from collections.abc import Sequence
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text, openai_chat
from pagefold.wire.message import Message
from pagefold.wire.transcripts.session import Session


def looks_like(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("messages"), list) and "info" not in value


def parse_session(line: str, *, name: str) -> Session:
    """`name` stands in where the line does not say who it is. Raises WireError."""
    top = json_text.members(line)
    array = json_text.member(top, "messages")
    if array is None or not isinstance(array.value, list):
        raise WireError('no "messages" list: a session is {"id", "messages": [...]}')
    messages = []
    for index, spot in enumerate(json_text.elements(line, array.start)):
        try:
            messages.append(openai_chat.parse_message(spot.value, line[spot.start : spot.end]))
        except WireError as error:
            raise WireError(f"message {index}: {error}") from error
    said = {spot.key: spot.value for spot in top}
    return Session(
        id=str(said.get("id") or name),
        source=str(said.get("source") or ""),
        messages=tuple(messages),
        times=_times(said.get("times"), messages),
        head=tuple(json_text.dumps(tool) for tool in said.get("tools") or ()),
        model=str(said.get("model") or ""),
    )


def _times(value: Any, messages: Sequence[Message]) -> tuple[float, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) != len(messages):
        raise WireError(f'"times" has one number a message: expected {len(messages)}')
    if not all(isinstance(time, int | float) for time in value):
        raise WireError('"times" has one number a message')
    return tuple(float(time) for time in value)
