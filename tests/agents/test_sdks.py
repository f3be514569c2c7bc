"""The anthropic and openai Python SDKs through the proxy: long tool loops, streamed and not, end as scripted.

The SDKs live in the folder that AGENTS_DIR names, else in `.agents` of the repository, in an environment of their own;
a small program is run there. Everything stays on loopback; no key is needed.
"""

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policy import Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from tests.scripted_model import ScriptedCall, ScriptedModel, ScriptedTurn

AGENTS = Path(os.environ.get("AGENTS_DIR") or Path(__file__).parents[2] / ".agents").absolute()
PYTHON = AGENTS / "venv" / "bin" / "python"
TURNS = 62
SECONDS = 100
SMALL = 20_000
LAST = "All of it was read."
WAYS = [("streamed", "economic"), ("whole", "lossless")]

COMMON = """
import json, sys
URL, STREAM, TURNS = sys.argv[1], sys.argv[2] == "streamed", int(sys.argv[3])
def read(path):
    return "\\n".join(f"{n}\\tdef {path}_{n % 7}(self, page: Page) -> None:  # as in line {n}" for n in range(1, 60))
def told(text, rounds):
    print(json.dumps({"text": text, "rounds": rounds}))
"""

MESSAGES = (
    COMMON
    + """
import anthropic
client = anthropic.Anthropic(base_url=URL, api_key="sk-scripted", max_retries=0)
tools = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}]
messages = [{"role": "user", "content": "Read all of it."}]
for rounds in range(TURNS + 5):
    asked = dict(model="claude-sonnet-4-5", max_tokens=500, messages=messages, tools=tools)
    if STREAM:
        with client.messages.stream(**asked) as stream:
            seen = "".join(stream.text_stream)
            answer = stream.get_final_message()
        assert seen == "".join(block.text for block in answer.content if block.type == "text")
    else:
        answer = client.messages.create(**asked)
    messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
    calls = [block for block in answer.content if block.type == "tool_use"]
    if answer.stop_reason != "tool_use":
        break
    messages.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call.id, "content": read(call.input["path"])} for call in calls]})
told(answer.content[0].text, rounds)
"""
)

CHAT = (
    COMMON
    + """
import openai
client = openai.OpenAI(base_url=URL + "/v1", api_key="sk-scripted", max_retries=0)
tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]
messages = [{"role": "user", "content": "Read all of it."}]
for rounds in range(TURNS + 5):
    asked = dict(model="gpt-5", messages=messages, tools=tools)
    if STREAM:
        with client.chat.completions.stream(**asked) as stream:
            for event in stream:
                pass
            message = stream.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**asked).choices[0].message
    calls = [{"id": call.id, "type": "function",
              "function": {"name": call.function.name, "arguments": call.function.arguments}}
             for call in message.tool_calls or []]
    if not calls:
        break
    messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
    for call in calls:
        path = json.loads(call["function"]["arguments"])["path"]
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": read(path)})
told(message.content, rounds)
"""
)

RESPONSES = (
    COMMON
    + """
import openai
client = openai.OpenAI(base_url=URL + "/v1", api_key="sk-scripted", max_retries=0)
tools = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}]
items = [{"role": "user", "content": "Read all of it."}]
for rounds in range(TURNS + 5):
    asked = dict(model="gpt-5", input=items, tools=tools, store=False)
    if STREAM:
        for event in client.responses.create(stream=True, **asked):
            if event.type == "response.completed":
                response = event.response
    else:
        response = client.responses.create(**asked)
    calls = [item for item in response.output if item.type == "function_call"]
    if not calls:
        break
    for call in calls:
        path = json.loads(call.arguments)["path"]
        items.append({"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments})
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": read(path)})
told(response.output_text, rounds)
"""
)


class ScriptedOpenAI:
    """Calls `read` on one file after another, and then says the last word. Each request gets the next turn."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        request = json.loads(body)
        at = len(self.requests)
        self.requests.append(request)
        pieces = (
            self._responses(at) if scope["path"] == "/v1/responses" else self._chat(at, bool(request.get("stream")))
        )
        if not request.get("stream"):
            kind, sent = (
                b"application/json",
                [json.dumps(pieces[-1]["response"] if "response" in pieces[-1] else pieces[-1])],
            )
        else:
            kind = b"text/event-stream"
            sent = [
                f"event: {piece.get('type', '')}\n" * ("type" in piece) + f"data: {json.dumps(piece)}\n\n"
                for piece in pieces
            ]
            sent += ["data: [DONE]\n\n"] * (scope["path"] != "/v1/responses")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        for piece in sent:
            await send({"type": "http.response.body", "body": piece.encode(), "more_body": True})
        await send({"type": "http.response.body"})

    def _chat(self, at: int, stream: bool) -> list[dict[str, Any]]:
        last = at >= TURNS
        call = {
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"path": f"f{at}"})},
        }
        said: dict[str, Any] = {"role": "assistant", "content": LAST if last else None}
        said |= {} if last else {"tool_calls": [{"index": 0, **call} if stream else call]}
        stop = "stop" if last else "tool_calls"
        usage = {"prompt_tokens": 900, "completion_tokens": 9, "total_tokens": 909}
        common = {"id": f"c{at}", "created": 1, "model": "gpt-5"}
        if not stream:
            choice = {"index": 0, "message": said, "finish_reason": stop}
            return [{**common, "object": "chat.completion", "choices": [choice], "usage": usage}]
        chunk = {**common, "object": "chat.completion.chunk"}
        return [
            {**chunk, "choices": [{"index": 0, "delta": said, "finish_reason": None}]},
            {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
            {**chunk, "choices": [], "usage": usage},
        ]

    def _responses(self, at: int) -> list[dict[str, Any]]:
        text = {"type": "output_text", "text": LAST, "annotations": []}
        item: dict[str, Any] = {"id": f"m{at}", "type": "message", "role": "assistant", "status": "completed"}
        item |= {"content": [text]}
        if at < TURNS:
            arguments = json.dumps({"path": f"f{at}"})
            item = {"id": f"f{at}", "type": "function_call", "call_id": f"call_{at}", "name": "read"}
            item |= {"arguments": arguments, "status": "completed"}
        whole = {
            "id": f"r{at}",
            "object": "response",
            "created_at": 1,
            "model": "gpt-5",
            "status": "completed",
            "output": [item],
            "usage": {
                "input_tokens": 900,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 9,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 909,
            },
        }
        begun = {"type": "response.created", "sequence_number": 0}
        return [
            begun | {"response": {**whole, "status": "in_progress", "output": [], "usage": None}},
            {"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": item},
            {"type": "response.completed", "sequence_number": 2, "response": whole},
        ]


def run(package: str, program: str, url: str, streamed: str) -> dict[str, Any]:
    if not PYTHON.exists() or not [*PYTHON.parent.parent.glob(f"lib/python3*/site-packages/{package}")]:
        pytest.skip(f"no {package} in {PYTHON.parent.parent}: run `make agents`, or set AGENTS_DIR")
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [PYTHON, "-c", program, url, streamed, str(TURNS)],
        env=environment,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def proxied(model: Any, name: str, folder: Path) -> Iterator[tuple[Proxy, str]]:
    policy: Policy = Economic(window=SMALL) if name == "economic" else policy_named(name)
    library = Library(open_store(folder / "store.sqlite3"))
    try:
        with running(model) as upstream:
            conversations = Conversations(policy, store=library.store)
            proxy = Proxy(
                Upstreams({"anthropic": upstream, "openai": upstream}), conversations, put=PageKeeper(library)
            )
            with running(proxy) as url:
                yield proxy, url
    finally:
        library.close()


def ended_well(proxy: Proxy, requests: list[list[Any]], policy: str, answers: str) -> None:
    """Each request extends the last or is a fold point; every call has its one result."""
    totals = proxy.totals
    moved = sum(later[: len(before)] != before for before, later in itertools.pairwise(requests))
    assert (totals.faults, totals.failed, totals.unread) == (0, 0, {})
    assert totals.work.saved > 0
    assert moved == totals.work.folds
    assert (moved > 1) is (policy == "economic")
    assert totals.streamed == (TURNS + 1 if answers == "streamed" else 0)


@pytest.mark.parametrize(("answers", "policy"), WAYS)
def test_the_anthropic_sdk_works_through_the_proxy(answers: str, policy: str, tmp_path: Path) -> None:
    turns = [ScriptedTurn("Next.", "", [ScriptedCall("read", {"path": f"f{at}"})]) for at in range(TURNS)]
    model = ScriptedModel([*turns, ScriptedTurn(LAST)], counting=True)
    with proxied(model, policy, tmp_path) as (proxy, url):
        assert run("anthropic", MESSAGES, url, answers) == {"text": LAST, "rounds": TURNS}
        requests = [json.loads(body)["messages"] for body in model.requests]
        ended_well(proxy, requests, policy, answers)
    for messages in requests:
        blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert calls == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


@pytest.mark.parametrize(("answers", "policy"), WAYS)
@pytest.mark.parametrize(("program", "key"), [(CHAT, "messages"), (RESPONSES, "input")], ids=["chat", "responses"])
def test_the_openai_sdk_works_through_the_proxy(
    program: str, key: str, answers: str, policy: str, tmp_path: Path
) -> None:
    model = ScriptedOpenAI()
    with proxied(model, policy, tmp_path) as (proxy, url):
        assert run("openai", program, url, answers) == {"text": LAST, "rounds": TURNS}
        requests = [request[key] for request in model.requests]
        ended_well(proxy, requests, policy, answers)
    for items in requests:
        calls = [call["id"] for item in items for call in item.get("tool_calls") or ()]
        calls += [item["call_id"] for item in items if item.get("type") == "function_call"]
        results = [item["tool_call_id"] for item in items if item.get("role") == "tool"]
        results += [item["call_id"] for item in items if item.get("type") == "function_call_output"]
        assert calls == results
