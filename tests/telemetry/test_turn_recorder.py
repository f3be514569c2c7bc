"""What an exchange tells: its levels, its faults and the decisions of a fold, from whole conversations."""

import json
import random
import time
from pathlib import Path

from pagefold.adapters.local_files import LocalFiles
from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import Ending
from pagefold.model_proxy.turn_recorder import TurnRecorder
from pagefold.pages.page import HANDLE
from pagefold.telemetry.events import TurnEvent
from tests.dashboard.traffic import Agent, behind, settled, shown
from tests.telemetry.trace_files import read


def told(folder: Path, agents: int = 1, turns: int = 16) -> list[TurnEvent]:
    with behind(folder, turns, trace=True) as one:
        some = [Agent(one.url, f"agent{n}") for n in range(agents)]
        for _ in range(turns):
            for agent in some:
                agent.turn()
    path = LocalFiles(folder / "store.sqlite3").trace
    deadline = time.monotonic() + 20
    while len(read(path)[0]) < agents * turns and time.monotonic() < deadline:
        time.sleep(0.05)
    return [event for event in read(path)[0] if isinstance(event, TurnEvent)]


def test_every_turn_is_told_with_its_levels_results_and_usage(tmp_path: Path) -> None:
    events = told(tmp_path)
    assert len(events) == 16
    assert len({event.session for event in events[1:]}) == 1
    assert {event.began for event in events[1:]} == {events[0].session}
    for event in events:
        assert event.agent == "Claude Code"
        assert event.policy == "economic"
        assert event.status == 200
        assert abs(sum(event.levels.values()) - event.tokens) <= 4
        assert set(event.levels) == {level for level, _ in event.bands} | {"full"}
    assert [len(event.results) for event in events] == [0, *[1] * 15]
    assert all(result.tool == "Read" and result.after <= result.before for e in events for result in e.results)
    assert [event.cache_read for event in events[:3]] == [0, 900, 1800]


def test_a_fold_point_is_told_with_every_decision_and_its_reason(tmp_path: Path) -> None:
    folds = [event for event in told(tmp_path) if event.fold]
    assert folds
    for fold in folds:
        assert fold.fold == "the window is full"
        assert {one.place for one in fold.decisions} == set(range(fold.messages))
        assert all(one.reason for one in fold.decisions)
        assert all(bool(one.part) is (one.level == "structured") for one in fold.decisions)
        assert fold.levels["structured"] > 0


def test_a_result_that_is_let_in_in_part_is_told_with_its_reason_though_nothing_moved() -> None:
    dice, events = random.Random(3), list[TurnEvent]()
    large = "\n".join(f"order_{dice.randrange(10**9)} of {dice.randrange(10**9)}" for _ in range(2_500))
    conversations, recorder = Conversations(Economic(window=20_000)), TurnRecorder(events.append)  # type: ignore[arg-type]
    call = {"type": "tool_use", "id": "c", "name": "Query", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": large}
    messages = [
        {"role": "user", "content": "All orders."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    for length in (1, 3):
        body = {"model": "m", "max_tokens": 9, "messages": messages[:length]}
        exchange = Exchange("POST", "/v1/messages", json.dumps(body).encode(), conversations, window=20_000)
        assert exchange.read()
        exchange.derive()
        exchange.answer_began(200, "application/json")
        assert exchange.record is not None
        recorder.tell(exchange.record, exchange.finish(Ending.WHOLE), user_agent="", began=0.0, now=0.0)
    recorder.flush()
    assert [event.fold for event in events] == ["", ""]
    assert [(one.place, bool(one.reason)) for one in events[-1].decisions] == [(2, True)]


def test_a_call_made_again_after_its_result_was_folded_is_a_fault_and_before_that_an_alert(tmp_path: Path) -> None:
    events = told(tmp_path)
    first = next(at for at, event in enumerate(events) if event.fold)
    kinds = [(fault.kind, at) for at, event in enumerate(events) for fault in event.faults]
    assert {kind for kind, _ in kinds} == {"duplicate_tool", "duplicate_alert"}
    assert min(at for _, at in kinds) > first
    assert all(HANDLE.fullmatch(fault.page) and fault.reason for event in events for fault in event.faults)


def test_conversations_side_by_side_are_told_apart(tmp_path: Path) -> None:
    events = told(tmp_path, agents=3, turns=8)
    named = [event.session for event in events if event.began]
    assert sorted(named.count(name) for name in set(named)) == [7, 7, 7]


def test_the_page_that_a_fault_names_can_be_looked_at(tmp_path: Path) -> None:
    with behind(tmp_path, 16) as one:
        agent = Agent(one.url, "ada")
        for _ in range(16):
            agent.turn()
        settled(one, 16)
        view = json.loads(shown(one, "/pagefold/live.json")[1])
        pages = [event["page"] for event in view["happened"] if event["what"] == "duplicate_tool"]
        found = [shown(one, f"/pagefold/page/{page}")[0] for page in pages]
    assert 200 in found


def test_without_a_trace_nothing_is_written(tmp_path: Path) -> None:
    with behind(tmp_path, 4) as one:
        Agent(one.url, "ada").turn()
    assert not LocalFiles(tmp_path / "store.sqlite3").trace.exists()


def test_without_dashboard_and_trace_nothing_is_told(tmp_path: Path) -> None:
    with behind(tmp_path, 4, dashboard=False) as one:
        Agent(one.url, "ada").turn()
        assert one.proxy.recorder is None
        assert shown(one, "/pagefold/")[0] == 404
