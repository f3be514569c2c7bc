"""The report against the bill: real agents against the provider that bills, with and without pagefold.

    python -m bench.report_check [--sessions 10] [--policy lossless] [--agents codex] [--keep DIR]

Claude Code and Codex play the same scripts twice, straight and by `pagefold run`; their logs are reported.
Compared are: the bill that the report reads in the logs with the one that the provider sent; what the report's model
predicts with what was logged; what it says of the straight logs, and of those behind pagefold, with what the two bills
really differ by, and with what `pagefold run` measured. `--sessions` is how many scripts each agent plays. Needs what
`make agents` installs and the kit that drives agents. Exit code 1: a figure is outside its bound.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pagefold.cli.lab_provider import list_price
from pagefold.model_proxy.server import running
from pagefold.provider.referee import Referee
from pagefold.provider.script import parse_script
from pagefold.provider.server import ProviderApp
from tests.agents.kit import FOLDER, KIT, PROGRAMS
from tests.agents.refereed import AGENTS, LINES

_SUM, _EACH, _POINT = 0.03, 0.05, 0.01
LOGS = {"claude-code": "config/projects", "codex": "config/sessions"}
ADDRESS = {"claude-code": "$ANTHROPIC_BASE_URL", "codex": "${OPENAI_BASE_URL%/v1}"}


def script(seed: int) -> str:
    """A session of its own length that reads, searches, lists, writes and runs things, some of them again."""
    dice = random.Random(seed)
    commands: list[Callable[[], str]] = [
        lambda: f"sed -n {(at := dice.randrange(1, 600))},{at + dice.randrange(20, 90)}p code.py",
        lambda: f"grep -n 'function_{dice.randrange(9)}' code.py",
        lambda: "ls -la",
        lambda: f"head -n {dice.randrange(30, 120)} code.py",
        lambda: f"seq -f 'test_%g passed in 0.01s' 1 {dice.randrange(40, 200)}",
        lambda: f"echo '# note {dice.randrange(99)}' >> notes.txt && cat notes.txt",
    ]
    steps = [
        {"text": f"Step {number}.", "tool_call": {"name": "$shell", "input": {"command": dice.choice(commands)()}}}
        for number in range(dice.randrange(6, 36))
    ]
    return json.dumps([*steps, {"text": "All is read."}])


@dataclass
class Played:
    """One session: what the provider billed, what `pagefold run` measured, and where its log is."""

    usd: float
    logs: Path
    measured: dict[str, Any]


@contextmanager
def billing(seed: int) -> Iterator[tuple[str, Referee]]:
    referee = Referee(answers=parse_script(script(seed), "the script"), price=list_price())
    with running(ProviderApp(referee)) as url:
        yield url, referee


def play(agent: str, seed: int, folder: Path, policy: str) -> Played:
    """Plays a script, by `pagefold run` where a policy is given."""
    kind, program = PROGRAMS[agent]
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "code.py").write_text("\n".join(LINES))
    state = folder / "state"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "TIME_LIMIT": "120",
        "ENABLE_TOOL_SEARCH": "false",  # which `run` would set otherwise, and then the heads differ
        "AGENT_BIN": str(program),
        "AGENTS_DIR": str(FOLDER),
        "STATE_DIR": str(state),
        **AGENTS[agent],
    }
    with billing(seed) as (url, referee):
        address = ADDRESS[agent] if policy else url
        driven = ["bash", "-c", f'bash {KIT}/drive_{kind}.sh "{address}" {folder}/work "Look through code.py" ""']
        if policy:
            through = ["--policy", policy, "--store", str(folder.parent / "store.sqlite3")]
            through += ["--anthropic-url", url, "--openai-url", url, "--json"]
            driven = [sys.executable, "-m", "pagefold", "run", *through, "--", *driven]
        done = subprocess.run(driven, env=environment, capture_output=True, text=True, check=False, timeout=180)
    if "All is read." not in (state / "stdout").read_text():
        raise SystemExit(f"{agent} {seed}: {done.stdout[-1500:]}{done.stderr[-1500:]}")
    totals = re.search(r'^\{"requests".*$', done.stdout, re.MULTILINE)
    return Played(referee.totals.usd, state / LOGS[agent], json.loads(totals[0]) if totals else {})


def reported(logs: Sequence[Path], store: Path, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "pagefold", "report", *map(str, logs), "--json", "--jobs", "1"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PAGEFOLD_STORE_PATH": str(store)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def paid(report: dict[str, Any], what: str = "paid") -> float:
    return float(sum(report["bill"][what].values()))


def line(words: str, value: float, bound: float, *, points: bool = False) -> bool:
    unit = "points" if points else "%"
    print(f"  {words:78} {100 * value:7.2f} {unit} (bound {100 * bound:.0f})", flush=True)
    return abs(value) <= bound


def check(straight: Sequence[Played], behind: Sequence[Played], policy: str, folder: Path) -> bool:
    none, store = folder / "none.sqlite3", folder / "store.sqlite3"
    before = reported([one.logs for one in straight], none, folder)
    after = reported([one.logs for one in behind], store, folder)
    plain, left = sum(one.usd for one in straight), sum(one.usd for one in behind)
    each = [reported([one.logs], none, folder)["bill"]["model_check"] for one in straight]
    each += [reported([one.logs], store, folder)["bill"]["model_check"] for one in behind]
    sums = {name: sum(one[name] for one in each) for name in ("predicted_usd", "logged_usd")}
    off = [abs(one["predicted_usd"] / one["logged_usd"] - 1) for one in each]
    true = 1 - left / plain
    could = before["bill"]["policies"][policy]["saved_share"]
    did = after["bill"]["already_saved_usd"] / paid(after, "without_pagefold")
    reckoned = [one.measured["reckoned"] for one in behind]
    usd, saved = (sum(one[name] for one in reckoned) for name in ("usd", "usd_saved"))
    print(f"{len(straight)} sessions straight, {len(behind)} behind pagefold ({policy}): ${plain:.4f} and ${left:.4f}")
    print(f"  saved really {100 * true:.2f} %; by the straight logs {100 * could:.2f} %,", end=" ")
    print(f"by those behind {100 * did:.2f} %,")
    print(f"  by pagefold run {100 * saved / (usd + saved):.2f} %; recognised as behind: {after['bill']['behind']}")
    print(f"  the report says it may be off by {100 * before['bill']['plus_or_minus']:.2f} points (straight),", end=" ")
    print(f"{100 * after['bill']['plus_or_minus']:.2f} (behind)", flush=True)
    good = [
        line("paid, read in the logs, against the provider's bill", paid(before) / plain - 1, _SUM),
        line("the same behind pagefold", paid(after) / left - 1, _SUM),
        line("predicted against logged, in sum", sums["predicted_usd"] / sums["logged_usd"] - 1, _SUM),
        line("predicted against logged, median of the sessions", median(off), _EACH),
        line("would have been saved (straight logs) - really saved", could - true, _POINT, points=True),
        line("saved already (logs behind pagefold) - really saved", did - true, _POINT, points=True),
        line(
            "saved already (logs behind pagefold) - measured by run", did - saved / (usd + saved), _POINT, points=True
        ),
    ]
    return all(good) and after["bill"]["behind"] == len(behind)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--policy", default="lossless")
    parser.add_argument("--agents", default=",".join(LOGS), help="which agents, separated by commas")
    parser.add_argument("--keep", metavar="DIR", help="leave the logs here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(options.keep or made)
        straight, behind = list[Played](), list[Played]()
        agents = options.agents.split(",")
        for agent in agents:
            for seed in range(options.sessions) if agent in PROGRAMS else ():
                # Folders with names of one length: an agent names its folder in every request.
                straight.append(play(agent, seed, folder / f"{agent}-{seed}-direct", ""))
                behind.append(play(agent, seed, folder / f"{agent}-{seed}-behind", options.policy))
        for agent in agents:
            mine = [[one for one in group if agent in str(one.logs)] for group in (straight, behind)]
            if mine[0]:
                print(agent)
                check(mine[0], mine[1], options.policy, folder)
        print("all of them")
        return int(not check(straight, behind, options.policy, folder))


if __name__ == "__main__":
    raise SystemExit(main())
