"""The rules of generateContent, each broken once, and what the referee answers in its place."""

import json
from typing import Any

import pytest

from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.referee import Referee
from pagefold.provider.reply import ProviderReply
from pagefold.provider.signature import Sealed, seal

SIGNED = seal(Sealed("thought", "r1", 4))
USER = {"role": "user", "parts": [{"text": "Go."}]}
CALL = {"functionCall": {"id": "c1", "name": "read", "args": {}}, "thoughtSignature": SIGNED}
RESPONSE = {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "x"}}}
TOOLS = [{"functionDeclarations": [{"name": "read"}]}]


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def ask(
    contents: Any, name: str = "gemini-3.8-flash", method: str = "generateContent", **members: Any
) -> ProviderReply:
    body = json.dumps({"contents": contents, "tools": TOOLS, **members}).encode()
    return Referee(window=members.pop("window", 0)).answer(f"/v1beta/models/{name}:{method}", {}, body, 0.0)


SOUND: dict[str, list[Any]] = {
    "a question": [USER],
    "without a role": [{"parts": [{"text": "Go."}]}],
    "a turn": [USER, model(CALL), user(RESPONSE)],
    "a turn of two calls": [USER, model(CALL, {"functionCall": {"name": "list"}}),
                            user({"functionResponse": {"name": "list", "response": {}}}, RESPONSE)],
    "an old turn without signatures": [USER, model({"functionCall": {"name": "read"}}),
                                       user({"functionResponse": {"name": "read", "response": {}}}), USER],
    "a client that says it has no signature": [
        USER, model({**CALL, "thoughtSignature": "skip_thought_signature_validator"}), user(RESPONSE)],
    "the role function": [USER, model(CALL), {"role": "function", "parts": [RESPONSE]}],
}  # fmt: skip


@pytest.mark.parametrize("contents", SOUND.values(), ids=SOUND)
def test_what_is_sound_is_answered(contents: list[Any]) -> None:
    assert ask(contents).accepted, ask(contents).message


BROKEN: dict[str, tuple[str, list[Any]]] = {
    "nothing": ("gemini_request", []),
    "no parts": ("gemini_request", [{"role": "user", "parts": []}]),
    "an empty part": ("gemini_request", [{"role": "user", "parts": [{}]}]),
    "a response that is no object": (
        "gemini_request", [USER, model(CALL), user({"functionResponse": {"name": "read", "response": "x"}})]),
    "another role": ("gemini_role", [{"role": "assistant", "parts": [{"text": "a"}]}]),
    "a call first": ("gemini_call_place", [model(CALL), user(RESPONSE)]),
    "a call behind the model": ("gemini_call_place", [USER, model({"text": "a"}), model(CALL), user(RESPONSE)]),
    "a response to nobody": ("gemini_response_place", [USER, user(RESPONSE)]),
    "a call without a response": ("gemini_response_count", [USER, model(CALL), USER]),
    "a call at the end": ("gemini_response_count", [USER, model(CALL)]),
    "two responses to one call": ("gemini_response_count", [USER, model(CALL), user(RESPONSE, RESPONSE)]),
    "another name": (
        "gemini_response_id", [USER, model(CALL), user({"functionResponse": {"name": "list", "response": {}}})]),
    "another id": (
        "gemini_response_id",
        [USER, model(CALL), user({"functionResponse": {"name": "read", "id": "c2", "response": {}}})]),
    "no signature": ("gemini_signature", [USER, model({"functionCall": {"name": "read"}}),
                                          user({"functionResponse": {"name": "read", "response": {}}})]),
    "a changed signature": (
        "gemini_signature_changed", [USER, model({**CALL, "thoughtSignature": SIGNED[:-4] + "AAA="}), user(RESPONSE)]),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "contents"), BROKEN.values(), ids=BROKEN)
def test_what_breaks_a_rule_is_refused_by_it(rule: str, contents: list[Any]) -> None:
    reply = ask(contents)
    assert (reply.status, reply.record.rule) == (400, rule)
    assert reply.message["error"]["status"] == "INVALID_ARGUMENT"


def test_models_before_gemini_3_ask_for_no_signature_and_give_no_ids() -> None:
    contents = BROKEN["no signature"][1]
    assert ask(contents, "gemini-2.5-flash").accepted
    referee = Referee(answers=lambda number, request: Answer(calls=[AnswerCall("read", {})]))
    for name, keys in (("gemini-2.5-flash", set()), ("gemini-3.8-flash", {"id"})):
        body = json.dumps({"contents": [USER]}).encode()
        reply = referee.answer(f"/v1/models/{name}:generateContent", {}, body, 0.0)
        part = reply.message["candidates"][0]["content"]["parts"][0]
        assert set(part["functionCall"]) == {"name", "args"} | keys
        assert ("thoughtSignature" in part) is bool(keys)


@pytest.mark.parametrize(
    ("rule", "status", "more"),
    [
        ("gemini_tool_twice", 400, {"tools": TOOLS * 2}),
        ("gemini_cached", 403, {"cachedContent": "cachedContents/none"}),
        ("gemini_model", 404, {"name": "claude-opus-5"}),
    ],
)
def test_what_stands_around_the_contents_is_judged(rule: str, status: int, more: dict[str, Any]) -> None:
    reply = ask([USER], **more)
    assert (reply.status, reply.record.rule) == (status, rule)


def test_a_prompt_beyond_the_window_is_refused() -> None:
    body = json.dumps({"contents": [user({"text": "word " * 500})]}).encode()
    reply = Referee(window=100).answer("/v1beta/models/gemini-3.8-flash:generateContent", {}, body, 0.0)
    assert reply.record.rule == "gemini_too_long"


def test_cached_content_stands_before_the_request_and_excludes_its_tools() -> None:
    referee = Referee()
    made = json.dumps({"model": "models/gemini-3.8-flash", "contents": [USER, model(CALL)], "tools": TOOLS}).encode()
    name = referee.answer("/v1beta/cachedContents", {}, made, 0.0).message["name"]
    path = "/v1beta/models/gemini-3.8-flash:generateContent"

    body = {"contents": [user(RESPONSE)], "cachedContent": name}
    assert referee.answer(path, {}, json.dumps(body).encode(), 0.0).accepted
    refused = referee.answer(path, {}, json.dumps({**body, "tools": TOOLS}).encode(), 0.0)
    assert refused.record.rule == "gemini_cached"


def test_the_implicit_cache_reads_what_was_sent_lately() -> None:
    referee = Referee()
    path = "/v1beta/models/gemini-2.5-flash:generateContent"
    contents = [user({"text": "word " * 3000}), model({"text": "So."}), USER]
    for now, read in ((0.0, False), (10.0, True), (1000.0, False)):
        reply = referee.answer(path, {}, json.dumps({"contents": contents}).encode(), now)
        used = reply.message["usageMetadata"]
        assert ("cachedContentTokenCount" in used) is read
        contents = [*contents, model({"text": "Yes."}), USER]
