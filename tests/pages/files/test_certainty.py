"""What is not certain is not told as certain: failed scripts, tools that lie, saved diffs, odd spellings of paths."""

import pytest

from pagefold.pages.files.alignment import beside
from pagefold.pages.files.paths import identity, normal
from pagefold.pages.files.region import Region
from tests.pages.files.sessions import Step, all_lines, cat_n, file_of, model_of, numbered_lines, whole_text

A, B = "/srv/mill/a.py", "/srv/mill/b.py"
LINES = ["import ledger_of_mill", "", "def total_of_rows():", "    return 1"]
TEXT = "".join(line + "\n" for line in LINES)
READ: Step = ("Read", {"file_path": A}, cat_n(LINES))
READ_B: Step = ("Read", {"file_path": B}, cat_n(["def other_of_mill():"]))
DIFF = f"--- a{A}\n+++ b{A}\n@@ -1,1 +1,1 @@\n-import ledger_of_mill\n+import it\n"
PATCH = f"*** Begin Patch\n*** Delete File: {A}\n*** End Patch"
HEREDOC = f"cat > {A} <<'E'\nx = 1\nE\n"


def failed(script: str, said: str = "make: *** [test] Error 1") -> Step:
    return "Bash", {"command": script}, f"Exit code 2\n{said}"


IN_DOUBT = {
    "a write that is all of it": failed(HEREDOC.strip(), ""),
    "a write behind what may have failed": failed(f"make test && {HEREDOC}echo done"),
    "a write whose redirect failed": failed(f"{HEREDOC}make", f"bash: {A}: Permission denied"),
    "a write in a folder that is not there": failed(
        "cd nowhere && cat > /srv/mill/a.py <<'E'\nx\nE\nmake", "cd: nowhere: No"
    ),
    "a removal": failed(f"make test && rm {A}"),
    "a move": failed(f"mv {A} {B} && make"),
    "a move onto it": failed(f"mv {B} {A} && make"),
    "a copy onto it": failed(f"cp {B} {A} && make"),
    "written by a command": failed(f"make report > {A}"),
    "a move that may not have run": ("Bash", {"command": f"test -f x || mv {B} {A}"}, ""),
    "a copy that failed in silence": ("Bash", {"command": f"cp {B} {A}; echo done"}, "cp: cannot stat\ndone"),
    "interrupted": ("Bash", {"command": f"make && rm {A}"}, "[Request interrupted by user for tool use]"),
    "an edit that does not fit": (
        "Edit",
        {"file_path": A, "old_string": "no such", "new_string": "a\nb\nc"},
        "updated",
    ),
}


@pytest.mark.parametrize("step", IN_DOUBT.values(), ids=IN_DOUBT)
def test_what_nobody_knows_to_have_been_done_is_in_doubt(step: Step) -> None:
    model = model_of(READ, READ_B, step)

    assert A in model.files, "what may still be there is not forgotten"
    assert numbered_lines(model.files[A]) == {}
    assert all_lines(model.files[A]) <= set(LINES), "what may not have been written is not shown"


CERTAIN = {
    "a write before what failed": (failed(f"{HEREDOC}make test"), "x = 1\n"),
    "a write behind silent commands": (failed(f"mkdir -p /srv && cd /srv && {HEREDOC}make"), "x = 1\n"),
    "a failed look": (failed(f"ls {A} && make"), TEXT),
    "a refused script": (
        ("Bash", {"command": f"rm {A}"}, "The user doesn't want to proceed with this tool use."),
        TEXT,
    ),
    "a failed patch": (("Bash", {"command": f"apply_patch <<'E'\n{PATCH}\nE"}, "Exit code 1"), TEXT),
    "a file in a repository elsewhere": (("fetch_and_write", {"owner": "o", "path": A, "content": "x"}, "ok"), TEXT),
    "a saved diff": (("Bash", {"command": "cat old.patch"}, DIFF), TEXT),
    "a saved diff beside another": (("Bash", {"command": "git diff --stat; cat old.patch"}, DIFF), TEXT),
    "a diff of a commit": (("Bash", {"command": "git diff; git show HEAD"}, DIFF), TEXT),
    "binary output": (("Bash", {"command": f"cat {A}"}, "\x7fELF\x00\ufffd\n"), TEXT),
    "a binary read": (("read_file", {"path": A}, "\x89PNG\ufffd\x00"), TEXT),
}


@pytest.mark.parametrize(("step", "expected"), CERTAIN.values(), ids=CERTAIN)
def test_what_surely_stands_is_told_as_certain(step: Step, expected: str) -> None:
    assert whole_text(file_of(model_of(READ, step), A)) == expected


@pytest.mark.parametrize("read", ["Read", "cat"])
def test_line_breaks_of_windows_are_as_any_other(read: str) -> None:
    shown = "\r\n".join(LINES) + "\r\n"
    step: Step = READ if read == "Read" else ("Bash", {"command": f"cat {A}"}, shown)
    edit = {"file_path": A, "old_string": "rows():\r\n    return 1", "new_string": "rows():\r\n    return 2\r\n"}

    assert whole_text(file_of(model_of(step, ("Edit", edit, "ok")), A)) == TEXT.replace("1\n", "2\n\n")


SAME = [
    ("D:\\Mill\\src\\A.py", "d:/mill/src/a.py"),
    ("D:\\Mill\\src\\A.py", "/d/Mill/src/A.py"),
    ("D:\\Mill\\src\\A.py", "/mnt/d/mill/src/a.py"),
    ("D:\\Mill\\src\\A.py", "src/a.py"),
    ("D:\\Mill\\src\\A.py", "SRC\\A.py"),
    ("/d/mill/a.py", "D:\\mill\\a.py"),
    ("/srv/mill/a.py", "mill/./x/../a.py"),
    ("C:\\Users\\mo\\.mill.json", "~/.mill.json"),
    ("/home/mo/mill/a.py", "~/mill/a.py"),
    ("/c/Users/mo/a.py", "~/a.py"),
]
APART = [
    ("/srv/mill/A.py", "/srv/mill/a.py"),
    ("/srv/mill/a.py", "/srv/mill-2/a.py"),
    ("/srv/a b.py", "/srv/a  b.py"),
    ("/srv/a.py", "/srv/a.py "),
    ("/srv/a.py", "/srv/'a.py'"),
    ("/srv/a\\b.py", "/srv/a/b.py"),
    ("/srv/mill/a.py", "ill/a.py"),
    ("D:\\mill\\a.py", "E:\\mill\\a.py"),
    ("/home/mo/a.py", "/home/jo/a.py"),
    ("/home/mo/mill/a.py", "~/a.py"),
    ("/srv/mill/a.py", "~/mill/a.py"),
    ("/srv/größe.py", "/srv/grösse.py"),
    ("/srv/a\nb.py", "/srv/a b.py"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_one_file_has_one_identity(first: str, second: str) -> None:
    for known, path in ((first, second), (second, first)):
        assert identity(normal(path), [normal(known)]) == normal(known)


@pytest.mark.parametrize(("first", "second"), APART)
def test_two_files_have_two(first: str, second: str) -> None:
    for known, path in ((first, second), (second, first)):
        assert identity(normal(path), [normal(known)]) != normal(known)


def test_a_name_that_two_files_have_is_neither() -> None:
    known = [normal("D:\\one\\a.py"), normal("D:\\two\\a.py")]

    assert identity("a.py", known) == "a.py"
    assert identity("A.PY", known) == "A.PY"


def test_a_file_in_another_worktree_is_another_file() -> None:
    other: Step = ("Bash", {"command": "cd /srv/mill-2 && cat a.py"}, "x = 1\n")
    model = model_of(READ, other)

    assert whole_text(file_of(model, A)) == TEXT
    assert whole_text(file_of(model, "/srv/mill-2/a.py")) == "x = 1\n"


def test_an_edit_that_may_begin_above_what_is_known_has_no_certain_place() -> None:
    part: Step = ("Read", {"file_path": A, "offset": 2, "limit": 3}, cat_n(["}", "}", "total_of_mill = 1"], 2))
    edit = {"file_path": A, "old_string": "}\n}", "new_string": ""}  # the file begins with a third one

    assert 2 not in numbered_lines(file_of(model_of(part, ("Edit", edit, "ok")), A))


STRIPPED = {
    "a harness that strips": ("Bash", {"command": f"sed -n '2,9p' {A}"}, "def total_of_rows():\n    return 1", {}),
    "all that was asked for": ("Bash", {"command": f"sed -n '3,4p' {A}"}, "def total_of_rows():\n    return 1", {3, 4}),
    "from the top": ("Bash", {"command": f"sed -n '1,9p' {A}"}, "\n".join(LINES), {1, 2, 3, 4}),
    "a frame": (
        "exec_command",
        {"cmd": f"sed -n '2,9p' {A}"},
        "Chunk ID: e0\nOutput:\n\ndef total_of_rows():\n    return 1\n",
        {2, 3, 4},
    ),
}


@pytest.mark.parametrize(("name", "arguments", "shown", "numbers"), STRIPPED.values(), ids=STRIPPED)
def test_lines_have_no_numbers_where_empty_lines_before_them_may_have_been_stripped(
    name: str, arguments: dict[str, str], shown: str, numbers: set[int]
) -> None:
    file = file_of(model_of((name, arguments, shown)), A)

    assert set(numbered_lines(file)) == set(numbers)
    assert "    return 1" in all_lines(file)


def test_lines_in_doubt_under_a_wrong_number_do_not_follow_certain_ones() -> None:
    """They were between: what is left of them stands apart, or a view would show a text that never was in the file."""
    certain = Region.of(10, [f"wheel_{at} = turn({at})" for at in range(10, 16)], 5)
    doubted = Region.of(14, [f"stone_{at} = turn({at})" for at in range(14, 20)], 1)
    fitting = Region.of(13, [*certain.lines[4:], "sack_1 = fill(1)", "sack_2 = fill(2)"], 1)

    assert beside([certain], [doubted]) == (certain, doubted.part(2, 6).unnumbered())
    together = beside([certain], [fitting])
    assert [(region.start, region.lines) for region in together] == [(10, (*certain.lines, *fitting.lines[2:]))]


NOT_APPLIED = "Exit code 1\nerror: patch failed: mill/a.py:1\nerror: mill/a.py: patch does not apply"


@pytest.mark.parametrize(
    ("script", "printed", "doubted"),
    [
        ("git apply fix.patch", NOT_APPLIED, set[str]()),
        ("git apply fix.patch && make", NOT_APPLIED, set[str]()),
        ("git apply --reject fix.patch", NOT_APPLIED, {A, B}),
        ("git apply fix.patch", "", {A, B}),
        (f"git apply <<'E'\n{DIFF}E", "", {A}),
        (f"cat > fix.patch <<'E'\n{DIFF}E\ngit apply fix.patch", "", {A}),
    ],
)
def test_a_patch_puts_in_doubt_what_it_may_have_changed(script: str, printed: str, doubted: set[str]) -> None:
    model = model_of(READ, READ_B, ("Bash", {"command": f"cd /srv/mill && {script}"}, printed))

    assert {name for name in (A, B) if not numbered_lines(file_of(model, name))} == doubted


@pytest.mark.parametrize(
    ("script", "printed", "doubted"),
    [
        ("git checkout a.py", "Updated 1 path from the index", {A}),
        ("git checkout HEAD~2 a.py", "Updated 1 path from 1a2b3c4", {A}),
        ("git checkout a.py", "", {A, B}),
        ("git checkout .", "Updated 2 paths from the index", {A, B}),
        ("git checkout topic/a.b", "Switched to branch 'topic/a.b'", {A, B}),
    ],
)
def test_git_that_brought_a_path_back_puts_no_other_in_doubt(script: str, printed: str, doubted: set[str]) -> None:
    model = model_of(READ, READ_B, ("Bash", {"command": f"cd /srv/mill && {script}"}, printed))

    assert {name for name in (A, B) if not numbered_lines(file_of(model, name))} == doubted


@pytest.mark.parametrize("script", ["git reset --hard HEAD~2", "git checkout main"])
def test_git_changes_no_temporary_file_elsewhere(script: str) -> None:
    note: Step = ("Write", {"file_path": "/tmp/note.md", "content": "grind twice\n"}, "File created successfully")
    at_work, elsewhere = f"cd /srv/mill && {script}", f"cd /tmp && {script}"

    assert whole_text(file_of(model_of(READ, note, ("Bash", {"command": at_work}, "")), "/tmp/note.md"))
    assert not numbered_lines(file_of(model_of(READ, note, ("Bash", {"command": at_work}, "")), A))
    assert not numbered_lines(file_of(model_of(READ, note, ("Bash", {"command": elsewhere}, "")), "/tmp/note.md"))


@pytest.mark.parametrize(("script", "formatted"), [("gofmt -w .", {"a.go"}), ("prettier --write .", {"a.go", "a.md"})])
def test_a_formatter_of_one_language_changes_files_of_that_alone(script: str, formatted: set[str]) -> None:
    steps: list[Step] = [
        ("Write", {"file_path": f"/srv/mill/sub/{name}", "content": "x\n"}, "done") for name in ("a.go", "a.md")
    ]
    model = model_of(*steps, ("Bash", {"command": f"cd /srv/mill && {script}"}, ""))

    certain = {name: file.text.is_certain(min(file.text.regions[0].seen)) for name, file in model.files.items()}
    assert {name.rpartition("/")[2] for name, is_certain in certain.items() if not is_certain} == formatted


NOTHING_TO_DO = {
    "git pull": "Already up to date.",
    "git pull --rebase": "Current branch main is up to date.",
    "git merge topic": "Already up to date.",
    "git rebase main": "Current branch topic is up to date.",
    "git stash": "No local changes to save",
}


@pytest.mark.parametrize(("script", "printed"), NOTHING_TO_DO.items(), ids=NOTHING_TO_DO)
def test_git_that_had_nothing_to_do_puts_nothing_in_doubt(script: str, printed: str) -> None:
    assert whole_text(file_of(model_of(READ, ("Bash", {"command": script}, printed)), A)) == TEXT
    assert not numbered_lines(file_of(model_of(READ, ("Bash", {"command": script}, "")), A))
    did = f"Updating 1a2b3c4..5d6e7f8\nFast-forward\n{printed}"
    assert not numbered_lines(file_of(model_of(READ, ("Bash", {"command": script}, did)), A))
