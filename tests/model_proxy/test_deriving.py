"""Same history, same bytes: with what is remembered and without, whatever the client did to its marks meanwhile."""

import json
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policy import NOTHING, Abilities, Derived, Notes
from pagefold.encode.choose import decode
from pagefold.errors import PagefoldError
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.history_memory import tidy
from pagefold.model_proxy.http import window_in
from pagefold.model_proxy.totals import Ending
from pagefold.pages.memory_store import MemoryStore
from pagefold.settings.sections import PriceTable
from pagefold.wire import anthropic
from pagefold.wire.apis import APIS, CONVERSE, GENERATE, INTERACTIONS, MESSAGES
from pagefold.wire.message import Message
from tests.model_proxy.conversation import (
    FILE,
    POLICIES,
    Folding,
    body,
    canonical_messages,
    history,
    marked,
    sent,
    turn,
)

# ---- the prefix and the memo


@pytest.mark.parametrize("name", POLICIES)
def test_with_what_is_remembered_and_without_the_same_bytes_come_out(name: str) -> None:
    lasting = Conversations(POLICIES[name]())
    for turns in range(14):
        data = body(marked(history(turns)))

        assert sent(lasting, data) == sent(Conversations(POLICIES[name]()), data)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_forks_edits_retries_swaps_repeats_and_lost_memories_change_no_byte(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(POLICIES)))
    lasting = Conversations(POLICIES[name]())
    for _ in range(6):
        messages = history(data.draw(st.integers(0, 10)), first=data.draw(st.sampled_from(["Go.", "Stop."])))
        if data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(messages)))
            messages.insert(at, {"role": data.draw(st.sampled_from(["user", "system"])), "content": "By the way."})
        if data.draw(st.booleans()):
            one, other = (data.draw(st.integers(0, len(messages) - 1)) for _ in range(2))
            messages[one], messages[other] = messages[other], messages[one]
        if data.draw(st.booleans()):
            messages.insert(0, messages[data.draw(st.integers(0, len(messages) - 1))])
        asked = body(marked(messages) if data.draw(st.booleans()) else messages)

        assert sent(lasting, asked) == sent(Conversations(POLICIES[name]()), asked)


def test_under_lossless_every_request_extends_the_last() -> None:
    conversations = Conversations(policy_named("lossless"))
    before: list[Any] = []
    for turns in range(12):
        data = sent(conversations, body(marked(history(turns))))
        found = canonical_messages(data)

        assert found[: len(before)] == before
        before = found

    assert len(data) < 0.7 * len(body(marked(history(11))))


def test_a_folding_policy_moves_the_prefix_at_fold_points_only() -> None:
    conversations = Conversations(Folding())
    before: list[Any] = []
    moved = []
    for turns in range(20):
        exchange = Exchange("POST", MESSAGES.path, body(marked(history(turns))), conversations)
        exchange.read()
        found = canonical_messages(exchange.derive() or body(marked(history(turns))))
        if found[: len(before)] != before:
            moved.append(turns)
            assert (b"x-pagefold-fold", b"too much") in exchange.headers
        before = found

    assert len(moved) in (2, 3)


def test_a_request_that_led_to_no_answer_leaves_no_trace() -> None:
    """It folded, the client gave up and asked something else: without memory of it the fold would come later."""
    conversations = Conversations(Folding(window=2))
    assert b"[folded]" in sent(conversations, body(history(3)))
    longer = body([*history(3), {"role": "user", "content": "Never mind."}])

    assert sent(conversations, longer) == sent(Conversations(Folding(window=2)), longer)


def test_a_handle_does_not_depend_on_where_the_marks_were() -> None:
    lasting = Conversations(Economic(window=20_000))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    folds = 0
    for number in range(16):
        lines = (f"{at}\tvalue_{at * 7919 * (number + 3) % 10**7} = {at * 104729 % 10**6}" for at in range(1, 120))
        messages += turn(number, "\n".join(lines))
        data = body(marked(messages))
        found = sent(lasting, data)
        folds += b"context_recall" in found

        if number % 5 == 0:
            assert found == sent(Conversations(Economic(window=20_000)), data)
    assert folds


# ---- what the client sent stays as it came


def test_a_request_that_needs_no_change_is_left_alone() -> None:
    conversations = Conversations(policy_named("lossless"))
    exchange = Exchange("POST", MESSAGES.path, body([{"role": "user", "content": "Hi"}]), conversations)

    assert exchange.read()
    assert exchange.derive() is None


def test_everything_but_a_changed_text_keeps_its_bytes() -> None:
    result = json.dumps(FILE)
    data = (
        '{ "system" :[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}], "temperature": 1.10,\n'
        ' "messages":[{"content":"Gö.","role":"user"} ,{"role":"assistant","content":[{"type":"thinking","thinking":"",'
        '"signature":"abc=="},{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":1e400}},'
        '{"type":"tool_use","id":"t1","name":"Read","input":{"path":"a.py","limit":1.0}}]},\n'
        ' {"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":[{"type":"text","text":RESULT,'
        '"cache_control":{"type":"ephemeral","ttl":"1h"}}]},{"type":"next_year","x":[]}]}], "stream":false}\n'
    ).replace("RESULT", result)
    found = sent(Conversations(policy_named("lossless")), data.encode()).decode()

    shown = json.loads(found)["messages"][2]["content"][0]["content"][0]["text"]
    assert shown != FILE
    assert found.replace(json.dumps(shown, ensure_ascii=False), result) == data


def test_marks_go_where_the_client_put_them_this_time() -> None:
    conversations = Conversations(policy_named("lossless"))
    for turns in range(6):
        messages = marked(history(turns))
        found = json.loads(sent(conversations, body(messages)))["messages"]

        marks = [at for at, message in enumerate(found) if "cache_control" in json.dumps(message)]
        assert marks == [len(messages) - 1]
        assert [type(message["content"]) for message in found] == [type(message["content"]) for message in messages]


# ---- what is left alone


@pytest.mark.parametrize(
    "data",
    [
        b"not json",
        b'{"messages": [{"role": "nobody"}]}',
        b'{"messages": []}',
        b'{"messages": [{"role": "user", "content": [{"type": "from_next_year", "x": 1}]}]}',
    ],
)
def test_what_is_not_understood_goes_through_as_it_came(data: bytes) -> None:
    assert sent(Conversations(policy_named("lossless")), data) == data


@pytest.mark.parametrize("more", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
def test_what_the_provider_holds_is_left_alone(more: dict[str, str]) -> None:
    api = APIS["/v1/responses"]
    item = {"type": "function_call_output", "call_id": "c1", "output": FILE}
    plain, delta = (json.dumps({"model": "gpt-6", "input": [item], **rest}).encode() for rest in ({}, more))

    assert sent(Conversations(policy_named("lossless")), delta, api) == delta
    assert sent(Conversations(policy_named("lossless")), plain, api) != plain


def test_a_client_can_switch_it_off_or_choose() -> None:
    data = body(history(3))
    plain, lossless = Conversations(), Conversations(policy_named("lossless"))

    assert sent(lossless, data, wish="off") == data
    assert sent(lossless, data, wish="identity") == data
    assert sent(lossless, data) != data
    assert sent(Conversations(policy_named("identity")), data, wish="lossless") == sent(lossless, data)
    assert sent(plain, data) == sent(plain, data, wish="lossless") == data  # who observes changes nothing at all
    assert Exchange("POST", MESSAGES.path, data, plain, wish="no-such").refusal


def test_what_is_only_counted_extends_no_history_that_is_derived_from() -> None:
    conversations = Conversations(policy_named("lossless"))
    sent(conversations, body(history(3)))
    known = conversations.request_cache.read(MESSAGES, body(history(3)))
    off = Exchange("POST", MESSAGES.path, body(history(4)), conversations, wish="off")
    off.answer_began(200, "application/json")

    assert off.finish(Ending.WHOLE).messages == len(history(4))
    assert off.record is not None
    assert len(known.request.messages._items) == len(known.prefix_hashes._items) == len(history(3))


@pytest.mark.parametrize("path", sorted(APIS.keys() - {INTERACTIONS.path}))
def test_all_apis_are_derived(path: str) -> None:
    contents: dict[str, list[Any]] = {
        "/v1/messages": history(3),
        "/v1/chat/completions": [
            {"role": "user", "content": "Go."},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": FILE},
        ],
        GENERATE.path: [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "Read", "args": {}}, "thoughtSignature": "gAAA=="}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "Read", "response": {"output": FILE}}}]},
        ],
        CONVERSE.path: [
            {"role": "user", "content": [{"text": "Go."}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "Read", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": FILE}]}}]},
        ],
        "/v1/responses": [
            {"role": "user", "content": "Go."},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA=="},
            {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": FILE},
        ],
    }
    data = json.dumps({"model": "m", APIS[path].shape.messages: contents[path]}).encode()
    conversations = Conversations(policy_named("lossless"))

    found = sent(conversations, data, APIS[path])

    assert len(found) < 0.9 * len(data)
    assert sent(conversations, data, APIS[path]) == found


# ---- notes


def test_a_request_that_is_too_long_is_made_smaller_once() -> None:
    conversations = Conversations(Folding(window=100), store=(store := MemoryStore()))
    data = body(history(4))
    exchange = Exchange("POST", MESSAGES.path, data, conversations)
    assert exchange.read()
    assert exchange.derive() is None
    refusal = b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 3 > 2"}}'

    assert exchange.smaller(400, b'{"error":{"message":"no such model"}}') is None
    smaller = exchange.smaller(400, refusal)
    assert smaller is not None
    assert smaller.count(b"[folded]") == 3
    assert exchange.smaller(400, refusal) is None

    # What cannot be recomputed is a note: the next turn, here and in another instance on the same store, knows it.
    longer = body(history(5))
    other = Conversations(Folding(window=100), store=store)
    assert sent(conversations, longer) == sent(other, longer)
    assert sent(other, longer).count(b"[folded]") == 3
    assert sent(Conversations(Folding(window=100)), longer).count(b"[folded]") == 0


def test_policies_that_never_fold_relay_the_refusal() -> None:
    exchange = Exchange("POST", MESSAGES.path, body(history(4)), Conversations(policy_named("lossless")))
    exchange.read()
    exchange.derive()

    assert not exchange.may_shrink


@dataclass
class Spy:
    """Counts what a policy is shown."""

    name: str = "spy"
    shown: list[int] = field(default_factory=list)

    abilities: ClassVar[Abilities] = Abilities()

    def begin(self, head: int = 0) -> tuple[Message, ...]:
        return ()

    def step(self, state: Any, message: Message) -> Any:
        self.shown.append(message.place)
        return (*state, message)

    def request(self, state: Any, notes: Notes = NOTHING) -> tuple[Any, Derived]:
        return (), Derived(0, state) if not self.shown else Derived(self.shown[0], state)

    __hash__ = object.__hash__


def test_a_new_turn_shows_the_policy_its_new_messages_only() -> None:
    spy = Spy()
    conversations = Conversations(spy)
    sent(conversations, body(marked(history(4))))
    spy.shown.clear()

    sent(conversations, body(marked(history(5))))

    assert spy.shown == [9, 10]


def test_what_is_remembered_is_bounded_and_forgotten_by_whole_histories() -> None:
    policy = policy_named("lossless")
    conversations = Conversations(policy)
    memory, derivations = conversations.memory, conversations.derivations_for("messages", policy)
    tasks = [body(history(3, first=f"Task {number}")) for number in range(30)]
    sent(conversations, tasks[0])
    memory.most = 11 * memory.used // 2
    for task in (*tasks, tasks[27]):
        sent(conversations, task)

    assert memory.used <= memory.most
    assert len(memory) == 5
    held = {id(run.history): run.history for run in derivations._cached.values()}
    assert len(held) == 5
    assert memory.used == sum(history.size for history in held.values())
    assert {key for history in held.values() for key in history.keys} == derivations._cached.keys()
    memory.most = memory.used // 5
    assert sent(conversations, tasks[27])  # used last of those before, and so the one that is left
    assert len(memory) == 1


def test_histories_that_nobody_uses_are_forgotten_after_a_while() -> None:
    conversations = Conversations(policy_named("lossless"))
    sent(conversations, body(history(3, first="Task 1")))
    assert conversations.memory.grow_older(2) == 0
    sent(conversations, body(history(3, first="Task 2")))

    assert conversations.memory.grow_older(2) > 0
    assert len(conversations.memory) == 1
    assert conversations.memory.grow_older(2) > 0
    assert conversations.memory.used == 0


def test_histories_give_way_where_the_process_takes_more_than_it_may() -> None:
    conversations, given = Conversations(policy_named("lossless")), list[int]()
    memory = conversations.memory
    for number in range(20):
        sent(conversations, body(history(3, first=f"Task {number}")))
    one, memory.most = memory.used // 20, memory.used
    tidy(memory, 16, lambda: 15, lambda: given.append(len(memory)))
    assert (len(memory), given) == (20, [])
    tidy(memory, 16, lambda: 15 + 5 * one, lambda: given.append(len(memory)))
    assert (len(memory), given) == (14, [14])
    for _ in range(9):  # whatever else fills the process: those used last are kept
        tidy(memory, 16, lambda: 15 + 5 * one, lambda: given.append(len(memory)))
    assert 4 <= len(memory) <= 5
    assert sent(conversations, body(history(3, first="Task 3"))) == sent(
        Conversations(policy_named("lossless")), body(history(3, first="Task 3"))
    )


def test_a_reading_seen_before_shares_its_messages() -> None:
    conversations = Conversations()
    first = conversations.request_cache.read(MESSAGES, body(history(8)))
    second = conversations.request_cache.read(MESSAGES, body(history(9)))

    assert [one is other for one, other in zip(first.request.messages, second.request.messages, strict=False)] == (
        [True] * len(first.request.messages)
    )
    assert second.prefix_hashes[: len(first.prefix_hashes)] == first.prefix_hashes
    assert replace(second.request) == anthropic.parse_request(body(history(9)))


@pytest.mark.parametrize(
    ("headers", "window"),
    [
        ({}, 0),
        ({b"x-pagefold-window": b"50000"}, 50_000),
        ({b"x-pagefold-window": b"many"}, 0),
        ({b"anthropic-beta": b"a-1,context-1m-2025-08-07"}, 1_000_000),
        ({b"anthropic-beta": b"context-1m-2025-08-07", b"x-pagefold-window": b"300000"}, 300_000),
    ],
)
def test_the_window_is_what_the_request_says_it_is(headers: dict[bytes, bytes], window: int) -> None:
    assert window_in(headers) == window


def test_a_window_that_the_user_gave_counts_more_than_the_clients_flag() -> None:
    assert window_in({b"anthropic-beta": b"context-1m-2025-08-07"}, given=True) == 0


def test_a_smaller_window_folds_sooner() -> None:
    data = body(history(12))
    found = []
    for window in (0, 3):
        exchange = Exchange("POST", MESSAGES.path, data, Conversations(Folding(window=100)), window=window)
        exchange.read()
        found.append(b"[folded]" in (exchange.derive() or data))

    assert found == [False, True]


@pytest.mark.parametrize(
    ("model", "window", "fresh", "counter"),
    [
        ("claude-sonnet-4-5-20250929", 200_000, 3.0, "claude-3"),
        ("claude-haiku-4-5", 200_000, 1.0, "claude-3"),
        ("claude-sonnet-4-5[1m]", 1_000_000, 3.0, "claude-3"),
        ("claude-opus-5", 1_000_000, 5.0, "claude-5"),
        ("claude-opus-5-5", 1_000_000, 4.0, "claude-5"),
        ("claude-sonnet-5", 1_000_000, 2.0, "claude-5"),
        ("gpt-5-codex", 272_000, 1.25, "o200k"),
        ("gpt-5.6-sol", 922_000, 4.0, "o200k"),
        ("gpt-4o-mini", 128_000, 0.15, "o200k"),
        ("gpt-4.1", 1_000_000, 2.0, "o200k"),
        ("o3-mini", 200_000, 1.1, "o200k"),
        ("a-model-of-nobody", 77_000, 5.0, "o200k"),
    ],
)
def test_a_policy_that_folds_goes_by_the_model(model: str, window: int, fresh: float, counter: str) -> None:
    def chosen(conversations: Conversations, said: int = 0) -> Economic:
        assert conversations.policy is not None
        found = conversations.derivations_for(MESSAGES.name, conversations.policy, said, model)
        assert isinstance(found.policy, Economic)
        return found.policy

    policy = chosen(Conversations(Economic(window=77_000), known=ModelPrices()))
    assert (policy.window, policy.prices.fresh, policy.tokens) == (window, fresh, counter)
    assert chosen(Conversations(Economic(), known=ModelPrices()), 5_000).window == 5_000
    own = PriceTable(name="mine", fresh=1, read=0.2, write=1.5, output=4)
    owned = Conversations(Economic(), known=ModelPrices([own], "mine"), window=6_000)
    assert (chosen(owned).window, chosen(owned).prices.name) == (6_000, "mine")


def test_a_request_folds_when_the_window_of_its_own_model_is_full() -> None:
    folded = []
    for model in ("claude-sonnet-4-5", "claude-sonnet-5"):
        messages = [{"role": "user", "content": "Go."}]
        for number in range(12):
            messages += turn(number, " ".join(f"{number}-{at:x}" for at in range(5_000)))
        exchange = Exchange(
            "POST", MESSAGES.path, body(messages, model=model), Conversations(Economic(), known=ModelPrices())
        )
        exchange.read()
        folded.append(b"pf-" in (exchange.derive() or b""))

    assert folded == [True, False]


def test_where_a_policy_folds_the_provider_clears_no_results_as_well() -> None:
    thinking = {"type": "clear_thinking_20251015", "keep": "all"}
    clearing = {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 30_000}}
    both = body(history(2), context_management={"edits": [thinking, clearing]})
    other = body(history(2), context_management={"edits": [thinking]})

    found = json.loads(sent(Conversations(Folding(window=100)), both))
    assert found == json.loads(both) | {"context_management": {"edits": [thinking]}}
    assert sent(Conversations(Folding(window=100)), other) == other
    for name in ("identity", "lossless"):
        assert json.loads(sent(Conversations(POLICIES[name]()), both))["context_management"]["edits"][1] == clearing


def results(data: bytes) -> list[str]:
    blocks = [block for message in json.loads(data)["messages"] for block in message["content"]]
    return [block["content"] for block in blocks if isinstance(block, dict) and block["type"] == "tool_result"]


def is_whole(form: str, text: str) -> bool:
    """Whether a form says its text by itself, with nothing standing above it."""
    try:
        return decode(form) == text
    except (PagefoldError, ValueError, KeyError):
        return False


def test_what_the_provider_may_clear_is_never_referred_to() -> None:
    messages = history(6)
    asked = body(messages, context_management={"edits": [{"type": "clear_tool_uses_20250919"}]})
    lasting = Conversations(policy_named("lossless"))
    texts = results(asked)

    assert not all(map(is_whole, results(sent(lasting, body(messages))), texts))
    assert all(map(is_whole, results(sent(lasting, asked)), texts))
    assert len(sent(lasting, asked)) < len(asked)
    assert sent(Conversations(policy_named("lossless")), asked) == sent(lasting, asked)


# ---- cache marks


def marks(data: bytes) -> list[tuple[int, Any]]:
    return [
        (at, block["cache_control"])
        for at, message in enumerate(json.loads(data)["messages"])
        for block in (message["content"] if isinstance(message["content"], list) else ())
        if "cache_control" in block
    ]


@given(st.sets(st.integers(0, 28), max_size=4), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_a_mark_on_what_was_folded_stands_at_the_end_of_what_is_in_its_place(at: set[int], hours: int) -> None:
    messages = history(14)
    for number, place in enumerate(sorted(at)):
        life = {"ttl": "1h"} if number < hours else {}
        messages[place] = marked([messages[place]])[0]
        messages[place]["content"][-1]["cache_control"] = {"type": "ephemeral", **life}
    found = sent(Conversations(Economic(window=6_000)), body(messages))
    plain = sent(Conversations(Economic(window=6_000)), body(history(14)))

    assert canonical_messages(found) == canonical_messages(plain)
    kept = marks(found)
    assert len(kept) <= len(at)
    assert bool(kept) == bool(at)
    lives = [mark.get("ttl", "") for _, mark in kept]
    assert lives == sorted(lives, reverse=True)


def test_a_mark_within_the_fold_stands_on_the_digest_and_one_behind_it_where_it_was() -> None:
    messages = history(14)
    for place in (2, 4, 28):
        messages[place] = marked([messages[place]])[0]
    found = sent(Conversations(Economic(window=6_000)), body(messages))
    digest = next(at for at, message in enumerate(json.loads(found)["messages"]) if "pf-" in json.dumps(message))

    assert [at for at, _ in marks(found)] == [digest, len(json.loads(found)["messages"]) - 1]
