"""Signatures of thinking and summaries, and encrypted content: what it says, in a text only the referee can write.

A signature says everything that is checked when its block comes back, so the referee keeps no record of the blocks it
made: two of them, or one that was restarted, accept each other's. Whoever reads this file can forge one; it guards
against changes by mistake, not against attackers.
"""

import base64
import hashlib
import hmac

from pagefold.frozen import frozen

_KEY = b"the referee on loopback"
_SEPARATOR = b"|"


@frozen
class Bound:
    """What one thinking block is bound to: the model that made it, the hash of its prefix, the thinking block that came
    before it (empty where there was none), and its text. `own` names the block itself."""

    model: str
    prefix: bytes
    previous: bytes
    own: bytes
    text: bytes
    tokens: int


@frozen
class Summarized:
    """What one compaction block stands for: the prefix hash and role after the messages that it replaces, the hash of
    system and tools they were sent with, the model, and whether the text is the one that was signed."""

    prefix: bytes
    role: str
    root: bytes
    model: str
    intact: bool


def sign_thinking(bound: Bound) -> str:
    fields = (
        bound.model.encode(),
        bound.prefix.hex().encode(),
        bound.previous.hex().encode(),
        bound.own.hex().encode(),
    )
    return _signed(b"thinking", *fields, bound.text.hex().encode(), str(bound.tokens).encode())


def bound_of(signature: str) -> Bound | None:
    """What a signature says; None where the referee did not write it."""
    match _read(signature):
        case [b"thinking", model, prefix, previous, own, text, tokens]:
            before, after, name, digest = (bytes.fromhex(field.decode()) for field in (prefix, previous, own, text))
            return Bound(model.decode(), before, after, name, digest, int(tokens))
    return None


def sign_summary(summary: Summarized, text: str) -> str:
    fields = (summary.prefix.hex().encode(), summary.role.encode(), summary.root.hex().encode(), summary.model.encode())
    return _signed(b"summary", *fields, _digest(text))


def summarized_of(signature: str, text: str) -> Summarized | None:
    """What the signature of a compaction block says; None where the referee did not write it."""
    match _read(signature):
        case [b"summary", prefix, role, root, model, digest]:
            hashes = [bytes.fromhex(field.decode()) for field in (prefix, root)]
            return Summarized(hashes[0], role.decode(), hashes[1], model.decode(), digest == _digest(text))
    return None


@frozen
class Sealed:
    """What the encrypted content of an OpenAI item says: the kind of item, its id, and how many tokens it holds."""

    kind: str
    id: str
    tokens: int


def seal(sealed: Sealed) -> str:
    return _signed(b"sealed", sealed.kind.encode(), sealed.id.encode(), str(sealed.tokens).encode())


def sealed_of(content: str) -> Sealed | None:
    """What encrypted content says; None where the referee did not write it."""
    match _read(content):
        case [b"sealed", kind, name, tokens]:
            return Sealed(kind.decode(), name.decode(), int(tokens))
    return None


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest().encode()


def _signed(*fields: bytes) -> str:
    body = _SEPARATOR.join(fields)
    return base64.b64encode(_seal(body) + body).decode()


def _read(signature: str) -> list[bytes]:
    try:
        data = base64.b64decode(signature, validate=True)
    except ValueError:
        return []
    return data[16:].split(_SEPARATOR) if hmac.compare_digest(data[:16], _seal(data[16:])) else []


def _seal(body: bytes) -> bytes:
    return hmac.digest(_KEY, body, "sha256")[:16]
