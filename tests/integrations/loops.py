"""Agent loops written with the providers' own SDKs, blocking and asynchronous, streamed and whole."""

import asyncio
import json
from typing import Any

from tests.integrations.kit import CLAUDE, GPT, TASK, TURNS, read_part

NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
MESSAGES_TOOLS = [{"name": "read_part", "description": "Reads a part.", "input_schema": NUMBER}]
CHAT_TOOLS = [{"type": "function", "function": {"name": "read_part", "parameters": NUMBER}}]
RESPONSES_TOOLS = [{"type": "function", "name": "read_part", "parameters": NUMBER, "strict": False}]
THINKING = {"type": "adaptive"}
ROUNDS = TURNS + 5


def _messages_request(messages: list[Any]) -> dict[str, Any]:
    return {
        "model": CLAUDE,
        "max_tokens": 500,
        "messages": list(messages),
        "tools": MESSAGES_TOOLS,
        "thinking": THINKING,
    }


def _messages_go_on(messages: list[Any], answer: Any) -> str:
    """Adds the answer and the results of its calls; returns the last text where there are no calls."""
    messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
    calls = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        return str(answer.content[-1].text)
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": read_part(call.input["number"])} for call in calls
    ]
    messages.append({"role": "user", "content": results})
    return ""


def messages_loop(client: Any, *, stream: bool) -> str:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(ROUNDS):
        if stream:
            with client.messages.stream(**_messages_request(messages)) as streamed:
                seen = "".join(streamed.text_stream)
                answer = streamed.get_final_message()
            assert seen == "".join(block.text for block in answer.content if block.type == "text")
        else:
            answer = client.messages.create(**_messages_request(messages))
        if last := _messages_go_on(messages, answer):
            return last
    raise AssertionError("the loop does not end")


async def messages_loop_async(client: Any, *, stream: bool) -> str:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(ROUNDS):
        if stream:
            async with client.messages.stream(**_messages_request(messages)) as streamed:
                answer = await streamed.get_final_message()
        else:
            answer = await client.messages.create(**_messages_request(messages))
        if last := _messages_go_on(messages, answer):
            return last
    raise AssertionError("the loop does not end")


def _chat_go_on(messages: list[Any], message: Any) -> str:
    if not message.tool_calls:
        return str(message.content)
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in message.tool_calls
    ]
    messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
    for call in message.tool_calls:
        text = read_part(json.loads(call.function.arguments)["number"])
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return ""


def chat_loop(client: Any, *, stream: bool) -> str:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(ROUNDS):
        asked: dict[str, Any] = {"model": GPT, "messages": list(messages), "tools": CHAT_TOOLS}
        if stream:
            with client.chat.completions.stream(**asked) as streamed:
                message = streamed.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**asked).choices[0].message
        if last := _chat_go_on(messages, message):
            return last
    raise AssertionError("the loop does not end")


async def chat_loop_async(client: Any, *, stream: bool) -> str:
    messages: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(ROUNDS):
        asked: dict[str, Any] = {"model": GPT, "messages": list(messages), "tools": CHAT_TOOLS}
        if stream:
            async with client.chat.completions.stream(**asked) as streamed:
                message = (await streamed.get_final_completion()).choices[0].message
        else:
            message = (await client.chat.completions.create(**asked)).choices[0].message
        if last := _chat_go_on(messages, message):
            return last
    raise AssertionError("the loop does not end")


def responses_loop(client: Any, *, stream: bool) -> str:
    items: list[Any] = [{"role": "user", "content": TASK}]
    for _ in range(ROUNDS):
        asked: dict[str, Any] = {"model": GPT, "input": list(items), "tools": RESPONSES_TOOLS, "store": False}
        if stream:
            events = [*client.responses.create(stream=True, **asked)]
            response = next(event.response for event in events if event.type == "response.completed")
        else:
            response = client.responses.create(**asked)
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return str(response.output_text)
        for call in calls:
            called = {"call_id": call.call_id, "name": call.name, "arguments": call.arguments}
            text = read_part(json.loads(call.arguments)["number"])
            items.append({"type": "function_call", **called})
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
    raise AssertionError("the loop does not end")


def run_async(loop: Any, client: Any, *, stream: bool) -> str:
    async def both() -> str:
        async with client:
            text: str = await loop(client, stream=stream)
            return text

    return asyncio.run(both())
