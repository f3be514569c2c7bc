"""Real agents, 60 turns past the window, behind pagefold against the provider that enforces its rules; then without.

    python -m bench.agents_refereed [--turns 60] [--agents claude-code,codex,opencode]

Behind pagefold nothing may be refused. Then the session goes on without pagefold, as docs/thinking.md says. Needs what
`make agents` installs and the kit that drives agents. Exit code 1: something was refused, or did not go on.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.agents.kit import PROGRAMS
from tests.agents.refereed import WINDOWS, continued, drive, drive_folding, refereed, work_in


def measured(agent: str, turns: int, folder: Path) -> tuple[bool, str]:
    """Whether all went well, and the row of one agent."""
    began = time.monotonic()
    work_in(folder)
    with refereed(turns) as provider:
        proxy = drive_folding(agent, provider, folder)
        behind = len(provider.records)
        refused = sum(bool(rule) for rule in provider.rules)
        went_on = "Nothing is left." in drive(agent, provider.url, folder, "And now?", *continued(agent))
        after = sum(bool(rule) for rule in provider.rules[behind:])
    folds, faults = proxy.totals.work.folds, proxy.totals.faults
    figures = f"{agent:20} {WINDOWS[agent]:7,} {behind:8} {refused:8} {folds:6} {faults:7}"
    ended = f"{'yes' if went_on else 'NO':>8} {after:13} {time.monotonic() - began:6.0f}"
    return not refused and not faults and went_on, f"{figures} {ended}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--agents", default=",".join(WINDOWS))
    options = parser.parse_args()
    print(
        f"{'agent':20} {'window':>7} {'requests':>8} {'refused':>8} {'folds':>6} {'faults':>7} {'went on':>8} ", end=""
    )
    print(f"{'then refused':>13} {'s':>6}")
    well = True
    for agent in options.agents.split(","):
        if agent not in PROGRAMS:
            print(f"{agent:20} is not installed: make agents")
            continue
        with tempfile.TemporaryDirectory() as folder:
            good, row = measured(agent, options.turns, Path(folder) / "run")
        print(row, flush=True)
        well = well and good
    return int(not well)


if __name__ == "__main__":
    raise SystemExit(main())
