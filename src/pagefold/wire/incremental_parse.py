"""Parses a request from where it differs from an earlier one.

Every request of a conversation repeats nearly all of the one before it. `parse_again` returns exactly what parsing the
whole body would return, and costs what is new in it: messages that stand at the same bytes are the same objects, and
what else the two bodies have in common is not looked at. It returns None where they have too little in common; then the
whole body has to be parsed.
"""

from typing import Any, TypeAlias

from pagefold.log import Log
from pagefold.wire import json_text
from pagefold.wire.json_text import Spot, bytes_of, places_in_bytes, text_of
from pagefold.wire.message import (
    BodyMembers,
    Message,
    Request,
    RequestShape,
    head_of,
    model_of,
    refuse_too_many,
    streams,
    tools_of,
)

_SPACES = (b" ", b"\t", b"\n", b"\r")
_ENDS = b",}] \t\n\r"


Reparsed: TypeAlias = tuple[Request, int, int, list[Any], bool]
"""A request; how many leading messages it shares with the earlier one, and where they end; the values of the other
messages; whether everything but the messages is the same."""


def parse_again(body: bytes, before: Request, shape: RequestShape) -> Reparsed | None:
    """Parses `body` given an earlier request. Raises WireError where the new part is not JSON, or no message."""
    old, ends, (start, old_end) = before.body, before._ends, before._array  # noqa: SLF001 - the other half of this type
    view = memoryview(old)
    # A body that does not have its messages as a list has no ends.
    kept = _kept(body, view, ends)
    if not kept:
        return None
    at = ends[kept - 1]
    # Mostly everything after the list, its bracket included, is unchanged.
    stop = len(body) - (len(old) - old_end)
    alike = stop > at and body.endswith(view[old_end - 1 :])
    text = text_of(body[at:stop] if alike else body[at:])
    fresh, end = json_text.following(text, 0)
    refuse_too_many(kept + len(fresh))
    if alike and end != len(text):
        return None
    model, stream, head, tools = before.model, before.stream, before.head, before.tools
    around = before._around  # noqa: SLF001
    if not alike:
        (stop,) = places_in_bytes(text, (end,))
        rest = _rest(body, at + stop, view, old_end, [spot for spot in around if spot.start < 0])
        if rest is None:
            return None
        stop, (behind, said) = at + stop, rest
        around = (*(spot for spot in around if spot.start >= 0), *behind)
        model = model_of(said, shape) if shape.model in said else model
        stream = streams(said, shape) if shape.stream in said else stream
        head = head_of(said, shape) if shape.system in said or shape.also_system in said else head
        tools = tools_of(said, shape) if shape.tools in said else tools
    read: list[Message] = []
    values: list[Any] = []
    places: list[int] = []
    parse, place = shape.parse, kept
    link, last_read = shape.link, before.messages[kept - 1]
    for first, last, value, _ in fresh:
        message = parse(value, text[first:last], place)
        if link is not None:
            last_read = message = link(last_read, message)
        read.append(message)
        values.append(value)
        places.append(at + last)
        place += 1
    if not text.isascii():
        places = [at + place for place in places_in_bytes(text, [end for _, end, _, _ in fresh])]
    request = Request(
        body,
        model,
        stream,
        head,
        tools,
        before.messages.with_items(read, kept),
        (start, stop),
        ends.with_items(places, kept),
        around,
        shape.tools,
        shape.tools_end,
    )
    return request, kept, at, values, alike


def _kept(body: bytes, old: memoryview, ends: Log[int]) -> int:
    """Returns how many leading messages are the same bytes. Searches from the end, where requests usually differ."""
    least, most = 0, ends.length  # at least so many are equal, at most so many can be
    at, step = most, 1
    while least < most:
        if body.startswith(old[: ends[at - 1]]):
            least = at
        else:
            most = at - 1
        if least < most:
            at = (least + most + 1) // 2 if least else max(1, most + 1 - step)
            step *= 2
    return least


def _rest(
    body: bytes, at: int, old: memoryview, old_at: int, members: list[Spot]
) -> tuple[list[Spot], BodyMembers] | None:
    """Returns the members after the list, and the values of those that changed."""
    found: list[Spot] = []
    said: dict[str, tuple[Any, str]] = {}
    for spot in members:
        start, end = spot.start + len(old), spot.end + len(old)
        if not body.startswith(old[old_at:start], at):
            return None
        at += start - old_at
        stop = at + end - start
        if body.startswith(old[start:end], at) and body[stop : stop + 1] in _ENDS:
            said.pop(spot.key, None)
        elif body[at : at + 1] in _SPACES:
            return None
        else:
            text = text_of(body[at:])
            value = json_text.value_at(text, 0)
            said[spot.key] = value.value, text[: value.end]
            stop = at + len(bytes_of(text[: value.end]))
        found.append(Spot(at - len(body), stop - len(body), None, spot.key))
        at, old_at = stop, end
    return (found, said) if body[at:] == old[old_at:] else None
