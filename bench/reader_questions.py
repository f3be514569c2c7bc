"""Makes questions about encoded results, with their answers, for a model that has never heard of pagefold.

    python bench/reader_questions.py > reading.jsonl

One JSON object a line: `{"kind", "shown", "question", "answer"}`. The results are those of the bundled session, as a
model would read them; answers come from the originals, never from the forms. A model reads well if it answers as it
would have from the original. Kinds: a value by key, a line by its number, a row by a condition, a count.
"""

import json
import re
from collections.abc import Iterator

from pagefold.adapters import recordings
from pagefold.derive.policies.lossless import Lossless
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Session

NUMBERED = re.compile(r"(\d+)\t(.*)")


def results() -> Iterator[tuple[str, str, str]]:
    """Every result of the session: what stood before it as a model reads it, its form, and the original."""
    (batch,) = recordings.batches(recordings.example(), given=None, max_bytes=1 << 26)
    (session,) = (item for item in recordings.sessions(batch, max_bytes=1 << 26) if isinstance(item, Session))
    policy, state, before = Lossless(), Lossless().begin(), list[str]()
    for message in session.messages:
        state = policy.step(state, message)
        shown = state.waiting[-1]
        if message.role is Role.TOOL:
            yield "\n\n".join(before), shown.text, message.text
        before.append(f"{message.role}: {shown.text}")


def questions(original: str) -> Iterator[tuple[str, str, str]]:
    """(kind, question, answer), from the original alone."""
    numbered = [found for line in original.split("\n") if (found := NUMBERED.fullmatch(line)) and found[2].strip()]
    for found in numbered[6::17]:
        yield "line by number", f"What does line {found[1]} of this file say, exactly?", found[2]
    try:
        value = json.loads(original)
    except ValueError:
        return
    loans = value["loans"]
    yield "value by key", "What is the value of `exported`?", value["exported"]
    for loan in loans[3::11]:
        yield "value by key", f"When is {loan['barcode']} due?", loan["due_on"]
    lost = [loan["barcode"] for loan in loans if loan["state"] == "lost"]
    yield "row by condition", "Which barcodes have the state lost? Answer with all of them, in order.", " ".join(lost)
    renewed = sum(1 for loan in loans if loan["renewals"] == 3)
    yield "count", "How many loans were renewed three times?", str(renewed)


def main() -> None:
    for before, shown, original in results():
        for kind, question, answer in questions(original):
            context = f"{before}\n\n{shown}" if "\n= " in shown else shown
            row = {"kind": kind, "shown": context, "question": question, "answer": answer}
            print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
