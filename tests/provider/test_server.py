"""The referee over HTTP: with a raw client, with compressed bodies, as `pagefold lab provider`, and with the SDKs."""

import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pagefold import zstd
from pagefold.model_proxy.server import running
from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.referee import Referee
from pagefold.provider.script import Script
from pagefold.provider.server import ProviderApp

AGENTS = Path(os.environ.get("AGENTS_DIR") or Path(__file__).parents[2] / ".agents").absolute()
PYTHON = AGENTS / "venv" / "bin" / "python"
HELLO = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]}
TURNS = [Answer("Reading.", [AnswerCall("read", {"path": f"f{at}"})]) for at in range(6)]


def post(url: str, body: bytes, **headers: str) -> tuple[int, str, bytes]:
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=20)) as connection:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", parts.path, body, named)
        answer = connection.getresponse()
        return answer.status, answer.getheader("content-type", ""), answer.read()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("", lambda data: data),
        ("gzip", gzip.compress),
        ("zstd", zstd.compress),
    ],
)
def test_a_body_is_read_whatever_its_encoding(encoding: str, packed: Any) -> None:
    with running(ProviderApp(Referee())) as url:
        headers = {"content_encoding": encoding} if encoding else {}
        status, kind, data = post(f"{url}/v1/messages", packed(json.dumps(HELLO).encode()), **headers)
    assert (status, kind) == (200, "application/json")
    assert [block["type"] for block in json.loads(data)["content"]] == ["thinking", "text"]


def test_refusals_and_totals_are_served_and_seen() -> None:
    records = []
    with running(ProviderApp(Referee(), seen=lambda record, body: records.append(record))) as url:
        assert post(f"{url}/v1/messages", b"{}")[0] == 400
        assert post(f"{url}/v1/nothing", b"{}")[0] == 404
        assert post(f"{url}/v1/messages", json.dumps({**HELLO, "stream": True}).encode())[1].startswith("text/event")
        with urllib.request.urlopen(f"{url}/referee", timeout=20) as answer:
            totals = json.loads(answer.read())
    assert totals["refused"] == {"not_json": 1, "not_found": 1}
    assert totals["bill"]["claude-opus-5-5"]["requests"] == 1
    assert [record.rule for record in records] == ["not_json", "not_found", ""]


COMMON = """
import json, sys
URL, STREAM = sys.argv[1], sys.argv[2] == "streamed"
def report(**members):
    print(json.dumps(members))
"""
MESSAGES = (
    COMMON
    + """
import anthropic
client = anthropic.Anthropic(base_url=URL, api_key="sk-none", max_retries=0)
tools = [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}]
messages = [{"role": "user", "content": "Read all of it."}]
dropped = 0
for rounds in range(20):
    asked = dict(model="claude-fable-5-2", max_tokens=500, messages=messages, tools=tools,
                 cache_control={"type": "ephemeral"}, betas=["thinking-binding-controls-2026-08-01"])
    if STREAM:
        with client.beta.messages.stream(**asked) as stream:
            answer = stream.get_final_message()
    else:
        answer = client.beta.messages.create(**asked)
    dropped += len(answer.input_transformations)
    messages.append({"role": "assistant", "content": [block.to_dict() for block in answer.content]})
    calls = [block for block in answer.content if block.type == "tool_use"]
    if answer.stop_reason != "tool_use":
        break
    messages.append({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call.id, "content": "content " * 200} for call in calls]})
messages[0]["content"] = "Changed."
messages.append({"role": "user", "content": "And?"})
try:
    client.messages.create(model="claude-fable-5-2", max_tokens=500, messages=messages, tools=tools)
    refusal = ""
except anthropic.BadRequestError as error:
    refusal = error.body["error"]["message"]
counted = client.messages.count_tokens(model="claude-fable-5-2", messages=messages[:1]).input_tokens
report(rounds=rounds, kinds=[block.type for block in answer.content], dropped=dropped, counted=counted,
     read=answer.usage.cache_read_input_tokens, written=answer.usage.cache_creation.ephemeral_5m_input_tokens,
     refusal=refusal)
"""
)
CHAT = (
    COMMON
    + """
import openai
client = openai.OpenAI(base_url=URL + "/v1", api_key="sk-none", max_retries=0)
tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]
messages = [{"role": "user", "content": "Read all of it."}]
for rounds in range(20):
    asked = dict(model="gpt-5.6-sol", messages=messages, tools=tools)
    if STREAM:
        with client.chat.completions.stream(stream_options={"include_usage": True}, **asked) as stream:
            for event in stream:
                pass
            answer = stream.get_final_completion()
    else:
        answer = client.chat.completions.create(**asked)
    message = answer.choices[0].message
    calls = [{"id": call.id, "type": "function",
              "function": {"name": call.function.name, "arguments": call.function.arguments}}
             for call in message.tool_calls or []]
    if not calls:
        break
    messages.append({"role": "assistant", "content": message.content, "tool_calls": calls})
    messages += [{"role": "tool", "tool_call_id": call["id"], "content": "content " * 200} for call in calls]
try:
    client.chat.completions.create(model="gpt-5.6-sol", messages=messages[:-1], tools=tools)
    refusal = ""
except openai.BadRequestError as error:
    refusal = error.message
report(rounds=rounds, read=answer.usage.prompt_tokens_details.cached_tokens, refusal=refusal)
"""
)
RESPONSES = (
    COMMON
    + """
import openai
client = openai.OpenAI(base_url=URL + "/v1", api_key="sk-none", max_retries=0)
tools = [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}]
items = [{"role": "user", "content": "Read all of it."}]
for rounds in range(20):
    asked = dict(model="gpt-5.6-sol", input=items, tools=tools, store=False)
    if STREAM:
        with client.responses.stream(**asked) as stream:
            for event in stream:
                pass
            answer = stream.get_final_response()
    else:
        answer = client.responses.create(**asked)
    calls = [item for item in answer.output if item.type == "function_call"]
    if not calls:
        break
    items += [item.to_dict() for item in answer.output]
    items += [{"type": "function_call_output", "call_id": call.call_id, "output": "content " * 200} for call in calls]
try:
    client.responses.create(model="gpt-5.6-sol", input=items[:-1], tools=tools, store=False)
    refusal = ""
except openai.BadRequestError as error:
    refusal = error.message
report(rounds=rounds, kinds=[item.type for item in answer.output], refusal=refusal,
     read=answer.usage.input_tokens_details.cached_tokens)
"""
)


def run_sdk(package: str, program: str, url: str, way: str) -> dict[str, Any]:
    if not PYTHON.exists() or not [*PYTHON.parent.parent.glob(f"lib/python3*/site-packages/{package}")]:
        pytest.skip(f"no {package} in {PYTHON.parent.parent}: run `make agents`, or set AGENTS_DIR")
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [PYTHON, "-c", program, url, way], env=environment, capture_output=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


@pytest.mark.parametrize("way", ["streamed", "whole"])
def test_the_anthropic_sdk_keeps_thinking_valid_and_is_refused_when_it_edits(way: str) -> None:
    referee = Referee(answers=Script([*TURNS, Answer("All of it was read.")]))
    with running(ProviderApp(referee)) as url:
        outcome = run_sdk("anthropic", MESSAGES, url, way)
    assert (outcome["rounds"], outcome["dropped"], outcome["kinds"]) == (6, 0, ["thinking", "text"])
    assert min(outcome["read"], outcome["written"], outcome["counted"]) > 0
    assert "The block is bound to a different conversation" in outcome["refusal"]
    assert referee.totals.refused == {"thinking_bound": 1}


@pytest.mark.parametrize("way", ["streamed", "whole"])
@pytest.mark.parametrize(
    ("program", "rule"),
    [(CHAT, "chat_call_without_result"), (RESPONSES, "call_without_output")],
    ids=["chat", "responses"],
)
def test_the_openai_sdk_talks_to_it_and_is_refused_without_a_result(program: str, rule: str, way: str) -> None:
    referee = Referee(answers=Script([*TURNS, Answer("All of it was read.")]))
    with running(ProviderApp(referee)) as url:
        outcome = run_sdk("openai", program, url, way)
    assert outcome["rounds"] == 6
    assert outcome["read"] > 1024
    assert outcome["refusal"]
    assert referee.totals.refused == {rule: 1}


def test_the_command_serves_a_script_logs_requests_and_prints_the_bill(tmp_path: Path) -> None:
    (tmp_path / "turns.json").write_text('[{"text": "First."}]')
    command = [sys.executable, "-m", "pagefold", "lab", "provider", "--json"]
    command += ["--script", str(tmp_path / "turns.json"), "--log", str(tmp_path / "log.jsonl"), "--bodies"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        try:
            assert started.stderr is not None
            url = started.stderr.readline().split()[2]
            _, _, data = post(f"{url}/v1/messages", json.dumps(HELLO).encode())
            assert json.loads(data)["content"][-1]["text"] == "First."
            post(f"{url}/v1/messages", b"{}")
        finally:
            started.send_signal(signal.SIGINT)
            out, _ = started.communicate(timeout=20)
    totals = json.loads(out)
    assert (started.returncode, totals["requests"], totals["refused"]) == (0, 2, {"not_json": 1})
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["rule"] for line in lines] == ["", "not_json"]
    assert lines[0]["body"]["messages"] == HELLO["messages"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--port", "70000"], "--port 70000: expected 0 to 65535"),
        (["--script", "nowhere.json"], "--script nowhere.json: cannot be read"),
        (["--window", "-1"], "argument --window: '-1': expected a number of tokens"),
        (["--log", "/nowhere/log"], "--log /nowhere/log: cannot be written"),
    ],
)
def test_bad_flags_are_refused_in_a_sentence(flags: list[str], words: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pagefold", "lab", "provider", *flags]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
