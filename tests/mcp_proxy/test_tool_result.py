"""A result that is parsed once: another id, other texts, and no other byte."""

import json

import pytest

from pagefold.mcp_proxy.replies import with_id
from pagefold.mcp_proxy.tool_result import ToolResult

FRONT = b' {"jsonrpc":"2.0","id":7, "result":{"content":[{"type":"text","text":"x"}],"n":1.10}}\r'
BEHIND = b'{"result":{"content":[{"text":"x","type":"text"}],"n":1.10},"id": 7 ,"jsonrpc":"2.0"}'


@pytest.mark.parametrize("data", [FRONT, BEHIND])
def test_it_answers_another_call_and_only_the_id_changes(data: bytes) -> None:
    result = ToolResult.parse(data).answering('"c-1"')
    assert (result.data, result.reply.id) == (data.replace(b"7", b'"c-1"'), '"c-1"')
    (spot,) = result.texts()
    changed = result.with_changes([(spot.start, spot.end, '"yz"')])
    assert changed == data.replace(b"7", b'"c-1"').replace(b'"x"', b'"yz"')


def test_what_is_for_the_user_or_no_text_is_not_for_the_model() -> None:
    blocks = [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b", "annotations": {"audience": ["user"]}},
        {"type": "image", "data": "aGk="},
        {"type": "text", "text": 3},
        "c",
    ]
    result = ToolResult.parse(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": blocks}}).encode())
    assert [spot.value for spot in result.texts()] == ["a"]
    assert result.text == "a\nb\n\n3\n"


@pytest.mark.parametrize(
    "data",
    [FRONT, BEHIND, b'{"id":1,"jsonrpc":"2.0","result":{},"id":7}', b'{"jsonrpc":"2.0","id":7,"error":{"code":1}}'],
)
def test_a_message_gets_another_id_wherever_the_id_stands(data: bytes) -> None:
    assert with_id(data, "7", '"h-1"') == data.replace(b"7", b'"h-1"')
