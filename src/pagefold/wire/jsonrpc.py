"""Parses a line or body of MCP's JSON-RPC 2.0 into what it is: a call, a notification, a reply, a failure or a batch.

Keeps every message as the text it arrived as, `_meta` and unknown fields included, and every id as it was spelled:
`1`, `1.0`, `"1"` and `null` are four ids. Refuses, with WireError, what is not JSON-RPC 2.0.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any, TypeAlias

from pagefold.errors import WireError
from pagefold.frozen import frozen
from pagefold.wire import json_text

TEXTS = ("result", "content", "text")
"""The way to the texts of an answer to `tools/call`, as `json_text.opened` goes."""
_NO_IDS = frozenset((dict, list, bool))


@frozen
class Call:
    """A request that wants an answer under its id. Ids are JSON text. `params` is what `raw` says of them."""

    id: str
    method: str
    raw: str
    params: Any = field(default=None, repr=False, compare=False)


@frozen
class Notification:
    method: str
    raw: str
    params: Any = field(default=None, repr=False, compare=False)


@frozen
class Reply:
    """An answer. `members` are the spots of `raw`, opened along `TEXTS`, so that nobody has to parse it again."""

    id: str
    raw: str
    members: Sequence[json_text.Spot] = field(default=(), repr=False, compare=False)


@frozen
class Failure:
    """`id` is empty where the other side does not say which call failed."""

    id: str
    raw: str


Single: TypeAlias = Call | Notification | Reply | Failure


@frozen
class Batch:
    messages: tuple[Single, ...]
    raw: str


def parse(data: bytes) -> Single | Batch:
    """One line, or one body, as what it is. Raises WireError."""
    text = json_text.text_of(data).strip(" \t\r\n")
    if not text.removeprefix("\ufeff").lstrip().startswith("["):
        return _single(text)
    if not json_text.parse(text):
        raise WireError("an empty batch says nothing")
    return Batch(tuple(_single(text[spot.start : spot.end]) for spot in json_text.elements(text)), text)


def _single(text: str) -> Single:
    whole = json_text.opened(text, TEXTS)
    spots: list[json_text.Spot] = whole.value if json_text.is_object(text, whole) else []
    said = {spot.key: spot.value for spot in spots}
    if said.get("jsonrpc") != "2.0":
        raise WireError('a JSON-RPC message is an object with "jsonrpc": "2.0"')
    spelled = _id(text, json_text.member(spots, "id"))
    if isinstance(method := said.get("method"), str):
        params = said.get("params")
        return Call(spelled, method, text, params) if spelled else Notification(method, text, params)
    if isinstance(said.get("error"), dict):
        return Failure(spelled, text)
    if "result" in said and spelled:
        return Reply(spelled, text, spots)
    raise WireError("a JSON-RPC message has a method, or an id with a result or an error")


def _id(text: str, spot: json_text.Spot | None) -> str:
    if spot is None:
        return ""
    if type(spot.value) in _NO_IDS:
        raise WireError(f"id {text[spot.start : spot.end][:40]}: expected a string, a number or null")
    return text[spot.start : spot.end]
