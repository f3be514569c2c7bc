"""Frames of an event stream of AWS, as Bedrock sends them."""

import base64
import json
import struct
import zlib


def frame(payload: bytes, kind: str = "chunk", **more: str) -> bytes:
    """A frame of an event of this kind, or with other headers than an event's."""
    named = more or {"event-type": kind, "message-type": "event"}
    headers = b"".join(
        bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
        for name, value in ((f":{name}".encode(), value.encode()) for name, value in named.items())
    )
    prelude = struct.pack(">II", 12 + len(headers) + len(payload) + 4, len(headers))
    made = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return made + struct.pack(">I", zlib.crc32(made))


def framed(data: bytes) -> bytes:
    """One event of a Messages stream in its frame."""
    line = next(line for line in data.split(b"\n") if line.startswith(b"data: "))
    said = base64.b64encode(line.removeprefix(b"data: ")).decode()
    return frame(json.dumps({"bytes": said, "p": "abcd"}).encode())
