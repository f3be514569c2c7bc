"""A wire format of one's own: a small chat API, described by one value and registered with pagefold.

A request says `engine`, `live` (stream), `preamble` (system prompt), `actions` (tools) and `turns`. A turn is
`{"by": "human", "say": …}`, `{"by": "engine", "say": …, "do": [{"key", "action", "with"}]}`, or what an action gave:
`{"by": "action", "key": …, "gave": …}`. An answer is `{"engine", "turn", "why", "spent": {"read", "cached", "wrote"}}`;
streamed, it comes as events `{"say"}`, `{"do"}` and at last `{"why", "engine", "spent"}`.

    PAGEFOLD_UPSTREAMS_TOY_URL=http://127.0.0.1:9000 python examples/toy_wire_format.py serve
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pagefold.cli import main
from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.api import Api, ApiProvider, CallFormat
from pagefold.wire.apis import register
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import Block, BlockKind, Message, Request, RequestShape, Response, Role, Usage, parse_body
from pagefold.wire.shared_parsing import as_result, with_result_id

ROLES = {"human": Role.USER, "engine": Role.ASSISTANT, "action": Role.TOOL}


# ---- requests


def parse_turn(value: Any, raw: str, place: int = -1) -> Message:
    role = ROLES.get(as_string(as_object(value).get("by")))
    if role is None:
        raise WireError(f"a turn is by one of {', '.join(ROLES)}")
    if role is Role.TOOL:
        gave = Block(BlockKind.TEXT, as_string(value.get("gave")), ("gave",))
        return Message(role, tuple(as_result([gave], as_string(value.get("key")))), raw, place)
    said = [Block(BlockKind.TEXT, value["say"], ("say",))] if isinstance(value.get("say"), str) else []
    return Message(role, (*said, *map(call_of, as_list(value.get("do")))), raw, place)


def call_of(call: Any) -> Block:
    fields = as_object(call)
    arguments = json_text.dumps(fields.get("with"))
    return Block(BlockKind.CALL, arguments, (), as_string(fields.get("key")), as_string(fields.get("action")))


def parse_preamble(value: Any, raw: str) -> Message:
    return Message(Role.SYSTEM, (Block(BlockKind.TEXT, as_string(value), ()),), raw)


SHAPE = RequestShape("turns", parse_turn, "preamble", parse_preamble, model="engine", tools="actions", stream="live")


def parse_request(body: bytes) -> Request:
    return parse_body(body, SHAPE)


# ---- calls, results and texts, as pagefold writes them


def turn(**members: Any) -> Message:
    return parse_turn(members, json_text.dumps(members))


def call_id_paths(value: Mapping[str, Any]) -> Iterator[json_text.Path]:
    for index, _ in enumerate(as_list(value.get("do"))):
        yield ("do", index, "key")


CALLS = CallFormat(
    speaks=lambda value: "by" in value,
    call_id_paths=call_id_paths,
    result=lambda call_id, text, call: turn(by="action", key=call_id, gave=text),
    with_results=lambda message, ids: with_result_id(message, "key", parse_turn, ids),
)


# ---- answers and errors


def parse_response(body: bytes) -> Response:
    value = as_object(json_text.parse(json_text.text_of(body)))
    answer = as_object(value.get("turn"))
    message = parse_turn(answer, json_text.dumps(answer))
    return Response(message, as_string(value.get("why")), usage_of(value.get("spent")), as_string(value.get("engine")))


def usage_of(spent: Any) -> Usage:
    read, cached, wrote = (as_count(as_object(spent).get(key)) for key in ("read", "cached", "wrote"))
    return Usage(fresh=read - cached, cache_read=cached, output=wrote)


@dataclass(slots=True)
class ToyStream(sse.StreamedAnswer):
    """Reads a streamed answer as it passes by."""

    telling = (b'"why"',)

    _said: list[str] = field(default_factory=list)
    _do: list[Any] = field(default_factory=list)
    _end: dict[str, Any] = field(default_factory=dict)

    def _take(self, name: str, data: str) -> None:
        value = sse.object_of(name, data)
        self._said.append(as_string(value.get("say")))
        self._do += [value["do"]] if "do" in value else []
        if "why" in value:
            self.ended, self._end = True, value

    def response(self) -> Response:
        message = turn(by="engine", say="".join(self._said), do=self._do)
        stop, model = as_string(self._end.get("why")), as_string(self._end.get("engine"))
        return Response(message, stop, usage_of(self._end.get("spent")), model)


def spell_error(kind: str, words: str) -> str:
    return json_text.dumps({"wrong": {"kind": kind, "words": words}})


def read_error(body: bytes) -> Mapping[str, Any]:
    try:
        wrong = as_object(as_object(json_text.parse(json_text.text_of(body))).get("wrong"))
    except WireError:
        return {}
    return {"type": wrong.get("kind"), "message": wrong.get("words")}


TOY = Api(
    "toy",
    "/toy/chat",
    ApiProvider("toy"),
    SHAPE,
    parse_request,
    parse_response,
    ToyStream,
    CALLS,
    user_text=lambda text: turn(by="human", say=text),
    error=spell_error,
    read_error=read_error,
)

if __name__ == "__main__":
    register(TOY)
    sys.exit(main())
