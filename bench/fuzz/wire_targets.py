"""Fuzzes what is read off the wire: requests, answers, streams, MCP messages, recordings and the hook's input."""

import random
from contextlib import suppress

from bench.fuzz.target import Target, cut
from pagefold.encode import decode
from pagefold.errors import WireError
from pagefold.mcp_proxy import commands as do
from pagefold.mcp_proxy.lines import LineSplitter, Overlong
from pagefold.mcp_proxy.listing import PRIMER, ToolListing
from pagefold.mcp_proxy.relay import Options, Relay
from pagefold.mcp_proxy.servers import Servers
from pagefold.mcp_proxy.shorten import shortened
from pagefold.wire import claude_hook, json_text, jsonrpc, sse, transcripts
from pagefold.wire.api import Api
from pagefold.wire.apis import APIS, message_of, without_reasoning
from pagefold.wire.incremental_parse import parse_again
from pagefold.wire.message import Request

_HIDDEN = frozenset({"context_recall"})


def check_requests(data: bytes, dice: random.Random) -> None:
    """A body is refused, or written back byte for byte, parsed whole or from where it differs from another."""
    for api in APIS.values():
        with suppress(WireError):
            api.parse_response(data)
        api.error_kind(data)
        api.is_too_long(400, data)
        try:
            request = api.parse_request(data)
        except WireError:
            continue
        assert request.render(request.messages) == data, "a request that nothing changed is written differently"
        _check_members(api, request)
        _check_parsed_again(api, request, dice)


def _check_members(api: Api, request: Request) -> None:
    api.continues(request)
    with suppress(WireError):
        api.clears_results(request)
    alone = api.linked([api.parse_message(message.raw) for message in request.messages])
    assert [message.blocks for message in alone] == [message.blocks for message in request.messages]
    for message in request.messages:
        api.plain(message)
        without_reasoning(message)
    written = api.spelled([api.user_text("a\ud800 text"), *request.messages])
    with suppress(WireError):
        api.parse_request(request.render(written))


def _check_parsed_again(api: Api, before: Request, dice: random.Random) -> None:
    start = dice.randint(0, len(before.body))
    word = dice.choice((*WORDS, b'{"role":"user","content":"more"},', b""))
    body = before.body[:start] + word + before.body[start + dice.choice((0, 0, 1, 9)) :]
    try:
        whole = api.parse_request(body)
    except WireError:
        return
    again = parse_again(body, before, api.shape)
    if again is not None:
        assert again[0] == whole, "parsed from where it differs, a request is another"
        assert again[0].render(again[0].messages) == body


def check_streams(data: bytes, dice: random.Random) -> None:
    """Events hold every byte, and neither they, the answer nor what a client gets depend on where a stream is cut."""
    pieces = cut(data, dice)
    whole = _events([data])
    assert b"".join(event.raw for event in whole) == data, "bytes are lost between events"
    assert _events(pieces) == whole, "events depend on the cuts"
    for api in APIS.values():
        assert _answer(api, pieces) == _answer(api, [data]), "an answer depends on the cuts"
        _answer(api, pieces, gist=True)
        if api.turn is not None:
            for stream in (True, False):
                view = api.turn(frozenset(), stream)
                sent = b"".join(view.feed(piece) for piece in pieces)
                rest = view.broken_off() if view.answered() is None else view.end()
                assert sent + rest == data, "a client does not get what came"
                _check_hidden(api, data, pieces, stream=stream)


def _events(pieces: list[bytes]) -> list[sse.StreamEvent]:
    splitter = sse.EventSplitter()
    return [event for piece in pieces for event in splitter.feed(piece)] + splitter.finish()


def _answer(api: Api, pieces: list[bytes], *, gist: bool = False) -> object:
    reader = api.stream(gist=gist)
    try:
        for piece in pieces:
            reader.feed(piece)
        reader.finish()
    except WireError as error:
        return str(error)
    return reader.response(), reader.ended, reader.error, reader.limits, reader.reasoning_keys


def _check_hidden(api: Api, data: bytes, pieces: list[bytes], *, stream: bool) -> None:
    """What a client gets of a turn with hidden calls does not depend on the cuts either."""
    assert api.turn is not None
    shown = []
    for parts in (pieces, [data]):
        view = api.turn(_HIDDEN, stream)
        sent = b"".join(view.feed(part) for part in parts)
        answer = view.answered()
        shown.append(sent + (view.broken_off() if answer is None else view.end(cut=bool(answer.calls))))
    assert shown[0] == shown[1], "what a client gets depends on the cuts"


def check_mcp(data: bytes, dice: random.Random) -> None:
    """Lines do not depend on the cuts and hold every byte; each passes as it came, or is one of the known changes."""
    lines = _lines([data])
    assert _lines(cut(data, dice)) == lines, "lines depend on the cuts"
    kept = b"\n".join(line for line in data.split(b"\n") if line.strip(b" \t\r"))
    assert b"\n".join(line for line in lines if isinstance(line, bytes)) == kept, "bytes are lost between lines"
    short = LineSplitter(40)
    for line in [*short.feed(data), *short.finish()]:
        assert isinstance(line, Overlong) or len(line) <= 40
    options = Options(["context_recall"], ToolListing(), primer=PRIMER)
    for switch in (Relay("s", options), Servers({name: Relay(name) for name in "st"}, options)):
        for line in lines:
            assert isinstance(line, bytes)
            with suppress(WireError):
                jsonrpc.parse(line)
            if dice.random() < 0.5:
                switch.from_client(line)
            else:
                server = dice.choice(("s", "t")) if isinstance(switch, Servers) else "s"
                _check_commands(line, switch.from_server(server, line), alone=isinstance(switch, Relay))
        for server in ("s", "t") if isinstance(switch, Servers) else ("s",):
            switch.lost(server, "ended")
            switch.restarted(server)


def _check_commands(line: bytes, commands: list[do.Command], *, alone: bool) -> None:
    """A line of one server is never dropped in silence; a result's texts decode to what came."""
    assert commands or not alone, "a line of a server is dropped"
    for command in commands:
        if isinstance(command, do.Shorten):
            done = shortened(command)
            before, after = _texts(command.result.data), _texts(done.data)
            assert len(before) == len(after), "a text of a result is lost"
            for old, new in zip(before, after, strict=True):
                assert old == new or json_text.parse(json_text.dumps(old)) == old
                assert _decodes(new, old), "a text of a result does not come back"


def _decodes(form: str, text: str) -> bool:
    back = decode(form)
    if form == text or back == text:
        return True
    with suppress(WireError):
        return bool(json_text.parse(back) == json_text.parse(text))
    return False


def _texts(data: bytes) -> list[str]:
    result = json_text.as_object(json_text.as_object(json_text.parse(json_text.text_of(data))).get("result"))
    parts = [json_text.as_object(part) for part in json_text.as_list(result.get("content"))]
    return [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]


def check_recordings(data: bytes, dice: random.Random) -> None:
    """A recording, a hook's input or a message is read, or refused by an error or a problem of a line."""
    text = json_text.text_of(data)
    with suppress(WireError):
        called = claude_hook.parse(text)
        claude_hook.render(called, {path: "x" for path, _ in called.texts})
    with suppress(WireError):
        transcripts.parse_line(text, name="a")
    with suppress(WireError):
        value = json_text.parse(text)
        transcripts.detect(value)
        if isinstance(value, dict):
            message_of(value)
    lines = list(enumerate(text.split("\n"), 1))
    for kind in (transcripts.Format.CLAUDE_CODE, transcripts.Format.CODEX):
        list(transcripts.read_records(kind, lines, name="a"))
    for kind in (transcripts.Format.OPENCODE, transcripts.Format.CHAT):
        list(transcripts.read_document(kind, text, name="a"))


def _lines(pieces: list[bytes]) -> list[bytes | Overlong]:
    splitter = LineSplitter()
    return [line for piece in pieces for line in splitter.feed(piece)] + splitter.finish()


WORDS = (
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b'\\"', b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\t", b"\x00"),
    *(b"null", b"true", b"0", b"-0", b"1e999", b"9" * 30, b"NaN", b"\\ud800", b"\\u0000", b"\xff", b"\xef\xbb\xbf"),
    *(b'"role":', b'"content":', b'"type":', b'"text"', b'"id":', b'"index":', b'"tool_use"', b'"tool_result"', b'""'),
    *(b'"messages":', b'"input":', b'"tools":', b'"model":', b'"stream":true', b'"usage":', b'"error":', b'"name":'),
    *(b"data: ", b"event: ", b"data: [DONE]\n\n", b": x\n\n", b"[" * 2000, b'{"a":' * 1200, "é🙂".encode()),
)
_MCP_WORDS = (
    *WORDS,
    b'"jsonrpc":"2.0"',
    b'"method":"tools/call"',
    b'"method":"tools/list"',
    b'"params":',
    b'"result":',
)

TARGETS = (
    Target("requests", check_requests, WORDS),
    Target("streams", check_streams, WORDS),
    Target("mcp", check_mcp, _MCP_WORDS),
    Target("recordings", check_recordings, WORDS),
)
