"""Runs one agent's eight turns through several MCP proxies: prompt tokens over all requests, in one run.

    python -m bench.mcp_loop --payloads DIR [--peers DIR]

The agent reads code, issues, a log, rows, nested records, search hits, the issues again with a few changed, and the
code again. pagefold runs as a user runs it: `pagefold mcp` over stdio in front of a server that hands out the files,
alone, with references switched on by hand, and with `pagefold serve` on the same store before a model that only keeps
what it is sent. Each text is decoded and compared. Rivals run through the adapters in ../shared/peers, each in an
environment of its own below the peers' folder.
Tokens are o200k, exact; a request is everything before an assistant's message.
"""

import argparse
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from bench.recorded import ADAPTERS
from pagefold.derive.entry import Standings, arrive
from pagefold.encode import decode, encode
from pagefold.pages.ledger import Ledger
from pagefold.tokens import counter
from pagefold.wire import openai_chat

PEERS = {
    "terse, proxy": ("terse", "peer_terse.py", "--proxy"),
    "terse, proxy --diff": ("terse", "peer_terse.py", "--diff"),
    "headroom compress (lossy)": ("headroom", "peer_headroom.py"),
    "mcp-compressor --toonify": ("mcpc", "peer_mcp_compressor.py", "--toonify"),
    "toons": ("toon", "peer_toon.py", "--package", "toons"),
}
SERVER = """
import json, pathlib, sys
texts = json.loads(pathlib.Path(sys.argv[1]).read_text())
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    if asked["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": texts[asked["params"]["arguments"]["number"]]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
count = counter("o200k").count


def summed(messages: list[dict[str, Any]]) -> int:
    sizes = [count(_said(message)) for message in messages]
    ends = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    return sum(sum(sizes[:end]) for end in ends)


def _said(message: dict[str, Any]) -> str:
    calls = [call.get("function", {}) for call in message.get("tool_calls") or []]
    lines = [message.get("content") or "", *(f"{one.get('name', '')} {one.get('arguments', '')}" for one in calls)]
    return "\n".join(lines).strip("\n")


def environment_in(home: str) -> dict[str, str]:
    return {**os.environ, "HOME": home, "XDG_DATA_HOME": home}


def through_the_proxy(texts: list[str], *options: str, home: str = "") -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        home = home or folder
        server = Path(home) / "server.py"
        server.write_text(SERVER)
        (Path(home) / "texts.json").write_text(json.dumps(texts))
        command = [sys.executable, "-m", "pagefold", "mcp", *options, "--", sys.executable, str(server)]
        asked = [{"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}]
        asked += [
            {"method": "tools/call", "params": {"name": "fetch", "arguments": {"number": n}}} for n in range(len(texts))
        ]
        lines = [json.dumps({"jsonrpc": "2.0", "id": id, **one}) for id, one in enumerate(asked)]
        done = subprocess.run(
            [*command, str(Path(home) / "texts.json")],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            check=True,
            env=environment_in(home),
        )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [answer["result"]["content"][0]["text"] for answer in answers[1:]]


def whole(shown: list[str], texts: list[str], references: bool) -> bool:
    """Whether every text comes back: its bytes, or for JSON its values."""
    ledger = Ledger()
    for form, text in zip(shown, texts, strict=True):
        known = ledger if references else None
        back = decode(form, known)
        if back != text and json.dumps(json.loads(back)) != json.dumps(json.loads(text)):
            return False
        for entry in encode(text, tool="fetch", ledger=known).ledger_entries if references else ():
            ledger = ledger.with_text(entry)
    return True


def ours(messages: list[dict[str, Any]], *options: str) -> tuple[int, str]:
    texts = [message["content"] for message in messages if message["role"] == "tool"]
    shown = iter(forms := through_the_proxy(texts, *options))
    sent = [{**message, "content": next(shown)} if message["role"] == "tool" else message for message in messages]
    return summed(sent), "whole" if whole(forms, texts, "--references" in options) else "LOST"


class Upstream(http.server.BaseHTTPRequestHandler):
    """A model that keeps what it is sent and says one word."""

    kept: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.kept.append(self.rfile.read(int(self.headers["content-length"])))
        message = {"role": "assistant", "content": "Good."}
        said = json.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [{"message": message}]})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, format: str, *args: object) -> None: ...


def served(messages: list[dict[str, Any]]) -> tuple[int, str]:
    """Both proxies on one store: what the model is sent, request by request."""
    texts = [message["content"] for message in messages if message["role"] == "tool"]
    ends = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    with (
        tempfile.TemporaryDirectory() as home,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as model,
    ):
        threading.Thread(target=model.serve_forever, daemon=True).start()
        upstream = f"http://127.0.0.1:{model.server_address[1]}"
        command = [sys.executable, "-m", "pagefold", "serve", "--json", "--port", "0", "--openai-url", upstream]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment_in(home)) as serve:
            assert serve.stdout is not None
            url = json.loads(serve.stdout.readline())["url"]
            shown = iter(through_the_proxy(texts, "--no-tools", home=home))
            client = [{**one, "content": next(shown)} if one["role"] == "tool" else one for one in messages]
            for end in ends:
                body = json.dumps({"model": "m", "messages": client[:end]}).encode()
                sent = urllib.request.Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"})
                urllib.request.urlopen(sent).read()
            serve.terminate()
        model.shutdown()
    requests = [json.loads(body)["messages"] for body in Upstream.kept]
    tokens = sum(sum(count(_said(message)) for message in request) for request in requests)
    return tokens, "whole" if all(says(request, messages) for request in requests) else "LOST"


def says(request: list[dict[str, Any]], messages: list[dict[str, Any]]) -> bool:
    """Whether every text comes back from what stands before it in its own request."""
    standings = Standings()
    for sent, meant in zip(request, messages, strict=False):
        if sent["role"] == "tool":
            back = decode(sent["content"], standings.ledger)
            if back != meant["content"] and json.dumps(json.loads(back)) != json.dumps(json.loads(meant["content"])):
                return False
        standings = arrive(standings, openai_chat.parse_message(meant, json.dumps(meant))).standings
    return True


def rival(venvs: Path, loop: Path, environment: str, adapter: str, *options: str) -> tuple[int, str] | None:
    python = next(
        (found for base in (venvs, venvs / "env") if (found := base / environment / "bin" / "python").exists()), None
    )
    if python is None:
        return None
    done = subprocess.run(
        [str(python), str(ADAPTERS / adapter), *options, str(loop)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return None
    told = json.loads(done.stdout.splitlines()[-1])
    return told["tokens_out"], {True: "values", False: "lossy", None: "no decoder"}[told["lossless"]]


def main(options: argparse.Namespace) -> None:
    loop = Path(options.payloads) / "loop8.jsonl"
    messages = json.loads(loop.read_text())["messages"]
    before = summed(messages)
    rows: list[tuple[str, tuple[int, str] | None]] = []
    runs: dict[str, Callable[[], tuple[int, str] | None]] = {
        "pagefold mcp, alone": lambda: ours(messages, "--no-tools"),
        "pagefold mcp, --references": lambda: ours(messages, "--no-tools", "--references"),
        "pagefold mcp and serve": lambda: served(messages),
    }
    for name, run in runs.items():
        rows.append((name, run()))
    if options.peers:
        rows += [(name, rival(Path(options.peers), loop, *how)) for name, how in PEERS.items()]
    print(f"{'as it is':28} {before:9,}")
    for name, found in sorted(rows, key=lambda row: row[1][0] if row[1] else before):
        if found is None:
            print(f"{name:28} not installed, or it failed")
        else:
            print(f"{name:28} {found[0]:9,}   {100 * (1 - found[0] / before):5.1f} % saved   {found[1]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--payloads", required=True)
    parser.add_argument("--peers", default="")
    main(parser.parse_args())
