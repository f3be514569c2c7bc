"""The simulated agent behind the first fold: `economic` as it was at 2ac9f8b, from a checkout of that commit.

    python -m bench.first_fold [--sizes 12k,32k,128k] [--seeds 1] [--resume FILE] [--markdown FILE]

The checkout goes into a temporary folder and is removed afterwards. A small worker runs in it and derives requests; the
provider, the agent and the tasks are today's. Today's models bind their thinking to its prefix, which the first fold
knew nothing of: the provider here drops such thinking, as an account can ask for, or else it would refuse the first
request after every fold.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pagefold.provider.referee import Referee
from pagefold.provider.reply import Answers
from pagefold.provider.thinking import Behaviour
from pagefold.solve.arms import PATH, Arm, InProcess
from pagefold.solve.experiment import Job, Kept, jobs_for, results_of, simulate
from pagefold.solve.loop import RefusedError
from pagefold.solve.page import Experiment, markdown
from pagefold.solve.project import DOMAINS
from pagefold.solve.verdict import Result

COMMIT = "2ac9f8b"
ARM = "first fold"
_HEADERS = {"anthropic-version": "2023-06-01"}


class Worker:
    """The process in the checkout."""

    def __init__(self, checkout: Path) -> None:
        script = Path(__file__).with_name("first_fold_worker.py")
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(checkout / "src"), "HOME": str(checkout)}
        self._process = subprocess.Popen(
            [sys.executable, str(script)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, told: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class FirstFold(InProcess):
    """The first fold and today's provider, as a `Send`."""

    def __init__(self, arm: Arm, answers: Answers, *, prices_of: str = "", worker: Worker) -> None:
        super().__init__(Arm(), answers, prices_of=prices_of)
        self.referee = Referee(price=self._price, answers=answers, behaviour=Behaviour.DROP)
        self._worker = worker
        worker.ask({"begin": arm.window})

    def __call__(self, body: bytes, now: float) -> Mapping[str, Any]:
        told = self._worker.ask({"body": body.decode(), "now": now})
        reply = None
        while "send" in told:
            reply = self.referee.answer(PATH, _HEADERS, told["send"].encode(), now)
            self.largest = max(self.largest, reply.record.tokens)
            answer = b"".join(reply.pieces).decode()
            told = self._worker.ask({"status": reply.status, "kind": reply.kind, "answer": answer})
        assert reply is not None
        self.folds += told["folds"]
        if not reply.accepted:
            raise RefusedError(reply.record.reason)
        return reply.message


@contextmanager
def checkout() -> Iterator[Path]:
    """That commit's files, while the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "first"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(path), COMMIT], check=True)
        try:
            yield path
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(path)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="12k,32k,128k")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--resume", metavar="FILE", help="keep every run here, beside those of `lab solve`")
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args()
    sizes = [1000 * int(size.removesuffix("k")) for size in options.sizes.split(",")]
    jobs = jobs_for([Arm(ARM)], sizes, range(1, options.seeds + 1), list(DOMAINS))
    with checkout() as path:
        worker = Worker(path)
        through = partial(FirstFold, worker=worker)

        def work(left: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
            for job in left:
                yield job, simulate(job, through=through)

        results = list(results_of(jobs, Kept(Path(options.resume) if options.resume else None), work))
        worker.end()
    text = markdown(Experiment("", results, len(jobs), "Claude Opus 5.5"))
    if options.markdown:
        Path(options.markdown).write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
