"""Runs the economic policy on every recorded session: does it keep its laws, and what does a turn cost?

    python bench/fold.py [--traces DIR] [--window 64000] [--only laws|cold|speed] [--families 'coding-*']

laws    every request extends the last or is a fold point with a reason; derived from scratch at random turns, and in
        another process, it is the same, byte for byte; no request exceeds the window; every handle recalls its bytes.
cold    how many of the recorded expiries of the provider's cache, after which a fold would have left out at least a
        sixth of the request and a thousand tokens, were used for one.
speed   a new turn on histories of up to 300 messages, fold points, and a turn on 5,000 messages; processor time, with
        json.loads of the same messages beside it as a floor. Once with the collector of garbage as Python sets it, once
        as both proxies set it: what it costs depends on all that a process has loaded.
"""

import argparse
import gc
import hashlib
import json
import random
import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

from pagefold.adapters import recordings
from pagefold.adapters.gc_tuning import tune_gc
from pagefold.analysis.replay import expired
from pagefold.derive.fold import Rule
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policy import Derived, Notes
from pagefold.pages.page import HANDLE
from pagefold.tokens import FRAME, counter
from pagefold.wire.apis import message_of
from pagefold.wire.message import Message, Role
from pagefold.wire.transcripts import Problem, Session

_MOST = 1 << 30
_SCRATCH = 4  # random turns a session that are derived from scratch
_ROUNDS = 3  # of all fold points: the slowest of one round alone is whatever else the machine did then
_GAIN, _GAIN_SHARE = 1_000, 1 / 6  # tokens that a fold has to leave out to be worth it where it costs nothing


def sessions(path: Path) -> Iterator[Session]:
    for batch in recordings.batches(path, given=None, max_bytes=_MOST):
        for session in recordings.sessions(batch, max_bytes=_MOST):
            if not isinstance(session, Problem):
                yield session


def requests(policy: Economic, messages: Sequence[Message]) -> Iterator[tuple[int, list[Message], Derived]]:
    state, sent = policy.begin(), list[Message]()
    for place, message in enumerate(messages):
        if message.role is Role.ASSISTANT:
            state, derived = policy.request(state)
            sent = [*sent[: derived.keep], *derived.append]
            yield place, sent, derived
        state = policy.step(state, message)


def digest_of(messages: Sequence[Message]) -> str:
    return hashlib.sha256("\n".join(message.raw for message in messages).encode("utf-8", "surrogatepass")).hexdigest()


def scratch(job: tuple[int, list[Message]]) -> str:
    """The last request of a history, by a process that knows nothing of it."""
    window, messages = job
    found = ""
    for _, sent, _ in requests(Economic(window=window), messages):
        found = digest_of(sent)
    return found


def laws(paths: Sequence[Path], window: int) -> None:
    policy, dice, count = Economic(window=window), random.Random(1), counter("o200k").count
    print(f"{'family':28} sessions requests  folds  unexplained  over  dangling  scratch  differ")
    for path in paths:
        told = dict.fromkeys(("sessions", "requests", "folds", "unexplained", "over", "dangling"), 0)
        jobs: list[tuple[int, list[Message]]] = []
        expected: list[str] = []
        for session in sessions(path):
            told["sessions"] += 1
            pages: set[str] = set()
            before: list[Message] = []
            turns = [place for place, message in enumerate(session.messages) if message.role is Role.ASSISTANT]
            chosen = set(dice.sample(turns, min(_SCRATCH, len(turns))))
            for place, sent, derived in requests(policy, session.messages):
                pages |= {page.handle for page in derived.pages}
                told["requests"] += 1
                told["folds"] += bool(derived.reason)
                moved = [m.raw for m in sent[: len(before)]] != [m.raw for m in before]
                told["unexplained"] += moved and not derived.reason
                told["over"] += sum(count(message.text) + FRAME for message in sent) > window
                if derived.reason:
                    text = "\n".join(m.text for m in sent if m.text.startswith("[Folded"))
                    heads = [line for line in text.split("\n") if line.startswith(("[Folded", "# "))]
                    told["dangling"] += any(handle not in pages for line in heads for handle in HANDLE.findall(line))
                if place in chosen:
                    jobs.append((window, list(session.messages[: place + 1])))
                    expected.append(digest_of(sent))
                before = sent
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            differ = sum(a != b for a, b in zip(pool.map(scratch, jobs, chunksize=8), expected, strict=True))
        row = "  ".join(f"{told[name]:>{max(5, len(name))},}" for name in told)
        print(f"{path.name.partition('.')[0]:28} {row}  {len(jobs):>7,}  {differ:>6,}", flush=True)


def cold(paths: Sequence[Path], window: int) -> None:
    """Everything is written anew after an expiry: what is left out then costs no rewrite."""
    policy = Economic(window=window)
    print(f"{'family':28} expiries  worth folding  used")
    total = [0, 0]
    for path in paths:
        seen, worth, used = 0, 0, 0
        for session in sessions(path):
            lost = frozenset(expired(session, policy.prices.life))
            state = policy.begin()
            for place, message in enumerate(session.messages):
                if message.role is Role.ASSISTANT:
                    notes = Notes(cold=place in lost)
                    after, _ = policy.request(state, notes)
                    if notes.cold:
                        made = policy.folded_by(state, policy.usable(state, notes), Rule(), state.last)
                        worthy = state.tokens - made.tokens >= max(_GAIN, _GAIN_SHARE * state.tokens)
                        seen, worth = seen + 1, worth + worthy
                        used += worthy and after.last is not state.last
                    state = after
                state = policy.step(state, message)
        total = [total[0] + worth, total[1] + used]
        if seen:
            print(f"{path.name.partition('.')[0]:28} {seen:>8,}  {worth:>13,}  {used:>4,}", flush=True)
    print(f"{'all':28} {'':8}  {total[0]:>13,}  {total[1]:>4,}  ({total[1] / max(1, total[0]):.1%})")


def speed(path: Path, window: int) -> None:
    policy = Economic(window=window)
    for collects, begin in (("as Python sets it", gc.collect), ("as proxies set it", tune_gc)):
        begin()
        turns, folds, parsing = list[float](), list[float](), list[float]()
        for _ in range(_ROUNDS):
            _timed(policy, path, turns, folds, parsing)
        print(f"the collector {collects}:")
        print(f"  a turn up to 300 messages: median {_ms(turns, 0.5)}, p99 {_ms(turns, 0.99)} ({len(turns):,} turns)")
        print(f"  a fold point:              median {_ms(folds, 0.5)}, p99 {_ms(folds, 0.99)} ({len(folds):,} folds)")
    print(f"json.loads of a turn:        median {_ms(parsing, 0.5)}")
    _long(policy)


def _timed(policy: Economic, path: Path, turns: list[float], folds: list[float], parsing: list[float]) -> None:
    """Turns and fold points, each with the arrival of what came since the last, and the floor."""
    for session in sessions(path):
        if len(session.messages) < 150:
            continue
        state, spent, parsed = policy.begin(), 0.0, 0.0
        for message in session.messages[:300]:
            start = time.process_time()
            if message.role is Role.ASSISTANT:
                state, derived = policy.request(state)
                (folds if derived.reason else turns).append(spent + time.process_time() - start)
                parsing.append(parsed)
                spent, parsed, start = 0.0, 0.0, time.process_time()
            state = policy.step(state, message)
            spent += time.process_time() - start
            start = time.process_time()
            json.loads(message.raw)
            parsed += time.process_time() - start


def _long(policy: Economic) -> None:
    """A session of 5,000 messages that never ends."""
    state, turns = policy.begin(), list[float]()
    before, characters = _resident(), 0
    for number in range(2_500):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "Read", "arguments": '{"path":"a.py"}'}}
        said = {"role": "assistant", "content": f"Step {number}.", "tool_calls": [call]}
        text = "\n".join(f"{line}\tdef work_{number}_{line}(value): return value" for line in range(1, 30))
        answer = {"role": "tool", "tool_call_id": f"c{number}", "content": text}
        for value in (said, answer) if number else ({"role": "user", "content": "Go on for ever."}, said, answer):
            message = message_of(value)
            characters += len(message.raw)
            start = time.process_time()
            if message.role is Role.ASSISTANT:
                state, _ = policy.request(state)
            state = policy.step(state, message)
            if number > 2_400 and message.role is Role.ASSISTANT:
                turns.append(time.process_time() - start)
    memory = _resident() - before
    print(f"a turn at 5,000 messages:    median {_ms(turns, 0.5)}, worst {max(turns) * 1e3:.2f} ms; ", end="")
    print(f"{memory / characters:.1f} bytes more memory a character of history")


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _ms(times: Sequence[float], share: float) -> str:
    if share == 0.5:
        return f"{median(times) * 1e3:.2f} ms"
    ranked = sorted(times)
    return f"{ranked[min(len(ranked) - 1, int(len(ranked) * share))] * 1e3:.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--window", type=int, default=64_000)
    parser.add_argument("--only", choices=("laws", "cold", "speed"))
    parser.add_argument("--families", default="*", help="a pattern of their names, for laws and cold")
    options = parser.parse_args()
    paths = [
        path for path in sorted(options.traces.glob("[!p]*.jsonl.xz")) if path.match(f"{options.families}.jsonl.xz")
    ]
    if not paths:
        raise SystemExit(f"no recorded sessions under {options.traces}")
    if options.only in (None, "laws"):
        laws(paths, options.window)
    if options.only in (None, "cold"):
        cold(paths, options.window)
    if options.only in (None, "speed"):
        speed(options.traces / "coding-claude-code.jsonl.xz", options.window)


if __name__ == "__main__":
    main()
