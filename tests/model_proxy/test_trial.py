"""A trial: some sessions go on untouched, all of a session in one group, and each leaves a row of numbers."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.sqlite import session_rows
from pagefold.adapters.stores import open_store
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.session_row import MIXED, SessionRow
from pagefold.derive.trial import Arm, arm_of
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.session_rows import SessionRows
from pagefold.model_proxy.totals import Ending
from pagefold.wire.apis import MESSAGES
from pagefold.wire.client_session import client_session
from pagefold.wire.quota import limits_in
from tests.model_proxy.conversation import FILE, body, turn

ANSWER = b'{"model":"claude-opus-5","content":[],"usage":{"input_tokens":5,"output_tokens":2}}'
HELD, TREATED = (
    next(name for name in (f"session-{at}" for at in range(99)) if arm_of(name, 0.5) is arm) for arm in Arm
)


def history(first: str, turns: int = 3) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": first}]
    for number in range(turns):
        messages += turn(number, FILE)
    return messages


def asked(
    conversations: Conversations,
    messages: list[dict[str, Any]],
    session: str,
    rows: SessionRows | None = None,
    now: float = 100.0,
    wish: str = "",
) -> tuple[bool, str]:
    """Whether the request went on as it came, and its group."""
    exchange = Exchange("POST", MESSAGES.path, body(messages), conversations, session=session, wish=wish)
    exchange.read(now)
    derived = exchange.derive(now)
    hours = {"anthropic-ratelimit-unified-5h-utilization": str(now / 1_000)}
    exchange.answer_began(200, "application/json", limits=limits_in(hours))
    exchange.hear(ANSWER)
    seen = exchange.finish(Ending.WHOLE, now=now + 2)
    if rows is not None and exchange.record is not None:
        rows.saw(exchange.record, seen, session=session, arm=exchange.arm, began=now, now=now + 2)
    return derived is None, exchange.arm


def begun(conversations: Conversations, first: str, session: str) -> tuple[bool, str]:
    """A session from its first request on; what became of the last one."""
    asked(conversations, history(first, 0), session)
    return asked(conversations, history(first), session)


def test_sessions_held_out_go_on_as_they_came_and_the_others_do_not() -> None:
    conversations = Conversations(Lossless(), trial=0.5)

    assert begun(conversations, "a", HELD) == (True, Arm.HELD_OUT)
    assert begun(conversations, "b", TREATED) == (False, Arm.TREATED)


def test_without_a_trial_or_with_a_wish_no_session_is_in_a_group() -> None:
    assert begun(Conversations(Lossless()), "a", HELD) == (False, "")
    conversations = Conversations(Lossless(), trial=0.5)

    asked(conversations, history("a", 0), HELD, wish="lossless")
    assert asked(conversations, history("a"), HELD, wish="lossless") == (False, "")


def test_what_began_before_the_trial_is_not_drawn() -> None:
    assert asked(Conversations(Lossless(), trial=0.9), history("a"), HELD) == (False, "")


def test_a_group_is_kept_by_sub_agents_resumes_and_forks_whatever_the_share_is_later(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "store.sqlite3")) as store:
        assert begun(Conversations(Lossless(), trial=0.5, store=store), "a", HELD) == (True, Arm.HELD_OUT)
        later = Conversations(Lossless(), trial=0.0001, store=store)

        # a resume in another process, and under another name
        assert asked(later, history("a", 4), HELD) == (True, Arm.HELD_OUT)
        assert asked(later, history("a", 5), TREATED) == (True, Arm.HELD_OUT)
        # a fork
        fork = [*history("a", 2), {"role": "user", "content": "Or rather so."}]
        assert asked(later, fork, "forked-session") == (True, Arm.HELD_OUT)
        # sub-agents of each
        for number, session in enumerate((HELD, TREATED, "forked-session")):
            assert begun(later, f"sub-agent {number}", session) == (True, Arm.HELD_OUT)
        # a session of its own
        assert begun(later, "b", "another-session")[1] == Arm.TREATED


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_the_share_held_out_is_about_what_was_asked_for_and_grows_with_it(share: float) -> None:
    names = [f"name-{number}" for number in range(4_000)]
    held = {name for name in names if arm_of(name, share) is Arm.HELD_OUT}

    assert len(held) / len(names) == pytest.approx(share, abs=0.03)
    assert held <= {name for name in names if arm_of(name, share + 0.05) is Arm.HELD_OUT}


def test_a_row_counts_cost_turns_errors_rereads_edits_and_corrections() -> None:
    def called(number: int, name: str, result: str, *, failed: bool = False, **given: str) -> list[dict[str, Any]]:
        call = {"type": "tool_use", "id": f"c{number}", "name": name, "input": given}
        back = {"type": "tool_result", "tool_use_id": f"c{number}", "content": result, "is_error": failed}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [back]}]

    conversations, rows = Conversations(Lossless(), trial=0.5), SessionRows()
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Rename it."}]
    steps = (
        called(1, "Read", FILE, file_path="a.py"),
        called(2, "Read", FILE, file_path="a.py"),
        called(3, "Edit", "String not found", failed=True, file_path="a.py", old_string="x", new_string="y"),
        called(4, "Edit", "ok", file_path="a.py", old_string="z", new_string="y"),
        [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "No, that's not what I meant."}],
        [{"role": "assistant", "content": "Ah."}, {"role": "user", "content": "<system-reminder>no</system-reminder>"}],
    )
    asked(conversations, messages, TREATED, rows, now=0.0)
    for number, step in enumerate(steps, 1):
        messages += step
        asked(conversations, messages, TREATED, rows, now=10.0 * number)
    (row,) = rows.take()

    assert (row.session, row.arm, row.policy, row.turns) == (TREATED, Arm.TREATED, "lossless", 7)
    assert (row.results, row.errors, row.rereads) == (4, 1, 1)
    assert (row.edits, row.failed_edits) == (2, 1)
    assert (row.asks, row.corrections) == (2, 1)
    assert row.usd > 0
    assert row.windows == pytest.approx(0.06)  # from 0 to 6 % of the five hours
    # Seven answers of two seconds and five waits of eight for tools; what the user took does not count.
    assert row.seconds == pytest.approx(7 * 2 + 5 * 8)
    assert rows.take() == []


def test_rows_of_one_session_add_up_in_the_file_and_two_groups_make_it_mixed(tmp_path: Path) -> None:
    file = tmp_path / "counts.sqlite3"
    one = SessionRow("s", "treated", "lossless", "m", began=5.0, ended=9.0, turns=2, usd=0.5)
    session_rows.add(file, [one, SessionRow("t", "held out", turns=1)])
    session_rows.add(file, [SessionRow("s", "treated", "lossless", "m", began=9.0, ended=12.0, turns=3, usd=0.25)])

    kept = {row.session: row for row in session_rows.read(file)}
    assert kept["s"] == SessionRow("s", "treated", "lossless", "m", began=5.0, ended=12.0, turns=5, usd=0.75)
    session_rows.add(file, [SessionRow("s", "held out", turns=1)])
    assert {row.session: row.arm for row in session_rows.read(file)} == {"s": MIXED, "t": "held out"}
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({b"x-claude-code-session-id": b"94cf0ffb-4114-4421"}, "94cf0ffb-4114-4421"),
        ({b"session-id": b"01a1ef76-e3a8-7923"}, "01a1ef76-e3a8-7923"),
        ({b"session-id": b"short"}, ""),
        ({b"session-id": b"no spaces or \xff here"}, ""),
        ({}, ""),
    ],
)
def test_a_session_has_the_name_that_its_client_gives_it(headers: dict[bytes, bytes], name: str) -> None:
    assert client_session(headers) == name


def test_rows_that_could_not_be_written_are_written_later() -> None:
    rows = SessionRows()
    asked(Conversations(Lossless(), trial=0.5), history("mend the mill"), HELD, rows)
    taken = rows.take()
    asked(Conversations(Lossless(), trial=0.5), history("mend the mill"), HELD, rows)
    rows.keep(taken)
    (row,) = rows.take()

    assert (row.session, row.turns, row.arm) == (HELD, 2, taken[0].arm)
