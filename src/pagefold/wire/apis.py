"""The APIs that are read, each as one value, their providers, and how one is found by a message.

`api_paths` finds one by the path that is asked; every other path is passed on unread. An API that is added here, or
registered by `register`, is served, derived and replayed like the others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pagefold.wire import (
    anthropic,
    anthropic_reasoning,
    converse,
    converse_reasoning,
    gemini,
    interactions,
    json_text,
    openai_chat,
    openai_marks,
    openai_responses,
)
from pagefold.wire.anthropic_turn import MessagesTurn
from pagefold.wire.api import AccountUpstream, Api, ApiProvider
from pagefold.wire.gemini_turn import GeminiTurn
from pagefold.wire.message import Message
from pagefold.wire.openai_chat_turn import ChatTurn
from pagefold.wire.openai_responses_turn import ResponsesTurn

ANTHROPIC = ApiProvider(
    "anthropic",
    header="anthropic-version",
    window_flag=(b"anthropic-beta", b"context-1m", 1_000_000),
    key_header=(b"x-api-key", b""),
)
CHATGPT = AccountUpstream("chatgpt", "https://chatgpt.com/backend-api/codex", "chatgpt-account-id")
OPENAI = ApiProvider(
    "openai",
    paths=("/v1/embeddings", "/v1/completions", "/v1/images", "/v1/realtime", "/v1/audio", "/v1/alpha"),
    shared_paths=("/v1/models",),
    account=CHATGPT,
)
GEMINI = ApiProvider(
    "gemini",
    paths=("/v1beta", "/v1alpha", "/upload/v1beta"),
    header="x-goog-api-key",
    key_header=(b"x-goog-api-key", b""),
    url="https://generativelanguage.googleapis.com",
)
BEDROCK = ApiProvider("bedrock", paths=("/model", "/guardrail", "/async-invoke"))
CLOUDS = (
    ApiProvider("vertex", paths=("/v1/projects", "/v1beta1/projects", "/v1/publishers", "/v1beta1/publishers")),
    ApiProvider("azure", paths=("/openai",), key_header=(b"api-key", b"")),
    ApiProvider("foundry", paths=("/anthropic",), key_header=(b"x-api-key", b"")),
    ApiProvider("openrouter", paths=("/api/v1",), url="https://openrouter.ai"),
)
"""Who serves other providers' APIs under paths of their own."""

MESSAGES = Api(
    "messages",
    "/v1/messages",
    ANTHROPIC,
    anthropic.SHAPE,
    anthropic.parse_request,
    anthropic.parse_response,
    anthropic.MessagesStream,
    anthropic.CALLS,
    MessagesTurn,
    anthropic.continues,
    clearing=anthropic.CLEARING,
    marks=anthropic.MARKS,
    reasoning=anthropic_reasoning.REASONING,
    plain=anthropic.without_marks,
)
CHAT = Api(
    "chat",
    "/v1/chat/completions",
    OPENAI,
    openai_chat.SHAPE,
    openai_chat.parse_request,
    openai_chat.parse_response,
    openai_chat.ChatStream,
    openai_chat.CALLS,
    ChatTurn,
    marks=openai_marks.marks(openai_chat.SHAPE.parse, "text"),
)
RESPONSES = Api(
    "responses",
    "/v1/responses",
    OPENAI,
    openai_responses.SHAPE,
    openai_responses.parse_request,
    openai_responses.parse_response,
    openai_responses.ResponsesStream,
    openai_responses.CALLS,
    ResponsesTurn,
    openai_responses.continues,
    marks=openai_marks.marks(openai_responses.SHAPE.parse, "input_text"),
)
GENERATE = Api(
    "generate",
    "/v1beta/models/{model}:generateContent",
    GEMINI,
    gemini.SHAPE,
    gemini.parse_request,
    gemini.parse_response,
    gemini.GeminiStream,
    gemini.CALLS,
    GeminiTurn,
    gemini.continues,
    user_text=gemini.user_text,
    error=gemini.error_json,
    read_error=gemini.read_error,
)
INTERACTIONS = Api(
    "interactions",
    "/v1beta/interactions",
    GEMINI,
    interactions.SHAPE,
    interactions.parse_request,
    interactions.parse_response,
    interactions.InteractionStream,
    interactions.CALLS,
    continues=interactions.continues,
    error=gemini.error_json,
    read_error=gemini.read_error,
)
CONVERSE = Api(
    "converse",
    "/model/{model}/converse",
    BEDROCK,
    converse.SHAPE,
    converse.parse_request,
    converse.parse_response,
    converse.ConverseStream,
    converse.CALLS,
    marks=converse.MARKS,
    reasoning=converse_reasoning.REASONING,
    plain=converse.without_marks,
    user_text=converse.user_text,
    alternating=converse.alternating,
)

APIS: dict[str, Api] = {api.path: api for api in (MESSAGES, CHAT, RESPONSES, GENERATE, INTERACTIONS, CONVERSE)}
"""By the path that is asked, by POST."""
APIS_BY_NAME: dict[str, Api] = {api.name: api for api in APIS.values()}


def register(api: Api) -> None:
    """Adds an API for the rest of this process."""
    APIS[api.path] = APIS_BY_NAME[api.name] = api


def api_of(value: Mapping[str, Any]) -> Api:
    """The API that a message is written for, by what it looks like; Chat Completions where it may be any.

    APIs that were registered later are asked first.
    """
    return next((api for api in reversed(APIS.values()) if api.calls.speaks(value)), CHAT)


def message_of(value: Mapping[str, Any], before: Sequence[Message] = ()) -> Message:
    """A message of any API, at its place behind those before it. Raises WireError."""
    api = api_of(value)
    raw = json_text.dumps(value)
    if api.shape.link is None:
        return api.shape.parse(value, raw)
    return api.linked([api.shape.parse(value, raw)], before)[0]


def spelled_alike(messages: list[Message]) -> list[Message]:
    """Messages of one conversation, with those that a policy wrote in the spelling of the others."""
    own = next((message for message in messages if message.place >= 0), None)
    return api_of(json_text.parse(own.raw)).spelled(messages) if own else messages


def without_reasoning(message: Message) -> Message:
    """A message of any API without the reasoning that its provider binds to what stood before it."""
    for api in APIS.values():
        reasoning = api.reasoning
        if reasoning is not None and reasoning.keys(message):
            return reasoning.without(message)
    return message


def binds_reasoning(model: str) -> bool:
    """Whether a model of this name may refuse reasoning behind anything else than what it was made behind. A name that
    is not known may."""
    return all(api.reasoning.binds(model) for api in APIS.values() if api.reasoning is not None)


def providers() -> dict[str, ApiProvider]:
    """The providers of all APIs, and the clouds, by their names. Unknown paths go to the first."""
    return {provider.name: provider for provider in (*(api.provider for api in APIS.values()), *CLOUDS)}


def accounts() -> list[AccountUpstream]:
    """Where the providers take clients that have logged in."""
    return [provider.account for provider in providers().values() if provider.account]


def window_asked(headers: Mapping[bytes, bytes]) -> int:
    """How many tokens fit by a provider's flag in the headers; 0 where there is none."""
    for api in APIS.values():
        flag = api.provider.window_flag
        if flag and flag[1] in headers.get(flag[0], b""):
            return flag[2]
    return 0
