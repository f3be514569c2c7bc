"""Frames of AWS are read as the events in them, wherever the network cuts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.errors import WireError
from pagefold.wire.aws_frames import FrameReader
from tests.wire.aws_framing import frame, framed

EVENTS = [
    b'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 5}}}\n\n',
    'event: content_block_delta\ndata: {"type": "content_block_delta", "delta": {"text": "ß \\ud800"}}\n\n'.encode(),
    b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
]
STREAM = b"".join(map(framed, EVENTS))


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_events_do_not_depend_on_the_cuts(places: list[int]) -> None:
    reader, bounds = FrameReader(), [0, *sorted(places), len(STREAM)]
    found = b"".join(reader.feed(STREAM[a:b]) for a, b in pairwise(bounds))
    assert found == b"".join(EVENTS)


@pytest.mark.parametrize(
    ("payload", "headers"),
    [
        (b'{"message":"Too many requests"}', {"event-type": "throttlingException", "message-type": "event"}),
        (b'{"message":"Too many requests"}', {"exception-type": "throttlingException", "message-type": "exception"}),
        (b"", {"error-code": "throttled", "error-message": "Too many requests", "message-type": "error"}),
    ],
)
def test_an_exception_is_an_error(payload: bytes, headers: dict[str, str]) -> None:
    told = FrameReader().feed(frame(payload, **headers))
    assert told == b'event: error\ndata: {"type":"error","error":{"message":"Too many requests"}}\n\n'


@pytest.mark.parametrize("data", [b"data: {}\n\n" * 2, framed(EVENTS[0])[:8] + b"\0" * 40, frame(b'{"bytes":"*"}')])
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        FrameReader().feed(data)
