"""The APIs that are read, each as one value, and how one is found: by the path that is asked, or by a message.

Every other path is passed on unread. An API that is added here, or registered by `register`, is served, derived and
replayed like the others.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pagefold.wire import anthropic, anthropic_reasoning, json_text, openai_chat, openai_marks, openai_responses
from pagefold.wire.anthropic_turn import MessagesTurn
from pagefold.wire.api import AccountUpstream, Api, ApiProvider, error_json
from pagefold.wire.message import Message
from pagefold.wire.openai_chat_turn import ChatTurn
from pagefold.wire.openai_responses_turn import ResponsesTurn

ANTHROPIC = ApiProvider(
    "anthropic",
    header="anthropic-version",
    window_flag=(b"anthropic-beta", b"context-1m", 1_000_000),
)
CHATGPT = AccountUpstream("chatgpt", "https://chatgpt.com/backend-api/codex", "chatgpt-account-id")
OPENAI = ApiProvider(
    "openai",
    paths=("/v1/embeddings", "/v1/completions", "/v1/images", "/v1/realtime", "/v1/audio", "/v1/alpha"),
    shared_paths=("/v1/models",),
    account=CHATGPT,
)

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

APIS: dict[str, Api] = {api.path: api for api in (MESSAGES, CHAT, RESPONSES)}
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


def message_of(value: Mapping[str, Any]) -> Message:
    """A message of any API. Raises WireError."""
    return api_of(value).shape.parse(value, json_text.dumps(value))


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
    """The providers of all APIs by their names. Unknown paths go to the first."""
    return {api.provider.name: api.provider for api in APIS.values()}


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


def error_at(path: str) -> Callable[[str, str], str]:
    """How errors are spelled for whoever asks at a path."""
    return APIS[path].error if path in APIS else error_json
