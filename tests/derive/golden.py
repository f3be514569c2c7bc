"""Small sessions of our own, and the hash of all requests that each policy derives from them.

`golden.json` holds the hashes and the `VERSION` they were made with. Where a change of bytes is meant, raise `VERSION`
in `pagefold/derive/pinned_policy.py` and write the hashes anew: `python -m tests.derive.golden`.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pagefold.adapters.recordings import example
from pagefold.derive.pinned_policy import VERSION
from pagefold.derive.policies import LIVE, policy_named
from pagefold.derive.policies.compaction import Compaction
from pagefold.wire.message import Message
from tests.derive.loops import exchange, loop, read, run

HASHES = Path(__file__).with_name("golden.json")


def _results() -> list[str]:
    """One result of each shape that codecs know, and one that none knows."""
    records = [
        {"id": n, "name": f"clerk {n}", "state": "open" if n % 3 else "closed", "sum": n * 7.5} for n in range(24)
    ]
    hits = "\n".join(f"src/mill/part_{n // 6}.py:{n * 3}:    total += row_{n}" for n in range(40))
    log = "\n".join(f"2026-11-16T08:{n:02}:00Z INFO mill.worker row {n % 5} is checked" for n in range(40))
    listing = "\n".join(f"/srv/mill/reports/2026/{n:02}/nightly_{n}.csv" for n in range(1, 40))
    diff = "--- a/part.py\n+++ b/part.py\n@@ -1,3 +1,3 @@\n total = 0\n-total -= row\n+total += row\n"
    return [
        json.dumps(records),
        json.dumps({"rows": records[:9], "next": None, "note": "ä ☃"}, ensure_ascii=False, indent=1),
        json.dumps([{"type": "text", "text": json.dumps(records[:12])}]),
        hits,
        log,
        listing,
        diff,
        "same line\n" * 30,
        "It is not known why; nobody looked at the ledger yet.",
    ]


def sessions() -> Mapping[str, list[Message]]:
    mixed: list[dict[str, Any]] = loop(3)[:-1]
    for number, text in enumerate(_results() * 2, 10):
        mixed += exchange(number, text, tool="Bash" if number % 2 else "Read")
        if number % 7 == 0:
            mixed.append({"role": "user", "content": f"And what about part_{number}? Keep the ledger as it is."})
    shelf = json.loads(example().read_text(encoding="utf-8").partition("\n")[0])["messages"]
    said = (30, {"role": "user", "content": "Now compare it with the ledger of last year."})
    return {
        "files": read(loop(48, said)),
        "mixed": read([*mixed, {"role": "assistant", "content": "Done."}]),
        "shelf": read(shelf),
    }


def hashes() -> dict[str, str]:
    """The hash of every request that a policy derives from a session, and of the pages that its handles recall."""
    found: dict[str, str] = {}
    for session, messages in sessions().items():
        for name in LIVE:
            policy = policy_named(name, window=12_000 if session == "files" else 5_000)
            if isinstance(policy, Compaction):
                policy = replace(policy, at=4_000)  # its own fill would take long to reach
            hashed = sha256()
            for derived in run(policy, messages).derived:
                said = [derived.keep, [message.raw for message in derived.append], [page.id for page in derived.pages]]
                hashed.update(json.dumps(said).encode())
            found[f"{session} {name}"] = hashed.hexdigest()[:16]
    return found


def main() -> None:
    HASHES.write_text(json.dumps({"version": VERSION, "hashes": hashes()}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
