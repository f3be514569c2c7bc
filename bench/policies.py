"""Scores every policy on recorded sessions with the independent scorer: what each costs and what it misses.

    python -m bench.policies [--family coding-bash,mcp-servers] [--window 32000,64000,200000] [--overhead 25000]
                             [--half 0] [--every 6] [--policy economic,clear] [--picture FILE]
                             [--resume FILE]

One table a family and window. *cost* and *effective* are relative to sending the history as it is. *edits gone* is the
share of texts that edits replaced and that were no longer there, *split* of those in several places, *blocks gone* the
same for lines that answers repeat; *asks* is the share of short asks whose antecedent was not whole; *stale* of removed
lines that were shown as present; *facts*, *lines* and *own* are shares of what later answers used; *moved* is the
share of requests whose prefix moved while the cache was warm; *worst* is the dearest session. A policy that misses less
at a lower effective ratio beats another; the picture shows which ones nobody beats. `--half` takes one half of the
sessions by a hash of their id, `--every` every nth of those. `--resume` keeps every row in a file and takes from it
what is there: all of it is hours of work. The recordings and the scorer lie beside the project.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from bench.recorded import SCORER, SHARED, TRACES, families, in_half, name_of, scorer, sessions
from bench.recorded import family as recording
from pagefold.analysis.replay import SessionReplay, Terms
from pagefold.derive.cost import ASSUMED
from pagefold.derive.policies import NAMES, policy_named
from pagefold.derive.policies.clear import Clear
from pagefold.derive.policy import Policy
from pagefold.tokens import counter
from pagefold.wire.transcripts import Session

EXTRA = {"clear 30k": partial(Clear, trigger=30_000)}
POLICIES = (*NAMES, *EXTRA)
_SHARES = {
    "edits gone": "edit_gone",
    "split": "edit_split",
    "blocks gone": "block_gone",
    "asks": "antecedent",
    "stale": "stale",
    "facts": "miss_rate",
    "lines": "line_miss_rate",
    "own": "own_miss_rate",
    "moved": "moved_rate",
}
COLUMNS = ("policy", "tokens", "cost", "effective", *_SHARES, "unapplied", "over", "broken", "worst", "usable")


@dataclass(frozen=True, slots=True)
class Task:
    """One session of one family under every policy asked for, in values that travel between processes."""

    family: str
    index: int
    window: int
    overhead: int
    policies: tuple[str, ...]


class Unmissed(SessionReplay):
    """A replay that leaves the misses to the scorer."""

    def _misses(self) -> None:
        pass


@cache
def recorded(family: str) -> list[tuple[Session, Any]]:
    found, rows = list(sessions(recording(family))), list(scorer().read_jsonl(str(recording(family))))
    assert [session.id for session in found] == [row["id"] for row in rows]
    return list(zip(found, rows, strict=True))


def made(name: str, window: int) -> Policy:
    return EXTRA[name](window=window) if name in EXTRA else policy_named(name, window=window, offline=True)


def requests_of(session: Session, policy: Policy, window: int, overhead: int = 0) -> Iterator[dict[str, Any]]:
    """What the policy would have sent, as the scorer reads it."""
    for turn, derived in Unmissed(session, Terms(policy, ASSUMED, counter("o200k"), window, overhead)):
        yield {"turn": turn, "keep": derived.keep, "append": [json.loads(message.raw) for message in derived.append]}


def scored(task: Task) -> list[Counter[str]]:
    """The scorer's tallies of one session: as it is, then under each policy."""
    score = scorer()
    session, row = recorded(task.family)[task.index]
    prices, seen = (task.window, task.overhead, 0.1, 1.25, 300), score.Seen()
    plain = score.Tally()
    score.score_session(row, score.identity(row), prices, seen, plain)
    tallies = [plain]
    for name in task.policies:
        tally = score.Tally()
        requests = list(requests_of(session, made(name, task.window), task.window, task.overhead))
        score.score_session(row, requests, prices, seen, tally)
        tallies.append(tally)
    return [Counter(tally) for tally in tallies]  # a class of the scorer's cannot travel


class Rows:
    """Rows that were worked out, in a file or for this run alone."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
        self._known = {tuple(row.pop("of")): row for row in map(json.loads, lines)}

    def table(self, pool: ProcessPoolExecutor, title: str, tasks: Sequence[Task]) -> list[dict[str, Any]]:
        """One row a policy, in the order asked for."""
        names = tasks[0].policies
        left = tuple(name for name in names if (title, name) not in self._known)
        if left:
            for row in worked_out(pool, [replace(task, policies=left) for task in tasks]):
                self._known[title, row["policy"]] = row
                if self._path is not None:
                    with self._path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({"of": [title, row["policy"]], **row}) + "\n")
        return [self._known[title, name] for name in names]


def worked_out(pool: ProcessPoolExecutor, tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """One row a policy."""
    score, names = scorer(), tasks[0].policies
    base, totals = score.Tally(), [score.Tally() for _ in names]
    worst = [0.0] * len(names)
    for plain, *tallies in pool.map(scored, tasks, chunksize=2):
        base.add(plain)
        for at, tally in enumerate(tallies):
            totals[at].add(tally)
            if plain["requests"] >= 10:
                worst[at] = max(worst[at], (tally["cost"] + tally["penalty"]) / plain["cost"])
    rows = []
    for name, total, ratio in zip(names, totals, worst, strict=True):
        rows.append(score.report(total, base) | {"policy": name, "worst": ratio})
    return rows


def is_usable(row: dict[str, Any]) -> bool:
    """Whether an agent could go on with what was sent, by the limits that the scorer's head names."""
    limits = {"edit_gone": 0.03, "block_gone": 0.08, "miss_rate": 0.01, "antecedent": 0.01, "stale": 0.02}
    within = all(row[name] <= most for name, most in limits.items())
    return within and not row["unapplied"] and not row["over"] and row["broken"] <= row["identity_broken"]


def printed(title: str, rows: Sequence[dict[str, Any]]) -> None:
    print(f"\n{title}\n\n| {' | '.join(COLUMNS)} |\n|---|{'--:|' * (len(COLUMNS) - 1)}")
    for row in rows:
        cells = [
            row["policy"],
            *(f"{row[name]:.3f}" for name in ("tokens_ratio", "cost_ratio", "effective_ratio")),
            *(f"{100 * row[name]:.2f} %" for name in _SHARES.values()),
            f"{row['unapplied']:,}",
            f"{row['over']:,}",
            f"{row['broken'] - row['identity_broken']:+,}",
            f"{row['worst']:.2f}",
            "yes" if is_usable(row) else "no",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def unbeaten(rows: Sequence[dict[str, Any]]) -> set[str]:
    """The policies that no other beats both in cost and in misses; those that look ahead do not compete."""
    points = {row["policy"]: (row["effective_ratio"], missed(row)) for row in rows if row["policy"] not in _SEERS}
    return {
        name
        for name, (cost, miss) in points.items()
        if not any(
            other != name and c <= cost and m <= miss and (c, m) != (cost, miss) for other, (c, m) in points.items()
        )
    }


def missed(row: dict[str, Any]) -> float:
    """In per cent: facts that were missed, the assistant's own included."""
    return float(100 * (row["miss_rate"] + row["own_miss_rate"]))


_SEERS = ("oracle_replay", "clairvoyant")
_WIDE, _HIGH, _LEFT, _TOP = 560, 330, 60, 48


def picture(families: dict[str, Sequence[dict[str, Any]]]) -> str:
    """Cost against misses, one panel a table. Misses on a scale of roots, so that small ones can be told apart."""
    panels = [
        f'<g transform="translate(0,{at * (_HIGH + 90)})">{"".join(_panel(title, rows))}</g>'
        for at, (title, rows) in enumerate(families.items())
    ]
    high = len(panels) * (_HIGH + 90) + 10
    style = "text{font:12px sans-serif;fill:#24292f}.t{font-weight:bold;font-size:14px}.a{stroke:#8c959f;fill:none}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE + 220}" height="{high}">'
        f"<style>{style}</style>"
        f'<rect width="100%" height="100%" fill="white"/>{"".join(panels)}</svg>\n'
    )


def _panel(title: str, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    most = max(1.0, *(missed(row) for row in rows))
    dear = max(1.0, *(row["effective_ratio"] for row in rows))

    def spot(cost: float, miss: float) -> tuple[float, float]:
        return _LEFT + _WIDE * cost / dear, _TOP + _HIGH * (1 - (miss / most) ** 0.5)

    yield f'<text class="t" x="{_LEFT}" y="24">{title}</text>'
    yield f'<path class="a" d="M{_LEFT} {_TOP}V{_TOP + _HIGH}H{_LEFT + _WIDE}"/>'
    yield f'<text x="{_LEFT + _WIDE - 130}" y="{_TOP + _HIGH + 32}">cost, misses priced in</text>'
    yield f'<text x="{_LEFT + 6}" y="{_TOP + 4}">missed</text>'
    for step in range(5):
        x, _ = spot(dear * step / 4, 0)
        yield f'<text x="{x - 10:.0f}" y="{_TOP + _HIGH + 16}">{dear * step / 4:.2f}</text>'
        share = most * (step / 4) ** 2
        yield f'<text x="4" y="{spot(0, share)[1] + 4:.0f}">{share:.2f} %</text>'
    best = unbeaten(rows)
    front = sorted(spot(row["effective_ratio"], missed(row)) for row in rows if row["policy"] in best)
    if len(front) > 1:
        yield f'<path fill="none" stroke="#1a7f37" d="M{" L".join(f"{x:.1f} {y:.1f}" for x, y in front)}"/>'
    taken: list[tuple[float, float]] = []
    for row in sorted(rows, key=missed):
        x, y = spot(row["effective_ratio"], missed(row))
        colour = "#8250df" if row["policy"] in _SEERS else "#1a7f37" if row["policy"] in best else "#57606a"
        label = y
        while any(abs(label - high) < 12 and abs(x - far) < 100 for far, high in taken):
            label -= 12
        taken.append((x, label))
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        yield f'<text x="{x + 8:.1f}" y="{label + 4:.1f}">{row["policy"]}</text>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="", help="names, separated by commas; all without")
    parser.add_argument("--window", default="32000,64000,200000")
    parser.add_argument("--overhead", type=int, default=0)
    parser.add_argument("--half", type=int, default=-1, choices=(-1, 0, 1))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--policy", default=",".join(POLICIES))
    parser.add_argument("--picture", default="", help="write cost against misses to this SVG file")
    parser.add_argument("--resume", type=Path, help="keep rows in this file, and take from it those that are there")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if not SCORER.exists() or not TRACES.exists():
        raise SystemExit(f"skipped: the scorer and the recordings ({SHARED}) are not on this machine")
    chosen = [name for name in options.family.split(",") if name]
    names = [name_of(path) for path in families()]
    if odd := sorted({*chosen} - {*names}):
        raise SystemExit(f"--family {', '.join(odd)}: expected {', '.join(names)}")
    if odd := sorted({*options.policy.split(",")} - {*POLICIES}):
        raise SystemExit(f"--policy {', '.join(odd)}: expected {', '.join(POLICIES)}")
    drawn: dict[str, Sequence[dict[str, Any]]] = {}
    known = Rows(options.resume)
    with ProcessPoolExecutor(options.jobs) as pool:
        for family in chosen or names:
            rows = enumerate(scorer().read_jsonl(str(recording(family))))
            taken = [at for at, row in rows if options.half < 0 or in_half(row["id"], options.half)]
            for window in map(int, options.window.split(",")):
                tasks = [
                    Task(family, at, window, options.overhead, tuple(options.policy.split(",")))
                    for at in taken[:: options.every]
                ]
                title = f"{family}, window {window:,}"
                title += f", overhead {options.overhead:,}" if options.overhead else ""
                title += f", {len(tasks)} sessions"
                drawn[title] = known.table(pool, title, tasks)
                printed(title, drawn[title])
    if options.picture:
        Path(options.picture).write_text(picture(drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
