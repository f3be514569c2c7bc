"""A live history keeps what it began with: settings, policy and head, across restarts and between instances."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pagefold.derive import pinned_policy
from pagefold.derive.learned import Folds, forms_of
from pagefold.derive.pinned_policy import LOST, PASSED
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policies.reset import Reset
from pagefold.derive.policy import Policy
from pagefold.derive.values import Priors
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.pages.memory_store import MemoryPages, MemoryStore
from pagefold.pages.store import NotesAsPages
from pagefold.wire.apis import MESSAGES

Messages = list[dict[str, Any]]
TOOLS = [{"name": "Read", "description": "Reads a file."}]
MORE_TOOLS = [*TOOLS, *({"name": f"tool_{number}", "description": "Does more. " * 120} for number in range(60))]

BEFORE = Economic(window=14_000)
CHANGES: dict[str, Policy] = {
    "window": replace(BEFORE, window=11_000),
    "folds": replace(BEFORE, folds=Folds(least=1_000, rent=0.0, miss=500)),
    "values": replace(BEFORE, priors=Priors(bias=-6.0)),
    "codecs": replace(BEFORE, forms=forms_of([("Read", ["numbered"])])),
    "policy": Reset(window=9_000, threshold_tokens=4_000),
    "lossless": Lossless(),
}


def history(turns: int, first: str = "Go.", name: str = "t") -> Messages:
    found: Messages = [{"role": "user", "content": first}]
    for number in range(turns):
        call = {"type": "tool_use", "id": f"{name}{number}", "name": "Read", "input": {"path": f"{number}.py"}}
        lines = (f"{at:6}\tvalue_{at * 7919 * (number + 3) % 10**7} = load_{number}({at})" for at in range(1, 70))
        result = {"type": "tool_result", "tool_use_id": f"{name}{number}", "content": "\n".join(lines)}
        found += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return found


class Client:
    """Sends histories to instances, and watches the prefix of one of them."""

    def __init__(self, now: float = 0.0) -> None:
        self.now, self.before = now, list[Any]()
        self.moves: list[str] = []
        self.folds = 0

    def send(self, instance: Conversations, messages: Messages, tools: Sequence[Any] = TOOLS, wish: str = "") -> bytes:
        rest = {"system": "Be brief.", "tools": list(tools), "stream": True}
        data = json.dumps({"model": "a-model", "messages": messages, **rest}).encode()
        exchange = Exchange("POST", MESSAGES.path, data, instance, wish=wish)
        self.now += 10
        derived = (exchange.derive(self.now) if exchange.read(self.now) else None) or data
        found = json.loads(derived)["messages"]
        told = dict(exchange.headers)
        reason = (told.get(b"x-pagefold-begun-anew") or told.get(b"x-pagefold-fold", b"")).decode()
        if found[: len(self.before)] != self.before:
            self.moves.append(reason)
        self.folds += b"x-pagefold-fold" in told
        self.before = found
        return derived


def lived(turns: Sequence[int], instance: Callable[[int], Conversations], tools: Callable[[int], Any]) -> list[bytes]:
    client = Client()
    found = [client.send(instance(turn), history(turn), tools(turn)) for turn in turns]
    assert all(client.moves), "a move without a reason"
    return found


def undisturbed(turns: Sequence[int]) -> list[bytes]:
    alone = Conversations(BEFORE)
    return lived(turns, lambda turn: alone, lambda turn: TOOLS)


@pytest.mark.parametrize("name", CHANGES)
def test_each_of_the_changes_would_move_the_prefix(name: str) -> None:
    alone, known = Conversations(CHANGES[name]), undisturbed(range(24))
    found = lived(range(24), lambda turn: alone, lambda turn: TOOLS)

    assert [data != other for data, other in zip(found, known, strict=True)][9:].count(True) > 5


@pytest.mark.parametrize("name", CHANGES)
def test_after_a_restart_with_other_settings_a_history_goes_on_as_it_began(name: str) -> None:
    store = MemoryStore()
    before, after = Conversations(BEFORE, store=store), Conversations(CHANGES[name], store=store)
    found = lived(range(24), lambda turn: before if turn < 9 else after, lambda turn: TOOLS)

    assert found == undisturbed(range(24))


@pytest.mark.parametrize("name", CHANGES)
def test_two_instances_with_other_settings_serve_one_history_alike(name: str) -> None:
    store = MemoryStore()
    two = Conversations(BEFORE, store=store), Conversations(CHANGES[name], store=store)
    found = lived(range(24), lambda turn: two[turn % 2], lambda turn: TOOLS)

    assert found == undisturbed(range(24))


@pytest.mark.parametrize("name", CHANGES)
def test_a_new_history_gets_the_new_settings_even_where_it_begins_with_the_same_words(name: str) -> None:
    store, client = MemoryStore(), Client()
    for turn in range(20):
        client.send(Conversations(BEFORE, store=store), history(turn))
    later, new = Client(now=10_000), Conversations(CHANGES[name], store=store)
    fresh, alone = Client(), Conversations(CHANGES[name])
    for turn in range(20):
        assert later.send(new, history(turn, name="u")) == fresh.send(alone, history(turn, name="u"))

    assert later.before != client.before


@pytest.mark.parametrize("name", CHANGES)
def test_a_fork_of_an_old_history_inherits_what_it_began_with(name: str) -> None:
    store = MemoryStore()
    before, after = Conversations(BEFORE, store=store), Conversations(CHANGES[name], store=store)
    for turn in range(16):
        Client(turn).send(before, history(turn))
    fork = [*history(16)[:-6], {"role": "user", "content": "Something else, then."}, *history(12, name="f")[1:]]

    assert Client(500).send(after, fork) == Client().send(Conversations(BEFORE), fork)


def test_a_head_that_grew_moves_no_fold_point() -> None:
    """Not in the instance that saw it grow, and not in one that never saw it small."""
    store = MemoryStore()
    one, other = Conversations(BEFORE, store=store), Conversations(BEFORE, store=store)
    grown = lambda turn: TOOLS if turn < 5 else MORE_TOOLS  # noqa: E731
    alone = Conversations(BEFORE)
    found = lived(range(24), lambda turn: one if turn < 9 else other, grown)
    begun_with_it = lived(range(24), lambda turn: alone, lambda turn: MORE_TOOLS)

    messages = [json.loads(data)["messages"] for data in found]
    assert messages == [json.loads(data)["messages"] for data in undisturbed(range(24))]
    assert messages != [json.loads(data)["messages"] for data in begun_with_it]


def test_two_heads_before_the_same_words_are_not_mixed_up() -> None:
    lasting = Conversations(BEFORE)
    for turn in range(20):
        for tools in (TOOLS, MORE_TOOLS):
            first = "Go." if tools is TOOLS else "Go on."
            found = Client().send(lasting, history(turn, first), tools)
            assert found == Client().send(Conversations(BEFORE), history(turn, first), tools)


@pytest.mark.parametrize("name", [*CHANGES, ""])
def test_with_the_store_gone_in_mid_session_the_prefix_moves_once_at_most_and_says_so(name: str) -> None:
    client = Client()
    new = MemoryStore()
    before, after = Conversations(BEFORE), Conversations(CHANGES.get(name, BEFORE), store=new)
    for turn in range(13):
        client.send(before, history(turn))
    known = len(client.moves)
    client.send(after, history(13))

    assert client.moves[known:] == ([LOST] if name else [])
    begun = len(client.moves)
    for turn in range(14, 17):
        client.send(Conversations(CHANGES.get(name, BEFORE), store=new), history(turn))
    assert all(reason not in ("", LOST) for reason in client.moves[begun:])


def test_a_version_that_is_no_longer_derived_moves_the_prefix_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store, client = MemoryStore(), Client()
    for turn in range(13):
        client.send(Conversations(BEFORE, store=store), history(turn))
    known = len(client.moves)
    monkeypatch.setattr(pinned_policy, "VERSION", pinned_policy.VERSION + 1)
    monkeypatch.setattr(pinned_policy, "_DERIVED", frozenset((pinned_policy.VERSION,)))
    new = replace(BEFORE, window=9_000)
    for turn in range(13, 16):
        client.send(Conversations(new, store=store), history(turn))

    assert client.moves[known:].count(PASSED) == 1


def test_who_asks_for_another_policy_gets_it() -> None:
    store, client = MemoryStore(), Client()
    served = Conversations(BEFORE, store=store)
    for turn in range(6):
        client.send(served, history(turn))

    asked = client.send(served, history(6), wish="identity")
    assert json.loads(asked)["messages"] == history(6)


def test_a_first_request_tried_again_is_the_same_history() -> None:
    store, first = MemoryStore(), [{"role": "user", "content": "Go."}]
    Client().send(Conversations(BEFORE, store=store), first)
    soon, late = Client(now=60), Client(now=9_000)
    exchange = _exchange(Conversations(CHANGES["lossless"], store=store), first, soon.now)
    assert (b"x-pagefold-policy", b"economic") in exchange.headers
    exchange = _exchange(Conversations(CHANGES["lossless"], store=store), first, late.now)
    assert (b"x-pagefold-policy", b"lossless") in exchange.headers


class WatchedNotes(NotesAsPages):
    """Tells which beginnings were asked for."""

    def __init__(self) -> None:
        super().__init__(MemoryPages())
        self.asked: list[str] = []

    def newest(self, name: str) -> bytes | None:
        self.asked += [name] if name.startswith("began-") else []
        return super().newest(name)


def test_how_a_history_began_is_asked_of_the_store_until_it_is_noted_and_then_no_more() -> None:
    store = MemoryStore()
    store.notes = notes = WatchedNotes()
    client, instance = Client(), Conversations(BEFORE, store=store)
    for turn in range(3):
        client.send(instance, history(turn))
    assert notes.asked
    notes.asked.clear()

    for turn in range(3, 9):
        client.send(instance, history(turn))
    assert not notes.asked

    for data in (history(3, name="fork"), history(3, first="Come.")):  # others began by themselves
        client.send(instance, data)
        assert notes.asked
        notes.asked.clear()
    asked_for = client.send(instance, history(9), wish="lossless")  # and so did who asks for something else
    assert notes.asked
    assert asked_for == Client().send(Conversations(BEFORE, store=store), history(9), wish="lossless")


def _exchange(instance: Conversations, messages: Messages, now: float) -> Exchange:
    data = json.dumps({"model": "a-model", "messages": messages, "system": "Be brief.", "tools": TOOLS}).encode()
    exchange = Exchange("POST", MESSAGES.path, data, instance)
    assert exchange.read(now)
    exchange.derive(now)
    return exchange
