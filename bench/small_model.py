"""Serves a small local model on loopback, OpenAI-compatible, with log-probabilities of what it was given to read.

    .models/venv/bin/python bench/small_model.py --port 8399        # after `make models`

`/v1/chat/completions` answers. `/v1/completions` goes on from a text or, with `echo`, says how likely its tokens were.
What a text shares with the one before it is not read again, so that several answers to one question cost one reading.
It runs in the folder of `make models`, which has what it imports, and prints one JSON line with its address.
"""

import argparse
import importlib
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / ".models"


class SmallModel:
    """A GGUF model in memory, and the log-probabilities of the last text that it was given."""

    def __init__(self, path: Path, context: int, threads: int) -> None:
        llama_cpp = importlib.import_module("llama_cpp")
        self._numpy = importlib.import_module("numpy")
        self._batch = 512
        self._llama: Any = llama_cpp.Llama(
            str(path), n_ctx=context, n_batch=self._batch, n_threads=threads, n_threads_batch=threads, verbose=False
        )
        self.context = context
        self._tokens: list[int] = []
        self._logprobs: list[float | None] = []

    def tokens_of(self, text: str) -> list[int]:
        return list(self._llama.tokenize(text.encode(), add_bos=False, special=False))

    def scored(self, text: str) -> dict[str, Any]:
        """Returns the tokens of a text, where each begins, and how likely each was after those before it."""
        tokens = self.tokens_of(text)
        shared = next(
            (at for at, (old, new) in enumerate(zip(self._tokens, tokens, strict=False)) if old != new),
            min(len(self._tokens), len(tokens)),
        )
        # The last shared token is read again: what it predicts is the first new one.
        begin = max(0, shared - 1)
        context = self._llama._ctx  # noqa: SLF001 - there is no public way to read with all log-probabilities
        context.kv_cache_seq_rm(-1, begin, -1)
        logprobs: list[float | None] = list(self._logprobs[: begin + 1]) if begin else [None]
        for at in range(begin, len(tokens), self._batch):
            piece = tokens[at : at + self._batch]
            reading = self._llama._batch  # noqa: SLF001 - see above
            reading.set_batch(batch=piece, n_past=at, logits_all=True)
            context.decode(reading)
            following = tokens[at + 1 : at + 1 + len(piece)]
            logprobs += self._log_softmax(len(piece), following)
        self._tokens, self._logprobs = tokens, logprobs[: len(tokens)]
        pieces = [self._llama.detokenize([token]) for token in tokens]
        offsets, place = [], 0
        for piece_bytes in pieces:
            offsets.append(place)
            place += sum(byte & 0xC0 != 0x80 for byte in piece_bytes)
        shown = [piece_bytes.decode(errors="replace") for piece_bytes in pieces]
        return {"tokens": shown, "text_offset": offsets, "token_logprobs": self._logprobs}

    def _log_softmax(self, rows: int, following: list[int]) -> list[float]:
        numpy, size = self._numpy, self._llama.n_vocab()
        read = self._llama._ctx.get_logits()  # noqa: SLF001 - see above
        logits = numpy.ctypeslib.as_array(read, shape=(rows * size,)).reshape(rows, size)[: len(following)]
        if not following:
            return []
        top = logits.max(axis=1, keepdims=True)
        total = top[:, 0] + numpy.log(numpy.exp(logits - top).sum(axis=1))
        return [float(value) for value in logits[numpy.arange(len(following)), following] - total]

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        self._forget()
        answer: dict[str, Any] = self._llama.create_chat_completion(
            body["messages"], max_tokens=min(body.get("max_tokens") or 256, 256), temperature=0.0
        )
        return answer

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = body["prompt"]
        if not body.get("echo"):
            self._forget()
            made: dict[str, Any] = self._llama.create_completion(
                prompt, max_tokens=body.get("max_tokens") or 16, temperature=0.0
            )
            return made
        scored = self.scored(prompt)
        usage = {"prompt_tokens": len(scored["tokens"]), "completion_tokens": 0}
        choice = {"index": 0, "text": prompt, "finish_reason": "length", "logprobs": scored}
        return {"object": "text_completion", "choices": [choice], "usage": usage}

    def _forget(self) -> None:
        self._tokens, self._logprobs = [], []
        self._llama.reset()


def handler(model: SmallModel, name: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._tell(200, {"object": "list", "data": [{"id": name, "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = body.get("prompt") or "".join(message["content"] for message in body.get("messages", []))
            if (many := len(model.tokens_of(said))) > model.context - 300:
                reason = f"the prompt has {many} tokens, and {model.context - 300} fit"
                self._tell(400, {"error": {"message": reason, "type": "invalid_request_error"}})
            elif self.path.endswith("/chat/completions"):
                self._tell(200, model.chat(body))
            else:
                self._tell(200, model.completion(body))

        def _tell(self, status: int, value: object) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: object) -> None:
            pass

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=Path, help="(default: the one that `make models` installed)")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    path = options.gguf or next(FOLDER.rglob("SmolLM2*.gguf"))
    model = SmallModel(path, options.context, options.threads)
    server = HTTPServer(("127.0.0.1", options.port), handler(model, path.stem))
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_address[1]}/v1", "model": path.stem}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
