"""Codex with a ChatGPT login behind `pagefold run`: its compressed requests are derived, and go where accounts go.

The program is the one that `make agents` installs; its login is a stand-in, and so is the upstream, on loopback.
"""

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pagefold import zstd
from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.model_proxy.server import running
from tests.agents.kit import program_of

TURNS, LAST = 4, "All of it was read."
ACCOUNT = "acc-1"


class ChatGpt:
    """Answers Codex at the address of accounts: calls a command some times, then says the last word."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.requests: list[dict[str, Any]] = []

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((scope["method"], scope["path"], headers))
        if (scope["method"], scope["path"]) != ("POST", "/backend-api/codex/responses"):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        self.requests.append(json.loads(zstd.decompress(body)))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for event in self._events(len(self.requests) - 1):
            await send(
                {"type": "http.response.body", "body": f"data: {json.dumps(event)}\n\n".encode(), "more_body": True}
            )
        await send({"type": "http.response.body"})

    def _events(self, at: int) -> list[dict[str, Any]]:
        text = {"type": "output_text", "text": LAST, "annotations": []}
        item: dict[str, Any] = {"id": f"m{at}", "type": "message", "role": "assistant", "content": [text]}
        if at < TURNS:
            arguments = json.dumps({"cmd": "cat code.py"})
            item = {"id": f"f{at}", "type": "function_call", "call_id": f"c{at}", "name": "exec_command"}
            item |= {"arguments": arguments}
        tokens = {"input_tokens": 900, "output_tokens": 9, "total_tokens": 909}
        whole = {"id": f"r{at}", "object": "response", "status": "completed", "output": [item], "usage": tokens}
        return [
            {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}},
            {"type": "response.output_item.done", "output_index": 0, "item": {**item, "status": "completed"}},
            {"type": "response.completed", "response": whole},
        ]


def login() -> dict[str, Any]:
    """What Codex keeps of a ChatGPT login, with tokens that nobody signed."""

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    about = {"chatgpt_plan_type": "plus", "chatgpt_account_id": ACCOUNT, "chatgpt_user_id": "u"}
    claims = {"email": "a@example.com", "exp": int(time.time()) + 864_000, "https://api.openai.com/auth": about}
    token = f"{part({'alg': 'none'})}.{part(claims)}.{part('signature')}"
    tokens = {"id_token": token, "access_token": token, "refresh_token": "none", "account_id": ACCOUNT}
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens, "last_refresh": now}


def test_codex_with_a_chatgpt_login_works_behind_run_and_its_requests_are_derived(tmp_path: Path) -> None:
    codex, home, work = program_of("codex"), tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    lines = (f"def function_{n}(page, level_{n % 7}):  # line {n}, by reader_{n * 7919 % 1000}" for n in range(120))
    (work / "code.py").write_text("\n".join(lines))
    (home / "auth.json").write_text(json.dumps(login()))
    with running(chatgpt := ChatGpt()) as url:
        settings = f'chatgpt_base_url = "{url}/backend-api/"\nmodel = "gpt-5.2"\ncheck_for_update_on_startup = false\n'
        (home / "config.toml").write_text(f"{settings}[analytics]\nenabled = false\n")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pagefold", "run", "--json", "--store", str(tmp_path / "store.sqlite3"), "--"),
                *(str(codex), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Read"),
            ],
            cwd=work,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "CODEX_HOME": str(home),
                "PAGEFOLD_UPSTREAMS_CHATGPT_URL": f"{url}/backend-api/codex",
                # Nothing of the account may go to the API's address.
                "PAGEFOLD_SERVE_OPENAI_URL": f"{url}/the-api",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=110,
            check=False,
        )

    assert done.returncode == 0, done.stderr.decode()[-3000:]
    said, totals = done.stdout.decode().rstrip().rsplit("\n", 1)
    counted = json.loads(totals)
    assert LAST in said
    assert len(chatgpt.requests) == TURNS + 1
    assert not [path for _, path, _ in chatgpt.asked if path.startswith("/the-api")]
    sent = [headers for method, path, headers in chatgpt.asked if path.endswith("/codex/responses")]
    assert {(headers["content-encoding"], headers["chatgpt-account-id"]) for headers in sent} == {("zstd", ACCOUNT)}
    assert ("GET", "/backend-api/codex/models") in {(method, path) for method, path, _ in chatgpt.asked}
    assert (counted["faults"], counted["unread"]) == (0, {})
    outputs = [
        json.dumps(item["output"])
        for item in chatgpt.requests[-1]["input"]
        if item.get("type") == "function_call_output"
    ]
    assert len(outputs) == TURNS
    assert "function_119" in outputs[0]
    assert len(outputs[-1]) < len(outputs[0]) / 4  # the same file again is a reference
    assert counted["work"]["saved"] > 0
