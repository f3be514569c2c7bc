"""Recorded sessions for tests of the laboratory: small, made up, and with something to find in them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pagefold.tokens import counter
from pagefold.wire.transcripts import Session, parse_line


def call(name: str, call_id: str, **arguments: object) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "function": function}]}


def result(name: str, call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}


def source(number: int, lines: int = 120) -> str:
    """A file as agents show it, with a number before every line."""
    return "\n".join(f"{at:6}→def handler_{number}_{at}(request): return request.value_{at}" for at in range(1, lines))


def talk(name: str, turns: int = 12, lines: int = 120, times: Sequence[float] | None = None) -> dict[str, Any]:
    """An agent that reads files, some of them again."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Where does {name} go wrong?"}]
    for turn in range(turns):
        number = turn % max(1, turns - 3)
        messages.append(call("Read", f"{name}-{turn}", path=f"src/part_{number}.py"))
        messages.append(result("Read", f"{name}-{turn}", source(number, lines)))
    messages.append({"role": "assistant", "content": "handler_0_7 returns request.value_7 unchecked."})
    made: dict[str, Any] = {"id": name, "source": "made-up", "messages": messages}
    return made | ({"times": list(times)} if times else {})


def session(name: str = "s", **given: Any) -> Session:
    return parse_line(json.dumps(talk(name, **given)), name=name)


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


GROWN = counter("o200k").count(source(0)) + 40
"""About how many tokens a call and its result take."""


def claude_code(name: str, answers: Sequence[int], day: str = "2026-11-01") -> list[dict[str, Any]]:
    """A log of these answers. In a fork's log, what it copies has the ids and times that it had."""
    rows: list[dict[str, Any]] = []
    for number in answers:
        time = f"{day}T10:{number:02}:00.000Z"
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": f"src/{number % 4}.py"}}
        usage = {"input_tokens": 3, "output_tokens": 50, "cache_creation_input_tokens": GROWN}
        usage["cache_read_input_tokens"] = 9_000 + GROWN * len(rows) // 2
        answer = {"id": f"msg_{number}", "model": "claude-opus-5", "content": [use], "usage": usage}
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": source(number % 4)}
        rows.append({"type": "assistant", "sessionId": name, "timestamp": time, "message": answer})
        rows.append({"type": "user", "sessionId": name, "timestamp": time, "message": {"content": [result]}})
    return rows


def codex(name: str, answers: Sequence[int]) -> list[dict[str, Any]]:
    """A rollout of these answers. What a fork copies has the ids that it had, and times of its own."""
    rows: list[dict[str, Any]] = [{"type": "session_meta", "payload": {"id": name}}]
    rows.append({"type": "turn_context", "payload": {"model": "gpt-5.6-sol"}})
    for number in answers:
        call = {"type": "function_call", "name": "exec_command", "call_id": f"call_{number}"}
        call["arguments"] = json.dumps({"cmd": f"cat src/{number % 4}.py"})
        output = {"type": "function_call_output", "call_id": f"call_{number}", "output": source(number % 4)}
        before = 9_000 + GROWN * len(rows) // 3
        last = {"input_tokens": before + GROWN, "cached_input_tokens": before}
        used = {"type": "token_count", "info": {"last_token_usage": last | {"output_tokens": 50}}}
        for kind, payload in (("response_item", call), ("event_msg", used), ("response_item", output)):
            rows.append({"type": kind, "timestamp": f"2026-11-01T10:{len(name):02}:00.000Z", "payload": payload})
    return rows
