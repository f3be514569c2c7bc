"""What each codec earns on recorded sessions: alone, and as part of the chain.

    python bench/earnings.py [--families coding-bash,mcp-servers]

In per cent of the tokens of all tool results. *Alone* is what a codec saves by itself, beyond opening frames for it;
*chain* what is lost when it is left out of the whole chain. The policy is `lossless`; the recordings lie beside the
project.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from pagefold.adapters import recordings
from pagefold.derive.policies.lossless import Lossless
from pagefold.tokens import counter
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Session

FOLDER = Path(__file__).parent.parent.parent / "shared" / "traces"
FRAMES = ("mcp-text", "web-page", "returncode", "chunk", "stdout")
CODECS = (
    "json",
    "numbered",
    "delta",
    "context",
    "repeats",
    "colours",
    "log",
    "paths",
    "listing",
    "hits",
    "records",
    "escapes",
)
HINTS = ("reference", "near-ref")
ALL = (*FRAMES, *CODECS, *HINTS)


def tokens(path: Path, without: frozenset[str]) -> tuple[int, int]:
    """Tokens of all tool results, before and after."""
    count = counter("o200k").count
    policy = Lossless(without=without)
    before = after = 0
    for batch in recordings.batches(path, given=None, max_bytes=1 << 26):
        for session in recordings.sessions(batch, max_bytes=1 << 26):
            if not isinstance(session, Session):
                continue
            state = policy.begin()
            for message in session.messages:
                state = policy.step(state, message)
                if message.role is Role.TOOL:
                    before += count(message.text)
                    after += count(state.waiting[-1].text)
                state = policy.request(state)[0]
    return before, after


def family(path: Path) -> tuple[str, dict[str, tuple[float, float]]]:
    before, whole = tokens(path, frozenset())
    opened = tokens(path, frozenset(ALL) - set(FRAMES))[1]
    earned = {"the whole chain": (1 - whole / before, 0.0)}
    for codec in ALL:
        kept = {codec} if codec in FRAMES else {codec, *FRAMES}
        alone = tokens(path, frozenset(ALL) - kept)[1]
        lacking = tokens(path, frozenset({codec}))[1]
        base = before if codec in FRAMES else opened
        earned[codec] = ((base - alone) / before, (lacking - whole) / before)
    return path.name.partition(".")[0], earned


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default="", help="names, separated by commas")
    chosen = [name for name in parser.parse_args().families.split(",") if name]
    paths = [
        path for path in sorted(FOLDER.glob("[!p]*.jsonl.xz")) if not chosen or path.name.partition(".")[0] in chosen
    ]
    if not paths:
        raise SystemExit(f"no recordings in {FOLDER}")
    with ProcessPoolExecutor() as pool:
        results = dict(pool.map(family, paths))
    print("| codec | " + " | ".join(results) + " |")
    print("|---|" + "--:|" * len(results))
    for codec in ("the whole chain", *ALL):
        cells = [
            f"{100 * alone:.1f} / {100 * chain:.1f}" for alone, chain in (results[name][codec] for name in results)
        ]
        print(f"| {codec} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
