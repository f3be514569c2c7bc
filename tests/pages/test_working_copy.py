"""What git told of a working copy, and how long it holds."""

import pytest

from pagefold.pages.copies_told import newest_lines
from pagefold.pages.exchanges import Work
from tests.pages.files.sessions import call, conversation, result, user, work_of

Told = list[tuple[str, str]]
"""Scripts with what they printed."""

LONG = """On branch mend
Changes to be committed:
  (use "git restore --staged <file>..." to unstage)
\tnew file:   b.py
\trenamed:    c.py -> d.py

Changes not staged for commit:
\tmodified:   a.py

Untracked files:
  (use "git add <file>..." to include in what will be committed)
\tnotes.txt
"""
LISTED = "staged: new file b.py, staged: renamed c.py -> d.py, modified a.py, untracked notes.txt"
SHORT = " M a.py\n?? notes.txt\n"
UNKNOWN = "; what is not committed is not known"
ON_MEND = "on branch mend (message 3)"
ON = f"{ON_MEND}{UNKNOWN}"
LOST = f"{ON} since message 5"
NOTES_AT_7 = "not committed: M a.py, ?? notes.txt (message 7)"
NOTES = "not committed: M a.py, ?? notes.txt (message 3)"
COMMIT = "[mend 1d1cd9ab] fix: mend the wheel\n 3 files changed, 44 insertions(+), 1 deletion(-)"


def work(*told: tuple[str, str]) -> Work:
    steps = [user("Mend the mill.")]
    for at, (script, printed) in enumerate(told):
        steps += [call(f"c{at}", "Bash", {"command": script}), result(f"c{at}", printed)]
    return work_of(conversation(*steps))


KNOWN: dict[str, tuple[Told, list[str]]] = {
    "a long status": ([("git status", LONG)], [f"on branch mend (message 3); not committed: {LISTED} (message 3)"]),
    "a short one": ([("git status -s", SHORT)], ["not committed: M a.py, ?? notes.txt (message 3)"]),
    "a short one with the branch": (
        [("git status -sb", f"## mend...origin/mend\n{SHORT}")],
        ["on branch mend (message 3); not committed: M a.py, ?? notes.txt (message 3)"],
    ),
    "one that is clean": (
        [("git status", "On branch main\nnothing to commit, working tree clean")],
        ["on branch main (message 3); not committed: nothing (message 3)"],
    ),
    "one that was cut": ([("git status -s | head -1", " M a.py")], []),
    "one beside other output": ([("git status -s && git diff --stat", f"{SHORT} a.py | 2 +-")], []),
    "one of some paths": ([("git status -s src", SHORT)], []),
    "one that failed": ([("git status -s", "Exit code 128\nfatal: not a git repository")], []),
    "a commit": (
        [("git commit -m x", COMMIT)],
        [f"on branch mend (message 3); last commit made: 1d1cd9ab fix: mend the wheel (message 3){UNKNOWN}"],
    ),
    "a commit after a status": (
        [("git status", LONG), ("git add -A && git commit -qm x", "")],
        [LOST],
    ),
    "what a later command undid": (
        [("git commit -m x", COMMIT), ("git reset --soft HEAD~1", "")],
        [ON],
    ),
    "a switch": ([("git checkout -b mend", "Switched to a new branch 'mend'")], [ON]),
    "a switch that tells nothing": ([("git status", LONG), ("git switch -q main", "")], []),
    "a file that was checked out": (
        [("git status", LONG), ("git checkout -- a.py", "")],
        [LOST],
    ),
    "no branch": (
        [("git checkout 1d1cd9a", "Note: switching to '1d1cd9a'.\nHEAD is now at 1d1cd9a")],
        [f"on branch none (at 1d1cd9a) (message 3){UNKNOWN}"],
    ),
    "another repository": (
        [("git status", LONG), ("cd /tmp/try && git init && git commit -m x", "[main (root-commit) aaaaaaa] x")],
        [
            f"where the shell began: {ON_MEND}; not committed: {LISTED} (message 3)",
            f"/tmp/try: on branch main (message 5); last commit made: aaaaaaa x (message 5){UNKNOWN}",
        ],
    ),
    "a folder of the same": (
        [
            ("cd /srv/mill && git checkout mend", "Switched to branch 'mend'"),
            ("cd /srv/mill/src && git status -s", SHORT),
        ],
        ["/srv/mill: on branch mend (message 3); not committed: M a.py, ?? notes.txt (message 5)"],
    ),
    "two at once": ([("git status", LONG), ("git -C /a pull && git -C /b checkout x", "Already on 'x'")], []),
    "lines that only look like it": ([("cat notes.txt", LONG)], []),
    "headings of a file beside a short status": ([("git status -s && cat index.md", f"{SHORT}## Mills\n")], []),
    "headings of a file beside one with the branch": (
        [("git status -sb && cat index.md", f"## mend...origin/mend\n{SHORT}## Mills\n")],
        [ON],
    ),
    "headings of a file before a short status": (
        [("cat index.md; git status -sb", f"## Mills\n## mend...origin/mend [ahead 1]\n{SHORT}")],
        [ON],
    ),
    "headings of a file before one without a branch on a server": (
        [("cat index.md; git status -sb", f"## Mills\n## mend\n{SHORT}")],
        [],
    ),
    "a file about git beside a switch": (
        [("git switch mend && cat notes.txt", f"Already on 'mend'\n{LONG.replace('mend', 'main')}")],
        [ON],
    ),
    "the name alone": ([("git branch --show-current", "mend")], [ON]),
    "the name alone before something else": (
        [("git rev-parse --abbrev-ref HEAD && git fetch origin", "mend\nFrom mill.example:mill")],
        [ON],
    ),
    "the name alone, later than a switch": (
        [("git checkout main", "Already on 'main'"), ("git branch --show-current", "mend")],
        [f"on branch mend (message 5){UNKNOWN}"],
    ),
    "no name alone": ([("git branch --show-current", "(Bash completed with no output)")], []),
    "an error in its place": ([("git branch --show-current", "fatal: not a git repository")], []),
    "the name before a switch that tells nothing": ([("git branch --show-current; git switch -q x", "mend")], []),
    "the list of branches": ([("git branch", "  main\n* mend\n  x")], [ON]),
    "a graph behind the list": ([("git branch && git log --graph", "* mend\n* 1d1cd9a mend\n* aaaaaaa x")], [ON]),
    "a list without a branch": ([("git branch", "* (HEAD detached at 1d1cd9a)\n  mend")], []),
    "a rebase": (
        [("git rebase origin/main 2>&1 | head", "Rebasing (1/1)Successfully rebased and updated refs/heads/mend.")],
        [ON],
    ),
    "a file that says otherwise": (
        [("git status", LONG), ("git status && cat notes.txt", f"{LONG}\nOn branch main\nnothing to commit")],
        [f"on branch mend (message 3); not committed: {LISTED} (message 3)"],
    ),
    "a file that says that nothing is to be committed": (
        [("git status && cat notes.txt", f"{LONG}\nnothing to commit, working tree clean")],
        [ON],
    ),
    "a file about git beside a quiet switch": ([("git switch -q mend && cat notes.txt", "Already on 'main'")], []),
    "a file about git beside a file that was checked out": (
        [("git checkout a.py && cat notes.txt", "Switched to branch 'main'")],
        [],
    ),
    "a file about git beside a merge": (
        [("git merge x && cat notes.txt", "Already up to date.\n[main 1d1cd9ab] all is well")],
        [],
    ),
    "two commits where one was made": (
        [("git commit -m x && cat notes.txt", f"{COMMIT}\n[mend aaaaaaaa] all is well")],
        [],
    ),
    "a subject that goes on like pagefold": (
        [("git commit -m x", "[mend 1d1cd9ab] x (message 3); not committed: nothing")],
        [
            'on branch mend (message 3); last commit made: "1d1cd9ab x (message 3); not committed: nothing" (message 3)'
            + UNKNOWN
        ],
    ),
    "a path that acts on a terminal": (
        [("git status -s", "?? a\x1b[2K\rb")],
        ["not committed: ?? a\\x1b[2K\\x0db (message 3)"],
    ),
    "a short status of no branch": ([("git status -sb", f"## HEAD (no branch)\n{SHORT}")], [NOTES]),
}


SPELLED: dict[str, tuple[Told, list[str]]] = {
    f"{one} and {other}": (
        [(f"cd '{one}' && git checkout mend", "Switched to branch 'mend'"), (f"git -C '{other}' status -s", SHORT)],
        [f"{name}: on branch mend (message 3); not committed: M a.py, ?? notes.txt (message 5)"],
    )
    for one, other, name in (
        ("/repo", "/repo/", "/repo"),
        ("/repo/", "/repo/./src/..", "/repo"),
        ("~/mill", "/home/ada/mill", "~/mill"),
        ("/Users/ada/mill", "~/mill/src", "/Users/ada/mill"),
        ("D:\\mill", "/d/mill", "d:/mill"),
        ("/d/mill", "D:/Mill", "/d/mill"),
        ("/mnt/d/mill", "d:\\mill\\src", "/mnt/d/mill"),
        ("src", "src/", "src"),
    )
}
KNOWN |= SPELLED
KNOWN |= {
    f"{one} beside {other}": (
        [(f"cd {one} && git checkout mend", "Switched to branch 'mend'"), (f"git -C {other} status -s", SHORT)],
        [f"{one}: {ON}", f"{other}: not committed: M a.py, ?? notes.txt (message 5)"],
    )
    for one, other in (("/a/mill", "/b/mill"), ("/mill", "/mill/.worktrees/x"), ("/home/ada/mill", "/home/bob/mill"))
}
KNOWN |= {
    "a folder of the one where the shell began": (
        [("git checkout mend", "Switched to branch 'mend'"), ("cd src && git status -s", SHORT)],
        ["on branch mend (message 3); not committed: M a.py, ?? notes.txt (message 5)"],
    ),
    "a folder that is said to be where the shell began": (
        [
            ("git checkout mend", "Switched to branch 'mend'"),
            ("cd /tmp && ls", "x\nShell cwd was reset to /srv/mill"),
            ("cd /srv/mill && git status -s", SHORT),
        ],
        ["on branch mend (message 3); not committed: M a.py, ?? notes.txt (message 7)"],
    ),
    "a folder that turns out to be where the shell began": (
        [
            ("git checkout mend", "Switched to branch 'mend'"),
            ("pwd", "/srv/mill"),
            ("cd /srv/mill && git status -s", SHORT),
            ("cd /srv/sieve && git checkout x", "Already on 'x'"),
        ],
        [
            f"/srv/mill: {ON_MEND}; {NOTES_AT_7}, and what may have changed since message 9",
            f"/srv/sieve: on branch x (message 9){UNKNOWN}",
        ],
    ),
    "a switch in a folder that may be where the shell began": (
        [("git checkout mend", "Switched to branch 'mend'"), ("cd /srv/mill && git checkout x", "Already on 'x'")],
        [f"/srv/mill: on branch x (message 5){UNKNOWN}"],
    ),
    "a status of a folder that may be where the shell began": (
        [("git status -sb", f"## main\n{SHORT}"), ("cd /srv/mill && git status -s", "?? b.py")],
        [
            f"where the shell began: on branch main (message 3){UNKNOWN}",
            "/srv/mill: not committed: ?? b.py (message 5)",
        ],
    ),
    "a status before an edit": (
        [("git status -s", SHORT), ("sed -i s/a/b/ a.py", "")],
        ["not committed: M a.py, ?? notes.txt (message 3), and what may have changed since message 5"],
    ),
    "a clean status before an edit": (
        [("git status", "On branch mend\nnothing to commit, working tree clean"), ("sed -i s/a/b/ a.py", "")],
        ["on branch mend (message 3); not committed: nothing (message 3), and what may have changed since message 5"],
    ),
    "a status before an edit in one script": (
        [("git status -s && sed -i s/a/b/ a.py", SHORT)],
        ["not committed: M a.py, ?? notes.txt (message 3), and what may have changed since message 3"],
    ),
    "a status behind an edit": (
        [("git status -s", SHORT), ("sed -i s/a/b/ b.py", ""), ("git status -s", "?? b.py")],
        ["not committed: ?? b.py (message 7)"],
    ),
    "a status before files are staged": (
        [("git status -s", SHORT), ("git add a.py", "")],
        ["not committed: M a.py, ?? notes.txt (message 3), and what may have changed since message 5"],
    ),
    "a status before a stash": ([("git status -sb", f"## mend\n{SHORT}"), ("git stash", "Saved")], [LOST]),
    "a status before a look at what is stashed": (
        [("git status -s", SHORT), ("git stash list && git tag", "v1")],
        [NOTES],
    ),
}


@pytest.mark.parametrize(("told", "lines"), KNOWN.values(), ids=KNOWN)
def test_it_is_told_with_its_message_until_something_may_have_changed_it(told: Told, lines: list[str]) -> None:
    assert list(newest_lines(work(*told).copies, 2, 9)) == lines


def test_a_commit_after_the_user_has_spoken_is_told_wherever_the_shell_stands() -> None:
    """It may stand where it began, in a new process: that is the same working copy, or the one that is told about."""
    steps = [
        user("Mend the mill."),
        call("c1", "Bash", {"command": "cd /srv/mill && git checkout main"}),
        result("c1", "Switched to branch 'main'"),
        user("Commit it."),
        call("c2", "Bash", {"command": "git commit -m x"}),
        result("c2", COMMIT),
    ]

    told = "on branch mend (message 6); last commit made: 1d1cd9ab fix: mend the wheel (message 6)" + UNKNOWN
    assert list(newest_lines(work_of(conversation(*steps)).copies, 2, 9)) == [told]


def test_only_so_many_paths_are_told() -> None:
    assert list(newest_lines(work(("git status -s", SHORT)).copies, 2, 1)) == [
        "not committed: M a.py and 1 more (message 3)"
    ]


def test_an_agent_that_ends_may_have_changed_what_is_not_committed() -> None:
    note = '<task-notification><summary>Agent "Sift" finished</summary><result>Sifted.</result></task-notification>'
    steps = [
        user("Mend the mill."),
        call("c1", "Agent", {"description": "Sift", "subagent_type": "general-purpose", "prompt": "Sift it."}),
        result("c1", "Async agent launched successfully."),
        call("c2", "Bash", {"command": "git status -s"}),
        result("c2", SHORT),
        user(note),
    ]

    told = "not committed: M a.py, ?? notes.txt (message 5), and what may have changed since message 6"
    assert list(newest_lines(work_of(conversation(*steps)).copies, 2, 9)) == [told]


@pytest.mark.parametrize(
    "stated",
    [
        {"role": "system", "content": "You mend mills.\n<env>\nWorking directory: /srv/mill\nPlatform: linux\n</env>"},
        {"role": "system", "content": "# Environment\n - Primary working directory: /srv/mill\n - Platform: linux"},
        {"role": "user", "content": "<environment_context>\n  <cwd>/srv/mill/</cwd>\n</environment_context>"},
    ],
)
def test_the_folder_that_a_client_states_is_where_the_shell_began(stated: dict[str, object]) -> None:
    steps = [
        stated,
        user("Mend the mill."),
        call("c1", "Bash", {"command": "git checkout mend"}),
        result("c1", "Switched to branch 'mend'"),
        call("c2", "Bash", {"command": "cd /srv/mill && git status -s"}),
        result("c2", SHORT),
    ]

    told = "on branch mend (message 4); not committed: M a.py, ?? notes.txt (message 6)"
    assert list(newest_lines(work_of(conversation(*steps)).copies, 2, 9)) == [told]
