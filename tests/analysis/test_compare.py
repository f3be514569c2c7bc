"""Comparisons: ranked by cost with misses priced in, the same numbers every time, wherever the work is done."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pagefold.analysis.compare import MISSED, Comparison, PolicyChoice, compare_session, draw_ratios
from pagefold.analysis.engine import Engine, SessionResult, run_on_sessions
from pagefold.analysis.problems import FileProblem
from pagefold.analysis.replay import Terms, replay
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayJob
from pagefold.derive.cost import ASSUMED
from pagefold.derive.policies import policy_named
from pagefold.tokens import counter
from pagefold.wire.message import Role, Usage
from pagefold.wire.transcripts import Problem, Session
from tests.analysis.logs import session, talk, written

CHOICES = (PolicyChoice("identity", 200_000), PolicyChoice("economic", 64_000), PolicyChoice("compaction", 64_000))
JOB = ReplayJob(ASSUMED, "o200k", 200_000)
WORK = partial(compare_session, choices=CHOICES)


def figures(cost: float, *, penalty: float = 0.0, missed: int = 0, requests: int = 12) -> ReplayFigures:
    return ReplayFigures(sessions=1, requests=requests, cost=cost, penalty=penalty, demanded=1_000, missed=missed)


def comparison(*rows: tuple[ReplayFigures, ...], choices: tuple[PolicyChoice, ...] = CHOICES) -> Comparison:
    made = Comparison(choices)
    for number, row in enumerate(rows):
        made.add(SessionResult(Path("x"), f"s{number}", "", row))
    return made


def test_the_system_prompt_and_tools_that_usage_tells_of_are_part_of_the_bill() -> None:
    recorded = session("s", turns=12)
    first = next(at for at, message in enumerate(recorded.messages) if message.role is Role.ASSISTANT)
    headed = replace(recorded, usage={first: Usage(0, 0, 30_000, 50)})

    plain, other = (compare_session(one, JOB, choices=CHOICES) for one in (recorded, headed))

    assert other[0].peak == pytest.approx(plain[0].peak + 30_000, abs=100)
    # The same is saved of a larger bill.
    assert plain[1].cost / plain[0].cost < other[1].cost / other[0].cost < 1


@pytest.mark.requirement("S-10-compare-rank")
def test_one_that_misses_too_much_is_shown_and_never_ranked_first() -> None:
    made = comparison(*[(figures(100), figures(60), figures(20, missed=4))] * 3)

    ranked = made.ranked()

    assert [one.choice.policy for one in ranked] == ["economic", "identity", "compaction"]
    assert [one.eligible for one in ranked] == [True, True, False]
    assert made.verdict().startswith("economic at 64,000 wins: -40.0 % against the history as it is")
    assert "Cheaper, but missing too much: compaction at 64,000 (-80.0 %, 0.40 % missed)" in made.verdict()
    assert MISSED == 0.003


def test_misses_are_priced_in() -> None:
    made = comparison((figures(100), figures(50, penalty=45, missed=1), figures(90)))

    assert [(one.choice.policy, one.effective) for one in made.ranked()] == [
        ("compaction", 0.9),
        ("economic", 0.95),
        ("identity", 1.0),
    ]


def test_one_short_session_is_said_to_be_neither_drawn_nor_the_worst() -> None:
    made = comparison((figures(100, requests=3), figures(60, requests=3), figures(80, requests=3)))

    assert made.verdict() == (
        "economic at 64,000 wins: -40.0 % against the history as it is, misses priced in; 0.00 % missed. "
        "It is ahead of compaction at 64,000 (-20.0 %)."
    )


def test_where_all_cost_the_same_nobody_wins() -> None:
    made = comparison(*[(figures(100), figures(100), figures(100))] * 3)

    assert made.verdict() == "None of these differs: on these recordings each costs what the history as it is costs."
    assert comparison((figures(100), figures(120), figures(60, missed=4))).verdict() == (
        "None that misses 0.30 % or less is cheaper than the history as it is. "
        "Cheaper, but missing too much: compaction at 64,000 (-40.0 %, 0.40 % missed)."
    )
    assert " wins: " in comparison((figures(100), figures(100), figures(99))).verdict()


def test_the_worst_session_is_told_and_short_ones_say_nothing() -> None:
    made = comparison(
        (figures(100), figures(50), figures(80)),
        (figures(10), figures(14), figures(8)),
        (figures(10, requests=3), figures(90, requests=3), figures(8, requests=3)),
    )

    (economic,) = (one for one in made.ranked() if one.choice.policy == "economic")

    assert (economic.worst, economic.worst_session) == (1.4, "s1")


def test_intervals_are_the_same_every_time_and_hold_the_ratio() -> None:
    rows = [(figures(100 + at), figures(50 + 3 * at), figures(70)) for at in range(20)]

    first, second = (comparison(*rows).ranked() for _ in range(2))

    assert [one.to_dict() for one in first] == [one.to_dict() for one in second]
    for one in first:
        assert one.low <= one.effective <= one.high
    (economic,) = (one for one in first if one.choice.policy == "economic")
    assert economic.low < economic.high


def test_a_draw_is_the_same_sessions_for_every_choice() -> None:
    base = [10.0, 30.0, 80.0]

    assert all(pytest.approx(1.0) == one == other for one, other in draw_ratios(base, [base, base]))
    assert draw_ratios([10.0], [[10.0]]) == []


def test_of_two_that_cost_the_same_neither_is_ahead() -> None:
    choices = (PolicyChoice("identity", 200_000), PolicyChoice("economic", 64_000), PolicyChoice("economic", 200_000))
    made = comparison(*[(figures(100), figures(50), figures(50))] * 2, choices=choices)

    assert made.verdict().startswith("economic at 200,000 wins")
    assert "economic at 64,000 cost the same" in made.verdict()


def test_without_sessions_nothing_is_claimed() -> None:
    made = Comparison(CHOICES)
    made.add(FileProblem(Path("broken.jsonl"), Problem(3, "not JSON")))

    assert made.verdict() == "No session was found in these recordings."
    assert made.problems.lines == ["broken.jsonl:3: not JSON"]
    assert [one.effective for one in made.ranked()] == [1.0, 1.0, 1.0]


@pytest.mark.requirement("S-10-compare-figures")
def test_its_figures_are_those_of_a_replay(tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", talk("one", turns=20))
    (found,) = run_on_sessions([path], WORK, JOB, Engine(jobs=1))

    assert isinstance(found, SessionResult)
    for choice, told in zip(CHOICES, found.value, strict=True):
        policy = policy_named(choice.policy, window=choice.window, offline=True)
        expected = replay(session("one", turns=20), Terms(policy, JOB.prices, counter("o200k"), choice.window))
        expected.tools.clear()
        assert told.to_dict() == expected.to_dict()


@pytest.mark.requirement("S-10-engines-agree")
def test_processes_and_a_run_that_goes_on_give_the_same_results(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("pagefold.analysis.engine._SMALL_BYTES", 0)
    monkeypatch.setattr("pagefold.analysis.engine._PART_FILES", 2)
    paths = [written(tmp_path / f"{at}.jsonl", talk(f"s{at}", turns=3 + at)) for at in range(5)]
    work = partial(compare_session, choices=CHOICES[:2])

    def results(engine: Engine) -> list[Any]:
        return list(run_on_sessions(paths, work, JOB, engine))

    alone = results(Engine(jobs=1))
    kept = tmp_path / "kept"
    assert results(Engine(jobs=2, resume=kept)) == alone
    tasks = sorted(kept.glob("*.task"))
    assert len(tasks) == 3

    # One part was never finished, one was cut off while it was written.
    tasks[0].unlink()
    tasks[1].write_bytes(tasks[1].read_bytes()[:100])
    again = results(Engine(jobs=1, resume=kept))

    assert again == alone
    assert [task.exists() for task in tasks] == [True] * 3


def test_a_kept_part_is_used_and_another_question_does_not_get_it(tmp_path: Path) -> None:
    path = written(tmp_path / "logs.jsonl", talk("one", turns=3))
    kept = tmp_path / "kept"

    def results(choices: tuple[PolicyChoice, ...]) -> list[Any]:
        work = partial(compare_session, choices=choices)
        return list(run_on_sessions([path], work, JOB, Engine(jobs=1, resume=kept)))

    first = results(CHOICES)
    (task,) = kept.iterdir()
    before = task.stat().st_mtime_ns
    assert results(CHOICES) == first
    assert task.stat().st_mtime_ns == before

    assert len(results(CHOICES[:1])[0].value) == 1
    assert len(list(kept.iterdir())) == 2


@pytest.mark.requirement("S-10-ray")
def test_a_ray_cluster_of_two_nodes_gives_the_same_bytes_and_survives_a_worker(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed (the extra ray)")
    cluster_utils = pytest.importorskip("ray.cluster_utils", reason="ray has no test cluster here")
    paths = [written(tmp_path / f"{at}.jsonl", talk(f"s{at}", turns=4 + at)) for at in range(6)]
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        marker = tmp_path / "killed"
        alone = list(run_on_sessions(paths, WORK, JOB, Engine(jobs=1)))
        there = list(run_on_sessions(paths, partial(_dying_once, marker=str(marker)), JOB, Engine("ray")))
        assert marker.exists()
        assert there == alone
        assert _printed(tmp_path, "ray", cluster.address) == _printed(tmp_path, "local", cluster.address)
    finally:
        ray.shutdown()
        cluster.shutdown()


def _printed(logs: Path, engine: str, address: str) -> tuple[str, str]:
    """All that a command says: nothing of the cluster's own is among it."""
    command = [sys.executable, "-m", "pagefold", "compare", str(logs), "--json", "--engine", engine]
    command += ["--resume", str(logs / engine)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(logs), "RAY_ADDRESS": address}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert list((logs / engine).glob("*.task"))
    return done.stdout, done.stderr


def _dying_once(session: Session, job: ReplayJob, *, marker: str) -> tuple[ReplayFigures, ...]:
    """The work, but the first worker that takes it is killed in the middle of it."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return compare_session(session, job, choices=CHOICES)


@pytest.mark.parametrize("everybody", [False, True], ids=["by kill", "by Ctrl-C"])
def test_an_interrupted_run_ends_at_once_and_leaves_no_process(everybody: bool, tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{at}.jsonl", talk(f"s{at}", turns=1)) for at in range(8)]
    command = [sys.executable, "-m", "tests.analysis.interrupted_run", *map(str, paths)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"begun\n"
        started = time.monotonic()
        (os.killpg if everybody else os.kill)(run.pid, signal.SIGINT)
        # Workers hold the pipe too, so that its end says that all of them are gone.
        _, said = run.communicate(timeout=30)

    assert time.monotonic() - started < 20
    assert run.returncode == 130
    assert b"Traceback" not in said
