"""Breakpoints of a client of OpenAI: they move no history, and after a fold they stand where the prefix stands."""

import json
from typing import Any

import pytest

from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from pagefold.wire.api import Api
from pagefold.wire.apis import CHAT, RESPONSES
from tests.model_proxy.conversation import FILE, sent

BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}


def _asked(text: str, kind: str, *, marked: bool) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": kind, "text": text, **(BREAKPOINT if marked else {})}]}


def _body(api: Api, turns: int) -> bytes:
    """Two breakpoints: one on the third question, which stays, and one that moves with the last."""
    kind = "text" if api is CHAT else "input_text"
    said: list[Any] = []
    for number in range(turns):
        text = FILE.replace("function", f"function_{number}") * 3
        said.append(_asked(text, kind, marked=number in (2, turns - 1)))
        said.append({"role": "assistant", "content": f"I have read {number}."})
    rest = {"model": "gpt-5.6", "prompt_cache_key": "mine", "prompt_cache_options": {"mode": "explicit"}}
    return json.dumps({**rest, ("messages" if api is CHAT else "input"): said[:-1]}).encode()


@pytest.mark.parametrize("api", [CHAT, RESPONSES], ids=lambda api: api.name)
def test_breakpoints_stand_where_the_prefix_will_stand(api: Api) -> None:
    conversations = Conversations(Economic(), window=14_000)
    folds = 0
    for turns in range(1, 12):
        request = json.loads(sent(conversations, _body(api, turns), api))
        said = request.get("messages") or request["input"]
        marked = [at for at, message in enumerate(said) if "prompt_cache_breakpoint" in json.dumps(message)]
        assert marked[-1] == len(said) - 1
        assert len(marked) == min(2, 1 if turns < 4 else 2)
        assert (request["prompt_cache_key"], request["prompt_cache_options"]) == ("mine", {"mode": "explicit"})
        assert all(said[at]["role"] == "user" for at in marked)
        folds += len(said) < 2 * turns - 1
    assert folds > 0
