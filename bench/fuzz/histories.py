"""Puts random histories of tool results through the codecs and back, a history for each number.

    python -m bench.fuzz.histories [--texts 1000000] [--first 0]

Every text has to come back by the decoder, and no gate may have to catch a codec: each form that one does is told with
the number of its history, which makes it again. Exit code 1 where there was any.
"""

import argparse
import random
import sys
import time
from collections import Counter

from bench.fuzz import shapes
from bench.fuzz.texts import MAKERS, mutated
from pagefold.encode import decode, encode
from pagefold.encode.notation.json_value import parse
from pagefold.pages.ledger import Ledger

_TOLD = 50_000  # texts after which it says how far it is


def same(back: str, text: str) -> bool:
    if back == text:
        return True
    try:
        return parse(back) == parse(text)
    except (ValueError, RecursionError):
        return False


def check_history(dice: random.Random, given: str = "") -> list[str]:
    """Encodes the texts of one history, `given` among them, each under the ledger of those before it, and decodes them:
    text byte for byte, JSON by values, types, key order, number lexemes and duplicate keys. Returns a word for each
    text, and one for each codec that a gate had to catch."""
    ledger, earlier, counts = Ledger(), [given] if given else [], list[str]()
    for turn in range(dice.randint(1, 6)):
        text = dice.choice(MAKERS)(dice) if not earlier or dice.random() < 0.6 else dice.choice(earlier)
        text = shapes.again(dice, text) if earlier and dice.random() < 0.25 else text
        text = mutated(dice, text) if dice.random() < 0.25 else text
        text = given if given and turn == 0 else text
        tool, source = dice.choice([("Read a.py", "a.py"), ("Read a.py", ""), ("list", "")])
        shown = encode(text, tool=tool, ledger=ledger, source=source)
        assert same(decode(shown.text, ledger), text), f"comes back differently: {text!r}"
        counts += ["texts", *(f"caught {name}" for name in shown.skipped)]
        for entry in shown.ledger_entries:
            ledger = ledger.with_text(entry)
        earlier.append(text)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first history")
    asked = parser.parse_args()
    counts, number, told = Counter[str](), asked.first, _TOLD
    while counts["texts"] < asked.texts:
        try:
            found = check_history(random.Random(number))
        except Exception as error:  # noqa: BLE001 - the find of a fuzzer, told with the number that makes it again
            found = [f"failed {type(error).__name__}"]
            print(f"history {number}: {error!r}"[:600], flush=True)
        if wrong := [word for word in found if word != "texts"]:
            print(f"history {number}: {', '.join(wrong)}", flush=True)
        counts, number = counts + Counter(found), number + 1
        if counts["texts"] >= told:
            print(f"{counts['texts']:,} texts, {time.process_time():.0f} s of processor time", flush=True)
            told += _TOLD
    wrong = [f"{word} {many}" for word, many in sorted(counts.items()) if word != "texts"]
    print(
        f"{counts['texts']:,} texts in histories {asked.first} to {number - 1}: {', '.join(wrong) or 'all came back'}"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
