"""Says how likely a text is to a small local model: `/v1/completions` with `echo` and `logprobs`, on loopback.

    .models/venv/bin/python -m bench.small_model --port 8399        # after `make models`

It is what `pagefold lab reading --likelihood` and `pagefold lab likelihood` ask, and what servers of llama.cpp do not
offer. What a text shares with the one before it is not read again, so several answers to one question cost one reading.
Where a request says `score_from`, tokens that end before that character get null in place of a log-probability: working
those out takes longer than reading.

For `pagefold lab solve` it answers `/v1/chat/completions` with tools as well, if the model was taught as Qwen2.5 was
(`bench.small_chat`): always the likeliest token, and at most `--answer` of them.
It runs in the folder of `make models`, which has what it imports, and prints one JSON line with its address.
"""

import argparse
import importlib
import json
import math
import re
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import accumulate
from pathlib import Path
from typing import Any

from bench import small_chat

FOLDER = Path(__file__).parent.parent / ".models"
BATCH = 512
BYTE_LEVEL = 2  # the kind of vocabulary that spells every byte as a printable sign, as GPT-2 did
PLAIN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]  # bytes that are spelled as themselves
OTHERS = [byte for byte in range(256) if byte not in PLAIN]
BYTES = {chr(byte): bytes([byte]) for byte in PLAIN} | {chr(256 + at): bytes([byte]) for at, byte in enumerate(OTHERS)}


class SmallModel:
    """A GGUF model in memory, and the log-probabilities of the last text that it was given."""

    def __init__(self, path: Path, context: int, threads: int) -> None:
        llama = importlib.import_module("cyllama.llama.llama_cpp")
        self._numpy = importlib.import_module("numpy")
        # Reading log-probabilities takes the size of the vocabulary from the model, which does not say it (0.2.18).
        kind: Any = type("SizedModel", (llama.LlamaModel,), {"n_vocab": 0})
        self._model = kind(path_model=str(path), params=llama.LlamaModelParams(), verbose=False)
        self._vocabulary = self._model.get_vocab()
        self._model.n_vocab = self._vocabulary.n_vocab
        settings = llama.LlamaContextParams()
        settings.n_ctx, settings.n_batch, settings.n_ubatch = context, BATCH, BATCH
        settings.n_threads = settings.n_threads_batch = threads
        self._llama = llama.LlamaContext(self._model, settings, False)
        self._batch = llama.LlamaBatch(n_tokens=BATCH, embd=0, n_seq_max=1)
        self.context = context
        self._tokens: list[int] = []
        self._logprobs: list[float | None] = []

    def tokens_of(self, text: str) -> list[int]:
        """Special tokens in a text are read as the text they are; the one that a model begins with is added."""
        return list(self._vocabulary.tokenize(text, self._vocabulary.get_add_bos(), False))

    def prompted(self, parts: Sequence[small_chat.Part]) -> list[int]:
        """The tokens of a prompt. Special tokens are those of its framing alone."""
        return [token for text, framing in parts for token in self._vocabulary.tokenize(text, False, framing)]

    def answer(self, tokens: list[int], most: int) -> tuple[str, int, bool]:
        """What follows a prompt, of the likeliest tokens: the text, how many those are, and whether it came to an
        end by itself."""
        begin = reread_from(self._tokens, self._logprobs, tokens, len(tokens))
        self._llama.memory_seq_rm(0, begin, -1)
        self._decode(tokens[begin:], begin)
        made: list[int] = []
        while not (ended := self._vocabulary.is_eog(token := int(self._logits(-1).argmax()))) and len(made) < most:
            self._decode([token], len(tokens) + len(made))
            made.append(token)
        self._tokens = [*tokens, *made]
        self._logprobs = [None] * len(self._tokens)
        return b"".join(map(self._bytes_of, made)).decode(errors="replace"), len(made), ended

    def _decode(self, tokens: list[int], at: int) -> None:
        for start in range(0, len(tokens), BATCH):
            self._batch.set_batch(tokens[start : start + BATCH], at + start, False)
            self._llama.decode(self._batch)

    def scored(self, tokens: list[int], score_from: int = 0) -> dict[str, Any]:
        """Returns the tokens as text, where each begins, and how likely each was after those before it."""
        pieces = [self._bytes_of(token) for token in tokens]
        ends = list(accumulate(sum(byte & 0xC0 != 0x80 for byte in piece) for piece in pieces))
        self._read(tokens, sum(end <= score_from for end in ends))
        shown = [piece.decode(errors="replace") for piece in pieces]
        return {"tokens": shown, "text_offset": [0, *ends[:-1]], "token_logprobs": self._logprobs}

    def _read(self, tokens: list[int], first: int) -> None:
        """Reads what the last text did not have. Tokens from `first` on get their log-probability."""
        begin = reread_from(self._tokens, self._logprobs, tokens, first)
        scores_from = max(begin, first - 1)
        self._llama.memory_seq_rm(0, begin, -1)
        logprobs: list[float | None] = list(self._logprobs[: begin + 1]) if begin else [None]
        for start, stop, scores in ((begin, scores_from, False), (scores_from, len(tokens), True)):
            for at in range(start, stop, BATCH):
                end = min(at + BATCH, stop)
                self._batch.set_batch(tokens[at:end], at, scores)
                self._llama.decode(self._batch)
                following = tokens[at + 1 : end + 1]
                logprobs += [self._logprob(row, token) if scores else None for row, token in enumerate(following)]
        self._tokens, self._logprobs = tokens, logprobs[: len(tokens)]

    def _bytes_of(self, token: int) -> bytes:
        """What a token stands for: a part of a character, perhaps. Its text is in the spelling of the vocabulary."""
        if self._vocabulary.is_control(token):
            return b""
        spelled = self._vocabulary.get_text(token)
        if self._vocabulary.vocab_type == BYTE_LEVEL:
            return b"".join(BYTES.get(sign) or sign.encode() for sign in spelled)
        if byte := re.fullmatch("<0x([0-9A-F]{2})>", spelled):
            return bytes.fromhex(byte[1])
        return str(spelled).replace("▁", " ").encode()

    def _logits(self, row: int) -> Any:
        read = self._llama.get_logits_ith(row)
        return self._numpy.fromiter(read, self._numpy.float32, len(read))

    def _logprob(self, row: int, token: int) -> float:
        numpy, logits = self._numpy, self._logits(row)
        top = logits.max()
        return float(logits[token] - top) - math.log(float(numpy.exp(logits - top).sum(dtype=numpy.float64)))


def reread_from(old: Sequence[int], logprobs: Sequence[float | None], tokens: Sequence[int], first: int) -> int:
    """Where reading a text begins, when `old` was the last one: at the last token that both share, whose prediction is
    the first new one, or earlier if a log-probability from `first` on was not worked out then."""
    shared = next(
        (at for at, (before, now) in enumerate(zip(old, tokens, strict=False)) if before != now),
        min(len(old), len(tokens)),
    )
    known = next((at for at in range(max(first, 1), shared) if logprobs[at] is None), shared)
    return max(0, known - 1)


def handler(model: SmallModel, name: str, most: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._tell(200, {"object": "list", "data": [{"id": name, "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.endswith("/chat/completions"):
                self._chat(body)
                return
            prompt = body.get("prompt")
            if not self.path.endswith("/completions") or not isinstance(prompt, str) or not body.get("echo"):
                self._refuse("expected /v1/completions with a prompt and echo, or /v1/chat/completions")
            elif len(tokens := model.tokens_of(prompt)) > model.context:
                self._refuse(f"the prompt has {len(tokens)} tokens, and {model.context} fit")
            else:
                scored = model.scored(tokens, body.get("score_from") or 0)
                usage = {"prompt_tokens": len(tokens), "completion_tokens": 0}
                choice = {"index": 0, "text": prompt, "finish_reason": "length", "logprobs": scored}
                self._tell(200, {"object": "text_completion", "choices": [choice], "usage": usage})

        def _chat(self, body: dict[str, Any]) -> None:
            tokens, at_most = model.prompted(small_chat.prompt_of(body)), min(most, body.get("max_tokens") or most)
            if len(tokens) + at_most > model.context:
                self._refuse(f"the prompt has {len(tokens)} tokens, and {model.context - at_most} fit")
                return
            text, made, ended = model.answer(tokens, at_most)
            message = small_chat.message_of(text, body.get("tools") or (), len(body["messages"]))
            why = ("tool_calls" if "tool_calls" in message else "stop") if ended else "length"
            usage = {"prompt_tokens": len(tokens), "completion_tokens": made}
            choice = {"index": 0, "message": message, "finish_reason": why}
            told = {"id": "small", "object": "chat.completion", "created": 0, "model": name, "choices": [choice]}
            self._tell(200, {**told, "usage": usage})

        def _refuse(self, reason: str) -> None:
            self._tell(400, {"error": {"message": reason, "type": "invalid_request_error"}})

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
    parser.add_argument("--gguf", type=Path, default=FOLDER / "gemma-3-270m.gguf", help="(default: %(default)s)")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--answer", type=int, default=256, help="tokens of an answer (default: %(default)s)")
    options = parser.parse_args()
    path = options.gguf
    model = SmallModel(path, options.context, options.threads)
    server = HTTPServer(("127.0.0.1", options.port), handler(model, path.stem, options.answer))
    print(json.dumps({"url": f"http://127.0.0.1:{server.server_address[1]}/v1", "model": path.stem}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
