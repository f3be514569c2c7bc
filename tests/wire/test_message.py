"""Keep what arrived, in every format: what nobody changed goes back byte for byte, and a change touches one string."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.errors import WireError
from pagefold.wire import anthropic, converse, gemini, json_text, openai_chat, openai_responses
from pagefold.wire.message import Block, BlockKind, Message, Request, Response, Role, Usage
from pagefold.wire.shared_parsing import as_result


@dataclass(frozen=True)
class Format:
    parse_request: Callable[[bytes], Request]
    parse_response: Callable[[bytes], Response]
    messages: str
    body: bytes
    strings: int  # how many blocks of the body have a string of their own

    def with_odd(self, value: bytes) -> bytes:
        return self.body.replace(b"@", value).replace(b"Look at", b"L\xff\\ud800 \xc3k at")


# `@` stands for an odd value, wherever a field that nobody knows may stand.
ANTHROPIC = rb"""{ "model" : "claude-sonnet-4-5","max_tokens":32000 , "odd":@,
  "system":[{"type":"text","text":"You are a careful engineer.","cache_control":{"type":"ephemeral","odd":@}}],
  "tools": [ {"name":"Read","description":"reads","input_schema":{"type":"object","odd": @}} ,
    {"type":"web_search_20250305","name":"web_search"}],
  "messages" :  [
    {"role":"user","content":"Plain words with \u00e9 and \ud83d\ude00."},
    {"content":[{"type":"text","text":"Look at \"these\".","odd":@,"cache_control":{"type":"ephemeral"}},
      {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},
      {"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"},
       "citations":{"enabled":true}}],"role":"user"} ,
    {"role":"assistant","content":[
      {"type":"thinking","thinking":"Hm.\nFirst the file.","signature":"EqoBCkgIARABGAI="},
      {"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix"},
      {"type":"text","text":"See [1].","citations":[
        {"type":"char_location","cited_text":"words","document_index":0,"odd":@}]},
      {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"pages"}},
      {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[
        {"type":"web_search_result","url":"https://a.example","encrypted_content":"Eo8=","title":"A"}]},
      {"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"a.py","odd":@}},
      {"type":"tool_use","id":"toolu_2","name":"Read","input":{}},
      {"type":"from_next_year","text":7,"odd":@} ] },
    {"role":"user","content":[
      {"type":"tool_result","tool_use_id":"toolu_1","content":"1\tdef a():\n2\t    pass","is_error":false},
      {"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[
        {"type":"text","text":"no such file","odd":@},
        {"type":"image","source":{"type":"url","url":"https://a.example/a.png"}},{"type":"text","text":""}]},
      {"type":"tool_result","tool_use_id":"toolu_3"}],"odd":@}
  ],"stream":true, "metadata":{"user_id":"u"}}
"""

CHAT = rb"""{"messages":[{"role":"system","content":"You are a careful engineer."} ,
  {"role":"developer","content":[{"type":"text","text":"Be brief.","odd":@}],"odd":@},
  {"role":"user","name":"ann","content":[{"type":"text","text":"Look at \"these\" \u00e9."},
     {"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},{"type":"from_next_year","odd":@}]},
  {"role":"assistant","content":null,"refusal":"I would rather not.","annotations":[],"odd":@},
  {"role":"assistant","content":"Two calls.","tool_calls":[
     {"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\": \"a.py\", \"n\": 1.10}"},
      "odd":@},
    {"id":"call_2","type":"custom","custom":{"name":"patch","input":"*** Begin\n"}}]},
  {"role":"tool","tool_call_id":"call_1","content":"def a():\n    pass"},
  { "role":"tool" , "tool_call_id":"call_2","name":"patch","content":[
     {"type":"text","text":"done"},{"type":"text","text":""}]},
  {"role":"assistant","content":[{"type":"text","text":"So:"},{"type":"refusal","refusal":"no"}],
   "function_call":{"name":"old","arguments":"{}"}},
  {"role":"function","name":"old","content":"result"}
 ],"model":"gpt-5","odd":@,"stream":false,"tools":[{"type":"function","function":{"name":"read","parameters":{"odd":@}}}]}"""

RESPONSES = rb"""{"model":"gpt-5-codex","instructions":"You are a careful engineer.","stream" : true,"odd":@,
 "tools":[{"type":"function","name":"read","parameters":{"odd":@}},{"type":"web_search"}],
 "input":[
  {"role":"developer","content":"Be brief."},
  {"type":"message","id":"msg_1","role":"user","content":[
    {"type":"input_text","text":"Look at \"these\" \u00e9.","odd":@},
    {"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}],"odd":@},
  {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"First the file."}],
   "content":null,"encrypted_content":"gAAAAABo=","odd":@},
  {"type":"reasoning","summary":[],"encrypted_content":"gAAAAABp="},
    {"type":"message","role":"assistant","status":"completed","content":[
    {"type":"output_text","text":"I will read.","annotations":[{"type":"url_citation","odd":@}],"logprobs":[]},
    {"type":"refusal","refusal":"no"}]},
  {"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":"{\"path\": \"a.py\", \"n\": 1.10}",
   "odd":@} ,
  {"type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":"*** Begin\n"},
  {"type":"local_shell_call","call_id":"call_3","action":{"type":"exec","command":["ls"],"odd":@},"status":"completed"},
  {"type":"function_call_output","call_id":"call_1","output":"def a():\n    pass"},
  {"type":"custom_tool_call_output","call_id":"call_2","output":[
    {"type":"input_text","text":"done"},{"type":"input_image","image_url":"https://a.example/a.png"}]},
  {"type":"function_call_output","call_id":"call_3","output":""},
  {"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"pages"}},
  {"type":"compaction","encrypted_content":"gAAAAABq="},
  {"type":"from_next_year","text":"x","odd":@}
 ],"include":["reasoning.encrypted_content"],"store":false,"previous_response_id":null}"""

GEMINI = rb"""{ "contents" : [
  {"role":"user","parts":[{"text":"Look at \"these\" \u00e9.","odd":@},
    {"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},{"from_next_year":7,"odd":@}]} ,
  {"parts":[{"text":"First the file.","thought":true},
    {"text":"I read.","thoughtSignature":"EqoBCkgIARABGAI="},
    {"functionCall":{"id":"c1","name":"read","args":{"path":"a.py","n":1.10,"odd":@}},"thoughtSignature":"Eo8=","odd":@},
    {"function_call":{"id":"c2","name":"read","args":{}}}],"role":"model"},
  {"role":"user","parts":[
    {"functionResponse":{"id":"c1","name":"read","response":{"output":"def a():\n    pass","lines":[1.10,@]}}},
    {"function_response":{"id":"c2","name":"read","response":{"error":"no such file"}},"odd":@}]},
  {"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},
    {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},{"text":"So."}],"odd":@},
  {"role":"function","parts":[]}
 ],"odd":@,"system_instruction":{"parts":[{"text":"You are a careful engineer.","odd":@}]},
 "tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"read","parameters":{"odd":@}} ]}],
 "generationConfig":{"temperature":1.10}}"""

CONVERSE = rb"""{ "system":[{"text":"You are a careful engineer.","odd":@},{"cachePoint":{"type":"default","odd":@}}],
 "messages" : [
  {"role":"user","content":[{"text":"Look at \"these\" \u00e9.","odd":@},
    {"image":{"format":"png","source":{"bytes":"iVBORw0KGgo="}}},{"from_next_year":7,"odd":@},
    {"cachePoint":{"type":"default"}}]} ,
  {"content":[{"reasoningContent":{"reasoningText":{"text":"First the file.","signature":"EqoBCkgIARABGAI="}}},
    {"reasoningContent":{"redactedContent":"EmwKAhgBEgy3va3pzix"}},{"text":"I read."},
    {"toolUse":{"toolUseId":"t1","name":"read","input":{"path":"a.py","n":1.10,"odd":@}},"odd":@},
    {"toolUse":{"toolUseId":"t2","name":"read","input":{}}}],"role":"assistant"},
  {"role":"user","content":[
    {"toolResult":{"toolUseId":"t1","content":[{"text":"def a():\n    pass","odd":@},{"json":{"n":1.10,"odd":@}}]}},
    {"toolResult":{"toolUseId":"t2","status":"error","content":[{"text":"no such file"},{"document":{"odd":@}}]},
     "odd":@},
    {"toolResult":{"toolUseId":"t3"}}],"odd":@}
 ],"inferenceConfig":{"maxTokens":32000,"temperature":1.10},"odd":@,
 "toolConfig":{"tools":[ {"toolSpec":{"name":"read","inputSchema":{"json":{"odd":@}}}} ,
   {"cachePoint":{"type":"default"}}]}}"""

FORMATS = {
    "converse": Format(converse.parse_request, converse.parse_response, "messages", CONVERSE, 6),
    "gemini": Format(gemini.parse_request, gemini.parse_response, "contents", GEMINI, 6),
    "anthropic": Format(anthropic.parse_request, anthropic.parse_response, "messages", ANTHROPIC, 7),
    "openai_chat": Format(openai_chat.parse_request, openai_chat.parse_response, "messages", CHAT, 14),
    "openai_responses": Format(openai_responses.parse_request, openai_responses.parse_response, "input", RESPONSES, 10),
}
ODD = {
    "trailing zero": b"1.10",
    "negative zero": b"-0",
    "exponent": b"1E+2",
    "30 digits": b"1" * 30,
    "5,000 digits": b"9" * 5000,
    "lone surrogate": rb'"\ud800 \udc00"',
    "broken UTF-8": b'"\xff\xfe \xc3"',
    "encoded surrogate": b'"\xed\xa0\x80"',
    "escapes nobody needs": rb'"\u0041\/\u00e9"',
    "duplicate keys": b'{"a":1,"a":{"a":2,"a":3}}',
    "white space": b"[ 1 ,\t2\r\n, { } ]",
    "control character": b'"a\tb\x01"',
}
every_format = pytest.mark.parametrize("wire", FORMATS.values(), ids=FORMATS)
every_odd_value = pytest.mark.parametrize("odd", ODD.values(), ids=ODD)


@every_format
@every_odd_value
def test_a_request_nobody_changed_goes_back_byte_for_byte(wire: Format, odd: bytes) -> None:
    for body in (wire.with_odd(odd), b"\xef\xbb\xbf\n" + wire.with_odd(odd) + b"\r\n"):
        request = wire.parse_request(body)

        assert request.render(request.messages) == body
        assert request.render(list(request.messages)) == body


@every_format
@every_odd_value
def test_changing_one_block_changes_exactly_that_string(wire: Format, odd: bytes) -> None:
    request = wire.parse_request(wire.with_odd(odd))
    changed = 0

    for place, message in enumerate(request.messages):
        for index, block in enumerate(message.blocks):
            if not block.path:
                continue
            new = message.with_text(index, "⟦changed⟧")
            messages = [*request.messages[:place], new, *request.messages[place + 1 :]]
            rendered = request.render(messages)
            assert request.render(messages, edited=[place]) == rendered
            written = json_text.dumps({"text": "⟦changed⟧"} if block.within else "⟦changed⟧").encode()
            before, after = rendered.split(written)
            assert request.body.startswith(before)
            assert request.body.endswith(after)
            string = request.body[len(before) : len(request.body) - len(after)]
            was = json_text.parse(json_text.text_of(string))
            if block.within is None:
                assert was == block.text
            elif block.within:
                assert json_text.dumps(was["json"]) == block.text
            else:
                assert json_text.dumps(was) == block.text
            assert new.blocks[index].text == "⟦changed⟧"
            assert wire.parse_request(rendered).messages[place] == new
            changed += 1
    assert changed == wire.strings


@every_format
def test_a_block_without_a_string_of_its_own_cannot_be_changed(wire: Format) -> None:
    request = wire.parse_request(wire.with_odd(b"0"))
    refused = 0

    for message in (*request.head, *request.messages):
        for index, block in enumerate(message.blocks):
            if not block.path and not message.raw.startswith('"'):
                with pytest.raises(WireError):
                    message.with_text(index, "new")
                refused += 1
    assert refused >= 2


@every_format
def test_dropping_a_message_keeps_the_bytes_of_the_others_and_of_all_around(wire: Format) -> None:
    request = wire.parse_request(wire.with_odd(b"1.10"))
    text = json_text.text_of(request.body)
    start, end = json_text.places_in_bytes(text, json_text.find(text, (wire.messages,)))

    for place in range(len(request.messages)):
        kept = [*request.messages[:place], *request.messages[place + 1 :]]
        rendered = request.render(kept)
        assert rendered.startswith(request.body[: start + 1])
        assert rendered.endswith(request.body[end - 1 :])
        assert wire.parse_request(rendered).messages == tuple(kept)


@every_format
def test_a_request_may_lose_all_its_messages_and_gain_others(wire: Format) -> None:
    request = wire.parse_request(wire.with_odd(b"0"))
    more = (*request.messages, request.messages[0])

    assert wire.parse_request(request.render([])).messages == ()
    assert wire.parse_request(request.render(more)).messages == more


@every_format
def test_every_message_is_a_slice_of_the_body(wire: Format) -> None:
    request = wire.parse_request(wire.with_odd(b"1.10"))

    text = json_text.text_of(request.body)

    assert [json.loads(message.raw) for message in request.messages] == json.loads(text)[wire.messages]
    assert all(message.raw in text for message in (*request.head, *request.messages))
    assert all(tool in text for tool in request.tools)


@every_format
def test_what_stands_around_the_messages_is_read(wire: Format) -> None:
    request = wire.parse_request(wire.with_odd(b"0"))
    whole = json.loads(json_text.text_of(request.body))

    assert request.model == whole.get("model", "")  # what the body does not say, the path does
    assert request.stream is whole.get("stream", False)
    assert [json.loads(tool) for tool in request.tools] == (whole.get("tools") or whole["toolConfig"]["tools"])
    assert "".join(message.text for message in (*request.head, request.messages[0])).startswith(
        "You are a careful engineer."
    )


@every_format
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"4",
        b"null",
        b'"messages"',
        b"[]",
        b"{}",
        b"\xff\xfe",
        b'{"messages":{},"input":{}}',
        b'{"messages":[],"input":[],}',
        b'{"messages":[],"input":[]} {}',
        b'{"messages":[],"input":[]',
        b'{"messages":[{"role":"critic","content":"x"}],"input":[{"role":"critic","content":"x"}]}',
        b'{"messages":[{"role":["user"]}],"input":[{"role":["user"]}]}',
        b'{"messages":[{"role":null}],"input":[{"role":null}]}',
        b'{"messages":["%s"],"input":["%s"]}' % (b"x" * 999, b"x" * 999),
        b'{"messages":[4],"input":[4]}',
        b'{"messages":[' + b"[" * 100_000,
    ],
    ids=lambda body: repr(body[:40]),
)
def test_a_body_that_is_not_a_request_is_refused_in_one_sentence(wire: Format, body: bytes) -> None:
    with pytest.raises(WireError, match=r"\A[^\n]{10,160}\Z"):
        wire.parse_request(body)


@every_format
@pytest.mark.parametrize("body", [b"{}", b'{"messages":{},"input":{}}', b'{"messages":null,"input":null}'])
def test_a_request_without_a_list_of_messages_is_refused_and_the_place_named(wire: Format, body: bytes) -> None:
    with pytest.raises(WireError, match=f"has a list under '{wire.messages}'"):
        wire.parse_request(body)


@every_format
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"7",
        b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        b'{"error":{"message":"no","type":"invalid_request_error"}}',
        b'{"content":"x","choices":[],"output":"x"}',
        b'{"content":null,"choices":[{}],"output":null}',
        b'{"content":{},"choices":{"0":{}},"output":{}}',
    ],
)
def test_a_body_that_is_not_an_answer_is_refused_in_one_sentence(wire: Format, body: bytes) -> None:
    with pytest.raises(WireError, match=r"\A[^\n]{10,160}\Z"):
        wire.parse_response(body)


def spoiled(value: Any, draw: Callable[[int], int]) -> Any:
    """The value with something of another type in one place of it."""
    places = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    at = draw(len(places) + 1)
    if at == len(places):
        return (None, 7, "x", [], {}, [7], {"type": "text"}, True)[draw(8)]
    copy = value.copy()
    copy[places[at]] = spoiled(copy[places[at]], draw)
    return copy


@every_format
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_a_body_with_anything_in_it_is_refused_or_goes_back_the_same(wire: Format, data: st.DataObject) -> None:
    whole = json.loads(wire.body.replace(b"@", b"0"))
    body = json.dumps(spoiled(whole, lambda below: data.draw(st.integers(0, below - 1)))).encode()

    try:
        request = wire.parse_request(body)
    except WireError:
        return
    assert request.render(request.messages) == body
    assert all(isinstance(message.text, str) for message in (*request.head, *request.messages))
    for message in request.messages:
        for index, block in enumerate(message.blocks):
            if block.path:
                assert message.with_text(index, "new").blocks[index].text == "new"


def test_a_string_that_is_the_whole_head_can_be_changed() -> None:
    request = anthropic.parse_request(b'{"system": "Be \\u00e9." , "messages": []}')

    assert request.head[0].with_text(0, "No.").raw == '"No."'


def test_the_text_of_a_message_is_what_a_model_reads_of_it() -> None:
    words, call = Block(BlockKind.TEXT, "words"), Block(BlockKind.CALL, '{"a":1}', name="read")

    assert Message(Role.ASSISTANT, (words, call, call), "").text == 'words\nread {"a":1}\nread {"a":1}'
    assert Message(Role.ASSISTANT, (call,), "").text == 'read {"a":1}'
    assert Message(Role.USER, (words,), "").text == "words"
    assert Message(Role.USER, (), "").text == ""


def test_a_prompt_is_all_that_was_read_and_written() -> None:
    assert Usage(fresh=1, cache_read=20, cache_write=300, output=4000).prompt == 321


def test_a_result_without_a_text_is_still_a_result() -> None:
    image, text = Block(BlockKind.MEDIA, ""), Block(BlockKind.TEXT, "x", ("content",))

    assert list(as_result([image], "c1", "read", failed=True)) == [
        Block(BlockKind.RESULT, "", (), "c1", "read", failed=True),
        Block(BlockKind.MEDIA, "", (), "c1", "read"),
    ]
    assert list(as_result([text, image], "c1")) == [
        Block(BlockKind.RESULT, "x", ("content",), "c1"),
        Block(BlockKind.MEDIA, "", (), "c1"),
    ]
    assert list(as_result([], "c1")) == [Block(BlockKind.RESULT, "", (), "c1")]
