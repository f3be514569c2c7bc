"""A request read after others says what it says read alone, whatever came before it: a property, no sockets."""

import json
from dataclasses import fields
from operator import is_
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.derive.prefix_hashes import NO_HASH
from pagefold.errors import WireError
from pagefold.model_proxy.request_cache import ParsedRequest, RequestCache
from pagefold.wire.api import Api
from pagefold.wire.apis import CHAT, MESSAGES, RESPONSES

MARK = {"type": "ephemeral"}
CLEARING = {"edits": [{"type": "clear_tool_uses_20250919"}]}
LONG = "These are words enough for a beginning that is found again. " * 8
texts = st.sampled_from(["a", "b", 'é"\\ud83d😀', LONG, LONG + "é", ""])
steps = st.lists(
    st.tuples(
        st.sampled_from(["turn", "turn", "turn", "edit", "fork", "retry", "other", "head", "clear", "goes on"]),
        st.integers(0, 7),
        texts,
    ),
    min_size=1,
    max_size=14,
)


def spelled(api: Api, conversation: dict[str, Any], *, moving: bool, blocks: bool, first: bool) -> bytes:
    """The body of a request; the mark moves to the last message, as Claude Code has it."""
    listed = []
    for at, (role, text) in enumerate(conversation["messages"]):
        block = {"type": "text", "text": text}
        if moving and at == len(conversation["messages"]) - 1:
            block["cache_control"] = MARK
        plain = not blocks and "cache_control" not in block
        listed.append({"role": role, "content": text if plain else [block]})
    around = {
        "model": "m",
        "system": conversation["head"],
        "tools": [{"name": "t", "description": LONG}],
        "stream": True,
    }
    around |= {key: conversation[key] for key in ("context_management", "previous_response_id") if key in conversation}
    whole = {api.shape.messages: listed, **around} if first else {**around, api.shape.messages: listed}
    return json.dumps(whole, ensure_ascii=False).encode()


def step(conversations: list[dict[str, Any]], does: str, at: int, text: str) -> dict[str, Any]:
    """The conversation that the next request is of."""
    last = conversations[at % len(conversations)]
    messages = list(last["messages"])
    match does:
        case "turn":
            last["messages"] = [*messages, ("assistant", text), ("user", f"and {len(messages)}?")]
        case "edit":
            place = at % len(messages)
            last["messages"] = [*messages[:place], ("user", text), *messages[place + 1 :]]
        case "fork":
            conversations.append({**last, "messages": [*messages[: at + 1], ("user", text)]})
            return conversations[-1]
        case "other":
            conversations.append({"messages": [("user", text + LONG)], "head": last["head"]})
            return conversations[-1]
        case "head":
            last["head"] = text
        case "clear":
            last["context_management"] = CLEARING
        case "goes on":
            last["previous_response_id"] = text
    return last


def said(reading: ParsedRequest) -> dict[str, object]:
    return {field.name: getattr(reading, field.name) for field in fields(reading) if field.compare} | {
        "places": [reading.request.end_of(count) for count in range(len(reading.prefix_hashes) + 1)],
        "system": reading.request.member("system"),
        "name": reading.name,
        "root": reading.root,
    }


@pytest.mark.parametrize("api", [MESSAGES, CHAT, RESPONSES], ids=lambda api: api.name)
@settings(max_examples=150)
@given(steps, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([4_000, 20_000, 1 << 20]))
def test_a_request_read_after_others_says_what_it_says_read_alone(
    api: Api, done: list[tuple[str, int, str]], moving: bool, blocks: bool, first: bool, most: int
) -> None:
    readings = RequestCache(most)
    conversations: list[dict[str, Any]] = [{"messages": [("user", LONG)], "head": "Be brief."}]
    bodies = []
    tips = {NO_HASH}

    for does, at, text in done:
        bodies.append(spelled(api, step(conversations, does, at, text), moving=moving, blocks=blocks, first=first))
        found = readings.read(api, bodies[-1])

        assert said(found) == said(RequestCache().read(api, bodies[-1]))
        assert (found.prefix_hashes[found.after - 1] if found.after else NO_HASH) in tips
        tips.add(found.prefix_hashes[-1])
        assert sum(readings._kept.values()) == readings._bytes <= most
        assert {id(known) for known in readings._by_key.values()} == {id(known) for known in readings._kept}
    for body in bodies:  # and nothing that was read before has changed by what was read after it
        assert said(readings.read(api, body)) == said(RequestCache().read(api, body))


def test_the_next_request_takes_the_place_of_the_one_before_it_and_a_fork_does_not() -> None:
    readings = RequestCache()
    began = [("user", LONG), ("assistant", LONG), ("user", "and?")]
    went_on = [*began, ("assistant", "a"), ("user", "b")]

    def read(*messages: tuple[str, str]) -> ParsedRequest:
        conversation = {"messages": messages, "head": "Be brief."}
        return readings.read(MESSAGES, spelled(MESSAGES, conversation, moving=False, blocks=False, first=True))

    first, longer = read(*began), read(*went_on)
    assert len(readings._kept) == 1
    assert all(map(is_, longer.request.messages, first.request.messages))

    fork = read(began[0], ("assistant", LONG[::-1]), ("user", "else?"))
    assert len(readings._kept) == 2
    assert fork.request.messages[0] is first.request.messages[0]

    longest = read(*went_on, ("assistant", "c"), ("user", "d"))
    assert len(readings._kept) == 2
    assert all(map(is_, longest.request.messages, longer.request.messages))


def test_agents_that_read_the_same_files_are_not_taken_for_one_another() -> None:
    readings = RequestCache()
    files = [LONG * 2 + f"file {number}" for number in range(40)]
    agents = {
        name: [(role, text) for file in files for role, text in (("assistant", f"call {name}"), ("user", file))]
        for name in ("one", "two", "six", "ten")
    }
    for turn in range(4):
        for name, messages in agents.items():
            before = 1 + len(messages)
            messages += [("assistant", f"{name} says"), ("user", "and?")]
            conversation = {"messages": [("user", "Begin."), *messages], "head": "Be brief."}
            read = readings.read(MESSAGES, spelled(MESSAGES, conversation, moving=False, blocks=False, first=False))
            assert read.after == (before if turn else 0)
    assert len(readings._kept) == len(agents)


def test_a_body_that_is_no_request_is_refused_and_leaves_no_trace() -> None:
    readings = RequestCache()
    body = spelled(MESSAGES, {"messages": [("user", LONG)], "head": "s"}, moving=False, blocks=False, first=True)
    readings.read(MESSAGES, body)

    with pytest.raises(WireError):
        readings.read(MESSAGES, body.replace(b"}]", b'}, {"role":"nobody"}]', 1))
    assert said(readings.read(MESSAGES, body)) == said(RequestCache().read(MESSAGES, body))


def test_agents_that_differ_in_one_digit_of_their_prompt_are_not_taken_for_one_another() -> None:
    requests = RequestCache()
    files = [("user", LONG * 12), ("assistant", "a"), ("user", LONG * 12)]
    agents: list[dict[str, Any]] = [
        {"messages": [("user", f"Task {number}."), *files], "head": "s"} for number in range(10, 20)
    ]
    bodies = [spelled(CHAT, agent, moving=False, blocks=False, first=True) for agent in agents]
    for body in bodies:
        requests.read(CHAT, body)
    for agent in agents:
        agent["messages"] += [("assistant", "Read."), ("user", "And?")]
        body = spelled(CHAT, agent, moving=False, blocks=False, first=True)
        assert requests.read(CHAT, body).after == 4
