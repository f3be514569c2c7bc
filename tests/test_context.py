"""The library: add, request, recall, pin, explain, report; and the example loop on a scripted model."""

import asyncio
import doctest
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pagefold.context
from pagefold import Context
from pagefold.adapters.sqlite import SqliteStore
from pagefold.derive.learned import Folds
from pagefold.derive.policies.economic import Economic
from pagefold.errors import ConfigError, StoreError, WindowError
from pagefold.model_proxy.scripted import Call, ScriptedModel, Turn
from pagefold.model_proxy.server import running
from pagefold.pages.page import HANDLE
from pagefold.pages.store import MemoryStore

FILE = "\n".join(f"{number}\tdef function_{number}(argument): return argument" for number in range(1, 60))


TASK = {"role": "user", "content": "Find every function that returns its argument."}


def turn_of(turn: int, filler: str = "") -> list[dict[str, Any]]:
    arguments = json.dumps({"file_path": f"/srv/app/module_{turn}.py"})
    call = {"id": f"c{turn}", "type": "function", "function": {"name": "Read", "arguments": arguments}}
    text = FILE.replace("function_", f"function_{turn}_") + filler
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{turn}", "content": text},
    ]


def loop(context: Context, turns: int, filler: str = "") -> Iterator[list[dict[str, Any]]]:
    """Requests of an agent that reads file after file."""
    context.add(TASK)
    for turn in range(turns):
        yield context.request()
        context.add(*turn_of(turn, filler))


def test_the_examples_in_its_documentation_hold() -> None:
    assert doctest.testmod(pagefold.context).failed == 0


def test_requests_fold_within_the_window_and_what_was_folded_comes_back() -> None:
    context = Context(12_000)
    requests = list(loop(context, 40))
    folded = next(m["content"] for m in requests[-1] if str(m["content"]).startswith("[Folded"))
    handles = HANDLE.findall(folded)
    assert handles
    assert '"role": "user"' in context.recall(handles[0]) or '"role":"assistant"' in context.recall(handles[0])
    assert context.report().folds > 0
    assert context.report().recalls
    assert context.report().saved > 0


def test_a_title_recalls_the_result_it_stands_over() -> None:
    context = Context()
    request = [*loop(context, 3)][-1]
    title = str(request[2]["content"]).split("]")[0].lstrip("[").split()[0]
    assert title.startswith("R")
    assert context.recall(title) == FILE.replace("function_", "function_0_")


def test_a_part_of_a_page_can_be_asked_for() -> None:
    context = Context()
    handle = context.keep(FILE, "Read a.py")
    assert "function_17" in context.recall(handle, find="function_17")
    assert "function_2(" not in context.recall(handle, find="function_17")


def test_an_unknown_handle_is_answered_in_words() -> None:
    assert "no page pf-aaaaaaaaaa" in Context().recall("pf-aaaaaaaaaa")


@pytest.mark.parametrize("policy", ["economic", "reset", "incremental"])
def test_a_pin_stands_in_every_request(policy: str) -> None:
    context = Context(12_000, policy=policy)
    context.pin("Do not touch the database.")
    for request in loop(context, 40):
        assert any("Do not touch the database." in str(message["content"]) for message in request)


def test_a_policy_that_never_folds_has_no_pins() -> None:
    with pytest.raises(ConfigError, match="this one is lossless"):
        Context(policy="lossless").pin("Do not touch the database.")


def test_an_empty_pin_is_refused() -> None:
    with pytest.raises(ConfigError, match="pin"):
        Context().pin("  ")


def test_explain_says_why_each_message_stands_as_it_does() -> None:
    context = Context(12_000)
    list(loop(context, 30))
    standing = context.explain()
    assert len(standing) == 61
    assert {one.level for one in standing} >= {"full", "structured", "compressed"}
    assert all(one.reason for one in standing)


def test_a_window_that_is_too_small_says_so_and_nothing_is_lost() -> None:
    context = Context(700)
    context.add({"role": "user", "content": "word " * 2_000})
    with pytest.raises(WindowError, match="more than the window holds"):
        context.request()
    assert len(context.request(window=50_000)) == 1


def test_an_expired_cache_is_told_by_the_clock() -> None:
    now = [0.0]
    context = Context(200_000, clock=lambda: now[0])
    for turn, _ in enumerate(loop(context, 40, "\nwords that nobody will ask for again" * 60)):
        now[0] += 1_000 if turn == 38 else 10
    assert context.report().folds == 1


def test_every_api_is_spoken() -> None:
    spoken: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ls", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a.py"}]},
        {"type": "function_call", "call_id": "f", "name": "ls", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "f", "output": "b.py"},
    ]
    context = Context()
    context.add(*spoken)
    assert context.request() == spoken


def test_it_works_without_blocking_an_event_loop() -> None:
    async def talk() -> tuple[list[dict[str, Any]], str]:
        context = Context()
        context.add({"role": "user", "content": "hello"})
        return await context.request_async(), await context.recall_async(context.keep("a text"))

    assert asyncio.run(talk()) == ([{"role": "user", "content": "hello"}], "a text")


def test_pages_outlive_the_process_in_a_file(tmp_path: Path) -> None:
    with Context(12_000, store=tmp_path / "pages.db") as context:
        list(loop(context, 30))
        handle = context.keep(FILE)
    with Context(12_000, store=tmp_path / "pages.db") as again:
        assert again.recall(handle) == FILE


def test_only_a_store_that_was_opened_here_is_closed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "pages.db")
    with Context(store=store) as context:
        handle = context.keep(FILE)
    with Context(store=store) as again:
        assert again.recall(handle) == FILE
    store.close()
    with Context(store=tmp_path / "pages.db") as context:
        pass
    with pytest.raises(StoreError):
        context.keep(FILE)


def test_the_example_loop_runs_past_its_window(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("loop", Path(__file__).parent.parent / "examples/agent_loop.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    turns = []
    for number in range(40):
        path = tmp_path / f"module_{number}.py"
        path.write_text(FILE.replace("function_", f"function_{number}_"))
        turns.append(Turn(f"Reading {number}.", calls=[Call("read_file", {"path": str(path)})]))
    with running(ScriptedModel([*turns, Turn("Done.")], counting=True)) as address:
        context = example.run("Read them all.", address, 16_000)
    assert context.report().folds >= 1
    assert context.report().requests == 41


@pytest.mark.parametrize("policy", ["economic", Economic(12_000, folds=Folds(least=500, rent=0.0, miss=900))])
def test_a_history_added_again_by_another_process_goes_on_as_it_began(policy: Any) -> None:
    store, now = MemoryStore(), [0.0]
    context = Context(12_000, store=store, head=4_096, clock=lambda: now[0])
    requests = []
    for turn, request in enumerate(loop(context, 40)):
        requests.append(request)
        now[0] += 400 if turn in (7, 22) else 5  # the cache was cold: only a note can tell afterwards
    assert context.report().folds > 2

    for turn in (1, 8, 9, 22, 30, 39):
        another = Context(12_000, policy=policy, store=store, head=99, clock=lambda: 1e9)
        another.add(TASK, *(message for before in range(turn) for message in turn_of(before)))
        assert another.request() == requests[turn]


def test_asking_twice_gives_the_same_request() -> None:
    once, twice = Context(12_000), Context(12_000)
    for request, _ in zip(loop(once, 30), loop(twice, 30), strict=True):
        assert twice.request() == twice.request() == request


def test_a_request_that_led_to_no_answer_leaves_no_trace() -> None:
    asked, quiet = Context(12_000), Context(12_000)
    for _ in zip(loop(asked, 20), loop(quiet, 20), strict=True):
        pass
    asked.request(cold=True)
    more = {"role": "user", "content": "And another thing: never mind the tests."}
    asked.add(more)
    quiet.add(more)

    assert asked.request() == quiet.request()


def test_a_pin_between_a_request_and_its_answer_stays() -> None:
    context = Context(12_000)
    for turn, request in enumerate(loop(context, 40)):
        held = any("Leave the tests alone." in str(message["content"]) for message in request)
        assert held == (turn > 3)
        if turn == 3:
            context.pin("Leave the tests alone.")
