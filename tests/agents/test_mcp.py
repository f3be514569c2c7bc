"""Real agents with an MCP server behind the proxy: it comes up in time, its tools keep their names, and work.

The agents and servers are those that `make agents` installs. Everything stays on loopback and below the test's folder.
"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pagefold.encode import decode
from pagefold.model_proxy.server import running
from tests.agents.kit import CLAUDES, program_of
from tests.mcp_proxy.peer import PAGEFOLD, program
from tests.scripted_model import ScriptedCall, ScriptedModel, ScriptedTurn
from tests.shared import SHARED

SECONDS = 60


def servers(folder: Path) -> dict[str, Any]:
    """A server with files worth encoding, and one that answers with structured content, both behind the proxy."""
    files = folder / "files"
    files.mkdir()
    (files / "rows.json").write_text(
        json.dumps([{"id": n, "name": f"row {n}", "ok": True} for n in range(60)], indent=1)
    )
    python, *arguments = PAGEFOLD
    wanted = {
        "files": [program("mcp-server-filesystem"), str(files)],
        "everything": [program("mcp-server-everything"), "stdio"],
    }
    return {
        name: {"command": python, "args": [*arguments, "--store", str(folder / "store"), "--", *command]}
        for name, command in wanted.items()
    }


def environment(home: Path) -> dict[str, str]:
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }


def run(command: list[str], folder: Path, more: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder / "home") | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-3000:]
    return done.stdout.decode()


@pytest.mark.parametrize("name", CLAUDES)
def test_claude_code_calls_tools_behind_the_proxy(name: str, tmp_path: Path) -> None:
    claude = program_of(name)
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers(tmp_path)}))
    rows = str(tmp_path / "files" / "rows.json")
    model = ScriptedModel(
        [
            # On a busy machine Claude Code begins before its servers are there, and says how to wait for them.
            ScriptedTurn("I wait.", "", [ScriptedCall("WaitForMcpServers", {})]),
            ScriptedTurn("I read.", "", [ScriptedCall("mcp__files__read_text_file", {"path": rows})]),
            ScriptedTurn(
                "Weather.", "", [ScriptedCall("mcp__everything__get-structured-content", {"location": "New York"})]
            ),
            ScriptedTurn("What is known?", "", [ScriptedCall("mcp__files__context_status", {})]),
            ScriptedTurn("Done."),
        ]
    )
    with running(model) as url:
        run(
            [str(claude), "-p", "Read the rows", "--output-format", "stream-json", "--verbose", "--strict-mcp-config",
             "--mcp-config", str(tmp_path / "mcp.json"), "--allowedTools", "mcp__files,mcp__everything"],
            tmp_path,
            {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "sk-scripted",
                "CLAUDE_CONFIG_DIR": str(tmp_path / "home" / "config"),
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "ENABLE_TOOL_SEARCH": "false",
            },
        )  # fmt: skip
    offered = {tool["name"] for tool in json.loads(model.requests[-1])["tools"]}
    assert {"mcp__files__read_text_file", "mcp__everything__echo", "mcp__files__context_recall"} <= offered
    read, weather, status = (_result(body) for body in model.requests[-3:])
    assert json.loads(decode(read)) == json.loads(Path(rows).read_text())
    assert len(read) < Path(rows).stat().st_size / 4
    assert "temperature" in weather
    assert "tokens saved" in status


def _result(body: bytes) -> str:
    """What the newest tool answered."""
    blocks = [
        block
        for message in json.loads(body)["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    content = blocks[-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def codex_conversation(folder: Path, turns: list[Any], *, between: bool = False) -> list[Any]:
    """What Codex sent to the model, with its servers behind the proxy; `between` both, on one store."""
    codex = program_of("codex")
    scripted = SHARED / "agents" / "scripted_model.py"
    if not scripted.exists():
        pytest.skip(f"no scripted model for the Responses API in {scripted.parent}")
    lines = [
        'model = "gpt-5-codex"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false',
        "[analytics]\nenabled = false",
        f'[projects.{json.dumps(str(folder))}]\ntrust_level = "trusted"',
    ]
    for name, server in servers(folder).items():
        words = f"command = {json.dumps(server['command'])}\nargs = {json.dumps(server['args'])}"
        lines.append(f"[mcp_servers.{name}]\n{words}\nrequired = true")
    (folder / "script.json").write_text(json.dumps(turns))
    record = folder / "record.jsonl"
    with ExitStack() as stack:
        model = [sys.executable, str(scripted), str(folder / "script.json"), "--record", str(record)]
        url = started(stack, model).strip()
        if between:
            serve = [*PAGEFOLD[:-1], "serve", "--json", "--port", "0", "--openai-url", url]
            url = json.loads(started(stack, [*serve, "--store", str(folder / "store")]))["url"]
        provider = f'name = "scripted"\nbase_url = "{url}/v1"\nenv_key = "SCRIPTED_KEY"\nwire_api = "responses"'
        config = folder / "codex"
        config.mkdir()
        (config / "config.toml").write_text("\n".join([*lines, f"[model_providers.scripted]\n{provider}", ""]))
        run(
            [str(codex), "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
             "Read the rows"],
            folder,
            {"CODEX_HOME": str(config), "SCRIPTED_KEY": "sk-scripted"},
        )  # fmt: skip
    return [json.loads(line)["body"] for line in record.read_text().splitlines()]


def started(stack: ExitStack, command: list[str]) -> str:
    """The first line of a program that runs until the stack ends."""
    child = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    stack.callback(child.terminate)
    assert child.stdout is not None
    return child.stdout.readline()


def test_codex_calls_tools_behind_the_proxy(tmp_path: Path) -> None:
    rows = tmp_path / "files" / "rows.json"
    read = {"name": "mcp__files__read_text_file", "input": {"path": str(rows)}}
    bodies = codex_conversation(tmp_path, [{"text": "I read.", "tool_call": read}, {"text": "Done."}])
    (output,) = (item["output"] for item in bodies[-1]["input"] if item.get("type") == "function_call_output")
    text = "\n".join(part["text"] for part in output)
    assert "[JSON]" in text
    assert "60 rows" in text
    assert len(text) < rows.stat().st_size / 4


def test_codex_between_both_proxies_is_referred_to_what_stands(tmp_path: Path) -> None:
    tree = {"name": "mcp__files__directory_tree", "input": {"path": str(tmp_path / "files")}}
    read = {"name": "mcp__files__read_text_file", "input": {"path": str(tmp_path / "files" / "rows.json")}}
    calls = [{"text": "Look.", "tool_call": call} for call in (read, tree, read)]
    last = codex_conversation(tmp_path, [*calls, {"text": "Done."}], between=True)[-1]
    outputs = [item["output"] for item in last["input"] if item.get("type") == "function_call_output"]
    first, _, again = ("\n".join(part["text"] for part in output) for output in outputs)
    assert "60 rows" in first
    assert "[as it is]" not in first
    assert "byte-identical" in again or "= R" in again
    assert len(again) < len(first)


def test_claude_code_between_both_proxies_is_referred_only_to_what_stands_in_its_request(tmp_path: Path) -> None:
    """One store, one connection to the server, a sub-agent that shares it, and a compaction."""
    claude = program_of("claude-code")
    scripted = SHARED / "agents" / "scripted_model.py"
    if not scripted.exists():
        pytest.skip(f"no scripted model for sub-agents in {scripted.parent}")
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers(tmp_path)}))
    rows = tmp_path / "files" / "rows.json"
    rows.write_text(json.dumps([{"id": n, "name": f"row {n * 7919 % 1000}", "ok": n % 3 == 0} for n in range(60)]))
    read = {"name": "mcp__files__read_text_file", "input": {"path": str(rows)}}
    task = {"description": "count", "prompt": "COUNTER: count the rows", "subagent_type": "general-purpose"}
    script = {
        "": [
            {"text": "I read.", "tool_call": read},
            {"text": "Another counts.", "tool_call": {"name": "Agent", "input": {**task, "run_in_background": False}}},
            {"text": "I read again.", "tool_call": read},
            {"text": "And again.", "tool_call": read, "usage": {"input": 990000}},
            {"text": "Once more.", "tool_call": read},
            {"text": "Done."},
        ],
        "COUNTER:": [{"tool_call": read}, {"text": "It has 60 rows."}],
        "?Respond with TEXT ONLY": [{"text": "<summary>the rows were read twice</summary>"}],
    }
    (tmp_path / "script.json").write_text(json.dumps(script))
    record = tmp_path / "record.jsonl"
    with subprocess.Popen(
        [sys.executable, str(scripted), str(tmp_path / "script.json"), "--record", str(record), "--advance", "count"],
        stdout=subprocess.PIPE,
        text=True,
    ) as model:
        try:
            assert model.stdout is not None
            said = run(
                [*PAGEFOLD[:-1], "run", "--store", str(tmp_path / "store"), "--", str(claude), "-p", "Read the rows",
                 "--output-format", "stream-json", "--verbose", "--strict-mcp-config",
                 "--mcp-config", str(tmp_path / "mcp.json"), "--allowedTools", "mcp__files,Agent"],
                tmp_path,
                {
                    "PAGEFOLD_SERVE_ANTHROPIC_URL": model.stdout.readline().strip(),
                    "ANTHROPIC_API_KEY": "sk-scripted",
                    "CLAUDE_CONFIG_DIR": str(tmp_path / "home" / "config"),
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "DISABLE_AUTOUPDATER": "1",
                },
            )  # fmt: skip
        finally:
            model.terminate()
    assert '"result":"Done."' in said
    bodies = [json.loads(line)["body"] for line in record.read_text().splitlines()]
    read_in = [found for body in bodies if (found := _rows_in(body))]
    own = read_in[0][0]
    assert json.loads(decode(own)) == json.loads(rows.read_text())
    assert [["reference" if text.startswith("> [ref: ") else "whole" for text in one] for one in read_in] == [
        ["whole"],  # its first look
        ["whole"],  # the sub-agent's
        ["whole"],
        ["whole", "reference"],
        ["whole", "reference"],  # what it is asked to sum up
        ["whole"],  # after the compaction
        ["whole", "reference"],
    ]
    assert {text.partition("\n")[2] for one in read_in for text in one[:1]} == {own.partition("\n")[2]}


def _rows_in(body: dict[str, Any]) -> list[str]:
    """The rows as they stand in a request, or what stands for them."""
    texts = [
        part["text"]
        for message in body.get("messages", ())
        for block in (message["content"] if isinstance(message["content"], list) else ())
        if block["type"] == "tool_result" and isinstance(block["content"], list)
        for part in block["content"]
        if part["type"] == "text"
    ]
    return [text for text in texts if "[JSON]" in text or text.startswith("> [ref: ")]
