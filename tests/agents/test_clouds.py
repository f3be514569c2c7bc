"""The real Claude Code by way of Vertex and Bedrock behind `pagefold run`: stand-ins that ask for a token, or check
the signature of what arrives."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.model_proxy.server import running
from pagefold.provider.referee import Referee
from pagefold.provider.script import parse_script
from pagefold.wire.aws_signature import AwsCredentials, SignedRequest, problem_with
from tests.agents.kit import program_of
from tests.wire.aws_framing import framed

MODEL = "claude-opus-5-5"
KEY = AwsCredentials("AKIDEXAMPLE", "secret of the user", "session")
READS = [
    {"text": f"Step {at}.", "tool_call": {"name": "$shell", "input": {"command": f"sed -n {at},{at + 60}p code.py"}}}
    for at in range(1, 37, 9)
]


@dataclass
class Cloud:
    """Serves Anthropic's bodies under a cloud's paths, to whoever has the token or signed with the key; each is judged
    by the referee."""

    token: str
    referee: Referee
    key: AwsCredentials | None = None
    asked: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    answers: int = 0

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
        path = unquote(scope["path"])
        self.asked.append(path)
        if problem := self._problem(scope, headers, body):
            self.refused.append(f"{problem} at {path}")
            await _reply(send, 403, "application/json", [b'{"message":"not authorized"}'])
            return
        if scope["method"] != "POST" or "count-tokens" in path or "count_tokens" in path:
            await _reply(send, 200, "application/json", [b'{"input_tokens": 10}'])
            return
        request = json.loads(body)
        version = request.pop("anthropic_version")
        betas = request.pop("anthropic_beta", headers.get("anthropic-beta", "").split(","))
        assert version.startswith(("vertex", "bedrock"))
        streams = path.endswith(("streamRawPredict", "invoke-with-response-stream"))
        request |= {"model": MODEL, "stream": streams}
        told = {"anthropic-beta": ",".join(filter(None, betas))}
        reply = self.referee.answer("/v1/messages", told, json.dumps(request).encode(), 0.0)
        if reply.record.rule:
            self.refused.append(reply.record.reason)
        bedrock = path.startswith("/model/")
        framing: Callable[[bytes], bytes] = framed if streams and bedrock and reply.accepted else bytes
        kind = "application/vnd.amazon.eventstream" if framing is framed else reply.kind
        self.answers += reply.accepted
        await _reply(send, reply.status, kind, [framing(piece) for piece in reply.pieces])

    def _problem(self, scope: Event, headers: dict[str, str], body: bytes) -> str:
        if self.key is None:
            said = headers.get("authorization", "")
            return "" if said == self.token else f"authorization {said[:20]!r}"
        path, query = scope["raw_path"].decode(), scope["query_string"].decode()
        request = SignedRequest(scope["method"], path, query, list(headers.items()), body)
        return problem_with(request, self.key, datetime.now(tz=UTC))


async def _reply(send: Send, status: int, kind: str, pieces: Iterable[bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body"})


CLOUDS = {
    "bedrock": {
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "AWS_REGION": "eu-west-1",
        "AWS_BEARER_TOKEN_BEDROCK": "bedrock-key",
        "ANTHROPIC_MODEL": f"eu.anthropic.{MODEL}-v1:0",
        "ANTHROPIC_BEDROCK_BASE_URL": "{url}",
    },
    "bedrock, signed": {
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": KEY.key_id,
        "AWS_SECRET_ACCESS_KEY": KEY.secret,
        "AWS_SESSION_TOKEN": KEY.token,
        "ANTHROPIC_MODEL": f"eu.anthropic.{MODEL}-v1:0",
        "ANTHROPIC_BEDROCK_BASE_URL": "{url}",
        "PAGEFOLD_UPSTREAMS_BEDROCK_SIGN": "true",
    },
    "vertex": {
        "CLAUDE_CODE_USE_VERTEX": "1",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
        "CLOUD_ML_REGION": "global",
        "ANTHROPIC_VERTEX_PROJECT_ID": "p",
        "ANTHROPIC_MODEL": MODEL,
        "ANTHROPIC_VERTEX_BASE_URL": "{url}/v1",
    },
}


def asked(claude: Path, more: dict[str, str], work: Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Claude Code behind `pagefold run`, told where to ask."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "DISABLE_TELEMETRY": "1"}
    environment |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}
    pagefold = [sys.executable, "-m", "pagefold", "run", "--json", "--store", str(home / "s.sqlite3"), "--"]
    command = [*pagefold, str(claude), "-p", "Read code.py in parts", "--dangerously-skip-permissions"]
    return subprocess.run(
        command, cwd=work, env=environment | more, capture_output=True, text=True, check=False, timeout=150
    )


def test_a_signed_request_that_may_not_be_signed_again_is_explained_to_the_user(tmp_path: Path) -> None:
    claude = program_of("claude-code")
    more = {name: value for name, value in CLOUDS["bedrock, signed"].items() if not name.startswith("PAGEFOLD")}
    served = Cloud("", Referee(), KEY)
    with running(served) as url:
        done = asked(claude, {name: value.format(url=url) for name, value in more.items()}, tmp_path, tmp_path)
    assert served.asked == []
    assert "AWS_BEARER_TOKEN_BEDROCK" in done.stdout + done.stderr
    assert "sign = true" in done.stdout + done.stderr


@pytest.mark.parametrize("cloud", CLOUDS)
def test_claude_code_reads_files_by_way_of_a_cloud(cloud: str, tmp_path: Path) -> None:
    claude = program_of("claude-code")
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    home.mkdir()
    lines = "\n".join(f"def function_{n}(page):  # line {n}, seen by reader_{n * 7919 % 1000}" for n in range(400))
    (work / "code.py").write_text(lines)
    script = parse_script(json.dumps([*READS, {"text": "All is read."}]), "script")
    key = KEY if "AWS_SESSION_TOKEN" in CLOUDS[cloud] else None
    served = Cloud("Bearer bedrock-key" if cloud == "bedrock" else "", Referee(answers=script), key)
    with running(served) as url:
        done = asked(claude, {name: value.format(url=url) for name, value in CLOUDS[cloud].items()}, work, home)
    assert "All is read." in done.stdout, done.stdout + done.stderr + str(served.refused) + str(served.asked)
    assert served.refused == []
    assert served.answers >= len(READS) + 1
    totals = json.loads(done.stdout.splitlines()[-1])
    assert totals["work"]["changed"] >= 1, totals
    used = [model["usage"] for model in totals["by_model"].values()]
    assert sum(usage["output"] for usage in used) > 0, totals
