"""Fits the value priors and the turns left on one half of the recorded sessions: the source of the shipped numbers.

python -m bench.fit [--half 1]
"""

import argparse
from collections import Counter

from bench.recorded import family, in_half, sessions
from pagefold.analysis.fit import Observed, fitted, observed, turns_of
from pagefold.derive.remaining import TurnsLeft
from pagefold.derive.values import Priors

_FAMILIES = ("coding-claude-code", "coding-bash", "mcp-servers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", type=int, default=1, choices=(0, 1))
    options = parser.parse_args()
    neutral = Priors(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -3.5)
    rows: Observed = Counter()
    turns: list[int] = []
    for name in _FAMILIES:
        for session in sessions(family(name)):
            if in_half(session.id, options.half):
                rows.update(observed(session.messages))
                turns.append(turns_of(session.messages))
    values = fitted(rows, turns, priors=neutral, lasting=TurnsLeft())
    print(f"{values.sessions} sessions, {values.asked:,} observations, {values.needed:,} needs")
    print(values.priors)
    print(values.lasting)


if __name__ == "__main__":
    main()
