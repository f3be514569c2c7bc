"""Decodes the compressed bodies of requests, and encodes derived ones the same way.

Codex compresses its requests with zstd where it has a ChatGPT login. What is derived is encoded as the client encoded
it: whoever takes one takes the other. A body in another encoding, in several, or damaged is not read and passes on as
it came. No body becomes longer than its bound, however few bytes it has.
"""

import io
import zlib
from collections.abc import Callable

from pagefold import zstd
from pagefold.model_proxy.exchange import TOO_LARGE

_WINDOW_LOG = 23  # 8 MB, the longest that RFC 9659 allows in HTTP
_PLAIN = ("", "identity")
_QUICK = 1
NOT_READ = "request in an encoding that is not read"


def legible(body: bytes | None, encoding: str, most: int) -> tuple[bytes | None, str]:
    """Returns a body without its content encoding, or None and why it is not read. None stands for too long a body."""
    if body is None:
        return None, TOO_LARGE
    if encoding in _PLAIN:
        return body, ""
    decode = _DECODERS.get(encoding)
    if decode is None:
        return None, NOT_READ
    try:
        text = decode(body, most + 1)
    except (zlib.error, zstd.ZstdError, EOFError):
        return None, NOT_READ
    return (text, "") if len(text) <= most else (None, TOO_LARGE)


def encoded(body: bytes, encoding: str) -> bytes:
    """Returns a body in an encoding that `legible` reads."""
    if encoding == "zstd":
        return zstd.compress(body, _QUICK)
    if encoding in _PLAIN:
        return body
    packer = zlib.compressobj(_QUICK, wbits=zlib.MAX_WBITS + (0 if encoding == "deflate" else 16))
    return packer.compress(body) + packer.flush()


def _from_zstd(body: bytes, most: int) -> bytes:
    with zstd.open(io.BytesIO(body), options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}) as reader:
        return reader.read(most)


def _from_zlib(body: bytes, most: int) -> bytes:
    return zlib.decompressobj(wbits=32 + zlib.MAX_WBITS).decompress(body, most)


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "zstd": _from_zstd,
    "gzip": _from_zlib,
    "x-gzip": _from_zlib,
    "deflate": _from_zlib,
}
