"""A request that begins like an earlier one is read from where it differs.

Every request of a conversation repeats nearly all of the one before it. `reread` says exactly what reading the whole
body would say, and costs what is new in it; messages that stand at the same bytes are the same objects. It returns None
where the two bodies do not agree well enough, and then the whole has to be read.
"""

from pagefold.wire import json_text
from pagefold.wire.json_text import Spot
from pagefold.wire.message import Request, Shape, head_of, model_of, streams, tools_of

_ENDS = ",}] \t\n\r"
_UNREAD = object()


def reread(text: str, before: Request, shape: Shape) -> Request | None:
    """Raises WireError where what differs is not JSON, or no message."""
    spans = before._spans  # noqa: SLF001 - the other half of this type
    start, old_end = before._array  # noqa: SLF001
    # A body that says its messages in another way than as a list has no spans.
    if not spans:
        return None
    kept = _kept(text, before.body, spans)
    if not kept and not text.startswith(before.body[:start]):
        return None
    if kept:
        fresh, end = json_text.following(text, spans[kept - 1][1])
    else:
        fresh = json_text.elements(text, start)
        end = json_text.following(text, fresh[-1].end)[1] if fresh else 0
    if not fresh and not kept:
        return None
    rest = _rest(text, end, before.body, old_end, [spot for spot in before._top if spot.start >= old_end])  # noqa: SLF001
    if rest is None:
        return None
    top = [spot for spot in before._top if spot.end <= start]  # noqa: SLF001
    said = {spot.key: spot for spot in rest}  # what stands before the list stands there unread
    messages = tuple(shape.parse(spot.value, text[spot.start : spot.end]) for spot in fresh)

    def same(key: str) -> bool:
        return key not in said or said[key].value is _UNREAD

    return Request(
        body=text,
        model=before.model if same("model") else model_of(said),
        stream=before.stream if same("stream") else streams(said),
        head=before.head if same(shape.head_key) else head_of(text, said, shape),
        tools=before.tools if same("tools") else tools_of(text, said),
        messages=before.messages[:kept] + messages,
        _array=(start, end),
        _spans=spans[:kept] + tuple((spot.start, spot.end) for spot in fresh),
        _top=(*top, Spot(start, end, None, shape.key), *(Spot(spot.start, spot.end, None, spot.key) for spot in rest)),
    )


def _kept(text: str, old: str, spans: tuple[tuple[int, int], ...]) -> int:
    """How many leading messages stand at the same bytes. Two requests of a conversation differ near the end."""
    least, most = 0, len(spans)  # at least so many are equal, at most so many can be
    step = 1
    at = most
    while least < most:
        if text.startswith(old[: spans[at - 1][1]]):
            least = at
        else:
            most = at - 1
        at = (least + most + 1) // 2 if least else max(1, most + 1 - step)
        step *= 2
    return least


def _rest(text: str, at: int, old: str, old_at: int, members: list[Spot]) -> list[Spot] | None:
    """The members behind the list, each with its value where it is another than before."""
    found: list[Spot] = []
    for spot in members:
        between = old[old_at : spot.start]
        if not text.startswith(between, at):
            return None
        at += len(between)
        raw = old[spot.start : spot.end]
        if text.startswith(raw, at) and text[at + len(raw) : at + len(raw) + 1] in _ENDS:
            found.append(Spot(at, at + len(raw), _UNREAD, spot.key))
        else:
            value = json_text.value_at(text, at)
            found.append(Spot(value.start, value.end, value.value, spot.key))
        at, old_at = found[-1].end, spot.end
    return found if text[at:] == old[old_at:] else None
