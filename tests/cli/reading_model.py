"""A model on loopback that answers the reading test by rule, over both wire formats, and remembers what it was sent.

Asked how likely a text is that is no answer to a question, it finds each word likely that it has read before.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Rule = Callable[[str], str]
"""Returns the answer to a prompt."""


@dataclass
class ReadingModel:
    rule: Rule
    url: str = ""
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    refuse: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Answers to give first, in order: a status and a body."""
    before: Callable[[str], None] = lambda path: None
    """Is called with the path of every request before it is answered."""

    def reply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path.endswith("/messages"):
            text = self.rule(body["messages"][0]["content"])
            return {"content": [{"type": "text", "text": text}], "usage": {"input_tokens": 100, "output_tokens": 5}}
        if path.endswith("/chat/completions"):
            text = self.rule(body["messages"][-1]["content"])
            return {
                "choices": [{"message": {"content": text}}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 5},
            }
        if "### answer\n" not in body["prompt"]:
            return copied(body["prompt"])
        # All that is read is one token, and the answer is another. Only the answer of the rule is likely.
        before, _, answer = body["prompt"].rpartition("### answer\n")
        likely = answer == self.rule(before)
        begins = len(before) + len("### answer\n")
        scored = {"text_offset": [0, begins], "token_logprobs": [None, -1.0 if likely else -9.0]}
        return {"choices": [{"logprobs": scored}], "usage": {"prompt_tokens": 100}}


def copied(prompt: str) -> dict[str, Any]:
    """Scores a text word by word: -1 for a word that stands before, -5 for a new one."""
    words = list(re.finditer(r"\s*\S+\s*?", prompt))
    met: set[str] = set()
    logprobs: list[float | None] = []
    for word in words:
        said = word[0].strip()
        logprobs.append(-1.0 if said in met else -5.0)
        met.add(said)
    scored = {"text_offset": [word.start() for word in words], "token_logprobs": [None, *logprobs[1:]]}
    return {"choices": [{"logprobs": scored}], "usage": {"prompt_tokens": len(words)}}


@contextmanager
def reading_model(rule: Rule) -> Iterator[ReadingModel]:
    model = ReadingModel(rule)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model.requests.append((self.path, dict(self.headers.items()), body))
            model.before(self.path)
            status, told = model.refuse.pop(0) if model.refuse else (200, model.reply(self.path, body))
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
