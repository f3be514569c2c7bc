"""AWS's own SDK by way of `pagefold serve`, which signs again: a stand-in checks each signature with AWS's own code."""

import base64
import importlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pagefold.model_proxy.server import running
from pagefold.provider.referee import Referee
from pagefold.provider.script import parse_script
from pagefold.wire.aws_signature import SignedRequest
from tests.agents.cloud import MODEL, Cloud
from tests.integrations.kit import LAST, READING, TASK, TURNS, WINDOW, needs, read_part

pytestmark = [needs("boto3"), pytest.mark.filterwarnings("ignore")]

KEY_ID, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "token-of-this-session"
REGION = "eu-west-1"
MODEL_ID = f"eu.anthropic.{MODEL}-v1:0"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = {"image": {"format": "png", "source": {"bytes": base64.b64decode(PIXEL)}}}
TOOL = {
    "name": "read_part",
    "description": "Reads a part.",
    "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
}


def problem(request: SignedRequest) -> str:
    """Why botocore would have signed this request otherwise; "" where it would not."""
    auth, aws = importlib.import_module("botocore.auth"), importlib.import_module("botocore.awsrequest")
    credentials = importlib.import_module("botocore.credentials").Credentials(KEY_ID, SECRET, TOKEN)
    headers = {name.lower(): value for name, value in request.headers}
    place, names, signature = headers["authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(", ")
    said = {name: headers[name] for name in names.removeprefix("SignedHeaders=").split(";")}
    if not {"host", "x-amz-date", "x-amz-security-token"} <= set(said):
        return f"only {names}"
    url = f"http://{headers['host']}{request.path}"
    one = aws.AWSRequest(request.method, url, data=request.body, headers=said)
    one.context["timestamp"] = headers["x-amz-date"]
    signer = auth.SigV4Auth(credentials, "bedrock", REGION)
    if "x-amz-content-sha256" in said and said["x-amz-content-sha256"] != signer.payload(one):
        return "the hash is of another body"
    right = signer.signature(signer.string_to_sign(one, signer.canonical_request(one)), one)
    expected = [f"Credential={KEY_ID}/{signer.credential_scope(one)}", f"Signature={right}"]
    return "" if [place, signature] == expected else f"{place} {signature} in place of {expected}"


@dataclass
class Behind:
    """A Bedrock of our own, and the SDK's client that asks it by way of pagefold."""

    cloud: Cloud
    client: Any
    folder: Path

    def folded(self) -> bool:
        return b"pagefold wrote this message" in self.cloud.bodies[-1]

    def written(self) -> bytes:
        """All that pagefold has left on disk and said."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())


@contextmanager
def bedrock(folder: Path, url: str, cloud: Cloud) -> Iterator[Behind]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PAGEFOLD_UPSTREAMS_BEDROCK_SIGN": "true"}
    environment |= {"PAGEFOLD_UPSTREAMS_BEDROCK_URL": url, "AWS_ACCESS_KEY_ID": KEY_ID}
    environment |= {"AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN}
    command = [sys.executable, "-m", "pagefold", "serve", "--json", "--port", "0", "--policy", "economic"]
    command += ["--window", str(WINDOW), "--store", str(folder / "store.sqlite3")]
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, env=environment)
        assert child.stdout is not None
        try:
            address = json.loads(child.stdout.readline())["url"]
            client = importlib.import_module("boto3").client(
                "bedrock-runtime",
                region_name=REGION,
                endpoint_url=address,
                aws_access_key_id=KEY_ID,
                aws_secret_access_key=SECRET,
                aws_session_token=TOKEN,
            )
            yield Behind(cloud, client, folder)
        finally:
            child.terminate()
            rest, _ = child.communicate(timeout=30)
            said.write(rest)


def whole(client: Any, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.invoke_model(modelId=MODEL_ID, body=json.dumps(body), contentType="application/json")
    said: dict[str, Any] = json.loads(answer["body"].read())
    return said


def streamed(client: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The message that the events of a stream add up to."""
    answer = client.invoke_model_with_response_stream(modelId=MODEL_ID, body=json.dumps(body))
    blocks: list[dict[str, Any]] = []
    for frame in answer["body"]:
        event = json.loads(frame["chunk"]["bytes"])
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]))
        elif event["type"] == "content_block_delta":
            ((name, piece),) = ((name, piece) for name, piece in event["delta"].items() if name != "type")
            blocks[-1][name] = blocks[-1].get(name, "") + piece
    for block in blocks:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block.pop("partial_json"))
    return {"content": blocks}


@pytest.mark.parametrize("ask", [whole, streamed])
def test_a_loop_past_the_window_is_derived_and_signed_again(ask: Any, tmp_path: Path) -> None:
    script = parse_script(json.dumps([*READING, {"text": LAST}]), "script")
    cloud = Cloud(problem, Referee(answers=script, window=WINDOW))
    with running(cloud) as url, bedrock(tmp_path, url, cloud) as behind:
        messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
        asked = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 500, "tools": [TOOL], "messages": messages}
        for _ in range(TURNS + 5):
            content = ask(behind.client, asked)["content"]
            messages.append({"role": "assistant", "content": content})
            calls = [block for block in content if block["type"] == "tool_use"]
            if not calls:
                break
            results = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": read_part(call["input"]["number"])}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})
        assert "".join(block.get("text", "") for block in content) == LAST, content
    assert cloud.refused == []
    assert cloud.answers == TURNS + 1
    assert behind.folded()
    assert {path.rpartition("/")[0] for path in cloud.asked} == {f"/model/{MODEL_ID}"}
    for secret in (SECRET, TOKEN):
        assert secret.encode() not in behind.written()


def conversed(client: Any, asked: dict[str, Any]) -> list[dict[str, Any]]:
    answer = client.converse(**asked)
    assert answer["usage"]["outputTokens"] > 0
    content: list[dict[str, Any]] = answer["output"]["message"]["content"]
    return content


def conversed_in_pieces(client: Any, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts that the events of a stream add up to."""
    parts: list[dict[str, Any]] = []
    for event in client.converse_stream(**asked)["stream"]:
        if "contentBlockStart" in event:
            parts.append({"toolUse": {**event["contentBlockStart"]["start"]["toolUse"], "input": ""}})
        elif "contentBlockDelta" in event:
            said = event["contentBlockDelta"]
            if len(parts) <= said["contentBlockIndex"]:
                parts.append({})
            add(parts[-1], said["delta"])
    for part in parts:
        if "toolUse" in part:
            part["toolUse"]["input"] = json.loads(part["toolUse"]["input"])
        elif "reasoningContent" in part:
            part["reasoningContent"] = {"reasoningText": part["reasoningContent"]}
    return parts


def add(part: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, piece in delta.items():
        if isinstance(piece, dict):
            add(part.setdefault(name, {}), piece)
        else:
            part[name] = part.get(name, "") + piece


def told(number: int) -> list[dict[str, Any]]:
    """A part as a text, as JSON, or as both with a picture."""
    said = read_part(number)
    parts: list[list[dict[str, Any]]] = [
        [{"text": said}],
        [{"json": {"lines": said.split("\n")}}],
        [{"text": "Here:"}, PICTURE, {"text": said}],
    ]
    return parts[number % 3]


@pytest.mark.parametrize("ask", [conversed, conversed_in_pieces])
def test_a_converse_loop_past_the_window_is_folded_and_its_reasoning_stays_valid(ask: Any, tmp_path: Path) -> None:
    thinking = [{**turn, "thinking": "Hm."} for turn in READING]
    script = parse_script(json.dumps([*thinking, {"text": LAST}]), "script")
    cloud = Cloud(problem, Referee(answers=script, window=WINDOW))
    spec = {"name": TOOL["name"], "description": TOOL["description"], "inputSchema": {"json": TOOL["input_schema"]}}
    with running(cloud) as url, bedrock(tmp_path, url, cloud) as behind:
        messages: list[dict[str, Any]] = [
            {
                "role": "user",
                "content": [{"guardContent": {"text": {"text": TASK}}}, PICTURE, {"cachePoint": {"type": "default"}}],
            }
        ]
        asked = {
            "modelId": MODEL_ID,
            "system": [{"text": "You read parts."}],
            "toolConfig": {"tools": [{"toolSpec": spec}]},
            "inferenceConfig": {"maxTokens": 500},
            "additionalModelRequestFields": {"thinking": {"type": "adaptive"}},
            "messages": messages,
        }
        for _ in range(TURNS + 5):
            content = ask(behind.client, asked)
            messages.append({"role": "assistant", "content": content})
            calls = [part["toolUse"] for part in content if "toolUse" in part]
            if not calls:
                break
            results = [{"toolUseId": call["toolUseId"], "content": told(call["input"]["number"])} for call in calls]
            messages.append({"role": "user", "content": [{"toolResult": result} for result in results]})
        assert "".join(part.get("text", "") for part in content) == LAST, content
        status = json.loads(urllib.request.urlopen(f"{behind.client.meta.endpoint_url}/pagefold/status").read())
    assert cloud.refused == []
    assert cloud.answers == TURNS + 1
    assert behind.folded()
    assert (status["unread"], status["usage"]["output"] > 0) == ({}, True), status
    assert SECRET.encode() not in behind.written()


def test_a_key_that_is_not_pagefolds_own_gets_a_sentence_and_no_signature(tmp_path: Path) -> None:
    cloud = Cloud(problem, Referee(window=WINDOW))
    with running(cloud) as url, bedrock(tmp_path, url, cloud) as behind:
        other = importlib.import_module("boto3").client(
            "bedrock-runtime",
            region_name=REGION,
            endpoint_url=behind.client.meta.endpoint_url,
            aws_access_key_id="AKIDOTHER",
            aws_secret_access_key="another secret",
        )
        with pytest.raises(Exception, match="another access key than pagefold's"):
            whole(other, {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 5, "messages": []})
    assert cloud.asked == []
    for secret in (SECRET, TOKEN, "another secret"):
        assert secret.encode() not in behind.written()
