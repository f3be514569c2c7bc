"""LiteLLM: the callback in its SDK past the window, and its own proxy with pagefold as its guardrail."""

import asyncio
import importlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from tests.integrations.kit import GPT, LAST, TASK, WINDOW, needs, provider, read_part

pytestmark = [needs("litellm"), pytest.mark.filterwarnings("ignore")]

KEY = f"sk-{secrets.token_hex(32)}"
ROWS = json.dumps([{"id": n, "name": f"row {n}", "state": "open", "labels": ["a", "b"]} for n in range(60)], indent=1)
CALL = {"id": "c1", "type": "function", "function": {"name": "rows", "arguments": "{}"}}
CONVERSATION = [
    {"role": "user", "content": "List the rows."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": ROWS},
    {"role": "assistant", "content": "There are sixty."},
    {"role": "user", "content": "Which are open?"},
]


def test_a_loop_past_the_window_ends_as_scripted() -> None:
    run = importlib.import_module("examples.litellm_agent").run
    with provider() as judged:
        more = {"api_base": f"{judged.url}/v1", "api_key": "sk-scripted", "num_retries": 0}
        assert asyncio.run(run(f"openai/{GPT}", TASK, read_part, WINDOW, **more)) == LAST
    judged.ended_well()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def gateway(folder: Path, upstream: str, pagefold: str) -> Iterator[str]:
    """LiteLLM's own proxy, with pagefold as its guardrail."""
    configuration = (Path(__file__).parents[2] / "examples" / "litellm_gateway.yaml").read_text(encoding="utf-8")
    configuration = configuration.replace("http://127.0.0.1:8377", pagefold).replace(
        "anthropic/claude-opus-5-5", "openai/gpt"
    )
    configuration = configuration.replace("os.environ/ANTHROPIC_API_KEY", f"sk-scripted, api_base: '{upstream}/v1'")
    configuration = configuration.replace("openai/gpt,", f"openai/{GPT},")
    (folder / "config.yaml").write_text(configuration, encoding="utf-8")
    port = free_port()
    program, settings = Path(sys.executable).parent / "litellm", folder / "config.yaml"
    command = [str(program), "--config", str(settings), "--host", "127.0.0.1"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment |= {"LITELLM_MASTER_KEY": KEY, "NO_PROXY": "127.0.0.1"}
    with (folder / "log").open("wb") as log:
        served = subprocess.Popen([*command, "--port", str(port)], env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            wait_until_ready(port, served, folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            served.terminate()
            served.wait(30)


def wait_until_ready(port: int, served: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):  # it takes long to start, and minutes on a busy machine
        assert served.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=2):
                return
        except OSError:
            time.sleep(1)
    raise AssertionError(log.read_text()[-3000:])


def ask(url: str) -> dict[str, Any]:
    body = json.dumps({"model": "claude-opus-5-5", "messages": CONVERSATION}).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}/v1/chat/completions", body, headers), timeout=60
    ) as done:
        answer: dict[str, Any] = json.load(done)
        return answer


def test_litellms_own_proxy_asks_pagefold_and_goes_on_without_it(tmp_path: Path) -> None:
    turns = [{"text": LAST}] * 9
    with provider(turns) as judged:
        with running(Proxy(Upstreams({}))) as pagefold, gateway(tmp_path, judged.url, pagefold) as url:
            assert ask(url)["choices"][0]["message"]["content"]
            shorter = judged.bodies[-1]["messages"]
            sent = len(judged.bodies)
        assert len(shorter) == len(CONVERSATION)
        assert len(json.dumps(shorter)) < len(json.dumps(CONVERSATION)) / 2
        with gateway(tmp_path, judged.url, f"http://127.0.0.1:{free_port()}") as url:
            assert ask(url)["choices"][0]["message"]["content"]
        assert len(judged.bodies) == sent + 1
        assert judged.bodies[-1]["messages"][2]["content"] == ROWS, "a fault fails open"
    assert [record.rule for record in judged.records if record.rule] == []
