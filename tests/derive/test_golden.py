"""Forms and folds are the same bytes as ever, or `VERSION` says that they are not.

Histories under way keep the version they began with: a change of bytes that goes unnoticed moves the prefix of every
one of them. How to write the hashes anew is said in `golden.py`.
"""

import json

from pagefold.derive.pinned_policy import VERSION
from tests.derive.golden import HASHES, hashes

CHANGED = "bytes changed: raise VERSION"


def test_forms_and_folds_are_the_same_bytes_as_when_the_version_was_raised() -> None:
    golden = json.loads(HASHES.read_text(encoding="utf-8"))
    found = hashes()

    changed = [case for case, expected in golden["hashes"].items() if found.get(case) != expected]
    assert not changed, f"{CHANGED} (pagefold/derive/pinned_policy.py, then {HASHES.name}): {', '.join(changed)}"
    assert golden["version"] == VERSION, f"{HASHES.name} was written with VERSION {golden['version']}: write it anew"
