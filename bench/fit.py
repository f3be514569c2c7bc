"""The value priors and the turns left, fitted on one half of the recorded sessions: the source of the shipped numbers.

python bench/fit.py [--traces DIR] [--half 1]
"""

import argparse
import zlib
from collections.abc import Iterator
from pathlib import Path

from pagefold.adapters import recordings
from pagefold.analysis.fit import fit
from pagefold.derive.remaining import TurnsLeft
from pagefold.derive.values import Priors
from pagefold.wire.message import Message
from pagefold.wire.transcripts import Problem

_FAMILIES = ("coding-claude-code", "coding-bash", "mcp-servers")
_MOST = 1 << 30


def sessions(path: Path, half: int) -> Iterator[list[Message]]:
    for batch in recordings.batches(path, given=None, max_bytes=_MOST):
        for session in recordings.sessions(batch, max_bytes=_MOST):
            if not isinstance(session, Problem) and zlib.crc32(session.id.encode()) % 2 == half:
                yield list(session.messages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--half", type=int, default=1, choices=(0, 1))
    options = parser.parse_args()
    neutral = Priors(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -3.5)
    found = [one for name in _FAMILIES for one in sessions(options.traces / f"{name}.jsonl.xz", options.half)]
    fitted = fit(found, priors=neutral, lasting=TurnsLeft())
    print(f"{fitted.sessions} sessions, {fitted.asked:,} questions, {fitted.needed:,} needs")
    print(fitted.priors)
    print(fitted.lasting)


if __name__ == "__main__":
    main()
