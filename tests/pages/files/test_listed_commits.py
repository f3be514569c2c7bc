"""A commit that git made by itself puts all files in doubt until a listing tells which it changed."""

import pytest

from tests.pages.files.sessions import Step, all_lines, cat_n, file_of, model_of, numbered_lines, whole_text

A, B, C = "/srv/mill/src/a.py", "/srv/mill/src/b.py", "/srv/notes/c.md"
LINES = ["import ledger_of_mill", "", "def total_of_rows():", "    return 1"]
READS: list[Step] = [("Read", {"file_path": path}, cat_n(LINES)) for path in (A, B, C)]
MADE = (
    '[main 7dbba6d] Revert "perf: grind in chunks"\n Date: Thu Jul 23 15:07:07 2026\n 1 file changed, 7 insertions(+)'
)
LIST = " src/a.py | 7 +++++++\n 1 file changed, 7 insertions(+)"
SHOWN = f'commit 7dbba6d6aa\nAuthor: Mo <mo@mill>\n\n    Revert "perf: grind in chunks"\n\n{LIST}'


def bash(script: str, printed: str = "") -> Step:
    return "Bash", {"command": f"cd /srv/mill && {script}"}, printed


REVERT = bash("git revert --no-edit f2c1bde", MADE)
ALL, NONE = {A, B, C}, set[str]()
DOUBTED = {
    "no listing": ([REVERT], ALL),
    "a listing": ([REVERT, bash("git show --stat", SHOWN)], {A}),
    "one by its hash, later": ([REVERT, bash("make"), bash("git show --stat 7dbba6d", SHOWN)], {A}),
    "in one line for the commit": ([REVERT, bash("git log --stat --oneline -1", f"7dbba6d Revert\n{LIST}")], {A}),
    "in the same script": ([bash("git revert --no-edit f2c1bde && git show --stat HEAD", f"{MADE}\n{SHOWN}")], {A}),
    "against the one before": ([bash("git revert HEAD && git diff --stat HEAD~1", f"{MADE}\n{LIST}")], {A}),
    "a cherry-pick": ([bash("git cherry-pick f2c1bde", MADE), bash("git show --stat", SHOWN)], {A}),
    "a listing that git cut": ([REVERT, bash("git show --stat", SHOWN.replace("src/", ".../"))], {A}),
    "a listing of another commit": ([REVERT, bash("git show --stat", SHOWN.replace("7dbba", "8eccb"))], ALL),
    "what is not committed": ([bash("git revert HEAD && git diff --stat", f"{MADE}\n{LIST}")], ALL),
    "a later comparison": ([REVERT, bash("git diff --stat HEAD~1", LIST)], ALL),
    "a listing of one folder": ([REVERT, bash("git show --stat -- src", SHOWN)], ALL),
    "a listing without its end": (
        [REVERT, bash("git show --stat | head -9", SHOWN.replace(" 1 file", " 2 files"))],
        ALL,
    ),
    "a file that was moved": ([REVERT, bash("git show --stat", SHOWN.replace("src/a.py", "src/{b.py => a.py}"))], ALL),
    "two commits": ([bash("git revert HEAD HEAD~1", f"{MADE}\n{MADE}"), bash("git show --stat", SHOWN)], ALL),
    "another doubt since": ([REVERT, bash("git pull"), bash("git show --stat", SHOWN)], ALL),
    "one before it": ([bash("git pull"), REVERT, bash("git show --stat", SHOWN)], ALL),
}


@pytest.mark.parametrize(("steps", "doubted"), DOUBTED.values(), ids=DOUBTED)
def test_only_what_a_listed_commit_changed_is_in_doubt(steps: list[Step], doubted: set[str]) -> None:
    model = model_of(*READS, *steps)

    assert {path for path in (A, B, C) if not numbered_lines(file_of(model, path))} == doubted


def test_a_file_that_was_edited_since_keeps_the_edit() -> None:
    edit: Step = ("Edit", {"file_path": B, "old_string": "return 1", "new_string": "return 2"}, "Updated.")
    model = model_of(*READS, REVERT, edit, bash("git show --stat", SHOWN))

    assert "    return 2" in all_lines(file_of(model, B))
    assert whole_text(file_of(model, C)) == "".join(line + "\n" for line in LINES)
