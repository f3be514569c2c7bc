"""Finds the API that is asked at a path, also where a cloud or a gateway serves it under a path of its own.

A path may say more than the API: the model, whether the answer is streamed, and in which frames. `upstream` is the name
of the upstream that takes requests at such a path.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from urllib.parse import unquote

from pagefold.frozen import frozen
from pagefold.wire import json_text
from pagefold.wire.api import Api, error_json
from pagefold.wire.apis import APIS, CHAT, CONVERSE, GENERATE, MESSAGES, RESPONSES, providers


class Framing(StrEnum):
    """How the pieces of a streamed answer come: as server-sent events, as one JSON list, or as frames of AWS."""

    EVENTS = "events"
    LIST = "list"
    AWS = "aws"


@frozen
class AskedApi:
    """What a path says of a request. `model` is "" and `stream` None where the body says it."""

    api: Api
    upstream: str
    model: str = ""
    stream: bool | None = None
    framing: Framing = Framing.EVENTS

    @property
    def hides_calls(self) -> bool:
        """Whether calls can be hidden in the answer: not in a stream whose pieces are no events."""
        return self.framing is Framing.EVENTS


@frozen
class _Route:
    pattern: re.Pattern[str]
    api: Api
    upstream: str


def _route(pattern: str, api: Api, upstream: str) -> _Route:
    return _Route(re.compile(pattern), api, upstream)


_GENERATES = r"(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)"
_VERTEX = r"/v1(?:beta1)?/(?:projects/[^/]+/locations/[^/]+/)?publishers"
_ROUTES = (
    _route(rf"/v1(?:alpha|beta)?/(?:models|tunedModels)/{_GENERATES}", GENERATE, "gemini"),
    _route(r"/v1beta/openai/chat/completions", CHAT, "gemini"),
    _route(rf"{_VERTEX}/google/models/{_GENERATES}", GENERATE, "vertex"),
    _route(
        rf"{_VERTEX}/anthropic/models/(?P<model>(?!count-tokens:)[^/:]+):(?P<method>rawPredict|streamRawPredict)",
        MESSAGES,
        "vertex",
    ),
    _route(r"/openai/deployments/(?P<model>[^/]+)/chat/completions", CHAT, "azure"),
    _route(r"/openai/v1/chat/completions", CHAT, "azure"),
    _route(r"/openai(?:/v1)?/responses", RESPONSES, "azure"),
    _route(r"/anthropic/v1/messages", MESSAGES, "foundry"),
    _route(
        r"/model/(?P<model>[^/]*anthropic[^/]*)/(?P<method>invoke|invoke-with-response-stream)", MESSAGES, "bedrock"
    ),
    _route(r"/model/(?P<model>[^/]*anthropic[^/]*)/(?P<method>converse|converse-stream)", CONVERSE, "bedrock"),
    _route(r"/api/v1/chat/completions", CHAT, "openrouter"),
    _route(r"/api/v1/responses", RESPONSES, "openrouter"),
    _route(r"/api/v1/messages", MESSAGES, "openrouter"),
)
_OF_BEDROCK = tuple(f"{path}/" for path in providers()["bedrock"].paths)
_STREAMS = {
    "streamGenerateContent": True,
    "generateContent": False,
    "invoke": False,
    "converse": False,
    "converse-stream": True,
    "invoke-with-response-stream": True,
}


def asked_at(path: str) -> AskedApi | None:
    """The API that a POST at this path, with or without a query, asks; None where it is none that is read."""
    if path in APIS:
        return AskedApi(APIS[path], APIS[path].provider.name)
    plain, _, query = path.partition("?")
    if plain in APIS:
        return AskedApi(APIS[plain], APIS[plain].provider.name)
    return _elsewhere(plain, "alt=sse" in query.split("&"))


@lru_cache(maxsize=500)
def _elsewhere(path: str, as_events: bool) -> AskedApi | None:
    for route in _ROUTES:
        if found := route.pattern.fullmatch(path):
            said = found.groupdict()
            stream = _STREAMS.get(said.get("method") or "")
            framing = Framing.EVENTS
            if stream and route.upstream == "bedrock":
                framing = Framing.AWS
            elif stream and route.api is GENERATE and not as_events:
                framing = Framing.LIST
            return AskedApi(route.api, route.upstream, unquote(said.get("model") or ""), stream, framing)
    return None


def error_at(path: str) -> Callable[[str, str], str]:
    """How errors are spelled for whoever asks at a path."""
    if path.startswith(_OF_BEDROCK):
        return _bedrock_error
    asked = asked_at(path)
    return asked.api.error if asked is not None else error_json


def _bedrock_error(kind: str, message: str) -> str:
    """An error as AWS's SDKs read it, and Anthropic's."""
    return json_text.dumps({"message": message, "type": "error", "error": {"type": kind, "message": message}})
