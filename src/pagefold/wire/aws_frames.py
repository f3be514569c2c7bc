"""Reads answers that come in frames of AWS (`application/vnd.amazon.eventstream`) as the server-sent events in them.

A frame is its length, the length of its headers, a checksum, headers, a payload and another checksum. The payload is
JSON: its `bytes` are one event in base64, or it is an event itself, whose type is in the headers. An exception or an
error becomes an error event. Works on any cut of the bytes; raises WireError where they are no frames.
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
_STRING = b"\x07"
_EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata")
"""Of Converse, each with its members as the payload."""


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
            payload = bytes(self._rest[_PRELUDE + headers : length - _CHECKSUM])
            found.append(_event(_headers_of(bytes(self._rest[_PRELUDE : _PRELUDE + headers])), payload))
            del self._rest[:length]
        return b"".join(found)


def _headers_of(headers: bytes) -> dict[str, str]:
    """The headers of a frame up to the first that is no string; Bedrock's are strings."""
    found: dict[str, str] = {}
    while len(headers) > 4:
        name, value = headers[1 : 1 + headers[0]], headers[1 + headers[0] :]
        size = int.from_bytes(value[1:3])
        if value[:1] != _STRING:
            break
        found[name.decode("latin-1")] = value[3 : 3 + size].decode("utf-8", "replace")
        headers = value[3 + size :]
    return found


def _event(headers: dict[str, str], payload: bytes) -> bytes:
    """The event of a frame: what its `bytes` are, the frame's own, or the error of any other kind of frame."""
    text = json_text.text_of(payload)
    said = as_object(json_text.parse(text)) if payload else {}
    kind = headers.get(":event-type", "") if headers.get(":message-type") == "event" else ""
    if isinstance(said.get("bytes"), str) and kind not in _EVENTS:
        try:
            data = json_text.text_of(base64.b64decode(said["bytes"], validate=True))
        except ValueError as error:
            raise WireError("a frame's bytes are not base64") from error
        return sse.render_event(as_string(as_object(json_text.parse(data)).get("type")), data)
    if kind and not kind.endswith("Exception"):
        return sse.render_event(kind, text)
    message = as_string(said.get("message")) or headers.get(":error-message", "")
    return sse.render_event("error", json_text.dumps({"type": "error", "error": {"message": message}}))
