"""An agent starts whatever is wrong around pagefold, and the user reads why in a sentence."""

import ast
import os
import socket
import subprocess
import sys
from pathlib import Path

from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams

SAYS = "import os; print('agent', os.environ['ANTHROPIC_BASE_URL'])"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pagefold", "run", *arguments, "--", sys.executable, "-c", SAYS]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=60
    )


def test_without_a_home_that_can_be_written_the_agent_starts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("no folder")
    ended = run(HOME=str(home), XDG_DATA_HOME=str(home))
    assert (ended.returncode, ended.stdout.startswith("agent http://127.0.0.1:")) == (0, True)
    assert ended.stderr.count("going on without the store") == 1
    assert "MCP proxies cannot tell" not in ended.stderr


def test_a_port_of_another_pagefold_is_joined(tmp_path: Path) -> None:
    with running(Proxy(Upstreams({}), Conversations())) as url:
        ended = run("--port", url.rpartition(":")[2], "--store", str(tmp_path / "s.sqlite3"))
    assert (ended.returncode, ended.stdout) == (0, f"agent {url}\n")
    assert f"another pagefold serves on {url}" in ended.stderr


def test_a_port_of_something_else_is_left_to_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ended = run("--port", port, "--store", str(tmp_path / "s.sqlite3"))
    assert ended.returncode == 0
    assert ended.stdout.startswith("agent http://127.0.0.1:")
    assert not ended.stdout.endswith(f":{port}\n")
    assert f"port {port} is taken by something else" in ended.stderr


UNUSED = (
    "asyncio",
    "ssl",
    "sqlite3",
    "pagefold.zstd",
    "aiohttp",
    "pagefold.adapters.stores",
    "pagefold.derive.policies.economic",
    "pagefold.encode.choose",
    "pagefold.encode.recall_reply",
    "pagefold.settings",
    "tomllib",
)
AT_MOST = 65
"""How many modules of its own the library may import for its first name; each costs a start a millisecond or two."""


def test_importing_the_library_imports_no_database_no_network_and_no_policy_that_nobody_asked_for() -> None:
    code = f"import sys, pagefold; pagefold.Context; print([name for name in {UNUSED} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "[]\n"


def test_the_library_imports_few_modules_before_it_is_used_and_no_settings_when_it_is() -> None:
    imported = "sorted(name for name in sys.modules if name.startswith('pagefold'))"
    code = f"import sys, pagefold; pagefold.Context; print({imported}); pagefold.Context(); print({imported})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    named, made = map(ast.literal_eval, ended.stdout.splitlines())
    assert len(named) <= AT_MOST, named
    assert not [name for name in made if name.startswith(("pagefold.settings", "pagefold.config", "pagefold.cli"))]
