"""Measures what each codec saves on recorded sessions: alone, and as part of the chain.

    python -m bench.earnings [--families coding-bash,mcp-servers] [--every 1]

In per cent of the tokens of all tool results. *Alone* is what a codec saves by itself, beyond opening frames for it;
*chain* what is lost when it is left out of the whole chain. A codec that made nothing in the whole chain of a family
can lose nothing there and is not tried again: its cell is empty. The forms are those of the policy `lossless`; the
recordings lie beside the project. `--every 4` takes every fourth session, for a first look.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path

from bench.recorded import families, name_of, sessions
from pagefold.derive.entry import Standings, arrive
from pagefold.tokens import counter
from pagefold.wire.message import Role

FRAMES = ("mcp-text", "json-text", "web-page", "returncode", "chunk", "script", "exit", "stdout")
CODECS = (
    "json",
    "numbered",
    "delta",
    "repeats",
    "colours",
    "log",
    "listing",
    "hits",
    "records",
    "escapes",
)
HINTS = ("reference", "near-ref")
ALL = (*FRAMES, *CODECS, *HINTS)


def results(path: Path, every: int, without: frozenset[str] = frozenset()) -> tuple[int, int, set[str]]:
    """Tokens of all tool results, before and after, and the codecs that made something of them."""
    count = counter("o200k").count
    before = after = 0
    used: set[str] = set()
    for session in islice(sessions(path), every - 1, None, every):
        standings = Standings()
        for message in session.messages:
            arrived = arrive(standings, message, without)
            standings = arrived.standings
            if message.role is Role.TOOL:
                before += count(message.text)
                after += count(arrived.message.text)
                used |= set(arrived.codecs)
    return before, after, used


def cell(path: Path, every: int, codec: str, whole: int, opened: int) -> tuple[float, float]:
    """What one codec earns in one family, alone and in the chain."""
    kept = {codec} if codec in FRAMES else {codec, *FRAMES}
    before, alone, _ = results(path, every, frozenset(ALL) - kept)
    base = before if codec in FRAMES else opened
    lacking = results(path, every, frozenset({codec}))[1]
    return (base - alone) / before, (lacking - whole) / before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default="", help="names, separated by commas")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth session (default: all)")
    options = parser.parse_args()
    paths = families(options.families)
    names = [name_of(path) for path in paths]
    every = options.every
    with ProcessPoolExecutor() as pool:
        bare = [pool.submit(results, path, every, frozenset(ALL) - set(FRAMES)) for path in paths]
        wholes = list(pool.map(results, paths, [every] * len(paths)))
        tasks = {
            (name, codec): pool.submit(cell, path, every, codec, after, opened.result()[1])
            for name, path, (_, after, used), opened in zip(names, paths, wholes, bare, strict=True)
            for codec in ALL
            if codec in used
        }
        print("| codec | " + " | ".join(names) + " |")
        print("|---|" + "--:|" * len(names))
        print(
            "| the whole chain | "
            + " | ".join(f"{100 * (1 - after / before):.1f}" for before, after, _ in wholes)
            + " |"
        )
        for codec in ALL:
            found = [tasks[name, codec].result() if (name, codec) in tasks else None for name in names]
            cells = [f"{100 * one[0]:.1f} / {100 * one[1]:.1f}" if one else "" for one in found]
            print(f"| {codec} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
