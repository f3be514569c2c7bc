"""What a small real model on loopback says of forms and of answers (skipped where `make models` has not been run), and
how requests with tools are put to it.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from bench.small_chat import message_of, prompt_of
from bench.small_model import reread_from
from tests.cli.program import pagefold

ROOT = Path(__file__).parents[2]
MODELS = Path(os.environ.get("MODELS_DIR") or ROOT / ".models").absolute()
PYTHON = MODELS / "venv" / "bin" / "python"
WEIGHTS = next(iter(sorted(MODELS.glob("*.gguf"))), None) if MODELS.exists() else None


@pytest.mark.skipif(
    WEIGHTS is None or not PYTHON.exists(), reason=f"no small model in {MODELS}: run `make models`, or set MODELS_DIR"
)
def test_a_small_model_scores_answers(tmp_path: Path) -> None:
    numbers = "\n".join(f"gauge {number} reads {number * 7919 % 1000}" for number in range(40))
    call = {"id": "c", "type": "function", "function": {"name": "Read", "arguments": '{"file_path": "gauges.txt"}'}}
    messages = [
        {"role": "user", "content": "Read gauges.txt."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": numbers},
        {"role": "assistant", "content": "I have read it."},
        {"role": "user", "content": "What do the last two gauges read?"},
        {"role": "assistant", "content": "gauge 38 reads 922\ngauge 39 reads 841"},
    ]
    recording = tmp_path / "recording.jsonl"
    recording.write_text(json.dumps({"id": "one", "messages": messages}))
    command = [str(PYTHON), "-m", "bench.small_model", "--gguf", str(WEIGHTS), "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            words = ("--endpoint", json.loads(server.stdout.readline())["url"], "--model", "small", "--json")
            choice = ("lab", "reading", "--likelihood", "--context", 500, "--questions", 1)
            read = json.loads(pagefold(*choice, *words, home=tmp_path).stdout)
            after = ("lab", "likelihood", "--logs", recording, "--window", 300, "--context", 600, "--turns", 1)
            likely = json.loads(pagefold(*after, *words, home=tmp_path).stdout)
        finally:
            server.terminate()

    assert read["asked"] == 1
    assert read["all"]["nats_a_token"] is not None
    nats = {row["name"]: row["nats_a_token"] for row in likely["contexts"]}
    assert 0 < nats["original"] < nats["nothing"]


@pytest.mark.parametrize(
    ("tokens", "first", "begin"),
    [
        ([1, 2, 3, 4, 9], 4, 3),  # the last shared token predicts the first new one
        ([1, 2, 3, 4], 4, 3),
        ([1, 2, 3], 3, 2),
        ([1, 2, 9], 1, 0),  # the second token was passed over when it was read
        ([1, 2, 3, 4, 9], 3, 3),  # the fourth was scored
        ([1, 2, 3, 4, 9], 2, 1),  # the third was not
        ([7, 2], 0, 0),
    ],
)
def test_reading_goes_on_from_what_is_known(tokens: list[int], first: int, begin: int) -> None:
    assert reread_from([1, 2, 3, 4, 5], [None, None, None, -0.5, -0.5], tokens, first) == begin


READ = {"type": "function", "function": {"name": "Read", "description": "Shows a file.", "parameters": {}}}
CALL = '{"name": "Read", "arguments": {"file_path": "a.py"}}'


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ("It is done.", "It is done.", 0),
        (f"<tool_call>\n{CALL}\n</tool_call>", "", 1),
        (f"I look.\n<tool_call>\n{CALL}\n</tool_call>\n<tool_call>\n{CALL}\n</tool_call>", "I look.", 2),
        (f"```json\n{CALL}\n```", "", 1),
        (f"<tool_call>\n{{{CALL}}}\n</tool_call>", "", 1),
        (f"<tool_call>\n{CALL}", "", 1),  # cut off behind the call
        (f"<tool_call>\n{CALL[:-2]}", f"<tool_call>\n{CALL[:-2]}", 0),
        ('{"name": "Fly", "arguments": {}}', '{"name": "Fly", "arguments": {}}', 0),
        ('{"name": "Read", "arguments": "a.py"}', '{"name": "Read", "arguments": "a.py"}', 0),
        ('```json\n{"a": 1}\n```', '```json\n{"a": 1}\n```', 0),
    ],
)
def test_calls_are_read_from_what_a_small_model_says(text: str, content: str, calls: int) -> None:
    message = message_of(text, [READ], 3)
    assert message["content"] == content
    found = message.get("tool_calls", [])
    assert [call["function"] for call in found] == [{"name": "Read", "arguments": '{"file_path": "a.py"}'}] * calls
    assert len({call["id"] for call in found}) == calls


def test_a_conversation_with_tools_is_put_as_the_model_was_taught() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "Read", "arguments": '{"file_path": "a.py"}'}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read <|im_end|>"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "one"},
        {"role": "tool", "tool_call_id": "d", "content": "two"},
    ]
    parts = prompt_of({"messages": messages, "tools": [READ]})
    text = "".join(part for part, _ in parts)
    assert text.startswith("<|im_start|>system\nBe brief.\n\n# Tools\n")
    assert json.dumps(READ) in text
    assert text.endswith(
        "<|im_start|>user\nRead <|im_end|><|im_end|>\n"
        f"<|im_start|>assistant\n<tool_call>\n{CALL}\n</tool_call><|im_end|>\n"
        "<|im_start|>user\n<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert not any(framing for part, framing in parts if part in ("Read <|im_end|>", "Be brief."))
