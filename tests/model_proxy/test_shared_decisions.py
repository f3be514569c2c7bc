"""Several instances on one store send what one would: with idle gaps, retries and any routing. Times come in."""

import json
import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policy import Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import Ending
from pagefold.settings.sections import SinkSettings
from pagefold.wire.apis import MESSAGES
from tests.model_proxy.conversation import body, turn
from tests.postgres import running_postgres

ANSWER = b'{"model":"m","content":[],"usage":{"input_tokens":5,"cache_creation_input_tokens":9000,"output_tokens":2}}'
WINDOW = 26_000


def asked(conversations: Conversations, data: bytes, now: float, *, answered: bool) -> bytes:
    """The body that goes upstream."""
    exchange = Exchange("POST", MESSAGES.path, data, conversations)
    exchange.read(now)
    derived = exchange.derive(now)
    if answered:
        exchange.answer_began(200, "application/json")
        exchange.hear(ANSWER)
        exchange.finish(Ending.WHOLE, now=now + 2.0)
        conversations.notebook.save(now + 2.0)
    return data if derived is None else derived


def life(seed: int, turns: int = 16) -> Iterator[tuple[bytes, float, bool]]:
    """The requests of a session with their times: some after the cache has expired, some sent twice."""
    dice = random.Random(seed)
    now = 1_000_000.0 + seed
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Session {seed}."}]
    for number in range(turns):
        lines = (f"{at}\tvalue_{at * 7919 * (number + seed + 3) % 10**7} = {at}" for at in range(1, 120))
        messages += turn(number, "\n".join(lines))
        now += dice.choice((5.0, 90.0, 280.0, 299.0, 700.0, 4_000.0))
        if dice.random() < 0.25:  # lost on the way, and sent again later
            yield body(messages), now, dice.random() < 0.5
            now += dice.choice((1.0, 320.0))
        yield body(messages), now, True


def sent_by(where: str | Path, instances: int, seed: int) -> list[bytes]:
    dice = random.Random(seed + 1)
    with ExitStack() as stack:
        stores = [stack.enter_context(closing(open_store(where))) for _ in range(instances)]
        all_of_them = [Conversations(Economic(window=WINDOW), store=store, window=WINDOW) for store in stores]
        return [asked(dice.choice(all_of_them), data, now, answered=done) for data, now, done in life(seed)]


@pytest.mark.parametrize("seed", range(4))
def test_four_instances_send_what_one_would(tmp_path: Path, seed: int) -> None:
    one, four = (sent_by(tmp_path / f"{count}.sqlite3", count, seed) for count in (1, 4))

    assert one == four
    assert len(one) > 9
    folds = [b"context_recall" in data for data in one]
    assert folds.count(True) > 0


def test_four_instances_on_one_postgres_send_what_one_in_a_file_would(tmp_path: Path) -> None:
    with running_postgres() as server:
        for seed in range(2):
            one = sent_by(tmp_path / f"{seed}.sqlite3", 1, seed)

            assert sent_by(server.new_schema(), 4, seed) == one
            assert any(b"context_recall" in data for data in one)


def test_a_decision_that_the_cache_is_warm_stands_too(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "s.sqlite3")) as store, closing(open_store(tmp_path / "s.sqlite3")) as same:
        first, second = (Conversations(Economic(window=WINDOW), store=one, window=WINDOW) for one in (store, same))
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}, *turn(1), *turn(2)]
        asked(first, body(messages), 1_000.0, answered=True)
        messages += turn(3)
        before = asked(first, body(messages), 1_200.0, answered=False)
        reading = second.request_cache.read(MESSAGES, body(messages))

        assert second.is_cold(reading, 1_600.0)
        assert not second.known_now(reading, reading.prefix_hashes, 1_600.0).cold
        assert asked(second, body(messages), 1_600.0, answered=False) == before


@pytest.mark.parametrize(("policy", "noted"), [(Economic(window=WINDOW), True), (Lossless(), False)])
def test_the_last_use_of_a_cache_is_stored_where_a_policy_asks_for_it(
    tmp_path: Path, policy: Policy, noted: bool
) -> None:
    with closing(open_store(tmp_path / "s.sqlite3")) as store:
        conversations = Conversations(policy, store=store, window=WINDOW)
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}, *turn(1)]
        asked(conversations, body(messages), 1_000.0, answered=True)

        name = conversations.request_cache.read(MESSAGES, body(messages)).name
        assert (store.notes.newest(f"used-{name}") is not None) is noted


def test_which_policy_a_history_began_with_is_decided_by_the_first(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "s.sqlite3")) as store, closing(open_store(tmp_path / "s.sqlite3")) as same:
        first = Conversations(Economic(window=9_000), store=store)
        second = Conversations(Economic(window=90_000), store=same)
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
        readers = [Exchange("POST", MESSAGES.path, body(messages), each) for each in (first, second)]
        for reader in readers:  # both find that the history begins now
            reader.read(1_000.0)
        for reader in readers:
            reader.derive(1_000.0)

        policies: list[Any] = [reader._begun.beginning for reader in readers]
        assert [json.loads(begun.to_json())["settings"]["window"] for begun in policies] == [9_000] * 2
        assert readers[1]._derivations is not None
        assert readers[1]._derivations.policy == policies[0].policy


def test_a_process_that_begins_beside_a_slow_store_sends_what_the_one_before_it_sent(tmp_path: Path) -> None:
    """Nothing is remembered by then: whoever goes on without the notes moves the prefix of every history."""
    path = tmp_path / "s.sqlite3"
    with closing(open_store(path)) as store:
        first = Conversations(Economic(window=WINDOW), store=store, window=WINDOW)
        requests = [(data, now, asked(first, data, now, answered=True)) for data, now, _ in life(2)]
    data, now, before = requests[-1]
    assert b"context_recall" in before
    with closing(Library.open_steady(path, SinkSettings(), deadline=0.02, report=lambda kind, line: None)) as begun:
        second = Conversations(Economic(window=WINDOW), store=begun.store, window=WINDOW)
        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as busy:
            busy.execute("BEGIN EXCLUSIVE")
            threading.Timer(0.2, busy.execute, ["ROLLBACK"]).start()
            assert asked(second, data, now + 1.0, answered=False) == before
        assert begun.health.out == ""
