"""Trials simulated on recorded sessions with planted effects: do the intervals hold, and are the effects found?

    python -m bench.trial [--experiments 1000] [--share 0.2] [PATH …]

A session of a simulated trial is a recorded one, drawn with replacement under a name of its own; its group is drawn by
`arm_of`, as live. Behind pagefold it costs and takes as many times as much as planted. Prints how often the 95 %
intervals hold what was planted, how often it was found with the number of sessions that `sessions_needed` asks for, and
how many those are. Without PATH: the recordings beside the project. Exit code 1: coverage outside 93 to 97 %, or an
effect found in less than 75 of 100 trials.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import log
from pathlib import Path
from statistics import stdev

from bench.recorded import JOB
from pagefold.adapters import recordings
from pagefold.analysis.engine import Engine, SessionResult, run_on_sessions
from pagefold.analysis.replay import replay
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.trial import MEASURES, Compared, compared, sessions_needed
from pagefold.derive.session_row import SessionRow
from pagefold.derive.trial import Arm, arm_of
from pagefold.model_proxy.session_rows import FollowedHistory
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Session
from tests.shared import FAMILIES

_LEAST, _MOST, _FOUND = 0.93, 0.97, 0.75
SAME_LENGTH = "cost at the same length"
PLANTED: dict[str, dict[str, float]] = {
    "nothing": {},
    "cost - 30 %": {"cost": 0.7, SAME_LENGTH: 0.7},
    "turns + 20 %": {"turns": 1.2},
}
FOUND: dict[str, dict[str, float]] = {
    "cost": {"cost": 0.9},
    SAME_LENGTH: {"cost": 0.9, SAME_LENGTH: 0.9},
    "turns": {"turns": 1.2},
}


def row_of(session: Session, job: ReplayJob) -> SessionRow | None:
    """A recorded session as the proxy would have counted it, at 20 s a turn where no times are recorded."""
    figures = replay(session, job.of(session).terms("identity"))
    if not figures.requests:
        return None
    row, followed = SessionRow(session.id, turns=figures.requests, usd=job.prices.usd(figures.cost)), FollowedHistory()
    for message in session.messages:
        followed.heard(row, message)
    answers = sum(message.role is Role.ASSISTANT for message in session.messages)
    row.seconds = session.times[-1] if session.times else 20.0 * answers
    return row


def experiment(
    pool: Sequence[SessionRow], size: int, share: float, planted: dict[str, float], seed: int
) -> list[Compared]:
    """One trial: its measures."""
    drawn = random.Random(seed)
    rows = []
    for number in range(size):
        row = replace(drawn.choice(pool), session=f"{seed}-{number}")
        row.arm = arm_of(row.session, share)
        if row.arm == Arm.TREATED:
            row.usd *= planted.get("cost", 1.0)
            row.turns *= planted.get("turns", 1.0)  # type: ignore[assignment] # not rounded: that would be another effect
        rows.append(row)
    return list(compared(rows).measures)


def simulated(
    pool: Sequence[SessionRow], size: int, share: float, planted: dict[str, float], experiments: int
) -> dict[str, tuple[float, float]]:
    """By measure: how often its interval holds what was planted, and how often it shows that there is a difference."""
    held, found, told = dict[str, int](), dict[str, int](), dict[str, int]()
    for seed in range(experiments):
        for one in experiment(pool, size, share, planted, seed):
            if not one.high:
                continue
            told[one.name] = told.get(one.name, 0) + 1
            true = planted.get(one.name, 1.0)
            held[one.name] = held.get(one.name, 0) + (one.low <= true <= one.high)
            found[one.name] = found.get(one.name, 0) + (one.high < 1 if true < 1 else one.low > 1)
    return {name: (held[name] / count, found[name] / count) for name, count in told.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--experiments", type=int, default=1000)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--sessions", type=int, default=200, help="of a trial whose coverage is looked at")
    options = parser.parse_args()
    paths = recordings.find(options.paths) if options.paths else list(map(Path, FAMILIES))
    results = run_on_sessions(paths, partial(row_of), JOB, Engine(jobs=2))
    pool = [one.value for one in results if isinstance(one, SessionResult)]
    spread = stdev(log(row.usd) for row in pool)
    print(f"{len(pool):,} recorded sessions; standard deviation of the logarithm of cost {spread:.2f}")
    good = True
    print(f"coverage of 95 % intervals in {options.experiments:,} trials of {options.sessions} sessions")
    for words, planted in PLANTED.items():
        told = simulated(pool, options.sessions, options.share, planted, options.experiments)
        # Where turns are planted, sessions of the same length are others.
        shown = {name: held for name, (held, _) in told.items() if "turns" not in planted or name != SAME_LENGTH}
        good = good and all(_LEAST <= held <= _MOST for held in shown.values())
        print(f"  planted {words}: " + ", ".join(f"{name} {100 * held:.1f} %" for name, held in shown.items()))
    first = experiment(pool, 4_000, options.share, {}, 1)
    print("sessions that show it in 80 of 100 trials, and how often it was found with them")
    needed = {one.name: one.needed for one in first}
    for name, planted in FOUND.items():
        told = simulated(pool, needed[name], options.share, planted, max(50, options.experiments // 10))
        good = good and told[name][1] >= _FOUND
        effect = f"{100 * (planted[name] - 1):+.0f} %"
        print(f"  {name} {effect}: {needed[name]:,} sessions, found in {100 * told[name][1]:.0f} %")
    print("sessions by effect and share held out (cost; cost at the same length)")
    same = stdev_of(SAME_LENGTH, first, options.share)
    for times in (0.9, 0.8, 0.7, 0.5):
        cells = [
            f"{share:.0%}: {sessions_needed(spread, times, share):,}; {sessions_needed(same, times, share):,}"
            for share in (0.1, 0.2, 0.5)
        ]
        print(f"  {100 * (times - 1):+.0f} %   " + "   ".join(cells))
    return int(not good)


def stdev_of(name: str, measures: Sequence[Compared], share: float) -> float:
    """The standard deviation that a measure's number of sessions comes from."""
    effect = next(measure.effect for measure in MEASURES if measure.name == name)
    asked = next(one.needed for one in measures if one.name == name)
    return float((asked / sessions_needed(1.0, effect, share)) ** 0.5)


if __name__ == "__main__":
    raise SystemExit(main())
