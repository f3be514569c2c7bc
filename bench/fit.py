"""The value priors and the turns left, fitted on one half of the recorded sessions: the source of the shipped numbers.

python -m bench.fit [--half 1]
"""

import argparse

from bench.recorded import family, in_half, sessions
from pagefold.analysis.fit import fit
from pagefold.derive.remaining import TurnsLeft
from pagefold.derive.values import Priors

_FAMILIES = ("coding-claude-code", "coding-bash", "mcp-servers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", type=int, default=1, choices=(0, 1))
    options = parser.parse_args()
    neutral = Priors(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -3.5)
    found = [
        session.messages
        for name in _FAMILIES
        for session in sessions(family(name))
        if in_half(session.id, options.half)
    ]
    fitted = fit(found, priors=neutral, lasting=TurnsLeft())
    print(f"{fitted.sessions} sessions, {fitted.asked:,} questions, {fitted.needed:,} needs")
    print(fitted.priors)
    print(fitted.lasting)


if __name__ == "__main__":
    main()
