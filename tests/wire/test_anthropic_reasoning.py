"""Thinking in messages of the Messages API: found by its signatures, left out without touching anything else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.wire.anthropic import parse_request
from pagefold.wire.anthropic_reasoning import LEFT_OUT, REASONING
from pagefold.wire.apis import MESSAGES, without_reasoning

THOUGHT = {"type": "thinking", "thinking": "So.", "signature": "sig-1"}
HIDDEN = {"type": "redacted_thinking", "data": "data-2"}
TEXT = {"type": "text", "text": 'the "signature" of it'}
CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"signature": "mine", "data": 1}}


def message(*content: Any, role: str = "assistant") -> Any:
    return MESSAGES.parse_message(json.dumps({"role": role, "content": list(content)}, indent=1))


@given(st.lists(st.sampled_from([THOUGHT, HIDDEN, TEXT, CALL]), max_size=6))
def test_only_thinking_is_left_out(content: list[Any]) -> None:
    whole = message(*content)
    bare = REASONING.without(whole)
    rest = [block for block in content if block not in (THOUGHT, HIDDEN)]

    assert len(REASONING.keys(whole)) == len(content) - len(rest)
    left = rest or ([{"type": "text", "text": LEFT_OUT}] if content else [])
    assert json.loads(bare.raw) == {"role": "assistant", "content": left}
    assert REASONING.keys(bare) == ()
    assert REASONING.without(bare) is bare
    if len(rest) == len(content):
        assert bare is whole
    for block in bare.blocks:  # each text is where its block says it is
        assert not block.path or block.text in json.dumps(left, ensure_ascii=False).replace('\\"', '"')


def test_other_bytes_stay() -> None:
    rest = '{"type":"text",  "text":"\\u0041"}'
    raw = '{ "role" : "assistant", "content" : [' + json.dumps(THOUGHT) + " , " + rest + ' ], "x":1.0}'
    bare = without_reasoning(MESSAGES.parse_message(raw))
    assert bare.raw == '{ "role" : "assistant", "content" : [' + rest + '], "x":1.0}'


@pytest.mark.parametrize("role", ["user", "system"])
def test_what_only_looks_like_thinking_is_none(role: str) -> None:
    quoted = message({"type": "text", "text": json.dumps(THOUGHT)}, role=role)
    assert REASONING.keys(quoted) == ()
    assert without_reasoning(quoted) is quoted


@pytest.mark.parametrize(
    ("model", "thinking", "bound"),
    [
        ("claude-opus-5-5", None, True),
        ("claude-opus-5-5-20260901", {"type": "adaptive"}, True),
        ("us.anthropic.claude-fable-5-1", None, True),
        ("claude-haiku-5.5", None, True),
        ("claude-mythos-5-2", None, True),
        ("my-gateway-alias", None, True),
        ("my-gateway-alias", {"type": "enabled", "budget_tokens": 2000}, False),
        ("claude-opus-5", None, False),
        ("claude-opus-5-20260301", None, False),
        ("claude-fable-5", None, False),
        ("claude-sonnet-4-5", {"type": "enabled", "budget_tokens": 2000}, False),
        ("claude-3-7-sonnet-latest", None, False),
    ],
)
def test_which_models_check(model: str, thinking: Any, bound: bool) -> None:
    body = {"model": model, "messages": [], **({"thinking": thinking} if thinking else {})}
    assert REASONING.is_bound(parse_request(json.dumps(body).encode())) is bound


def _error(said: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": said}}).encode()


@pytest.mark.parametrize(
    ("status", "said", "place"),
    [
        (400, "messages.7.content.0: Invalid `signature` … The block is bound to a different conversation.", 7),
        (400, "The block is bound to a different conversation.", 0),
        (400, "messages.7.content.0: Invalid `signature` in `thinking` block", None),
        (400, "prompt is too long", None),
        (500, "bound to a different conversation", None),
    ],
)
def test_what_a_refusal_says(status: int, said: str, place: int | None) -> None:
    assert REASONING.refused_from(status, _error(said)) == place


def test_a_stream_tells_its_signatures_though_only_its_gist_is_read() -> None:
    stream = MESSAGES.stream(gist=True)
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig-1"}},
        {"type": "content_block_start", "index": 1, "content_block": HIDDEN},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": '"signature_delta"'}},
        {"type": "message_stop"},
    ]
    for event in events:
        stream.feed(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    assert stream.reasoning_keys == ["sig-1", "data-2"]
