"""A provider that answers as a test says: any headers, a body in pieces, and its end or none."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE = 10.0


@dataclass
class Scripted:
    """What is answered: a JSON body, or the events of a stream. With `waits` the stream stands still before its last
    piece until the client has left."""

    pieces: Sequence[bytes] = (b"{}",)
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    waits: bool = False


class StandIn(ThreadingHTTPServer):
    """`asked` is what came: method, path, headers and body."""

    daemon_threads = True

    def __init__(self, scripted: Scripted) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scripted = scripted
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        model = self.server
        assert isinstance(model, StandIn)
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        named = {name.lower(): value for name, value in self.headers.items()}
        model.asked.append((self.command, self.path, named, body))
        answer = model.scripted
        self.send_response(200)
        for name, value in {"content-type": answer.kind, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        for number, piece in enumerate(answer.pieces):
            if answer.waits and number == len(answer.pieces) - 1:
                self.connection.settimeout(PATIENCE)
                self.connection.recv(1)  # "" once the proxy has hung up
                return
            self.wfile.write(piece)
            self.wfile.flush()

    do_GET = do_DELETE = do_POST  # noqa: N815  as the library asks for it

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def stand_in(scripted: Scripted) -> Iterator[StandIn]:
    with StandIn(scripted) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def events(*values: object) -> tuple[bytes, ...]:
    """The pieces of a stream of events."""
    return tuple(b"data: %b\n\n" % json.dumps(value).encode() for value in values)
