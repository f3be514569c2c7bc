"""Keys that are planted wherever a client, a tool or a model can write them are nowhere in what is told."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from pagefold.adapters.local_files import LocalFiles
from tests.dashboard import traffic
from tests.dashboard.traffic import Agent, behind, settled, shown
from tests.scripted_model import ScriptedCall, ScriptedTurn
from tests.telemetry.trace_files import read

KEYS = {
    place: f"sk-ant-{place}-0123456789abcdef"
    for place in ("header", "agent", "bearer", "system", "prompt", "result", "argument", "tool", "answer", "query")
}
SCRIPT = [
    ScriptedTurn(
        f"Calling. {KEYS['answer']}", calls=[ScriptedCall("mcp__bank__" + KEYS["tool"], {"token": KEYS["argument"]})]
    )
    for _ in range(6)
]


def talk(url: str) -> None:
    headers = {"x-api-key": KEYS["header"], "authorization": f"Bearer {KEYS['bearer']}"}
    agent = Agent(f"{url}", "ada", {**headers, "user-agent": f"claude-cli/2 {KEYS['agent']}"})
    agent.messages = [{"role": "user", "content": f"My key is {KEYS['prompt']}."}]
    for at in range(6):
        tools = [{"name": "mcp__bank__" + KEYS["tool"], "input_schema": {"type": "object"}}]
        body = {
            "model": "claude",
            "max_tokens": 9,
            "system": KEYS["system"],
            "tools": tools,
            "messages": agent.messages,
        }
        path = f"/v1/messages?key={KEYS['query']}"
        request = urllib.request.Request(url + path, json.dumps(body).encode(), agent.headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            said = json.load(answer)
        text = f"secret {KEYS['result']} " * 200  # the same each time: a fault to tell
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": text}
            for block in said["content"]
            if block["type"] == "tool_use"
        ]
        agent.messages += [{"role": "assistant", "content": said["content"]}, {"role": "user", "content": results}]
        if at == 3:
            wrong = {**body, "model": KEYS["system"], "messages": KEYS["prompt"]}
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(
                    urllib.request.Request(url + path, json.dumps(wrong).encode(), agent.headers), timeout=20
                )


@pytest.mark.parametrize("content", [False, True])
def test_no_planted_key_is_in_the_trace_the_metrics_or_the_view(
    content: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traffic, "script", lambda turns: SCRIPT)
    with behind(tmp_path, trace=True, content=content) as one:
        talk(one.url)
        settled(one, 6)
        told = [shown(one, path)[1] for path in ("/pagefold/", "/pagefold/live.json", "/pagefold/metrics")]
        session = json.loads(told[1])["sessions"][0]["name"]
        told.append(shown(one, f"/pagefold/session/{session}/part")[1])
    path = LocalFiles(Path(one.settings.store.path)).trace
    deadline = time.monotonic() + 20
    while len(read(path)[0]) < 6 and time.monotonic() < deadline:
        time.sleep(0.05)
    told.append(path.read_text(encoding="utf-8"))
    assert "duplicate" in told[-1]
    assert "claude" in told[-1]
    spoken = {place for place, key in KEYS.items() for text in told if key in text}
    # The names of tools are told where they were asked for, and nothing else ever.
    assert spoken == ({"tool"} if content else set())
