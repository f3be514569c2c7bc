"""What Claude Code gives its hook, an agent that asks a model for it, and the command that takes it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LOG = "\n".join(f"2026-11-16 12:00:{n % 60:02} INFO server.worker request handled in {n} ms" for n in range(200))


def pagefold(*arguments: str, home: Path, told: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    command = [sys.executable, "-m", "pagefold", *arguments]
    return subprocess.run(command, input=told, capture_output=True, env=environment, check=False)


def told(stdout: Any) -> bytes:
    answer = {"stdout": stdout, "stderr": ""}
    event = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": answer}
    return json.dumps(event).encode()


AGENT = f"""
import json, os, urllib.request
call = {{"type": "tool_use", "id": "a", "name": "Bash", "input": {{}}}}
result = {{"type": "tool_result", "tool_use_id": "a", "content": {LOG!r}}}
said = [("user", "look"), ("assistant", [call]), ("user", [result])]
messages = [{{"role": who, "content": what}} for who, what in said]
for history in (messages[:1], messages):
    body = {{"model": "m", "max_tokens": 9, "messages": history}}
    request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode())
    urllib.request.urlopen(request).read()
"""
