"""A history that is seen for the first time goes on from its newest saved fold, and is the same to the byte."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.protection import Protection
from pagefold.adapters.stores import open_store
from pagefold.derive.notebook import SavedFold
from pagefold.derive.pinned_policy import PinnedPolicy
from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy import resuming
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.pages.redaction import Redactor
from pagefold.pages.store import Store
from pagefold.wire.apis import MESSAGES
from tests.model_proxy.conversation import body, turn

WINDOW = 12_000
SAID = 3  # turns between two words of the user


def life(turns: int = 30, seed: int = 0) -> Iterator[bytes]:
    """The requests of a session that folds every few turns."""
    dice = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Session {seed}: mend the mill."}]
    for number in range(turns):
        yield body(messages)
        lines = (f"{at}\tvalue_{dice.randrange(10**7)} = part_{number % 5}_{at}" for at in range(1, 60))
        messages += turn(number, "\n".join(lines))
        if number % SAID == SAID - 1:
            messages += [
                {"role": "assistant", "content": f"Part {number} is read; it holds the key_{dice.randrange(10**6)}."},
                {"role": "user", "content": f"Now look at part {number + 1}, and keep ledger_{number}.csv as it is."},
            ]


def sent(conversations: Conversations, data: bytes) -> bytes:
    """The body that goes upstream; its fold is saved, as when the request was answered."""
    exchange = Exchange("POST", MESSAGES.path, data, conversations)
    exchange.read(1_000.0)
    derived = exchange.derive(1_000.0)
    record = exchange.record
    fold = record.derivation.fold if record is not None and record.derivation is not None else None
    if fold is not None:
        conversations.notebook.save_newest_fold(fold, 1_000.0, exchange.name)
    return data if derived is None else derived


def conversations(store: Store) -> Conversations:
    return Conversations(Economic(window=WINDOW), store=store, window=WINDOW)


@pytest.fixture
def resumed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many messages histories went on."""
    places: list[int] = []
    run_after = resuming.run_after

    def told(fold: Any, *more: Any) -> Any:
        run = run_after(fold, *more)
        places.extend([fold.messages] if run is not None else [])
        return run

    monkeypatch.setattr("pagefold.model_proxy.deriving.run_after", told)
    return places


@pytest.mark.parametrize("seed", range(4))
def test_a_process_that_sees_each_request_first_sends_what_one_that_saw_all_sends(
    tmp_path: Path, seed: int, resumed: list[int]
) -> None:
    with closing(open_store(tmp_path / "one.sqlite3")) as one, closing(open_store(tmp_path / "many.sqlite3")) as many:
        always = conversations(one)
        expected = [sent(always, data) for data in life(seed=seed)]
        assert not resumed
        assert [sent(conversations(many), data) for data in life(seed=seed)] == expected

    assert len(set(resumed)) >= 3, "each fold was gone on from"
    assert len(resumed) > len(expected) // 2


def test_a_fork_from_before_the_fold_is_derived_from_its_beginning(tmp_path: Path, resumed: list[int]) -> None:
    requests = list(life())
    with closing(open_store(tmp_path / "s.sqlite3")) as store:
        expected = [sent(conversations(store), data) for data in requests]
        resumed.clear()
        assert sent(conversations(store), requests[4]) == expected[4]
        assert not resumed


def test_a_fork_that_has_grown_as_long_is_derived_from_its_beginning(tmp_path: Path, resumed: list[int]) -> None:
    with closing(open_store(tmp_path / "s.sqlite3")) as store, closing(open_store(tmp_path / "o.sqlite3")) as other:
        always = conversations(store)
        messages = json.loads([data for data in life() if sent(always, data)][-1])["messages"]
        messages[4]["content"][0]["content"] = "another answer of the same tool"
        assert sent(conversations(store), body(messages)) == sent(conversations(other), body(messages))
    assert not resumed


def test_a_fold_without_an_answer_is_not_gone_on_from(
    tmp_path: Path, resumed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has said something else in its place: then nobody was asked there."""
    with closing(open_store(tmp_path / "s.sqlite3")) as store, closing(open_store(tmp_path / "o.sqlite3")) as other:
        always, saved = conversations(store), list[int]()
        save = always.notebook.save_fold

        def told(answered: bytes, policy: PinnedPolicy, fold: SavedFold, now: float, history: str) -> None:
            saved.append(fold.messages)
            save(answered, policy, fold, now, history)

        monkeypatch.setattr(always.notebook, "save_fold", told)
        folded = json.loads(next(data for data in life() if sent(always, data) and saved))["messages"]
        hurried = body([*folded[: saved[0]], {"role": "user", "content": "And hurry."}])
        assert sent(conversations(store), hurried) == sent(conversations(other), hurried)
    assert not resumed


@pytest.mark.parametrize("written", ["", "{}", "[]", '{"after": "00", "messages": 4, "came": 1}', "half"])
def test_what_was_not_saved_so_is_not_gone_on_from(
    tmp_path: Path, written: str, resumed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = list(life())
    with closing(open_store(tmp_path / "s.sqlite3")) as store:
        expected = [sent(conversations(store), data) for data in requests][-1]
        last = conversations(store)
        newest = last.notebook.notes.newest

        def other(name: str) -> bytes | None:
            content = newest(name)
            if content is None or not name.startswith("fold-"):
                return content
            half, head = content[: len(content) // 2], content.partition(b"\n")[0]
            return half if written == "half" else b"\n".join([head, written.encode()])

        resumed.clear()
        monkeypatch.setattr(last.notebook.notes, "newest", other)
        assert sent(last, requests[-1]) == expected
        assert not resumed


def test_a_fold_that_quotes_a_secret_is_not_stored(tmp_path: Path, resumed: list[int]) -> None:
    key = "sk-ant-api03-" + "Ab3" * 30
    requests = [data.replace(b"Now look at", f"With {key} look at".encode()) for data in life()]
    with closing(open_store(tmp_path / "s.sqlite3", protection=Protection(redactor=Redactor()))) as store:
        for data in requests:
            sent(conversations(store), data)

    assert not resumed
    assert requests[-1].count(key.encode()) > 3
    assert key.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
