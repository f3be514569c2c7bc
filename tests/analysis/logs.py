"""Recorded sessions for tests of the laboratory: small, made up, and with something to find in them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
