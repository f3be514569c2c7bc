"""The simulated agent without a proxy or a provider in between: what a task and its checker are tried with."""

import json
from collections.abc import Mapping
from typing import Any

from pagefold.provider.reply import Answers


class Direct:
    """A `Send` that asks the model itself."""

    def __init__(self, answers: Answers) -> None:
        self._answers, self._calls = answers, 0

    def __call__(self, body: bytes, now: float) -> Mapping[str, Any]:
        answer = self._answers(0, json.loads(body))
        content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
        for call in answer.calls:
            self._calls += 1
            content.append({"type": "tool_use", "id": f"call{self._calls}", "name": call.name, "input": call.arguments})
        return {"role": "assistant", "content": content}
