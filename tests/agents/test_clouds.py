"""The real Claude Code by way of Vertex and Bedrock behind `pagefold run`: stand-ins that ask for a token, or check
the signature of what arrives."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pagefold.model_proxy.server import running
from pagefold.provider.referee import Referee
from pagefold.provider.script import parse_script
from pagefold.wire.aws_signature import AwsCredentials, SignedRequest, problem_with
from tests.agents.cloud import MODEL, Cloud
from tests.agents.kit import program_of

KEY = AwsCredentials("AKIDEXAMPLE", "secret of the user", "session")
READS = [
    {"text": f"Step {at}.", "tool_call": {"name": "$shell", "input": {"command": f"sed -n {at},{at + 60}p code.py"}}}
    for at in range(1, 37, 9)
]


def token_problem(token: str) -> Callable[[SignedRequest], str]:
    def problem(request: SignedRequest) -> str:
        said = dict(request.headers).get("authorization", "")
        return "" if said == token else f"authorization {said[:20]!r}"

    return problem


def signature_problem(request: SignedRequest) -> str:
    return problem_with(request, KEY, datetime.now(tz=UTC))


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
    served = Cloud(signature_problem, Referee())
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
    by_token = token_problem("Bearer bedrock-key" if cloud == "bedrock" else "")
    served = Cloud(signature_problem if "signed" in cloud else by_token, Referee(answers=script))
    with running(served) as url:
        done = asked(claude, {name: value.format(url=url) for name, value in CLOUDS[cloud].items()}, work, home)
    assert "All is read." in done.stdout, done.stdout + done.stderr + str(served.refused) + str(served.asked)
    assert served.refused == []
    assert served.answers >= len(READS) + 1
    totals = json.loads(done.stdout.splitlines()[-1])
    assert totals["work"]["changed"] >= 1, totals
    used = [model["usage"] for model in totals["by_model"].values()]
    assert sum(usage["output"] for usage in used) > 0, totals
