"""`pagefold.wrap(client)`: a client of the anthropic or openai package whose requests are derived before they leave.

The SDK's own HTTP client keeps its connections, time limits and proxies; only what it is given to send, and what it
gives back, passes through here. So every method of the SDK works, streamed or not, blocking or not. Requests to other
paths than a model API's pass as they are. Works with httpx and httpx2, and wraps their clients too.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from pagefold.derive.policy import Policy
from pagefold.errors import ConfigError
from pagefold.integrations.call import Give, Head, ModelCalls, Read, Send, Step, Steps, Work, api_path
from pagefold.pages.store import Store

Client = TypeVar("Client")
_OWN_LENGTH = ("content-length", "transfer-encoding")


def wrap(
    client: Client,
    *,
    window: int = 0,
    policy: str | Policy = "economic",
    store: Store | str | Path | None = None,
    recall_rounds: int = 4,
    calls: ModelCalls | None = None,
) -> Client:
    """A client like this one whose requests are derived: `Anthropic`, `AsyncAnthropic`, `OpenAI`, `AsyncOpenAI`, or an
    httpx client. The one given stays as it is, and both share their connections.

    `window` is how many tokens fit; without it, what is known of the model. `store` is a file, a store, or nothing to
    keep what is folded in memory. `recall_rounds` is how often in one turn the model's calls for it are answered; with
    0 no tool is offered for that. `calls` in their place is shared by several clients. Raises ConfigError for anything
    else than such a client.
    """
    calls = calls or ModelCalls(window=window, policy=policy, store=store, recall_rounds=recall_rounds)
    given: Any = client
    if _sends(given):
        wrapped: Client = _deriving(given.__class__)(given, calls)
        return wrapped
    http: Any = getattr(given, "_client", None)
    copied = getattr(given, "copy", None)
    if not _sends(http) or not callable(copied):
        kind = f"{type(client).__module__}.{type(client).__qualname__}"
        raise ConfigError(f"wrap: expected a client of the anthropic or openai package or of httpx, got {kind}")
    derived: Client = copied(http_client=_deriving(http.__class__)(http, calls))
    return derived


def _sends(http: object) -> bool:
    return all(hasattr(http, name) for name in ("send", "build_request", "is_closed"))


class _Wrapped:
    """An HTTP client that asks another one. It has that one's attributes, and closes it when it is closed."""

    def __init__(self, inner: Any, calls: ModelCalls) -> None:
        self.__dict__.update(inner.__dict__)
        self._inner, self._calls = inner, calls

    def __del__(self) -> None:
        """The connections belong to the client that is asked: it closes them when nobody has it any more."""

    @property
    def is_closed(self) -> bool:
        return bool(self._inner.is_closed)


class _Blocking(_Wrapped):
    def close(self) -> None:
        self._inner.close()

    def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        path = api_path(request.url.raw_path.decode("ascii")) if request.method == "POST" else ""
        if not path:
            return self._inner.send(request, stream=stream, **options)
        answer = _BlockingAnswer(self._calls.steps(path, request.read()), self._inner, request, options)
        response = answer.opened()
        response.stream = _stream_like(_library(request).SyncByteStream)(answer)
        if not stream:
            response.read()
        return response


class _Async(_Wrapped):
    async def aclose(self) -> None:
        await self._inner.aclose()

    async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        path = api_path(request.url.raw_path.decode("ascii")) if request.method == "POST" else ""
        if not path:
            return await self._inner.send(request, stream=stream, **options)
        answer = _AsyncAnswer(self._calls.steps(path, await request.aread()), self._inner, request, options)
        response = await answer.opened()
        response.stream = _async_stream_like(_library(request).AsyncByteStream)(answer)
        if not stream:
            await response.aread()
        return response


class _Answer:
    """The steps of one call, done one after the other, and the response that was got last."""

    def __init__(self, steps: Steps, inner: Any, request: Any, options: dict[str, Any]) -> None:
        self._steps, self._inner, self._request, self._options = steps, inner, request, options
        self._response: Any = None
        self._source: Any = None
        self._pieces: Any = iter(())
        self._first: Give | None = None

    def _next(self, came: Any = None) -> Step | None:
        try:
            return self._steps.send(came)
        except StopIteration:
            return None

    def _asking(self, send: Send) -> Any:
        request = self._request
        if send.body is None:
            return request
        headers = [(name, value) for name, value in request.headers.multi_items() if name not in _OWN_LENGTH]
        if send.asks_in_turn:  # the answer has to be read here: it must not be compressed
            headers = [*((name, value) for name, value in headers if name != "accept-encoding")]
            headers.append(("accept-encoding", "identity"))
        make = _library(request).Request
        return make(request.method, request.url, headers=headers, content=send.body, extensions=request.extensions)

    def _got(self, response: Any) -> Head:
        self._response, self._source = response, response.stream
        encoding = response.headers.get("content-encoding", "").strip().lower()
        legible = encoding in ("", "identity")
        return Head(response.status_code, response.headers.get("content-type", ""), legible)

    def _head_of(self, response: Any) -> Any:
        if "content-length" in response.headers:
            del response.headers["content-length"]  # what the client gets may be longer or shorter
        return response


class _BlockingAnswer(_Answer):
    def opened(self) -> Any:
        """The response whose head the client gets."""
        step = self._do(self._next())
        self._first = step
        return self._head_of(self._response)

    def rest(self) -> Iterator[bytes]:
        step = self._first
        while step is not None:
            yield step.data
            step = self._do(self._next())

    def close(self) -> None:
        self._steps.close()
        if self._source is not None:
            self._source.close()

    def _do(self, step: Step | None) -> Give | None:
        """Does what is to be done until there is something to give."""
        while step is not None and not isinstance(step, Give):
            came: Any = None
            if isinstance(step, Work):
                came = step.run()
            elif isinstance(step, Send):
                if self._source is not None:
                    self._source.close()
                came = self._got(self._inner.send(self._asking(step), stream=True, **self._options))
                self._pieces = iter(self._source)
            elif isinstance(step, Read):
                came = next(self._pieces, b"")
            step = self._next(came)
        return step


class _AsyncAnswer(_Answer):
    async def opened(self) -> Any:
        """The response whose head the client gets."""
        self._first = await self._do(self._next())
        return self._head_of(self._response)

    async def rest(self) -> AsyncIterator[bytes]:
        step = self._first
        while step is not None:
            yield step.data
            step = await self._do(self._next())

    async def close(self) -> None:
        self._steps.close()
        if self._source is not None:
            await self._source.aclose()

    async def _do(self, step: Step | None) -> Give | None:
        """Does what is to be done until there is something to give."""
        while step is not None and not isinstance(step, Give):
            came: Any = None
            if isinstance(step, Work):
                came = await asyncio.to_thread(step.run)
            elif isinstance(step, Send):
                if self._source is not None:
                    await self._source.aclose()
                came = self._got(await self._inner.send(self._asking(step), stream=True, **self._options))
                self._pieces = aiter(self._source)
            elif isinstance(step, Read):
                came = await anext(self._pieces, b"")
            step = self._next(came)
        return step


def _library(value: object) -> Any:
    """httpx or httpx2, whichever this is of."""
    return import_module(type(value).__module__.partition(".")[0])


@cache
def _deriving(kind: Any) -> Any:
    """The class of clients like this one whose requests are derived."""
    return type(f"Deriving{kind.__name__}", (_Async if inspect.iscoroutinefunction(kind.send) else _Blocking, kind), {})


@cache
def _stream_like(base: Any) -> Any:
    def init(self: Any, answer: _BlockingAnswer) -> None:
        self.answer = answer

    members = {
        "__init__": init,
        "__iter__": lambda self: self.answer.rest(),
        "close": lambda self: self.answer.close(),
    }
    return type("DerivedStream", (base,), members)


@cache
def _async_stream_like(base: Any) -> Any:
    def init(self: Any, answer: _AsyncAnswer) -> None:
        self.answer = answer

    members = {
        "__init__": init,
        "__aiter__": lambda self: self.answer.rest(),
        "aclose": lambda self: self.answer.close(),
    }
    return type("DerivedAsyncStream", (base,), members)
