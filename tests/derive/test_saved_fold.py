"""The state after a fold comes back from its text: all requests that follow are the same, with their reasons."""

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from pagefold.derive.fold import Folded
from pagefold.derive.policies.economic import Economic, State
from pagefold.derive.policy import Derived, Notes
from pagefold.derive.runner import Run, as_it_is, begin
from pagefold.log import Log
from pagefold.pages.page import id_of
from pagefold.wire import json_text
from pagefold.wire.apis import MESSAGES
from pagefold.wire.message import Message, Role
from tests.derive import golden

SESSIONS = golden.sessions()


def file(seed: int, lines: int) -> str:
    numbers = (at * seed * 7919 % 10_007 for at in range(lines))
    return "\n".join(f"{at}\tdef part_{seed}_{at}(row): return row[{number}]" for at, number in enumerate(numbers, 1))


def in_their_places(messages: Sequence[Message]) -> list[Message]:
    return [replace(message, place=place) for place, message in enumerate(messages)]


def request_of(run: Run[Message]) -> tuple[Any, ...]:
    """All that a request is and says."""
    assert run.asked is not None
    derived: Derived = run.asked.derived
    told = (derived.keep, derived.reason, derived.short, derived.bare, derived.boundary, derived.pins.block)
    pages = [page.id for page in derived.pages]
    return [message.raw for message in run.asked.request], told, pages, list(derived.decisions)


def sent_by(state: State) -> list[str]:
    """What goes upstream right after a fold, which what follows extends."""
    entries = state.log.since(state.folded)
    return [message.raw for message in (*state.front, *(entry.shown for entry in entries))]


def folds_read_back(policy: Economic, messages: Sequence[Message], cold: int = 0, head: int = 0) -> list[Folded]:
    """Goes on from each fold as it was, and as it comes back from its text. Returns them, at least two."""
    run, again, folds = begin(policy, head), None, list[Folded]()
    for place, message in enumerate(messages):
        if run.asked is None and run.is_answered_by(message):
            notes = Notes(cold=bool(cold) and place % cold == cold - 1)
            run = run.ask(notes, as_it_is)
            if again is not None:
                again = again.ask(notes, as_it_is)
                assert request_of(again) == request_of(run)
            assert run.asked is not None
            if run.asked.derived.reason:
                text = policy.saved(run.asked.state)
                assert text is not None
                state = policy.resumed(text, messages[:place], head)
                assert state is not None
                assert policy.saved(state) == text
                assert sent_by(state) == sent_by(run.asked.state)
                again = replace(run, asked=replace(run.asked, state=state))
                folds.append(run.asked.state.last)
        run = run.step(message)
        again = again and again.step(message)
    assert len(folds) > 1
    return folds


@pytest.mark.parametrize(("session", "window"), [("files", 12_000), ("files", 6_000), ("mixed", 4_000)])
def test_what_follows_a_fold_that_was_read_back_is_the_same(session: str, window: int) -> None:
    folds_read_back(Economic(window=window), in_their_places(SESSIONS[session]))


def test_folds_of_a_cold_cache_and_below_a_head_come_back_too() -> None:
    assert len(folds_read_back(Economic(window=9_000), in_their_places(SESSIONS["files"]), cold=9, head=500)) > 3


def test_pinned_instructions_are_where_they_were() -> None:
    policy = Economic(window=9_000, instructions=(("AGENTS.md", "# Care\n\nNever touch the ledger of last year.\n"),))
    folds_read_back(policy, in_their_places(SESSIONS["files"]))


def turns(many: int, lines: int = 60, *, thinking: bool = False, lost: int = -1) -> list[Message]:
    """A session of Messages in which the model thinks before each call, and one call is never answered."""
    values: list[dict[str, Any]] = [{"role": "user", "content": "Mend the mill."}]
    for number in range(many):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"path": f"{number % 7}.py"}}
        thought = {"type": "thinking", "thinking": f"Part {number}?", "signature": f"s{number}"}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": file(number + 2, lines)}
        values.append({"role": "assistant", "content": [thought, call] if thinking else [call]})
        values.append({"role": "user", "content": [result] if number != lost else "Never mind, go on."})
    return [MESSAGES.parse_message(json.dumps(value)) for value in values]


def test_reasoning_that_a_fold_left_out_stays_out() -> None:
    folds = folds_read_back(Economic(window=12_000), in_their_places(turns(40, thinking=True)))
    assert any(fold.bare_from is not None for fold in folds)


def test_results_that_a_fold_trimmed_are_trimmed_alike() -> None:
    folds = folds_read_back(Economic(window=7_000), in_their_places(turns(14, lines=400)))
    assert any(fold.trimmed_to is not None for fold in folds)


def test_a_history_that_had_to_be_repaired_is_repaired_alike() -> None:
    folds_read_back(Economic(window=12_000), in_their_places(turns(40, lost=5)))


@pytest.fixture(scope="module")
def folded() -> tuple[State, list[Message]]:
    """The state after the first fold of a session, and the messages up to there."""
    messages = in_their_places(SESSIONS["files"])
    run = begin(Economic(window=12_000))
    for place, message in enumerate(messages):
        if run.asked is None and message.role is Role.ASSISTANT:
            run = run.ask(Notes(), as_it_is)
            assert run.asked is not None
            if run.asked.derived.reason:
                return run.asked.state, messages[:place]
        run = run.step(message)
    raise AssertionError("it never folded")


@pytest.fixture(scope="module")
def saved(folded: tuple[State, list[Message]]) -> tuple[str, list[Message]]:
    state, messages = folded
    return Economic(window=12_000).saved(state) or "", messages


def test_what_does_not_follow_from_messages_and_texts_is_not_saved(folded: tuple[State, list[Message]]) -> None:
    state, _ = folded
    digest = state.front[-1]
    at, entry = next((at, entry) for at, entry in enumerate(state.log) if entry.labels)
    unnamed = state.log[:]
    unnamed[at] = replace(entry, labels=tuple(block.name or "result" for block in entry.message.blocks)[:1])
    changed = {
        "a page that was recalled": replace(state, recalled=frozenset({id_of(b"a page")})),
        "a message that is no text": replace(state, front=(*state.front[:-1], replace(digest, raw=f" {digest.raw}"))),
        "a message of the client's": replace(state, front=(*state.front[:-1], replace(digest, place=0))),
        "a result that lost its call": replace(state, log=Log(unnamed)),
    }
    assert Economic(window=12_000).saved(state) is not None
    for name, other in changed.items():
        assert Economic(window=12_000).saved(other) is None, name


def test_a_fold_of_other_messages_is_not_read(saved: tuple[str, list[Message]]) -> None:
    text, messages = saved
    policy = Economic(window=12_000)
    assert policy.resumed(text, messages) is not None
    assert policy.resumed(text, messages[:-2]) is None
    assert policy.resumed(text, [*messages, *messages[-2:]]) is None


def test_what_is_no_saved_fold_is_not_read(saved: tuple[str, list[Message]]) -> None:
    text, messages = saved
    known: dict[str, Any] = json_text.parse(text)
    policy = Economic(window=12_000)
    assert policy.resumed(text[: len(text) // 2], messages) is None
    for name in known:
        rest = {key: value for key, value in known.items() if key != name}
        assert policy.resumed(json_text.dumps(rest), messages) is None, name
    wrong = {"cut": 10_000, "stays": [900], "turn": 1, "pins": "x", "recent": [1] * 99, "views": 3}
    for name, value in wrong.items():
        assert policy.resumed(json_text.dumps(known | {name: value}), messages) is None, name


def test_whoever_adds_to_a_state_decides_how_it_is_saved() -> None:
    """What a later request is made of: a new field has to be written down, or to follow from the rest. Then add it."""
    state = "log pairing standings front folded sent tokens head turn pins recalled told last"
    numbers = "rent left looked settled whole spent unfolded"
    assert {field.name for field in fields(State)} == {*state.split(), *numbers.split(), "stood", "reading"}
    written = "front cut log standings tokens short alive record shown stays names above trimmed_to bare_from"
    assert {field.name for field in fields(Folded)} == {*written.split(), "pages", "decisions", "known", "reading"}
