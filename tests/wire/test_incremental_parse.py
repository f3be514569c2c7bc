"""Reading from where two bodies differ says what reading the whole says: properties over all formats."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.errors import WireError
from pagefold.wire import anthropic, gemini, openai_chat, openai_responses
from pagefold.wire.incremental_parse import parse_again
from pagefold.wire.message import Request, RequestShape

FORMATS: dict[str, tuple[Callable[[bytes], Request], RequestShape]] = {
    "messages": (anthropic.parse_request, anthropic.SHAPE),
    "chat": (openai_chat.parse_request, openai_chat.SHAPE),
    "responses": (openai_responses.parse_request, openai_responses.SHAPE),
    "gemini": (gemini.parse_request, gemini.SHAPE),
}
texts = st.text(st.sampled_from('ab"\\\n{}[],: é\u2028😀'), max_size=12)
messages = st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant"]), texts)
contents = st.builds(
    lambda role, parts: {"role": role, "parts": parts},
    st.sampled_from(["user", "model"]),
    st.lists(
        st.one_of(
            st.builds(lambda text: {"text": text}, texts),
            st.builds(lambda name: {"functionCall": {"name": name, "args": {}}}, st.sampled_from(["a", "b"])),
            st.builds(lambda name: {"functionResponse": {"name": name, "response": {}}}, st.sampled_from(["a", "b"])),
        ),
        max_size=3,
    ),
)
listed = {name: st.lists(contents if name == "gemini" else messages, min_size=1, max_size=6) for name in FORMATS}
members = st.dictionaries(
    st.sampled_from(
        [
            "model",
            "stream",
            "system",
            "system_instruction",
            "systemInstruction",
            "instructions",
            "tools",
            "metadata",
            "n",
            "messages2",
        ]
    ),
    st.one_of(texts, st.booleans(), st.integers(0, 1000), st.lists(st.dictionaries(texts, texts), max_size=2)),
    max_size=4,
)


@pytest.mark.parametrize("name", FORMATS)
def test_more_messages_than_any_conversation_has_are_not_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagefold.wire.message.MOST_MESSAGES", 5)
    parse, shape = FORMATS[name]
    said = {"role": "user", "parts": [{"text": "x"}]} if name == "gemini" else {"role": "user", "content": "x"}
    most, more = (bodies(name, {"model": "m"}, [said] * count, {}, space=False) for count in (5, 6))
    before = parse(most)
    with pytest.raises(WireError):
        parse(more)
    with pytest.raises(WireError):
        parse_again(more, before, shape)


def bodies(name: str, before: dict[str, Any], messages: list[Any], after: dict[str, Any], space: bool) -> bytes:
    key = FORMATS[name][1].messages
    value = {**before, key: messages, **{k: v for k, v in after.items() if k not in before}}
    return json.dumps(value, separators=None if space else (",", ":"), ensure_ascii=False).encode()


def places(request: Request) -> tuple[object, ...]:
    return request._array, request._ends, request._around


@pytest.mark.parametrize("name", FORMATS)
@given(st.data(), members, members, members, st.integers(0, 6), st.booleans())
def test_a_request_read_from_where_it_differs_is_the_request_read_whole(
    name: str,
    data: st.DataObject,
    before: dict[str, Any],
    after: dict[str, Any],
    later: dict[str, Any],
    common: int,
    space: bool,
) -> None:
    parse, shape = FORMATS[name]
    old, new = data.draw(listed[name]), data.draw(listed[name])
    first = bodies(name, before, old, after, space)
    for rest in (after, later, {**after, "n": 7}):
        second = bodies(name, before, [*old[:common], *new], rest, space)

        earlier = parse(first)
        found = parse_again(second, earlier, shape)

        if found is not None:
            request, kept, end, values, alike = found
            whole = parse(second)
            assert (request, places(request)) == (whole, places(whole))
            assert [message.place for message in request.messages] == list(range(len(whole.messages)))
            assert request.messages[:kept] == earlier.messages[:kept]
            assert end == request.end_of(kept)
            assert values == [json.loads(message.raw) for message in whole.messages[kept:]]
            assert [request.member(key) for key in rest] == [whole.member(key) for key in rest]
            assert not alike or [request.member(key) for key in rest] == [earlier.member(key) for key in rest]


def test_what_follows_the_last_request_is_all_that_is_read() -> None:
    old = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    rest = {"system": "s", "tools": [{"name": "t"}], "stream": True}
    first = anthropic.parse_request(bodies("messages", {"model": "m"}, old, rest, space=False))
    second = bodies("messages", {"model": "m"}, [*old, {"role": "user", "content": "c"}], rest, space=False)

    found = parse_again(second, first, anthropic.SHAPE)

    assert found is not None
    request, kept, *_ = found
    assert kept == 2
    assert [one is other for one, other in zip(request.messages, first.messages, strict=False)] == [True, True]
    assert request.tools is first.tools
    assert request.head is first.head


@pytest.mark.parametrize("number", ["12", "1", "-1", "1.5"])
def test_a_number_that_grows_is_read_anew(number: str) -> None:
    first = anthropic.parse_request(b'{"messages":[{"role":"user","content":"a"}],"model":1}')
    second = f'{{"messages":[{{"role":"user","content":"a"}}],"model":{number}}}'.encode()

    found = parse_again(second, first, anthropic.SHAPE)

    assert found is not None
    assert found[0].model == number


@pytest.mark.parametrize(
    "second",
    [
        b'{"messages":[{"role":"user","content":"a"}],"messages":[],"model":1}',
        b'{"messages":[{"role":"user","content":"a"}]}',
        b'{"messages":[{"role":"user","content":"a"}],"model":1} x',
        b'{"messages":[],"model":1}',
        b'{"messages":"a","model":1}',
        b' {"messages":[{"role":"user","content":"a"}],"model":1}',
        b'{"messages":[{"role":"user","content":"a"}],"model": 1}',
    ],
)
def test_a_body_of_another_build_has_to_be_read_whole(second: bytes) -> None:
    first = anthropic.parse_request(b'{"messages":[{"role":"user","content":"a"}],"model":1}')

    try:
        assert parse_again(second, first, anthropic.SHAPE) is None
    except WireError:
        with pytest.raises(WireError):
            anthropic.parse_request(second)
