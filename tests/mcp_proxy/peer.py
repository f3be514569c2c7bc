"""A raw MCP client over a server's or proxy's standard streams, which keeps every line; and where real servers are."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("SERVERS_DIR") or os.environ.get("AGENTS_DIR") or ROOT / ".agents").absolute()
"""Where `make agents` puts real servers."""

ODD = [sys.executable, str(Path(__file__).with_name("odd_server.py"))]
PAGEFOLD = [sys.executable, "-m", "pagefold", "mcp"]
SECONDS = 30.0


def program(name: str) -> str:
    """A real server's or client's program; the test is skipped where it is not installed."""
    for folder in ("node_modules/.bin", "venv/bin", "venv-mcp1/bin"):
        if (path := FOLDER / folder / name).exists():
            return str(path)
    pytest.skip(f"no {name} in {FOLDER}: run `make agents`, or set SERVERS_DIR or AGENTS_DIR")


def environment(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Nothing of the user's: a home and a store below the test's own folder."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PAGEFOLD_", "XDG_"))}
    return {**kept, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), **(more or {})}


class Peer:
    """One child process. `heard` are the lines it wrote, in order."""

    def __init__(self, command: list[str], folder: Path, more: Mapping[str, str] | None = None) -> None:
        with (folder / "stderr").open("ab") as errors:
            self.child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(folder, more),
                cwd=folder,
            )
        self.folder = folder
        self.heard: list[bytes] = []
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._ids = 0
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def __enter__(self) -> "Peer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text(errors="replace")

    def _listen(self) -> None:
        assert self.child.stdout is not None
        with self.child.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def write(self, data: bytes) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def next(self, seconds: float = SECONDS) -> dict[str, Any]:
        return dict(json.loads(self.line(seconds)))

    def line(self, seconds: float = SECONDS) -> bytes:
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"nothing in {seconds:g} s; stderr: {self.stderr[-2000:]}") from None
        if line is None:
            raise EOFError(f"it ended; stderr: {self.stderr[-2000:]}")
        self.heard.append(line)
        return line

    def until(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = SECONDS) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while not wanted(message := self.next(max(0.01, end - time.monotonic()))):
            pass
        return message

    def ask(self, method: str, params: object = None, id: object = None, seconds: float = SECONDS) -> dict[str, Any]:
        """The whole answer under its id."""
        self._ids += 1
        asked = f"c{self._ids}" if id is None else id
        self.send({"jsonrpc": "2.0", "id": asked, "method": method, "params": {} if params is None else params})
        return self.until(lambda message: message.get("id") == asked and "method" not in message, seconds)

    def greet(self, client: str = "test", version: str = "2025-11-25") -> dict[str, Any]:
        info = {"name": client, "version": "1"}
        answer = self.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": info})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, tool: str, seconds: float = SECONDS, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments}, seconds=seconds)

    def text(self, tool: str, **arguments: Any) -> str:
        return str(self.call(tool, **arguments)["result"]["content"][0]["text"])

    def end(self) -> int:
        if self.child.stdin is not None and not self.child.stdin.closed:
            with suppress(BrokenPipeError):
                self.child.stdin.close()
        try:
            code = self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            code = self.child.wait()
        self._listening.join(5)
        return code
