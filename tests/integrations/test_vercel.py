"""The Vercel AI SDK behind the proxy by its base URL alone: the example past the window, accepted by the referee."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from tests.integrations.kit import CLAUDE, GPT, LAST, TASK, WINDOW, provider

ROOT = Path(__file__).parents[2]
MODULES = Path(os.environ.get("INTEGRATIONS_DIR") or ROOT / ".integrations").absolute() / "node_modules"
NODE = shutil.which("node")


@pytest.mark.skipif(
    NODE is None or not (MODULES / "ai").exists(), reason=f"no Vercel AI SDK in {MODULES}: run `make integrations`"
)
@pytest.mark.parametrize("stream", ["", "streamed"])
@pytest.mark.parametrize(("name", "model"), [("anthropic", CLAUDE), ("openai", GPT)])
def test_the_example_ends_as_without_it(name: str, model: str, stream: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "vercel_ai_sdk" / "agent.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(MODULES)
    with provider() as judged:
        upstreams = Upstreams({"anthropic": judged.url, "openai": judged.url})
        proxy = Proxy(upstreams, Conversations(Economic(window=WINDOW), window=WINDOW))
        with running(proxy) as url:
            environment = {"PATH": os.environ["PATH"], "PAGEFOLD_URL": url, "HOME": str(tmp_path)}
            command = [str(NODE), "agent.mjs", name, model, TASK, *([stream] if stream else [])]
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
            )
    assert LAST in done.stdout, done.stdout + done.stderr + str([record.reason for record in judged.records])
    judged.ended_well()
