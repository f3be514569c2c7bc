"""Each policy by its own rule: what it keeps, when it acts, and what it says in place of what is gone."""

import json
import re
from typing import Any

import pytest

from pagefold.derive.policies.clear import Clear
from pagefold.derive.policies.compaction import Compaction
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.fifo import Fifo
from pagefold.derive.policies.incremental import Incremental
from pagefold.derive.policies.legacy import Legacy
from pagefold.derive.policies.masking import Masking
from pagefold.derive.policies.oracle import OracleReplay
from pagefold.derive.policies.reset import Reset
from pagefold.derive.policy import Notes
from pagefold.derive.relevance import Bearing, bearing_of, relevance
from pagefold.pages.page import HANDLE
from pagefold.wire import anthropic
from pagefold.wire.message import Role
from tests.derive.loops import TASK, exchange, loop, read, result, run, text, tokens

MARK = "[Old tool result: 37 lines left out; context_recall("


def test_masking_keeps_the_newest_results_and_says_how_much_is_gone() -> None:
    messages = read(loop(14))

    last = run(Masking(newest=10), messages).requests[-1]

    results = [message.text for message in last if message.role is Role.TOOL]
    assert [one.startswith(MARK) for one in results] == [True] * 4 + [False] * 10


def test_a_result_shorter_than_a_mark_is_not_masked() -> None:
    values = loop(14)
    values[3]["content"] = "ok"

    assert "ok" in [message.text for message in run(Masking(newest=10), read(values)).requests[-1]]


def test_clear_acts_above_its_trigger_alone_and_then_on_all_but_the_newest() -> None:
    messages = read(loop(40))

    told = run(Clear(trigger=9_000, keep=3), messages)

    acted = [at for at, derived in enumerate(told.derived) if derived.reason]
    before, after = told.requests[acted[0] - 1], told.requests[acted[0]]
    assert tokens(before) <= 9_000
    assert MARK not in text(before)
    assert [m.text.startswith(MARK) for m in after if m.role is Role.TOOL][-4:] == [True, False, False, False]
    assert acted[1] - acted[0] > 5, "it does not act again before the trigger is reached again"


def test_fifo_drops_the_oldest_in_bulk_and_says_so() -> None:
    messages = read(loop(40))

    told = run(Fifo(12_000), messages)

    acted = [at for at, derived in enumerate(told.derived) if derived.reason]
    after = told.requests[acted[0]]
    assert tokens(after) < 0.62 * 12_000
    assert "pagefold wrote this message" in after[2].text[:60]
    assert [message.place for message in after[3:]] == list(range(after[3].place, 2 + 2 * acted[0]))
    assert "row_0_1 " not in text(after)


def test_compaction_makes_one_summary_of_everything() -> None:
    messages = read(loop(40))

    told = run(Compaction(at=9_000, summary=1_000), messages)

    acted = next(at for at, derived in enumerate(told.derived) if derived.reason)
    after = told.requests[acted]
    assert [message.place for message in after] == [0, 1, -1]
    assert tokens(after) < 2_000


def test_reset_folds_above_its_threshold_and_keeps_the_tail_from_the_task_on() -> None:
    later = "Now look at the weekly report instead; it has the same fault in its third column."
    messages = read(loop(24, (15, {"role": "user", "content": later}), (17, {"role": "user", "content": "continue"})))
    place = next(message.place for message in messages if message.text == later)

    told = run(Reset(100_000, threshold_tokens=15_000), messages)

    acted = next(at for at, derived in enumerate(told.derived) if derived.reason)
    assert tokens(told.requests[acted - 1]) <= 15_000
    places = [message.place for message in told.requests[acted]]
    assert places[:3] == [0, 1, -1]
    assert places[3] == place


def test_reset_with_a_threshold_that_cannot_be_kept_does_not_reset_at_every_turn() -> None:
    told = run(Reset(100_000, threshold_tokens=0), read(loop(40)))

    assert sum(bool(derived.reason) for derived in told.derived) <= 12


def test_incremental_keeps_whole_what_bears_on_the_task() -> None:
    values = loop(40)
    values[1]["content"] = "Please mend /srv/mill/part_3.py: the totals of the nightly report are negative."
    messages = read(values)

    told = run(Incremental(12_000), messages)

    acted = next(at for at, derived in enumerate(told.derived) if derived.reason)
    shown = {message.place: message.text for message in told.requests[acted]}
    call = next(message.place for message in messages if '"c3"' in message.raw)
    assert shown[call + 1] == result(3)
    assert call + 3 not in shown
    assert {len(messages[: 2 + 2 * acted]) - 1, len(messages[: 2 + 2 * acted]) - 2} <= {*shown}


def test_incremental_within_its_budget_changes_nothing() -> None:
    messages = read(loop(10))

    assert not any(derived.reason for derived in run(Incremental(200_000, budget_tokens=50_000), messages).derived)


@pytest.mark.parametrize(
    ("said", "files"),
    [
        ("look at src/loans.py, then and/or tests", {"loans.py"}),
        ("`config.toml`; (see docs/a/b.md)", {"config.toml", "b.md"}),
        ("https://example.org/x/y is no file", set()),
        ("/srv/mill/data holds it", {"data"}),
        ("version 1.2 and e.g. this", set()),
    ],
)
def test_a_word_is_a_file_only_if_it_looks_like_one(said: str, files: set[str]) -> None:
    assert bearing_of(read([{"role": "user", "content": said}])[0]).files == files


def test_files_in_arguments_and_results_count_and_errors_count_where_they_are_the_same() -> None:
    call, answer = read(exchange(3, "Traceback\nValueError: bad sum in /srv/mill/ledger.py"))
    bearing = bearing_of(call).joined(bearing_of(answer))

    assert bearing == Bearing(frozenset(("part_3.py", "ledger.py")), frozenset(("Read",)), frozenset(("ValueError",)))
    task = Bearing(frozenset(("ledger.py",)), frozenset(), frozenset(("ValueError",)))
    other = Bearing(errors=frozenset(("KeyError", "IndexError", "OSError")))
    assert relevance(bearing, task, 10) == pytest.approx(4.0 + 3.0 - 0.5)
    assert relevance(other, task, 0) == 0


def test_an_oracle_keeps_what_the_next_answers_use() -> None:
    values = loop(40)
    needle = "checked by clerk_20"
    for at in range(len(values)):
        if values[at]["role"] == "tool":
            values[at]["content"] = values[at]["content"].replace(needle, f"checked by oracle_word_{at}")
    asked = [at for at, value in enumerate(values) if value["role"] == "assistant"][25:]
    for at in asked:
        values[at]["content"] = "It was oracle_word_5 all along."
    messages = read(values)

    with_foresight = run(OracleReplay(12_000, lookahead=None).foreseeing(messages), messages)

    without = run(Economic(12_000), messages)
    listed = re.compile(r"\d+ oracle_word_5\b")
    assert listed.search(text(with_foresight.requests[25]))
    assert not listed.search(text(without.requests[25]))


def test_legacy_says_a_repeated_result_by_the_first_and_leaves_the_newest_alone() -> None:
    values = loop(9)
    same = result(77)
    for at in (3, 5, len(values) - 2):
        values[at]["content"] = same
    last = run(Legacy(), read(values)).requests[-1]

    results = [message.text for message in last if message.role is Role.TOOL]
    assert results[0] == same
    assert results[1] == f"[DEDUP] identical to tool_call_id=c0 ({len(same)} bytes)"
    assert results[-1] == same


def test_legacy_summarises_what_lies_before_the_task_and_truncates_where_nothing_does() -> None:
    later = "Now look at the weekly report instead; it has the same fault in its third column."
    told = run(Legacy(12_000), read(loop(40, (30, {"role": "user", "content": later}))))
    alone = run(Legacy(12_000), read(loop(40)))

    assert any("[AUTO CONTEXT COMPRESSION] turns 2-" in text(request) for request in told.requests)
    assert TASK in text(alone.requests[-1])
    assert all(tokens(request) <= 12_000 for request in [*told.requests, *alone.requests])
    assert all(handle in told.pages for request in told.requests for handle in HANDLE.findall(text(request)))


def test_legacy_drops_old_thinking_and_collapses_blank_lines_outside_of_code() -> None:
    said = "First.\n\n\n\nSecond.\n-----\n```\na\n\n\nb\n```"
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": said},
    ]
    values: list[dict[str, Any]] = []
    for number in range(6):
        values += [{"role": "user", "content": f"Question {number} about the report?"}]
        values += [{"role": "assistant", "content": content}]

    last = run(Legacy(), read(values, anthropic)).requests[-1]

    answers = [message for message in last if message.role is Role.ASSISTANT]
    assert json.loads(answers[0].raw)["content"] == [{"type": "text", "text": "First.\n\nSecond.\n```\na\n\n\nb\n```"}]
    assert json.loads(answers[-1].raw)["content"] == content


@pytest.mark.parametrize("policy", [Reset(), Incremental(), Fifo(), Compaction(), Clear(), Legacy()])
def test_a_request_that_the_provider_found_too_long_is_sent_shorter(policy: Any) -> None:
    state = policy.begin()
    for message in read(loop(40))[:-1]:
        if message.role is Role.ASSISTANT:
            state, _ = policy.request(state)
        state = policy.step(state, message)

    plain, shorter = policy.request(state)[1], policy.request(state, Notes(smaller=True))[1]

    assert plain.reason == ""
    assert shorter.reason
    assert tokens(shorter.append) < 0.75 * tokens(read(loop(40)))
