"""Google's own SDK through the model proxy, in a tool loop past the window: the provider accepts every request."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from tests.integrations.kit import LAST, TASK, TURNS, WINDOW, Judged, needs, provider, read_part

# The SDK subclasses what aiohttp deprecates; sockets that other SDKs left open are collected while it is imported.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
GEMINI = "gemini-3.8-flash"
ROUNDS = TURNS + 5


@contextmanager
def proxied(judged: Judged) -> Iterator[tuple[Proxy, Any, Any]]:
    """The proxy, the SDK's client that asks it, and the SDK's types."""
    from google import genai
    from google.genai import types

    proxy = Proxy(Upstreams({"gemini": judged.url}), Conversations(Economic(window=WINDOW), window=WINDOW))
    with running(proxy) as url:
        yield proxy, genai.Client(api_key="scripted", http_options=types.HttpOptions(base_url=url)), types


def settings(types: Any) -> Any:
    number = {"type": "OBJECT", "properties": {"number": {"type": "INTEGER"}}, "required": ["number"]}
    declared = types.FunctionDeclaration(name="read_part", description="Reads a part.", parameters=number)
    off = types.AutomaticFunctionCallingConfig(disable=True)
    tools = [types.Tool(function_declarations=[declared])]
    return types.GenerateContentConfig(system_instruction="Read.", tools=tools, automatic_function_calling=off)


def go_on(types: Any, contents: list[Any], content: Any, *, ids: bool) -> str:
    """Adds the answer and what its calls gave; returns the last text where there are no calls."""
    contents.append(content)
    calls = [part.function_call for part in content.parts if part.function_call]
    if not calls:
        return "".join(part.text for part in content.parts if part.text)
    parts = []
    for call in calls:
        part = types.Part.from_function_response(name=call.name, response={"result": read_part(call.args["number"])})
        part.function_response.id = call.id if ids else None
        parts.append(part)
    contents.append(types.Content(role="user", parts=parts))
    return ""


def joined(types: Any, chunks: list[Any]) -> Any:
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
    return types.Content(role="model", parts=parts)


@needs("google", "google.genai")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])
def test_a_loop_past_the_window_ends_as_without_it(stream: bool, ids: bool) -> None:
    with provider() as judged, proxied(judged) as (proxy, client, types):
        contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=TASK)])]
        asked: dict[str, Any] = {"model": GEMINI, "config": settings(types)}
        said = ""
        for _ in range(ROUNDS):
            if stream:
                chunks = [*client.models.generate_content_stream(contents=contents, **asked)]
                said = go_on(types, contents, joined(types, chunks), ids=ids)
            else:
                answer = client.models.generate_content(contents=contents, **asked)
                said = go_on(types, contents, answer.candidates[0].content, ids=ids)
            if said:
                break
        assert said == LAST
        assert proxy.totals.work.folds >= 1
        assert proxy.totals.by_model[GEMINI].usage.output > 0
    judged.ended_well()


@needs("google", "google.genai")
def test_functions_that_the_sdk_calls_by_itself_and_asynchronous_chats_do_so_too() -> None:
    calls = []

    def read_part_of(number: int) -> str:
        """Reads a part."""
        calls.append(number)
        return read_part(number)

    read_part_of.__name__ = "read_part"
    with provider() as judged, proxied(judged) as (_, client, types):
        calling = types.AutomaticFunctionCallingConfig(maximum_remote_calls=ROUNDS)
        config = types.GenerateContentConfig(tools=[read_part_of], automatic_function_calling=calling)

        async def talk() -> str:
            chat = client.aio.chats.create(model=GEMINI, config=config)
            answer = await chat.send_message(TASK)
            return str(answer.text)

        assert asyncio.run(talk()) == LAST
    assert calls == list(range(TURNS))
    judged.ended_well()
