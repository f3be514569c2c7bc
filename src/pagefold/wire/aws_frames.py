"""Reads answers that come in frames of AWS (`application/vnd.amazon.eventstream`) as the server-sent events in them.

A frame is its length, the length of its headers, a checksum, headers, a payload and another checksum. The payload of a
model's answer is JSON whose `bytes` are one event in base64. Frames that hold none, such as an exception, become an
error event. Works on any cut of the bytes; raises WireError where they are no frames.
"""

import base64
import struct
import zlib
from dataclasses import dataclass, field

from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.json_text import as_object, as_string

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_PRELUDE, _CHECKSUM = 12, 4
_LARGEST = 32 << 20


@dataclass(slots=True)
class FrameReader:
    """Turns bytes of frames into bytes of events as they arrive, and keeps what is not a whole frame yet."""

    _rest: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> bytes:
        """Raises WireError."""
        self._rest += data
        found: list[bytes] = []
        while len(self._rest) >= _PRELUDE:
            length, headers, checksum = struct.unpack_from(">III", self._rest)
            if zlib.crc32(self._rest[:8]) != checksum or not _PRELUDE + _CHECKSUM <= length <= _LARGEST:
                raise WireError("these bytes are no frame of an event stream of AWS")
            if len(self._rest) < length:
                break
            found.append(_event(bytes(self._rest[_PRELUDE + headers : length - _CHECKSUM])))
            del self._rest[:length]
        return b"".join(found)


def _event(payload: bytes) -> bytes:
    said = as_object(json_text.parse(json_text.text_of(payload))) if payload else {}
    if not isinstance(said.get("bytes"), str):
        message = as_string(said.get("message"))
        return sse.render_event("error", json_text.dumps({"type": "error", "error": {"message": message}}))
    try:
        data = json_text.text_of(base64.b64decode(said["bytes"], validate=True))
    except ValueError as error:
        raise WireError("a frame's bytes are not base64") from error
    return sse.render_event(as_string(as_object(json_text.parse(data)).get("type")), data)
