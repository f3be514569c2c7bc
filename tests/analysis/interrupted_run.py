"""A run over recordings whose work never ends, to be interrupted. Prints `begun` when work on a session begins."""

import sys
import time
from pathlib import Path

from pagefold.analysis import engine
from pagefold.analysis.replay_job import ReplayJob
from pagefold.derive.cost import ASSUMED
from pagefold.wire.transcripts import Session


def sleep(session: Session, job: ReplayJob) -> None:
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    time.sleep(60)


def main() -> int:
    engine._SMALL_BYTES, engine._PART_FILES = 0, 1
    job = ReplayJob(ASSUMED, "o200k", 200_000)
    try:
        list(engine.run_on_sessions([Path(name) for name in sys.argv[1:]], sleep, job, engine.Engine(jobs=2)))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
