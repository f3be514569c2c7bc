"""Replay: its own figures against hand-counted ones, and against the scorer where that is at hand."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pagefold.analysis.engine import Engine, SessionResult, run_on_sessions
from pagefold.analysis.replay import SessionReplay, Terms, emitted, replay
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayedSession, ReplayJob, replay_session
from pagefold.derive.cost import ASSUMED
from pagefold.derive.policies import policy_named
from pagefold.derive.policy import NOTHING, Abilities, Derived, Notes
from pagefold.errors import ConfigError
from pagefold.pages.facts import facts_of, opened
from pagefold.tokens import FRAME, counter
from pagefold.wire.message import Message
from pagefold.wire.transcripts import Session, parse_line
from tests.shared import FAMILIES, SCORER, needs_scorer, needs_traces

WORDS = counter("o200k").count
TERMS = Terms(policy_named("identity"), ASSUMED, counter("o200k"), 200_000)


def session(*messages: dict[str, Any], times: Sequence[float] | None = None) -> Session:
    line: dict[str, Any] = {"id": "s", "messages": messages}
    return parse_line(json.dumps(line | ({"times": times} if times else {})), name="s")


def call(name: str, call_id: str, **arguments: object) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "function": function}]}


def result(name: str, call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}


TALK = (
    {"role": "user", "content": "where is the parser?"},
    call("Read", "1", path="a.py"),
    result("Read", "1", "def parse_header(line):\n    return line\n"),
    call("Read", "2", path="a.py"),
    result("Read", "2", "def parse_header(line):\n    return line\n"),
    {"role": "assistant", "content": "parse_header reads a line"},
)


def test_every_request_reads_the_last_one_from_cache_and_writes_what_is_new() -> None:
    talk = session(*TALK)
    sizes = [WORDS(message.text) + FRAME for message in talk.messages]

    figures = replay(talk, TERMS)

    first, second, third = sizes[0], sum(sizes[:3]), sum(sizes[:5])
    assert (figures.requests, figures.tokens, figures.peak) == (3, first + second + third, third)
    assert (figures.cached_tokens, figures.written_tokens) == (first + second, third)
    assert figures.new_tokens == third
    assert figures.cost == pytest.approx(0.1 * (first + second) + 1.25 * third)


def test_a_gap_longer_than_the_cache_lives_writes_everything_again() -> None:
    warm = replay(session(*TALK, times=[0, 1, 2, 3, 4, 5]), TERMS)
    cold = replay(session(*TALK, times=[0, 1, 2, 3, 4, 400]), TERMS)

    assert (warm.expired, cold.expired) == (0, 1)
    assert cold.tokens == warm.tokens
    assert cold.cached_tokens == warm.cached_tokens - sum(
        WORDS(message.text) + FRAME for message in session(*TALK).messages[:3]
    )


def test_results_are_told_by_tool_and_repeats_are_seen() -> None:
    figures = replay(session(*TALK), TERMS)
    tokens = WORDS(TALK[2]["content"])

    assert (figures.tools["Read"].results, figures.tools["Read"].tokens) == (2, 2 * tokens)
    assert (figures.tools["Read"].repeated_results, figures.tools["Read"].repeated_tokens) == (1, tokens)
    assert figures.repeated_chars * 2 == figures.result_chars


def test_a_line_is_the_same_line_under_another_number() -> None:
    talk = session(
        {"role": "user", "content": "q"},
        call("Read", "1"),
        result("Read", "1", "     1→alpha = 1\n     2→beta = 2"),
        call("Read", "2"),
        result("Read", "2", "7\tbeta = 2\n8\tgamma = 3"),
        {"role": "assistant", "content": "done"},
    )

    assert replay(talk, TERMS).repeated_chars == len("beta = 2")


def test_requests_above_the_window_are_counted() -> None:
    assert replay(session(*TALK), replace(TERMS, window=30)).over == 2


def test_the_history_as_it_is_misses_nothing_and_moves_nothing() -> None:
    figures = replay(session(*TALK), TERMS)

    assert (figures.missed, figures.moved) == (0, 0)


@dataclass(frozen=True)
class Forgetful:
    """Sends the first message and the newest, and nothing in between."""

    name: str = "forgetful"

    abilities: ClassVar[Abilities] = Abilities()

    def begin(self, head: int = 0) -> tuple[Message, ...]:
        return ()

    def step(self, state: tuple[Message, ...], message: Message) -> tuple[Message, ...]:
        return (*state, message)

    def request(self, state: tuple[Message, ...], notes: Notes = NOTHING) -> tuple[tuple[Message, ...], Derived]:
        return state, Derived(0, (state[0],) if len(state) == 1 else (state[0], state[-1]), "forgot the middle")


def test_the_recorded_history_is_as_long_whatever_a_policy_made_of_it() -> None:
    plain, short = replay(session(*TALK), TERMS), replay(session(*TALK), replace(TERMS, policy=Forgetful(), head=9))

    assert plain.history_tokens == plain.new_tokens == short.history_tokens - 9
    assert short.history_tokens > short.result_tokens


def test_a_policy_that_forgets_is_charged_for_what_it_moved_and_told_what_was_missed() -> None:
    talk = session(
        {"role": "user", "content": "find it"},
        call("Grep", "1"),
        result("Grep", "1", "the secret_name is here"),
        call("Grep", "2"),
        result("Grep", "2", "nothing"),
        {"role": "assistant", "content": "it was secret_name"},
    )

    figures = replay(talk, replace(TERMS, policy=Forgetful()))

    assert (figures.moved, figures.demanded, figures.missed, figures.missed_turns) == (1, 1, 1, 1)


def test_facts_are_identifier_like_words() -> None:
    text = r"the parser_state of Session42 in myFile; internationalisation\nnewline word"

    assert facts_of(opened(text)) == {"parser_state", "Session42", "myFile", "internationalisation"}


def test_an_emitted_request_says_what_stands_and_what_follows() -> None:
    talk = session(*TALK)
    rows = [json.loads(emitted(talk, turn, derived)) for turn, derived in SessionReplay(talk, TERMS)]

    assert [(row["turn"], row["keep"], len(row["append"])) for row in rows] == [(1, 0, 1), (3, 1, 2), (5, 3, 2)]
    assert [message for row in rows for message in row["append"]] == list(TALK[:5])


def test_an_unknown_policy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match=r"policy = 'magic': expected one of .*identity"):
        policy_named("magic")


JOB = ReplayJob(TERMS.prices, "o200k", 0)


def replayed(
    paths: Sequence[Path], *, policy: str = "identity", job: ReplayJob = JOB, jobs: int = 1
) -> list[SessionResult[ReplayedSession]]:
    work = partial(replay_session, policy=policy, emit=True)
    results = run_on_sessions(paths, work, job, Engine(jobs=jobs))
    return [result for result in results if isinstance(result, SessionResult)]


@needs_traces
@needs_scorer
@pytest.mark.parametrize(
    "path", [path for path in FAMILIES if path.stat().st_size < 600_000], ids=lambda path: path.name
)
def test_identity_scores_exactly_one_and_the_scorer_counts_as_we_do(path: Path, tmp_path: Path) -> None:
    derived = tmp_path / "derived.jsonl"
    found = [result.value for result in replayed([path])]
    derived.write_bytes(b"".join(one.emitted for one in found))

    scored = subprocess.run(
        [sys.executable, str(SCORER), str(path), str(derived), "--json"], capture_output=True, text=True, check=True
    )

    score = json.loads(scored.stdout)
    assert [score[name] for name in ("tokens_ratio", "cost_ratio", "effective_ratio")] == [1.0, 1.0, 1.0]
    assert score["worst"] in (0.0, 1.0)  # 0 where no session has ten requests
    assert score["broken"] == score["identity_broken"]
    assert (score["absent"], score["sessions_absent"], score["moved"]) == (0, 0, 0)
    if score["tokenizer"] == "o200k":
        assert score["tokens"] == sum(one.figures.tokens for one in found)
        assert score["cost"] == pytest.approx(sum(one.figures.cost for one in found), abs=1)


@needs_traces
def test_two_processes_give_the_same_outcomes_in_the_same_order_as_one() -> None:
    paths = [path for path in FAMILIES if path.name.startswith(("coding-bash", "research-web"))]

    alone, together = replayed(paths, jobs=1), replayed(paths, jobs=2)

    assert alone == together


def test_the_overhead_is_written_once_and_read_at_every_turn() -> None:
    plain, heavy = replay(session(*TALK), TERMS), replay(session(*TALK), replace(TERMS, head=1_000))

    assert heavy.tokens == plain.tokens + 1_000 * plain.requests
    assert heavy.cost == pytest.approx(plain.cost + TERMS.prices.cost(1_000 * (plain.requests - 1), 1_000))
    assert heavy.peak == plain.peak + 1_000
    assert replay(session(*TALK), replace(TERMS, head=1_000, window=plain.peak + 999)).over == 1


def test_an_oracle_is_shown_the_recording_and_nobody_else_is() -> None:
    oracle = policy_named("oracle_replay", offline=True)

    figures = replay(session(*TALK), replace(TERMS, policy=oracle))

    assert (figures.requests, figures.missed) == (3, 0)


@needs_scorer
@needs_traces
@pytest.mark.parametrize("name", ["reset", "compaction"])
def test_a_policy_scores_alike_by_the_scorer_and_by_us(name: str, tmp_path: Path) -> None:
    path = next(path for path in FAMILIES if path.name.startswith("coding-short"))
    derived = tmp_path / "derived.jsonl"
    given = replace(JOB, window=12_000, overhead=2_000)
    total = ReplayFigures()
    with derived.open("wb") as file:
        for result in replayed([path], policy=name, job=given):
            file.write(result.value.emitted)
            total.add(result.value.figures)

    command = [
        sys.executable,
        str(SCORER),
        str(path),
        str(derived),
        "--json",
        "--window",
        "12000",
        "--overhead",
        "2000",
    ]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    assert (told["tokens"], told["over"], told["moved"]) == (total.tokens, total.over, total.moved)
    assert told["cost"] == pytest.approx(total.cost, abs=1)
