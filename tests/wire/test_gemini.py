"""What the parts of a Gemini content say, which call a response answers, and what is read of answers."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.errors import WireError
from pagefold.wire import gemini, interactions, json_text
from pagefold.wire.api_paths import Framing, asked_at
from pagefold.wire.apis import CHAT, CONVERSE, GENERATE, INTERACTIONS, MESSAGES, RESPONSES
from pagefold.wire.message import Block, BlockKind, Message, Role, Usage

PROJECT = "/v1/projects/p/locations/global/publishers"
UNKNOWN: dict[str, Any] = {"fromNextYear": {"a": 1}}


def parsed(*parts: Any, role: str = "user", place: int = 3) -> Message:
    value = {"role": role, "parts": list(parts)}
    return gemini.parse_content(value, json_text.dumps(value), place)


def call(name: str = "read", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"n": 1}, **more}}


def response(text: str, name: str = "read", **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": text}, **more}}


@pytest.mark.parametrize(
    ("part", "blocks"),
    [
        ({"text": "words"}, [Block(BlockKind.TEXT, "words", ("parts", 0, "text"))]),
        ({"text": "hm", "thought": True}, [Block(BlockKind.THINKING, "hm", ("parts", 0, "text"))]),
        ({"text": "words", "thoughtSignature": "Eo8="}, [Block(BlockKind.TEXT, "words")]),
        ({"inlineData": {"data": "x"}}, [Block(BlockKind.MEDIA, "")]),
        ({"file_data": {}}, [Block(BlockKind.MEDIA, "")]),
        (UNKNOWN, [Block(BlockKind.OTHER, json_text.dumps(UNKNOWN))]),
        (7, [Block(BlockKind.OTHER, "7")]),
        (call(id="c1"), [Block(BlockKind.CALL, '{"n":1}', (), "c1", "read")]),
        (call(), [Block(BlockKind.CALL, '{"n":1}', (), "#3.read.0", "read")]),
        (
            {"functionResponse": {"name": "read", "id": "c", "response": {"stdout": "a", "code": 1, "stderr": "b"}}},
            [
                Block(BlockKind.RESULT, "a", ("parts", 0, "functionResponse", "response", "stdout"), "c", "read"),
                Block(BlockKind.RESULT, "b", ("parts", 0, "functionResponse", "response", "stderr"), "c", "read"),
                Block(BlockKind.OTHER, '{"code":1}', (), "c", "read"),
            ],
        ),
        (
            {
                "function_response": {
                    "name": "read",
                    "id": "c",
                    "response": {"content": [{"type": "text", "text": "a"}]},
                }
            },
            [
                Block(
                    BlockKind.RESULT,
                    "a",
                    ("parts", 0, "function_response", "response", "content", 0, "text"),
                    "c",
                    "read",
                )
            ],
        ),
        (
            {"functionResponse": {"name": "read", "response": {"error": "no"}}},
            [
                Block(
                    BlockKind.RESULT,
                    "no",
                    ("parts", 0, "functionResponse", "response", "error"),
                    "#2.read.0",
                    "read",
                    failed=True,
                )
            ],
        ),
        ({"functionResponse": {"name": "read", "id": "c"}}, [Block(BlockKind.RESULT, "", (), "c", "read")]),
    ],
)
def test_each_block_says_what_a_model_reads_and_where_it_lies(part: Any, blocks: list[Block]) -> None:
    assert list(parsed(part).blocks) == blocks


@pytest.mark.parametrize(("role", "read"), [("user", Role.USER), ("model", Role.ASSISTANT), ("function", Role.USER)])
def test_roles(role: str, read: Role) -> None:
    assert parsed({"text": "a"}, role=role).role is read


@pytest.mark.parametrize("value", [7, "x", None, [], {"role": "critic", "parts": []}])
def test_what_is_no_content_is_refused(value: Any) -> None:
    with pytest.raises(WireError, match="role is user or model"):
        gemini.parse_content(value, "")


@pytest.mark.parametrize(
    ("calls", "responses", "answered"),
    [
        # by id, whatever the order
        ([call(id="a"), call(id="b")], [response("1", id="b"), response("2", id="a")], ["b", "a"]),
        # by name and order where neither has an id
        ([call(), call("list"), call()], [response("1"), response("2"), response("3", "list")],
         ["#2.read.0", "#2.read.1", "#2.list.0"]),
        # a client may leave out the ids of its responses, or make up its own
        ([call(id="a"), call("list", id="b")], [response("1", "list"), response("2")], ["b", "a"]),
        ([call(id="a"), call(id="b")], [response("1", id="b"), response("2")], ["b", "a"]),
        ([call(id="a"), call(id="b")], [response("1"), response("2")], ["a", "b"]),
        ([call()], [response("1", id="mine")], ["#2.read.0"]),
        # what nobody called stays as it is
        ([call(id="a")], [response("1", "other")], ["#2.other.0"]),
    ],
)  # fmt: skip
def test_a_response_answers_the_call_it_names_or_the_next_of_its_name(
    calls: list[Any], responses: list[Any], answered: list[str]
) -> None:
    contents = [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "user", "parts": [{"text": "On."}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": responses},
    ]
    request = gemini.parse_request(json.dumps({"contents": contents}).encode())

    assert [block.call_id for block in request.messages[3].blocks] == answered
    assert request.messages[3].raw in json.dumps({"contents": contents})


def test_results_can_be_dropped_renamed_and_parted_and_keep_what_they_answer() -> None:
    before = parsed(call(), call(), role="model", place=2)
    message = gemini.link(before, parsed(response("a"), {"text": "and"}, response("b")))

    kept = GENERATE.calls.with_results(message, {1: "#2.read.1"})
    assert kept is not None
    assert [(block.call_id, block.text) for block in kept.blocks] == [("", "and"), ("#2.read.1", "b")]
    renamed = GENERATE.calls.with_results(message, {0: "x", 1: "y"})
    assert renamed is not None
    assert json.loads(renamed.raw)["parts"][0]["functionResponse"]["id"] == "x"
    assert GENERATE.calls.with_results(parsed(response("a")), {}) is None
    results, words = GENERATE.calls.parted(message)
    assert [block.call_id for block in results.blocks] == ["#2.read.0", "#2.read.1"]
    assert words.text == "and"


def test_a_placeholder_answers_a_call_as_it_was_made() -> None:
    made = GENERATE.calls.result("#2.read.0", "gone", parsed(call(), role="model", place=2))
    assert json.loads(made.raw)["parts"] == [{"functionResponse": {"name": "read", "response": {"output": "gone"}}}]
    assert made.blocks[0].call_id == "#2.read.0"
    named = GENERATE.calls.result("c1", "gone", parsed(call(id="c1"), role="model"))
    assert json.loads(named.raw)["parts"][0]["functionResponse"]["id"] == "c1"


@pytest.mark.parametrize(
    ("contents", "named", "inside"),
    [
        ([{"role": "user", "parts": [{"text": "a"}]}], "cachedContent", False),
        ([{"role": "user", "parts": [response("a")]}], "cached_content", True),
        ([{"role": "model", "parts": [{"text": "a"}]}], "cachedContent", True),
        ([], "cachedContent", True),
    ],
)
def test_contents_behind_cached_content_are_derived_where_they_begin_a_turn(
    contents: list[Any], named: str, inside: bool
) -> None:
    request = gemini.parse_request(json.dumps({"contents": contents, named: "cachedContents/1"}).encode())

    assert GENERATE.continues(request) == ("cachedContents/1" if inside else "")
    assert GENERATE.continues(gemini.parse_request(json.dumps({"contents": contents}).encode())) == ""


@pytest.mark.parametrize("key", ["systemInstruction", "system_instruction"])
@pytest.mark.parametrize("value", [{"parts": [{"text": "Be brief."}]}, "Be brief."])
def test_the_system_prompt_is_the_head(key: str, value: Any) -> None:
    request = gemini.parse_request(json.dumps({key: value, "contents": []}).encode())
    assert [(message.role, message.text) for message in request.head] == [(Role.SYSTEM, "Be brief.")]


@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations"])
def test_a_function_is_declared_beside_the_others(key: str) -> None:
    tools = [{"googleSearch": {}}, {key: [{"name": "é"}]}, {key: [{"name": "b"}]}]
    request = gemini.parse_request(json.dumps({"tools": tools, "contents": []}, ensure_ascii=False).encode())

    rendered = json.loads(request.render([], ['{"name":"c"}']))

    assert rendered["tools"] == [{"googleSearch": {}}, {key: [{"name": "é"}, {"name": "c"}]}, {key: [{"name": "b"}]}]
    plain = gemini.parse_request(b'{"tools":[{"googleSearch":{}}],"contents":[]}')
    assert plain.render([], ['{"name":"c"}']) == plain.body


def answer(*parts: Any, **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": "gemini-3.8-flash", **more}


def test_an_answer_is_read_with_its_usage() -> None:
    used = {"promptTokenCount": 100, "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 3}
    used |= {"candidatesTokenCount": 5, "thoughtsTokenCount": 7}
    body = answer({"text": "Hi"}, call(id="c"), usageMetadata=used)
    found = gemini.parse_response(json.dumps(body).encode())

    assert found.usage == Usage(43, 60, 0, 12)
    assert (found.stop, found.model) == ("stop", "gemini-3.8-flash")
    assert found.message.text == 'Hi\nread {"n":1}'


def test_a_prompt_that_was_blocked_is_an_answer_without_words() -> None:
    body = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}}
    found = gemini.parse_response(json.dumps(body).encode())
    assert (found.stop, found.message.text, found.usage) == ("safety", "", Usage(4))


def test_a_stream_that_is_a_list_is_read_like_events() -> None:
    first = answer({"text": "He"})
    del first["candidates"][0]["finishReason"]
    body = json.dumps([first, answer({"text": "llo"}, usageMetadata={"promptTokenCount": 4})]).encode()
    found = gemini.parse_response(body)
    assert (found.message.text, found.stop, found.usage) == ("Hello", "stop", Usage(4))
    with pytest.raises(WireError):
        gemini.parse_response(json.dumps([first]).encode())
    assert gemini.read_error(b'[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]') == {
        "type": "resource_exhausted",
        "message": "m",
    }


@given(st.lists(st.sampled_from(["a", "b ", "\ud800", "é"]), min_size=1, max_size=6))
def test_texts_of_a_stream_are_joined_and_signed_parts_are_not(texts: list[str]) -> None:
    stream = gemini.GeminiStream()
    for text in texts:
        stream.take_chunk({"candidates": [{"content": {"parts": [{"text": text}]}}]})
    stream.take_chunk({"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "Eo8="}]}}]})
    parts = json.loads(stream.response().message.raw)["parts"]
    assert parts == [{"text": "".join(texts)}, {"text": "", "thoughtSignature": "Eo8="}]


def test_errors_are_spelled_as_the_provider_spells_them() -> None:
    written = json.loads(GENERATE.error("invalid_request_error", "why"))
    assert written == {"error": {"code": 400, "message": "why", "status": "INVALID_ARGUMENT"}}
    assert GENERATE.error_kind(json.dumps(written).encode()) == "invalid_argument"
    long = {"message": "The input token count (9) exceeds the maximum number of tokens allowed (8).", "code": 400}
    assert GENERATE.is_too_long(400, json.dumps({"error": long}).encode())


@pytest.mark.parametrize(
    ("path", "api", "upstream", "model", "stream", "framing"),
    [
        ("/v1beta/models/gemini-3.8-flash:generateContent", GENERATE, "gemini", "gemini-3.8-flash", False, "events"),
        ("/v1beta/models/g:streamGenerateContent?alt=sse&key=k", GENERATE, "gemini", "g", True, "events"),
        ("/v1/models/g:streamGenerateContent", GENERATE, "gemini", "g", True, "list"),
        ("/v1beta/openai/chat/completions", CHAT, "gemini", "", None, "events"),
        ("/v1beta/interactions", INTERACTIONS, "gemini", "", None, "events"),
        (f"{PROJECT}/google/models/g:generateContent", GENERATE, "vertex", "g", False, "events"),
        ("/v1beta1/publishers/google/models/g:streamGenerateContent?alt=sse", GENERATE, "vertex", "g", True, "events"),
        (f"{PROJECT}/anthropic/models/c@2:streamRawPredict", MESSAGES, "vertex", "c@2", None, "events"),
        (f"{PROJECT}/anthropic/models/c:rawPredict", MESSAGES, "vertex", "c", None, "events"),
        ("/openai/deployments/d/chat/completions?api-version=2025-01-01", CHAT, "azure", "d", None, "events"),
        ("/openai/v1/responses", RESPONSES, "azure", "", None, "events"),
        ("/openai/responses?api-version=1", RESPONSES, "azure", "", None, "events"),
        ("/anthropic/v1/messages", MESSAGES, "foundry", "", None, "events"),
        ("/api/v1/chat/completions", CHAT, "openrouter", "", None, "events"),
        ("/model/us.anthropic.c-v1%3A0/invoke", MESSAGES, "bedrock", "us.anthropic.c-v1:0", False, "events"),
        ("/model/anthropic.c/invoke-with-response-stream", MESSAGES, "bedrock", "anthropic.c", True, "aws"),
        ("/model/eu.anthropic.c/converse", CONVERSE, "bedrock", "eu.anthropic.c", False, "events"),
        ("/model/anthropic.c-v1%3A0/converse-stream", CONVERSE, "bedrock", "anthropic.c-v1:0", True, "aws"),
        ("/v1/messages?beta=true", MESSAGES, "anthropic", "", None, "events"),
    ],
)  # fmt: skip
def test_a_path_tells_the_api_who_serves_it_and_the_model(
    path: str, api: object, upstream: str, model: str, stream: bool | None, framing: str
) -> None:
    asked = asked_at(path)
    assert asked is not None
    assert (asked.api, asked.upstream, asked.model, asked.stream) == (api, upstream, model, stream)
    assert asked.framing is Framing(framing)


@pytest.mark.parametrize(
    "path",
    [
        "/v1beta/models/g:countTokens",
        "/v1beta/models",
        "/v1beta/cachedContents",
        "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
        "/v1/projects/p/locations/l/publishers/meta/models/llama:rawPredict",
        "/openai/deployments/d/embeddings",
        "/model/meta.llama/invoke",
        "/model/amazon.nova-pro-v1:0/converse",
        "/v1/messages/count_tokens",
        "/",
    ],
)
def test_other_paths_are_not_read(path: str) -> None:
    assert asked_at(path) is None


def test_interactions_are_counted_and_never_derived() -> None:
    request = interactions.parse_request(b'{"model":"g","input":[{"type":"text","text":"a"}],"stream":true}')
    assert INTERACTIONS.continues(request)
    used = {"total_input_tokens": 10, "total_cached_tokens": 4, "total_output_tokens": 2, "total_thought_tokens": 1}
    whole = {"id": "i", "status": "completed", "model": "g", "usage": used}
    assert interactions.parse_response(json.dumps(whole).encode()).usage == Usage(6, 4, 0, 3)
    stream = interactions.InteractionStream(gist=True)
    stream.feed(b'event: content.delta\ndata: {"event_type":"content.delta","delta":{"text":"a"}}\n\n')
    assert not stream.ended
    last = {"event_type": "interaction.complete", "interaction": whole}
    stream.feed(f"event: interaction.complete\ndata: {json.dumps(last)}\n\n".encode())
    assert (stream.ended, stream.response().usage, stream.response().model) == (True, Usage(6, 4, 0, 3), "g")
