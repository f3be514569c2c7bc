"""What every policy keeps to: none of the failures of older pipelines, whole pairs, windows, the same bytes twice."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.adapters import recordings
from pagefold.derive.pairing import broken
from pagefold.derive.policies import NAMES, policy_named
from pagefold.derive.policies.clear import Clear
from pagefold.derive.policies.compaction import Compaction
from pagefold.derive.policies.oracle import OracleReplay
from pagefold.derive.policies.reset import Reset
from pagefold.derive.policy import Policy
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import HANDLE
from pagefold.pages.producers import LIBRARY, Scope, Statement
from pagefold.tokens import counter
from pagefold.wire import anthropic
from pagefold.wire.message import Message, Role
from pagefold.wire.transcripts import Session
from tests.derive.loops import TASK, WINDOW, Told, exchange, loop, read, result, run, text, tokens
from tests.shared import FAMILIES, needs_traces

OURS = tuple(name for name in NAMES if name != "legacy")
FOLDING = tuple(name for name in OURS if name not in ("identity", "lossless"))
FITTING = ("economic", "reset", "incremental", "fifo", "oracle_replay", "clairvoyant", "legacy")


def made(name: str, messages: Sequence[Message] = ()) -> Any:
    """The policy, with triggers that a short history reaches."""
    policy: Policy = policy_named(name, window=WINDOW, offline=True)
    match policy:
        case OracleReplay():
            return policy.foreseeing(messages)
        case Clear():
            return Clear(WINDOW, trigger=6_000)
        case Compaction():
            return Compaction(WINDOW, at=8_000, summary=1_000)
    return policy


@pytest.fixture(scope="module")
def long_loop() -> list[Message]:
    return read(loop(45))


@pytest.mark.parametrize("name", FOLDING)
def test_a_single_prompt_with_a_long_tool_loop_is_folded_and_keeps_its_task(
    name: str, long_loop: list[Message]
) -> None:
    told = run(made(name, long_loop), long_loop)

    assert all(TASK in text(request) and "You are careful." in text(request) for request in told.requests)
    # Masking alone leaves a mark for every result for ever, and promises no size.
    assert tokens(told.requests[-1]) <= WINDOW
    assert tokens(long_loop) > 2 * WINDOW
    assert any(derived.reason for derived in told.derived)


@pytest.mark.parametrize("name", FITTING)
def test_no_request_is_over_the_window_where_a_policy_promises_it(name: str, long_loop: list[Message]) -> None:
    told = run(made(name, long_loop), long_loop)

    assert max(map(tokens, told.requests)) <= WINDOW
    assert not any(derived.short for derived in told.derived)


@pytest.mark.parametrize("name", FITTING)
def test_one_result_larger_than_the_window_is_trimmed(name: str) -> None:
    values = loop(3)
    values[-2]["content"] = result(9, lines=2_000)
    messages = read(values)

    told = run(made(name, messages), messages)

    assert max(map(tokens, told.requests)) <= WINDOW
    assert broken(told.requests[-1]) == ""
    assert TASK in text(told.requests[-1])


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("nudge", ["continue", "status?", "go", "OK", "keep going!"])
def test_a_nudge_does_not_drop_the_task_turn(name: str, nudge: str) -> None:
    messages = read(loop(40, (10, {"role": "user", "content": nudge}), (30, {"role": "user", "content": nudge})))

    told = run(made(name, messages), messages)

    assert TASK in text(told.requests[-1])


@pytest.mark.parametrize("name", OURS)
def test_a_later_task_stands_beside_the_first(name: str) -> None:
    later = "Now look at the weekly report instead; it has the same fault in its third column."
    messages = read(loop(44, (6, {"role": "user", "content": later})))

    told = run(made(name, messages), messages)

    assert TASK in text(told.requests[-1])
    assert later in text(told.requests[-1])


SUMMARY = "The sign is flipped in part_7; row_7_3 is the first bad one."


def loop_with_reset() -> list[dict[str, Any]]:
    """The loop with a reset by the agent after the twelfth exchange."""
    values, at = loop(30), 2 + 2 * 12
    function = {"name": "context_reset", "arguments": json.dumps({"summary": SUMMARY})}
    values[at:at] = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "r", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "r", "content": f"[CONTEXT RESET]\n{SUMMARY}"},
    ]
    return values


@pytest.mark.parametrize("name", OURS)
def test_a_reset_by_the_agent_is_not_orphaned(name: str) -> None:
    messages, summary, at = read(loop_with_reset()), SUMMARY, 2 + 2 * 12

    told = run(made(name, messages), messages)

    assert all(broken(request) == "" for request in told.requests)
    after = told.requests[13]
    assert summary in text(after)
    if name in FOLDING:
        assert told.derived[13].reason == "the agent reset its context"
        assert tokens(after) < 0.2 * tokens(messages[:at])
        assert told.derived[14].reason != "the agent reset its context"


@pytest.mark.parametrize("name", FOLDING)
def test_what_a_policy_reckons_is_what_it_sends(name: str) -> None:
    messages = read(loop_with_reset())
    policy, sent = made(name, messages), list[Message]()
    state = policy.begin(500)
    for message in messages:
        if message.role is Role.ASSISTANT:
            state, derived = policy.request(state)
            sent[derived.keep :] = derived.append
            assert state.tokens == 500 + tokens(sent)
        state = policy.step(state, message)


@pytest.mark.parametrize("name", FOLDING)
def test_pins_and_summaries_are_not_the_first_to_go(name: str, long_loop: list[Message]) -> None:
    policy = made(name, long_loop)
    rule = Statement(PageKind.CONSTRAINT, "Never write to the ledger table.", Scope.SESSION, LIBRARY)

    told = run(policy, long_loop, policy.pin(policy.begin(), rule))

    assert all(rule.statement in text(request) for request in told.requests)
    assert tokens(told.requests[-1]) <= WINDOW
    folds = [at for at, derived in enumerate(told.derived) if derived.reason]
    # What stands for the folded part stands in every request from then on.
    assert all(HANDLE.search(text(request)) for request in told.requests[folds[0] :])


def recalled(told: Told, said: str) -> Iterator[str]:
    """What the handles in a text recall, and those in what they recall."""
    seen: set[str] = set()
    todo = HANDLE.findall(said)
    while todo:
        handle = todo.pop()
        if handle not in seen:
            seen.add(handle)
            page = told.pages[handle].text
            yield page
            listing = page.startswith("What was said and done here")
            todo += HANDLE.findall(page if listing else page.partition("\n")[0])


@pytest.mark.parametrize("name", FOLDING)
def test_no_drop_is_silent(name: str, long_loop: list[Message]) -> None:
    told = run(made(name, long_loop), long_loop)

    for at, request in enumerate(told.requests):
        said = text(request)
        handles = list(recalled(told, said))
        shown = {message.place: message for message in request if message.place >= 0}
        for message in long_loop[: 2 + 2 * at]:
            if message.place not in shown:
                assert any(message.raw in page for page in handles), f"{message.place} is gone at request {at}"
            elif "left out" in shown[message.place].text:
                assert message.text in handles


@pytest.mark.parametrize("name", FOLDING)
def test_every_handle_recalls_exact_bytes_that_the_policy_owes(name: str, long_loop: list[Message]) -> None:
    told = run(made(name, long_loop), long_loop)

    found = {handle for request in told.requests for handle in HANDLE.findall(text(request))}
    assert found
    assert found <= {*told.pages}


@pytest.mark.parametrize("name", ["reset", "incremental", "compaction", "economic"])
def test_no_summary_is_empty_or_a_bag_of_words(name: str, long_loop: list[Message]) -> None:
    told = run(made(name, long_loop), long_loop)
    digests = [message for message in told.requests[-1] if "pagefold wrote this message" in message.text[:60]]
    quoted = [line for message in digests for line in message.text.split("\n")[1:]]

    assert digests
    # Lines as they stood, with what they say about a name.
    assert any(re.search(r"row_\d+_\d+ = amount\(\d+\)", line) for line in quoted)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_history_gives_the_same_bytes_and_forks_do_not_matter(name: str, long_loop: list[Message]) -> None:
    policy = made(name, long_loop)
    once = [request[-1].raw for request in run(policy, long_loop).requests]
    state = policy.begin()
    again: list[str] = []
    for at, message in enumerate(long_loop):
        if message.role is Role.ASSISTANT:
            state, derived = policy.request(state)
            again.append(derived.append[-1].raw)
        if at % 7 == 0:  # somebody goes another way from here
            fork = policy.step(state, read([{"role": "user", "content": "something else: " + result(at)}])[0])
            policy.request(fork)
        state = policy.step(state, message)

    assert again == once


def mixed(turns: int) -> list[dict[str, Any]]:
    """The same loop as an Anthropic client sends it: results and the user's words in one message."""
    values: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    for number in range(turns):
        call = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {"file_path": f"part_{number}.py"}}
        other = {"type": "tool_use", "id": f"d{number}", "name": "Read", "input": {"file_path": f"more_{number}.py"}}
        values.append({"role": "assistant", "content": [call, other]})
        content: list[dict[str, Any]] = [
            {"type": "tool_result", "tool_use_id": f"c{number}", "content": result(number, 12)},
            {"type": "tool_result", "tool_use_id": f"d{number}", "content": result(number + 500, 12)},
        ]
        if number % 9 == 4:
            content.append({"type": "text", "text": f"Wait: part_{number} is not in use any more, leave it out."})
        else:
            content.append({"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"})
        values.append({"role": "user", "content": content})
    return [*values, {"role": "assistant", "content": "Done."}]


@pytest.mark.parametrize("name", [*FOLDING, "legacy"])
def test_results_and_words_in_one_message_are_never_parted_from_their_calls(name: str) -> None:
    messages = read(mixed(44), anthropic)

    told = run(made(name, messages), messages)

    assert all(broken(request) == "" for request in told.requests)
    assert TASK in text(told.requests[-1])
    assert "part_40 is not in use any more" in text(told.requests[-1])


@st.composite
def any_history(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Exchanges with results that are missing, repeated, late or before their call, and calls with ids used before."""
    values: list[dict[str, Any]] = [{"role": "user", "content": TASK}]
    for number in range(draw(st.integers(4, 14))):
        call, answer = exchange(draw(st.integers(0, number)), result(number, 60))
        shape = draw(st.sampled_from(("sound", "sound", "sound", "lost", "twice", "swapped", "late", "orphan")))
        values += {
            "sound": [call, answer],
            "lost": [call],
            "twice": [call, answer, answer],
            "swapped": [answer, call],
            "late": [call, {"role": "user", "content": "hurry"}, answer],
            "orphan": [{**answer, "tool_call_id": "nobody"}],
        }[shape]
        if draw(st.booleans()):
            values.append({"role": "user", "content": draw(st.sampled_from(("continue", "And the other file?")))})
    return [*values, {"role": "assistant", "content": "Done."}]


@pytest.mark.parametrize("name", [*FOLDING, "legacy"])
@given(any_history())
@settings(max_examples=8, deadline=None)
def test_pairs_are_sound_whatever_history_arrives(name: str, values: list[dict[str, Any]]) -> None:
    messages = read(values)

    told = run(made(name, messages), messages)

    assert [broken(request) for request in told.requests] == [""] * len(told.requests)


def recorded() -> Iterator[Session]:
    for path in FAMILIES:
        if path.name.startswith(("coding-bash", "mcp", "service")):
            found = (
                session
                for batch in recordings.batches(path, given=None, max_bytes=1 << 28)
                for session in recordings.sessions(batch, max_bytes=1 << 28)
                if isinstance(session, Session) and 20 < len(session.messages) < 60
            )
            yield next(found)


@needs_traces
@pytest.mark.parametrize("name", [*FOLDING, "legacy"])
def test_pairs_are_sound_on_recordings_and_windows_hold(name: str) -> None:
    for session in recorded():
        told = run(made(name, session.messages), session.messages)

        assert all(broken(request) == "" for request in told.requests)
        if name in FITTING:
            assert max(map(tokens, told.requests)) <= WINDOW, session.id


@pytest.mark.parametrize("name", FOLDING)
def test_a_window_too_small_for_what_has_to_stay_is_reported(name: str) -> None:
    if name not in FITTING:
        pytest.skip("it promises nothing about the window")
    rules = " ".join(f"Column {number} has to be checked against sheet {number * 7}." for number in range(1_500))
    asked = [{"role": "system", "content": rules}, {"role": "user", "content": "Check the sheets."}]
    messages = read([*asked, *exchange(0), {"role": "assistant", "content": "Done."}])

    told = run(made(name, messages), messages)

    assert "tokens more than the window holds" in told.derived[-1].short
    assert rules in text(told.requests[-1])


def test_a_first_ask_that_fills_the_window_is_told_by_its_beginning_and_end() -> None:
    sentences = [f"Column {number} has to be checked against sheet {number * 7}." for number in range(1_500)]
    ask = {"role": "user", "content": "\n".join(sentences)}
    messages = read([ask, *exchange(0), *exchange(1), {"role": "assistant", "content": "Done."}])

    told = run(made("economic", messages), messages)

    assert not told.derived[-1].short
    assert sentences[0] in text(told.requests[-1])
    assert sentences[-1] in text(told.requests[-1])
    assert counter("o200k").count(text(told.requests[-1])) < WINDOW


def test_reset_keeps_the_tail_from_the_latest_task_on() -> None:
    later = "Now look at the weekly report instead; it has the same fault in its third column."
    messages = read(loop(24, (15, {"role": "user", "content": later})))
    policy = Reset(200_000, threshold_tokens=9_000)

    told = run(policy, messages)

    first = next(at for at, derived in enumerate(told.derived) if derived.reason)
    assert told.derived[first].reason == "above the threshold"
    last = [message.place for message in told.requests[-1]]
    assert last[-1] == len(messages) - 2


def test_a_repair_is_told_with_the_request_it_belongs_to() -> None:
    values: list[dict[str, Any]] = [
        {"role": "user", "content": TASK},
        exchange(0)[0],
        {"role": "user", "content": "stop"},
    ]
    messages = read([*values, {"role": "assistant", "content": "Done."}])

    for name in (*FOLDING, "legacy"):
        told = run(made(name, messages), messages)
        assert "no result came for c0" in [decision.reason for decision in told.derived[-1].decisions], name
