"""Puts every tool result of recorded sessions through both gates: what was caught, and what reads differently.

    python -m bench.gates [--families coding-codex,mcp-servers]

Each result is encoded as the policy `lossless` shows it, decoded, and read by the literal reader, which knows nothing
but the words of the form. One line for each family. Exit code 1 where a gate caught a codec or either reads otherwise.
The recordings lie beside the project.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.fuzz.histories import same
from bench.recorded import families, name_of, sessions
from pagefold.derive import entry
from pagefold.encode import decode, literal_forms, literal_reader
from pagefold.encode.choose import EncodedText, encode
from pagefold.pages.ledger import Ledger

_WHOLE = frozenset(("reference", "near-ref"))  # one line in place of a result: nothing in it can be read as its lines


def check(text: str, made: EncodedText, ledger: Ledger) -> Iterator[str]:
    """Words for what is counted of one result, with what is wrong about its form among them."""
    yield "results"
    yield from (f"caught {name}" for name in made.skipped)
    if made.text == text:
        return
    yield "forms"
    if not same(decode(made.text, ledger), text):
        yield "decoded otherwise"
    if _WHOLE.isdisjoint(made.codecs):
        yield "read literally"
        if not literal_forms.agrees(literal_reader.read(made.text, ledger.shown), text):
            yield "read otherwise"


def checked(path: Path) -> Counter[str]:
    """What was counted in a family. A form is looked at where it is made, with the ledger that it is made under."""
    counts = Counter[str]()

    def watched(text: str, *, ledger: Ledger, **more: Any) -> EncodedText:  # as `arrive` calls it
        made = encode(text, ledger=ledger, **more)
        counts.update(check(text, made, ledger))
        counts["references"] += made.references
        return made

    vars(entry)["encode"] = watched
    for session in sessions(path):
        standings = entry.Standings()
        for message in session.messages:
            standings = entry.arrive(standings, message).standings
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default="", help="some of them, with commas (default: all)")
    total = Counter[str]()
    for path in families(parser.parse_args().families):
        counts = checked(path)
        total += counts
        print(f"{name_of(path)}: {_told(counts)}", flush=True)
    print(f"all: {_told(total)}")
    sys.exit(any(word.startswith("caught") or word.endswith("otherwise") for word in total))


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{many:,} {word}" for word, many in counts.items())


if __name__ == "__main__":
    main()
