"""Pairing: a sound history passes untouched; a broken one comes out sound, in its own wire format, and stays put."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.derive.pairing import UNAVAILABLE, Pairing, add_message, broken, settle_open_calls
from pagefold.wire import anthropic, openai_chat, openai_responses
from pagefold.wire.message import Message, Role

Made = dict[str, Any]


class Chat:
    @staticmethod
    def user(text: str) -> Made:
        return {"role": "user", "content": text}

    @staticmethod
    def call(*ids: str) -> list[Made]:
        calls = [{"id": one, "type": "function", "function": {"name": "Read", "arguments": "{}"}} for one in ids]
        return [{"role": "assistant", "content": None, "tool_calls": calls}]

    @staticmethod
    def result(*ids: str, text: str = "seen", more: str = "") -> list[Made]:
        said = [{"role": "user", "content": more}] if more else []
        return [*({"role": "tool", "tool_call_id": one, "content": text} for one in ids), *said]

    parse: Callable[[Any, str], Message] = staticmethod(openai_chat.parse_message)


class Messages(Chat):
    @staticmethod
    def call(*ids: str) -> list[Made]:
        content = [{"type": "tool_use", "id": one, "name": "Read", "input": {}} for one in ids]
        return [{"role": "assistant", "content": content}]

    @staticmethod
    def result(*ids: str, text: str = "seen", more: str = "") -> list[Made]:
        content: list[Made] = [{"type": "tool_result", "tool_use_id": one, "content": text} for one in ids]
        return [{"role": "user", "content": content + ([{"type": "text", "text": more}] if more else [])}]

    parse = staticmethod(anthropic.parse_message)


class Responses(Chat):
    @staticmethod
    def call(*ids: str) -> list[Made]:
        return [{"type": "function_call", "call_id": one, "name": "Read", "arguments": "{}"} for one in ids]

    @staticmethod
    def result(*ids: str, text: str = "seen", more: str = "") -> list[Made]:
        said = [{"role": "user", "content": more}] if more else []
        return [*({"type": "function_call_output", "call_id": one, "output": text} for one in ids), *said]

    parse = staticmethod(openai_responses.parse_item)


WIRES = (Chat, Messages, Responses)
every_wire = pytest.mark.parametrize("wire", WIRES)


def read(wire: type[Chat], made: Sequence[Made]) -> list[Message]:
    found = []
    for place, value in enumerate(made):
        message = wire.parse(value, json.dumps(value))
        found.append(Message(message.role, message.blocks, message.raw, place))
    return found


def repaired(messages: Sequence[Message], ask: frozenset[int] = frozenset()) -> tuple[list[Message], list[str]]:
    """The history as it is shown when requests are made before the places in `ask`, and at the end."""
    pairing, shown, why = Pairing(), list[Message](), list[str]()
    for place, message in enumerate(messages):
        if place in ask:
            step = settle_open_calls(pairing)
            pairing = step.pairing
            shown += step.messages
            why += [decision.reason for decision in step.decisions]
        step = add_message(pairing, message)
        pairing = step.pairing
        shown += step.messages
        why += [decision.reason for decision in step.decisions]
    step = settle_open_calls(pairing)
    return [*shown, *step.messages], [*why, *(decision.reason for decision in step.decisions)]


def values(messages: Sequence[Message]) -> list[Any]:
    return [json.loads(message.raw) for message in messages]


@every_wire
def test_a_sound_history_passes_untouched(wire: type[Chat]) -> None:
    messages = read(
        wire,
        [wire.user("go"), *wire.call("a", "b"), *wire.result("a", "b"), *wire.call("c"), *wire.result("c", more="x")],
    )

    shown, why = repaired(messages)

    assert all(one is other for one, other in zip(shown, messages, strict=True))
    assert why == []
    assert broken(messages) == ""


@every_wire
def test_an_unanswered_call_gets_a_result_in_its_own_wire_format(wire: type[Chat]) -> None:
    made = [wire.user("go"), *wire.call("a"), wire.user("stop")]

    shown, why = repaired(read(wire, made))

    expected = wire.result("a", text=UNAVAILABLE)
    if wire is Messages:
        expected[0]["content"][0]["is_error"] = True
    assert values(shown) == [*made[:-1], *expected, made[-1]]
    assert why == ["no result came for a"]
    assert UNAVAILABLE.startswith("[tool result unavailable: ")


@every_wire
def test_one_of_several_calls_unanswered_is_answered_before_anything_else_is_said(wire: type[Chat]) -> None:
    messages = read(wire, [wire.user("go"), *wire.call("a", "b"), *wire.result("b", more="and now this")])

    shown, _ = repaired(messages)

    assert broken(messages)
    assert broken(shown) == ""
    assert UNAVAILABLE in "".join(message.text for message in shown[: -1 if wire is not Messages else None])


@every_wire
def test_an_orphan_is_dropped_and_told_with_its_place(wire: type[Chat]) -> None:
    messages = read(wire, [wire.user("go"), *wire.result("nobody"), wire.user("on")])

    shown, why = repaired(messages)

    assert [message.place for message in shown] == [0, 2]
    assert why == ["dropped: nobody has called nobody"]


@every_wire
def test_a_history_that_begins_with_a_result_still_begins_with_the_user(wire: type[Chat]) -> None:
    messages = read(wire, [*wire.result("nobody", text="what came"), *wire.call("a"), *wire.result("a")])

    shown, _ = repaired(messages)

    assert shown[0].role is Role.USER
    assert "what came" in shown[0].text
    assert [message.place for message in shown[1:]] == [1, 2]


@every_wire
def test_a_second_result_for_one_call_is_dropped(wire: type[Chat]) -> None:
    messages = read(wire, [wire.user("go"), *wire.call("a"), *wire.result("a"), *wire.result("a", text="other")])

    shown, why = repaired(messages)

    assert [message.place for message in shown] == [0, 1, 2]
    assert why == ["dropped: a had been answered"]


def test_of_two_results_in_one_message_only_the_orphan_goes() -> None:
    messages = read(Messages, [Chat.user("go"), *Messages.call("a"), *Messages.result("a", "x", more="hm")])

    shown, why = repaired(messages)

    assert values(shown)[-1] == Messages.result("a", more="hm")[0]
    assert why == ["dropped: nobody has called x"]


@every_wire
def test_an_id_that_was_taken_gets_another_name_and_its_result_too(wire: type[Chat]) -> None:
    once = [*wire.call("a"), *wire.result("a")]

    shown, why = repaired(read(wire, [wire.user("go"), *once, *once, *once]))

    assert values(shown) == [
        wire.user("go"),
        *once,
        *wire.call("a_2"),
        *wire.result("a_2"),
        *wire.call("a_3"),
        *wire.result("a_3"),
    ]
    assert why == ["a call whose id was taken has another"] * 2


@every_wire
def test_a_result_that_comes_after_the_next_words_stands_before_them(wire: type[Chat]) -> None:
    made = [wire.user("go"), *wire.call("a"), wire.user("hurry"), *wire.result("a")]

    shown, why = repaired(read(wire, made))

    assert values(shown) == [made[0], made[1], made[3], made[2]]
    assert why == []


@every_wire
def test_a_result_that_comes_before_its_call_finds_it(wire: type[Chat]) -> None:
    made = [wire.user("go"), *wire.result("a"), *wire.call("a"), wire.user("on")]

    shown, _ = repaired(read(wire, made))

    assert values(shown) == [made[0], made[2], made[1], made[3]]


@every_wire
def test_a_result_that_comes_after_its_place_was_given_away_is_said_in_words(wire: type[Chat]) -> None:
    messages = read(wire, [wire.user("go"), *wire.call("a"), *wire.result("a", text="the late truth"), wire.user("on")])

    shown, why = repaired(messages, ask=frozenset((2,)))

    assert UNAVAILABLE in shown[2].text
    assert "the late truth" in shown[3].text
    assert broken(shown) == ""
    assert "came late" in why[-1]


@st.composite
def histories(draw: st.DrawFn) -> tuple[type[Chat], list[Made], frozenset[int]]:
    """Calls and results in any order, as often as it likes, with words between; requests anywhere."""
    wire = draw(st.sampled_from(WIRES))
    ids = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3)
    kinds = st.lists(
        st.tuples(st.sampled_from(("user", "call", "call", "result", "result", "both", "say")), ids), max_size=12
    )
    made: list[Made] = [wire.user("go")]
    for kind, names in draw(kinds):
        match kind:
            case "user":
                made.append(wire.user("more"))
            case "call":
                made += wire.call(*names)
            case "result":
                made += wire.result(*names)
            case "both":
                made += wire.result(*names, more="and this")
            case "say":
                made.append({"role": "assistant", "content": "well"})
    ask = draw(st.frozensets(st.integers(1, len(made)), max_size=5))
    return wire, made, ask


@given(histories())
@settings(max_examples=150, deadline=None)
def test_whatever_arrives_what_is_shown_is_sound_at_every_request_and_stays_put(
    history: tuple[type[Chat], list[Made], frozenset[int]],
) -> None:
    wire, made, ask = history
    pairing, shown = Pairing(), list[Message]()
    for place, message in enumerate(read(wire, made)):
        if place in ask:
            step = settle_open_calls(pairing)
            pairing = step.pairing
            shown += step.messages
            # What is sent here is the beginning of all that is sent later: a repair once made stays.
            assert broken(shown) == ""
        step = add_message(pairing, message)
        pairing = step.pairing
        shown += step.messages
    assert broken([*shown, *settle_open_calls(pairing).messages]) == ""


@pytest.mark.parametrize("wire", [Chat, Messages])
@given(calls=st.lists(st.sampled_from(["a", "a_2", "a_3", "b"]), max_size=8), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_repeated_id_gets_the_same_name_in_a_fork_as_in_a_history_of_its_own(
    wire: type[Chat], calls: list[str], data: st.DataObject
) -> None:
    def exchange(call: str) -> list[Made]:
        return [*wire.call(call), *wire.result(call)]

    messages = read(wire, [made for call in calls for made in exchange(call)])
    states = [Pairing()]
    for message in messages:
        states.append(add_message(states[-1], message).pairing)
    at = 2 * data.draw(st.integers(0, len(calls)))
    more = [
        made for call in data.draw(st.lists(st.sampled_from(["a", "a_2", "b"]), max_size=4)) for made in exchange(call)
    ]
    for fork in (more, more[:2], more):
        pairing, shown = states[at], list[Message]()
        for message in read(wire, fork):
            step = add_message(pairing, message)
            pairing, shown = step.pairing, [*shown, *step.messages]
        alone = repaired(read(wire, [*(json.loads(message.raw) for message in messages[:at]), *fork]))[0]
        assert values(shown) == values(alone[at:])


@given(histories())
@settings(max_examples=40, deadline=None)
def test_forks_do_not_see_each_other(history: tuple[type[Chat], list[Made], frozenset[int]]) -> None:
    wire, made, _ = history
    messages = read(wire, made)
    states = [Pairing()]
    for message in messages:
        states.append(add_message(states[-1], message).pairing)
    for state in states:
        fork = state
        for message in read(wire, [*wire.call("a", "z"), *wire.result("z", "a")]):
            fork = add_message(fork, message).pairing
    shown: list[Message] = []
    for at, message in enumerate(messages):
        shown += add_message(states[at], message).messages
    assert values([*shown, *settle_open_calls(states[-1]).messages]) == values(repaired(messages)[0])


def cases() -> Iterator[tuple[str, list[Made], str]]:
    call, result, user = Chat.call, Chat.result, Chat.user
    yield "no call", [user("go"), *result("a")], "answers 'a', which is not open"
    yield "no result", [user("go"), *call("a")], "'a' is never answered"
    yield "between", [user("go"), *call("a"), user("x"), *result("a")], "comes while 'a' is open"
    yield "twice", [user("go"), *call("a"), *result("a"), *call("a"), *result("a")], "calls 'a' a second time"
    yield "again", [user("go"), *call("a"), *result("a"), *result("a")], "answers 'a', which is not open"


@pytest.mark.parametrize(("made", "why"), [(made, why) for _, made, why in cases()], ids=[name for name, *_ in cases()])
def test_what_a_provider_would_refuse_is_named(made: list[Made], why: str) -> None:
    assert why in broken(read(Chat, made))
