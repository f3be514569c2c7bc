"""lossless: results are encoded on arrival, nothing that was sent moves, and no history learns from another."""

import json
import random
from collections.abc import Sequence
from typing import Any

from pagefold.adapters import recordings
from pagefold.derive.entry import label_of
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.lossless import Lossless, State
from pagefold.encode import decode
from pagefold.wire.message import Block, BlockKind, Message
from pagefold.wire.transcripts import Session, parse_line

FILE = "\n".join(f"{number}\tdef function_{number}(argument): return argument" for number in range(1, 40))


def session() -> Session:
    (batch,) = recordings.batches(recordings.example(), given=None, max_bytes=1 << 26)
    (found,) = (item for item in recordings.sessions(batch, max_bytes=1 << 26) if isinstance(item, Session))
    return found


def talk(*results: str, path: str = "/srv/app/file{}.py") -> tuple[Message, ...]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number, text in enumerate(results):
        function = {"name": "Read", "arguments": json.dumps({"file_path": path.format(number)})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "name": "Read", "content": text})
    return parse_line(json.dumps({"messages": messages}), name="x").messages


def sent(messages: Sequence[Message]) -> list[str]:
    policy, state = Lossless(), Lossless().begin()
    for message in messages:
        state = policy.step(state, message)
    return [message.text for message in state.waiting]


def test_it_is_looked_up_by_its_name() -> None:
    assert policy_named("lossless") == Lossless()


def test_every_request_extends_the_last() -> None:
    policy, state, count = Lossless(), Lossless().begin(), 0
    for message in session().messages:
        if message.role == "assistant":
            state, derived = policy.request(state)
            assert derived.keep == count
            count += len(derived.append)
        state = policy.step(state, message)


def test_the_same_history_gives_the_same_bytes() -> None:
    assert sent(session().messages) == sent(session().messages)


def test_only_results_change_and_each_comes_back() -> None:
    policy, state = Lossless(), Lossless().begin()
    for message in session().messages:
        state = policy.step(state, message)
        shown, ledger = state.waiting[-1], state.standings.ledger
        if message.role == "tool":
            assert decode(shown.text, ledger) == message.text or json.loads(decode(shown.text, ledger)) == json.loads(
                message.text
            )
        else:
            assert shown is message


def test_a_file_read_again_is_said_by_reference_and_a_changed_line_is_shown() -> None:
    edited = FILE.replace("function_20(argument)", "function_20(other)")

    *_, another = sent(talk(FILE, edited))
    *_, again = sent(talk(FILE, edited, path="/srv/app/file.py"))

    title, body = again.split("\n", 1)
    assert title == "[R2 lines 1-39, changed since R1: line 20]"
    assert another == f"[R2 lines 1-39]\n{body}"  # another file has not "changed"
    assert body.split("\n")[::4] == ["= lines 1-18 of R1", "= lines 22-39 of R1"]
    assert "20\tdef function_20(other): return argument" in body.split("\n")


def test_forks_at_any_turn_never_see_each_other() -> None:
    messages, dice = session().messages, random.Random(7)
    policy = Lossless()
    states: list[State] = [policy.begin()]
    for message in messages:
        states.append(policy.step(states[-1], message))
    for _ in range(20):
        at = dice.randrange(len(messages))
        fork = states[at]
        for message in talk(FILE, FILE)[1:]:
            fork = policy.step(fork, message)
        # What happened in the fork is nowhere in the history it left.
        onward = states[at]
        for message in messages[at:]:
            onward = policy.step(onward, message)
        assert [message.text for message in onward.waiting] == [message.text for message in states[-1].waiting]


def test_what_the_assistant_wrote_can_be_referred_to() -> None:
    text = "\n".join(f"a line that somebody wrote into a file, number {number}" for number in range(12))
    function = {"name": "Write", "arguments": json.dumps({"file_path": "notes.md", "content": text})}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "name": "Write", "content": text},
    ]

    *_, shown = sent(parse_line(json.dumps({"messages": messages}), name="x").messages)

    assert shown == "[R1]\n= lines 1-12 of the content you wrote for R1"


def test_a_call_is_known_by_its_tool_and_what_it_was_told() -> None:
    def label(name: str, arguments: str) -> str:
        return label_of(Block(BlockKind.CALL, arguments, name=name))

    assert label("Read", '{"file_path": "/srv/app/main.py"}') == "Read main.py"
    assert label("Bash", '{"command": "ls  -la\\n/srv"}') == "Bash ls -la /srv"
    assert label("list", "{}") == "list"
    assert label("odd", "no json") == "odd"
    assert label("odd", "[1]") == "odd"
