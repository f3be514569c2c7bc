"""Asks a model at an OpenAI- or Anthropic-compatible address: for an answer, a message, or how likely a text is.

The key is sent to the address that the user named and is kept out of every message, also where the other side repeats
it. Requests that were refused for want of time or capacity are tried again a few times.
"""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from pagefold.adapters.chat_messages import chat_request, messages_answer
from pagefold.errors import ConfigError, UpstreamError
from pagefold.loopback import is_loopback_url

_TRIES = 5
_LONGEST_PAUSE = 60.0
_AGAIN = (408, 409, 429, 500, 502, 503, 504, 529)
_MAY_BE_REFUSED = ("temperature", "max_tokens", "score_from")  # newer models do not take the first two
_ANSWER_TOKENS = 2_048
_SAID = 300  # characters of an error that are repeated


class EndpointApi(StrEnum):
    OPENAI = "openai"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered, and the tokens that the endpoint counted for it; 0 where it counts none."""

    text: str
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The sum of the log-probabilities of a text's tokens, and how many tokens that are."""

    nats: float
    tokens: int
    prompt_tokens: int = 0

    @property
    def by_token(self) -> float:
        return self.nats / self.tokens if self.tokens else 0.0


@dataclass(slots=True)
class ModelEndpoint:
    """`url` is the base address, with or without /v1. `pause` waits between tries."""

    url: str
    model: str
    api: EndpointApi
    key: str = field(default="", repr=False)
    timeout: float = 300.0
    pause: Callable[[float], None] = time.sleep
    _left_out: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"--endpoint {self.url}: expected an address such as https://api.openai.com/v1")
        if parts.username or parts.password:
            raise ConfigError(
                "--endpoint: expected an address without a password in it; keys come from the environment"
            )
        if self.key and parts.scheme == "http" and not is_loopback_url(self.url):
            raise ConfigError(f"--endpoint {self.url}: a key is sent by https only, or to this machine")
        base = self.url.rstrip("/")
        self.url = base if base.endswith("/v1") else f"{base}/v1"

    def answer(self, system: str, user: str) -> ModelAnswer:
        """Returns what the model answers. Raises UpstreamError where the endpoint fails or refuses."""
        if self.api is EndpointApi.ANTHROPIC:
            messages = [{"role": "user", "content": user}]
            told = self._post("messages", {"max_tokens": _ANSWER_TOKENS, "system": system, "messages": messages})
            texts = [block.get("text", "") for block in told.get("content", []) if block.get("type") == "text"]
            usage = told.get("usage") or {}
            cached = [usage.get(f"cache_{name}_input_tokens") or 0 for name in ("read", "creation")]
            return ModelAnswer(
                "".join(texts), usage.get("input_tokens", 0) + sum(cached), usage.get("output_tokens", 0)
            )
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        told = self._post("chat/completions", {"messages": messages, "max_tokens": _ANSWER_TOKENS, "temperature": 0})
        usage = told.get("usage") or {}
        text = told["choices"][0]["message"].get("content") or ""
        return ModelAnswer(text, usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0))

    def message(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the model's message to a request of the Messages API without a model, with `content` and `usage` as
        that API gives them, whichever of the two is spoken. Raises UpstreamError where the endpoint fails or refuses.
        """
        if self.api is EndpointApi.ANTHROPIC:
            return self._post("messages", body)
        return messages_answer(self._post("chat/completions", chat_request(body)))

    def likelihood(self, before: str, text: str) -> Likelihood:
        """Returns how likely a text is after another one. Raises UpstreamError where the endpoint cannot score."""
        # A server that knows `score_from` leaves out what nobody looks at. One that refuses it is asked without.
        asked = {"max_tokens": 0, "echo": True, "logprobs": 0, "temperature": 0, "score_from": len(before)}
        body = {"prompt": before + text, **asked}
        told = self._post("completions", body)
        scored = told["choices"][0].get("logprobs") or {}
        offsets, logprobs = scored.get("text_offset"), scored.get("token_logprobs")
        if not offsets or not logprobs or len(offsets) != len(logprobs):
            raise UpstreamError(
                f"{self.url}: cannot score a text: its completions do not echo log-probabilities", status=0
            )
        # A token that begins before the text and ends in it counts: every answer has the same beginning.
        ends = [*offsets[1:], len(before) + len(text)]
        values = [
            value for value, end in zip(logprobs, ends, strict=True) if len(before) < end <= len(before) + len(text)
        ]
        if not before:
            values = values[1:]  # nothing stands before the first token
        if None in values:
            raise UpstreamError(f"{self.url}: some tokens of a text came without a log-probability", status=0)
        usage = told.get("usage") or {}
        return Likelihood(float(sum(values)), len(values), usage.get("prompt_tokens", 0))

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        sent = {"model": self.model, **{name: value for name, value in body.items() if name not in self._left_out}}
        if "max_tokens" in self._left_out and "max_tokens" in body:
            sent["max_completion_tokens"] = body["max_tokens"]
        for attempt in range(_TRIES):
            try:
                return self._sent(path, sent)
            except urllib.error.HTTPError as error:
                reason = self._reason(error)
                refused = {name for name in _MAY_BE_REFUSED if name in reason and name in sent}
                if error.code in (400, 422) and refused:
                    self._left_out |= refused
                    return self._post(path, body)
                if error.code not in _AGAIN or attempt == _TRIES - 1:
                    raise UpstreamError(f"{self.url}: {error.code} {reason}", status=error.code) from None
                self.pause(_seconds(error.headers.get("Retry-After"), attempt))
            except (OSError, HTTPException, ValueError) as error:
                if attempt == _TRIES - 1 or isinstance(error, ValueError):
                    said = self.without_key(str(getattr(error, "reason", error)))
                    raise UpstreamError(f"{self.url}: no usable answer ({said})", status=0) from None
                self.pause(_seconds(None, attempt))
        raise AssertionError("the last try returns or raises")

    def _sent(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "User-Agent": "pagefold"}
        if self.api is EndpointApi.ANTHROPIC:
            headers["anthropic-version"] = "2023-06-01"
        if self.key:
            headers |= (
                {"x-api-key": self.key}
                if self.api is EndpointApi.ANTHROPIC
                else {"Authorization": f"Bearer {self.key}"}
            )
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, headers)  # noqa: S310 - http or https, see above
        with urllib.request.urlopen(request, timeout=self.timeout) as response:  # noqa: S310
            told = json.loads(response.read())
        if not isinstance(told, dict) or not (told.get("choices") or "content" in told):
            raise ValueError("neither an answer nor an error")
        return told

    def _reason(self, error: urllib.error.HTTPError) -> str:
        """Returns what the other side says is wrong, in one line and without the key."""
        text = error.read(100_000).decode(errors="replace")
        try:
            told = json.loads(text)["error"]
            text = told["message"] if isinstance(told, dict) else str(told)
        except (ValueError, KeyError, TypeError):
            pass  # no JSON: its text will do
        return self.without_key(" ".join(text.split()))[:_SAID]

    def without_key(self, text: str) -> str:
        return text.replace(self.key, "(key)") if self.key else text


def _seconds(retry_after: str | None, attempt: int) -> float:
    try:
        return min(float(retry_after or 2**attempt), _LONGEST_PAUSE)
    except ValueError:
        return float(2**attempt)
