"""What the tools of known agents do to the file model, told in their own words."""

import json
from typing import Any

import pytest

from tests.pages.files.sessions import (
    Step,
    all_lines,
    cat_n,
    file_of,
    loose_lines,
    model_of,
    numbered_lines,
    whole_text,
)

A = "/srv/mill/a.py"
LINES = ["import ledger_of_mill", "", "def total_of_rows():", "    return 1", "", "def other_total():", "    return 2"]
READ: Step = ("Read", {"file_path": A}, cat_n(LINES))
CODEX = "Chunk ID: e0a7ef\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\n"
PATCHED = "Exit code: 0\nWall time: 0.2 seconds\nOutput:\nSuccess. Updated the following files:\nM a.py\n"


def bash(script: str, output: str = "") -> Step:
    return "Bash", {"command": script}, output


def text_of(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


# ------------------------------------------------------------------------------------------------------ what is shown

SHOWN_WHOLE: dict[str, Step] = {
    "Claude Code, tabs": READ,
    "Claude Code, arrows": ("Read", {"file_path": A}, cat_n(LINES, mark="→")),
    "Claude Code, reminder": ("Read", {"file_path": A}, cat_n(LINES) + "\n\n<system-reminder>\nNo malware.\n"),
    "OpenCode, old": (
        "read",
        {"filePath": A},
        "<file>\n" + "\n".join(f"{at:05}| {line}" for at, line in enumerate(LINES, 1)) + "\n\n(End of file)\n</file>",
    ),
    "OpenCode, new": (
        "read",
        {"filePath": A},
        "<path>a.py</path>\n<content>\n"
        + "\n".join(f"{at}: {line}" for at, line in enumerate(LINES, 1))
        + "\n</content>",
    ),
    "text editor": (
        "str_replace_based_edit_tool",
        {"command": "view", "path": A},
        f"Here's the result of running `cat -n` on {A}:\n" + cat_n(LINES),
    ),
    "MCP": ("mcp__filesystem__read_file", {"path": A}, text_of(LINES)),
    "MCP, content in JSON": ("read_file", {"path": A}, json.dumps([{"type": "text", "text": text_of(LINES)}])),
    "cat": bash(f"cat {A}", text_of(LINES)),
    "cat in a folder": bash("cd /srv/mill && cat a.py", text_of(LINES)),
    "Codex": ("exec_command", {"cmd": "cat a.py", "workdir": "/srv/mill"}, CODEX + text_of(LINES)),
    "Codex, sed beyond the end": ("exec_command", {"cmd": f"sed -n '1,200p' {A}"}, CODEX + text_of(LINES)),
    "mini agent": (
        "bash",
        {"command": f"cat {A}"},
        f"<returncode>0</returncode>\n<output>\n{text_of(LINES)}</output>",
    ),
}


@pytest.mark.parametrize("step", SHOWN_WHOLE.values(), ids=SHOWN_WHOLE)
def test_a_file_that_was_shown_whole_is_known_whole(step: Step) -> None:
    assert whole_text(file_of(model_of(step), A)) == text_of(LINES)


SHOWN_PARTS: dict[str, tuple[Step, dict[int, str]]] = {
    "Read": (("Read", {"file_path": A, "offset": 3, "limit": 2}, cat_n(LINES[2:4], 3)), {3: LINES[2], 4: LINES[3]}),
    "view_range": (
        ("str_replace_based_edit_tool", {"command": "view", "path": A, "view_range": [3, 4]}, cat_n(LINES[2:4], 3)),
        {3: LINES[2], 4: LINES[3]},
    ),
    "start and end": (
        ("read_file", {"path": A, "start_line": 3, "end_line": 4}, cat_n(LINES[2:4], 3)),
        {3: LINES[2], 4: LINES[3]},
    ),
    "sed": (bash(f"sed -n '3,4p' {A}", text_of(LINES[2:4])), {3: LINES[2], 4: LINES[3]}),
    "sed, one line": (bash(f"sed -n 3p {A}", LINES[2]), {3: LINES[2]}),
    "head": (bash(f"head -n 2 {A}", text_of(LINES[:2])), {1: LINES[0], 2: ""}),
    "head, short": (bash(f"head -2 {A}", text_of(LINES[:2])), {1: LINES[0], 2: ""}),
    "nl": (bash(f"nl -ba {A} | sed -n '3,4p'", cat_n(LINES[2:4], 3)), {3: LINES[2], 4: LINES[3]}),
    "cat -n": (bash(f"cat -n {A} | sed -n '3,4p'", cat_n(LINES[2:4], 3)), {3: LINES[2], 4: LINES[3]}),
    "cat and head": (bash(f"cat {A} | head -2", text_of(LINES[:2])), {1: LINES[0], 2: ""}),
    "grep": (bash(f"grep -n total {A}", f"3:{LINES[2]}\n6:{LINES[5]}"), {3: LINES[2], 6: LINES[5]}),
    "grep in folders": (bash("grep -rn total_of /srv", f"{A}:3:{LINES[2]}"), {3: LINES[2]}),
    "Grep": (("Grep", {"pattern": "total_of", "path": "/srv", "-n": True}, f"{A}:3:{LINES[2]}"), {3: LINES[2]}),
    "two commands": (
        bash(f"sed -n '1,2p' {A} && echo --- && sed -n '6,7p' {A}", text_of([*LINES[:2], "---", *LINES[5:]])),
        {1: LINES[0], 2: "", 6: LINES[5], 7: LINES[6]},
    ),
}


@pytest.mark.parametrize(("step", "lines"), SHOWN_PARTS.values(), ids=SHOWN_PARTS)
def test_parts_that_were_shown_are_known_with_their_numbers_and_not_as_all(step: Step, lines: dict[int, str]) -> None:
    file = file_of(model_of(step), A)

    assert numbered_lines(file) == lines
    assert file.text.length is None


NOT_SHOWN: dict[str, Step] = {
    "a file that is missing": ("Read", {"file_path": A}, "<tool_use_error>File does not exist.</tool_use_error>"),
    "an empty file": ("Read", {"file_path": A}, "<system-reminder>Warning: the contents are empty.</system-reminder>"),
    "a folder": ("Read", {"file_path": A}, "EISDIR: illegal operation on a directory, read"),
    "an unchanged file": ("Read", {"file_path": A}, "File unchanged since last read. The content is still current."),
    "a cut result": bash(f"cat {A}", "<persisted-output>\nOutput too large (50KB). Full output saved to: /tmp/x"),
    "binary": ("read_file", {"path": A}, "\x00\x01\x02PNG\n\ufffd\ufffd"),
    "a part of each line": bash(f"grep -n total {A} | cut -c1-12", "3:def total_o\n6:def other_"),
    "matches alone": bash(f"grep -no total {A}", "3:total\n6:total"),
    "lines with changes": bash(f"cat {A} | sed 's/total/sum/'", text_of(LINES)),
    "sorted lines": bash(f"cat {A} | sort", text_of(sorted(LINES))),
    "marked lines": bash(f"cat -A {A}", text_of([line + "$" for line in LINES])),
    "two files as one": bash(f"cat {A} /srv/mill/b.py", text_of(LINES)),
    "the end": bash(f"tail -2 {A}", text_of(LINES[-2:])),
    "a failed command": bash(f"cat {A}", "Exit code 1\ncat: a.py: Permission denied"),
}


@pytest.mark.parametrize("step", NOT_SHOWN.values(), ids=NOT_SHOWN)
def test_what_is_not_surely_the_files_text_is_not_taken_for_it(step: Step) -> None:
    model = model_of(step)

    assert A not in model.files or not all_lines(model.files[A])


# ---------------------------------------------------------------------------------------------------- what is changed


def patch(*body: str) -> dict[str, str]:
    return {"input": "\n".join(["*** Begin Patch", *body, "*** End Patch"]) + "\n"}


AFTER = [*LINES[:3], "    return 100", *LINES[4:]]
EDIT = {"file_path": A, "old_string": "    return 1\n", "new_string": "    return 100\n"}
HUNK = ["@@", " def total_of_rows():", "-    return 1", "+    return 100"]

CHANGED: dict[str, Step] = {
    "Edit": ("Edit", EDIT, f"The file {A} has been updated successfully."),
    "Edit, with a snippet": (
        "Edit",
        EDIT,
        f"The file {A} has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n"
        + cat_n(AFTER[1:5], 2, "→"),
    ),
    "MultiEdit": (
        "MultiEdit",
        {
            "file_path": A,
            "edits": [
                {"old_string": "return 1\n", "new_string": "return 10\n"},
                {"old_string": "return 10\n", "new_string": "return 100\n"},
            ],
        },
        f"Applied 2 edits to {A}",
    ),
    "Write": ("Write", {"file_path": A, "content": text_of(AFTER)}, f"The file {A} has been updated."),
    "OpenCode edit": ("edit", {"filePath": A, "oldString": "return 1\n", "newString": "return 100\n"}, "Edit applied."),
    "OpenCode write": ("write", {"filePath": A, "content": text_of(AFTER)}, "Wrote file successfully."),
    "text editor": (
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": A, "old_str": "return 1\n", "new_str": "return 100\n"},
        f"The file {A} has been edited.",
    ),
    "text editor, create": (
        "str_replace_based_edit_tool",
        {"command": "create", "path": A, "file_text": text_of(AFTER)},
        f"File created successfully at: {A}",
    ),
    "MCP": (
        "mcp__filesystem__edit_file",
        {"path": A, "edits": [{"oldText": "return 1\n", "newText": "return 100\n"}]},
        "```diff\n```",
    ),
    "apply_patch": ("apply_patch", patch(f"*** Update File: {A}", *HUNK), PATCHED),
    "apply_patch in a shell": (
        "exec_command",
        {"cmd": "apply_patch <<'EOF'\n" + patch(f"*** Update File: {A}", *HUNK)["input"] + "EOF"},
        CODEX + "Success. Updated the following files:\nM a.py",
    ),
    "apply_patch, other space": (
        "apply_patch",
        patch(f"*** Update File: {A}", "@@", "-return 1", "+    return 100"),
        PATCHED,
    ),
    "heredoc": bash(f"cat > {A} <<'EOF'\n{text_of(AFTER)}EOF"),
    "heredoc, marker first": bash(f"cat <<'EOF' > {A}\n{text_of(AFTER)}EOF\necho done", "done"),
    "tee": bash(f"tee {A} <<'EOF'\n{text_of(AFTER)}EOF", text_of(AFTER)),
    "git diff": bash(
        "git diff a.py",
        "diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -3,2 +3,2 @@\n def total_of_rows():\n"
        "-    return 1\n+    return 100\n",
    ),
}


@pytest.mark.parametrize("step", CHANGED.values(), ids=CHANGED)
def test_a_change_that_can_be_placed_leaves_the_file_known_whole(step: Step) -> None:
    file = file_of(model_of(READ, step), A)

    lines = numbered_lines(file)
    assert [lines[number] for number in sorted(lines)] == AFTER
    assert "    return 1" not in all_lines(file)


UNCHANGED: dict[str, Step] = {
    "not found": ("Edit", EDIT, "<tool_use_error>String to replace not found in file.</tool_use_error>"),
    "refused": ("Edit", EDIT, "The user doesn't want to proceed with this tool use. The tool use was rejected."),
    "interrupted": ("Edit", EDIT, "[Request interrupted by user for tool use]"),
    "refused write": ("Write", {"file_path": A, "content": "x\n"}, "User rejected the write."),
    "no replacement": (
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": A, "old_str": "return 1", "new_str": "return 100"},
        "No replacement was performed, old_str `return 1` did not appear verbatim",
    ),
    "failed patch": (
        "apply_patch",
        patch(f"*** Update File: {A}", *HUNK),
        "apply_patch verification failed: Failed to find expected lines in a.py",
    ),
    "rejected patch": ("apply_patch", patch(f"*** Update File: {A}", *HUNK), "patch rejected by user"),
    "failed patch in a shell": (
        "exec_command",
        {"cmd": "apply_patch <<'EOF'\n" + patch(f"*** Update File: {A}", *HUNK)["input"] + "EOF"},
        "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nfailed",
    ),
    "failed removal by patch": ("apply_patch", patch(f"*** Delete File: {A}"), "Exit code: 1\nOutput:\nno such file"),
    "looking only": bash("git status && git log --oneline | head", "clean"),
    "git stash list": bash("git stash list"),
    "git checkout -b": bash("git checkout -b topic"),
    "a quoted script": bash(f"echo 'sed -i s/a/b/ {A}'", f"sed -i s/a/b/ {A}"),
    "redirected elsewhere": bash(f"cat {A} > /dev/null 2>&1"),
}


@pytest.mark.parametrize("step", UNCHANGED.values(), ids=UNCHANGED)
def test_a_call_that_failed_or_was_refused_or_only_looked_changes_nothing(step: Step) -> None:
    before, after = model_of(READ), model_of(READ, step)

    assert file_of(after, A).text == file_of(before, A).text


def test_a_patch_adds_moves_and_deletes_files() -> None:
    body = ["*** Add File: /srv/b.py", "+import mill", "+", f"*** Update File: {A}", "*** Move to: /srv/c.py", *HUNK]
    model = model_of(READ, ("apply_patch", patch(*body, "*** Delete File: /srv/d.py"), PATCHED))

    assert sorted(model.files) == ["/srv/b.py", "/srv/c.py"]
    assert whole_text(model.files["/srv/b.py"]) == "import mill\n\n"
    assert whole_text(model.files["/srv/c.py"]) == text_of(AFTER)


def test_a_hunk_goes_below_the_line_that_its_head_names() -> None:
    lines = ["class FirstOfMills:", "    x = 1", "", "class SecondOfMills:", "    x = 1", ""]
    read: Step = ("Read", {"file_path": A}, cat_n(lines))
    for head in (["@@ class SecondOfMills:"], ["@@", " class SecondOfMills:", "@@"]):
        body = [f"*** Update File: {A}", *head, "-    x = 1", "+    x = 2"]
        file = file_of(model_of(read, ("apply_patch", patch(*body), PATCHED)), A)

        assert numbered_lines(file)[5] == "    x = 2"
        assert numbered_lines(file)[2] == "    x = 1"


# ------------------------------------------------------------------------------------------------- what is in doubt

IN_DOUBT = {
    "sed -i": f"sed -i 's/1/100/' {A}",
    "sed -i on several files": f"sed -i 's/1/100/' {A} /srv/mill/b.py",
    "sed -i by find": "find . -name '*.py' -exec sed -i 's/1/100/' {} +",
    "sed -i by xargs": "grep -rl total . | xargs sed -i 's/1/100/'",
    "sed -i in a loop": 'for f in *.py; do sed -i s/1/100/ "$f"; done',
    "sed -i on a pattern": "sed -i 's/1/100/' /srv/mill/*.py",
    "perl": f"perl -pi -e 's/1/100/' {A}",
    "git checkout": f"git checkout -- {A}",
    "git checkout in a folder": "cd /srv/mill && git checkout -- a.py",
    "git checkout of a folder": "git checkout -- /srv/mill",
    "git restore": f"git restore {A}",
    "git restore all": "git restore .",
    "git stash": "git stash",
    "git stash pop": "git stash pop",
    "git reset": "git reset --hard HEAD~1",
    "git switch": "git switch main",
    "git with a setting": "git -c core.editor=true rebase main",
    "git checkout -b elsewhere": "git checkout -b topic origin/main",
    "a program": f"python3 - <<'EOF'\nfrom pathlib import Path\nPath('{A}').write_text('x')\nEOF",
    "a program on one line": f"python -c \"open('{A}', 'w').write('x')\"",
    "written by tee": f"make report | tee {A}",
    "written by a command": f"make report > {A}",
    "expanded": f"cat > {A} <<EOF\n$HOME\nEOF",
    "written if not": f"test -f {A} || cat > {A} <<'EOF'\nx\nEOF",
    "copied over": f"cp /tmp/other.py {A}",
    "moved over": f"mv /tmp/other.py {A}",
    "patch": "patch -p1 < change.diff",
    "a script in a shell": f"bash -lc \"sed -i 's/1/100/' {A}\"",
}


@pytest.mark.parametrize("script", IN_DOUBT.values(), ids=IN_DOUBT)
def test_what_may_have_changed_unseen_is_not_told_as_certain(script: str) -> None:
    model = model_of(READ, bash(script))

    assert A not in model.files or not numbered_lines(model.files[A])


APPENDED = {
    "a document": (f"cat >> {A} << 'EOF'\ndef more():\n    return 2\nEOF", ["def more():", "    return 2"]),
    "a document by tee": (f"tee -a {A} > /dev/null << 'EOF'\ndef more():\nEOF", ["def more():"]),
    "what echo says": (f"echo 'x = 1' >> {A}", ["x = 1"]),
    "behind another command": (f"rm -f /tmp/b.py && cat >> {A} << 'EOF'\nx = 1\nEOF", ["x = 1"]),
    "what the shell fills in": (f"cat >> {A} << EOF\n$HOME\nEOF", []),
    "what a variable holds": (f'echo "$LINE" >> {A}', []),
    "what another command prints": (f"make report >> {A}", []),
    "what is piped to tee": (f"echo x | tee -a {A}", []),
    "to a file that only the shell knows": ('echo x >> "$FILE"', []),
}


@pytest.mark.parametrize(("script", "lines"), APPENDED.values(), ids=APPENDED)
def test_what_is_appended_leaves_the_rest_as_it_is(script: str, lines: list[str]) -> None:
    before, after = file_of(model_of(READ), A), file_of(model_of(READ, bash(script)), A)

    assert numbered_lines(after) == numbered_lines(before)
    assert [line for run in loose_lines(after) for line in run] == lines
    assert after.text.length is None or "FILE" in script


def test_a_file_that_is_begun_by_appending_is_known_by_what_was_put_there() -> None:
    assert loose_lines(file_of(model_of(bash("cat >> /srv/new.py << 'EOF'\nx = 1\nEOF")), "/srv/new.py")) == [
        ("x = 1",)
    ]
    assert model_of(bash("make >> /srv/build.log")).files == {}


REFORMATTED = {
    "gofmt": f"gofmt -w {A}",
    "black": f"black {A}",
    "python -m black": f"python -m black {A}",
    "uv run black": "uv run black .",
    "ruff": f"ruff format {A}",
    "npx prettier": f"npx prettier --write {A}",
    "npm run format": "npm run format",
    "make fmt": "make fmt",
    "cargo fmt": "cargo fmt",
}


@pytest.mark.parametrize("script", REFORMATTED.values(), ids=REFORMATTED)
def test_after_a_formatter_the_form_of_lines_is_in_doubt(script: str) -> None:
    text = file_of(model_of(READ, bash(script)), A).text

    assert text.reformatted_at == 1
    assert text.reformatted_by


GONE = {
    "rm": f"rm {A}",
    "rm -rf": "rm -rf /srv/mill",
    "git rm": f"git rm {A}",
    "mv": f"mv {A} /srv/mill/b.py",
    "mv of its folder": "mv /srv/mill /srv/old",
    "mv of several": f"mv {A} /srv/other.py /srv/old",
    "git mv of several": f"git mv -k {A} /srv/other.py /srv/old",
    "rm of a pattern": "cd /srv && rm mill/*.py",
    "rm of a pattern in its folder": "cd /srv/mill && rm [a-c].py",
    "rm before what failed": f"rm {A} && make",
    "unlink": f"unlink {A}",
    "a shell in a shell": "bash -c 'cd /srv/mill && rm a.py'",
}


@pytest.mark.parametrize("script", GONE.values(), ids=GONE)
def test_a_file_that_was_removed_or_moved_is_no_longer_known_there(script: str) -> None:
    said = "Exit code 2\nmake: *** [all] Error 1" if "make" in script else ""
    model = model_of(READ, bash(script, said))

    assert A not in model.files
    assert dict(model.removed) == {A: 1}


NOT_GONE = {
    "git rm of what git knows": f"git rm --cached {A}",
    "rm of what a variable holds elsewhere": 'rm -f "$TEMP/perf.txt"',
    "rm of another pattern": "rm /srv/mill/*.txt",
    "git clean that only tells": "git clean -nd",
    "git clean of another": "git clean -fd",
}


@pytest.mark.parametrize("script", NOT_GONE.values(), ids=NOT_GONE)
def test_a_file_that_was_surely_not_removed_stands_as_it_did(script: str) -> None:
    said = "Would remove mill/a.py" if "-nd" in script else "Removing mill/b.py" if "clean" in script else ""

    assert whole_text(file_of(model_of(READ, bash(script, said)), A)) == text_of(LINES)


PERHAPS_GONE = [
    'rm "$file"',
    "find . -name '*.bak' -delete",
    "ls | xargs rm",
    'cd /srv/mill && rm "$DIR/a.py"',
    "git clean -fdq",
]


@pytest.mark.parametrize("script", PERHAPS_GONE)
def test_a_file_that_may_have_been_removed_is_in_doubt(script: str) -> None:
    model = model_of(READ, bash(script))

    assert numbered_lines(file_of(model, A)) == {}
    assert not model.removed


BACK: dict[str, Step] = {
    "written again": ("Write", {"file_path": A, "content": "x\n"}, "ok"),
    "read again": READ,
    "perhaps brought back": bash("git stash pop"),
    "perhaps brought back by name": bash(f"git checkout -- {A}"),
}


@pytest.mark.parametrize("step", BACK.values(), ids=BACK)
def test_a_file_that_may_be_there_again_is_not_told_as_removed(step: Step) -> None:
    assert not model_of(READ, bash(f"rm {A}"), step).removed


def test_a_moved_file_is_known_where_it_went() -> None:
    assert whole_text(file_of(model_of(READ, bash(f"mv {A} /srv/mill/b.py")), "/srv/mill/b.py")) == text_of(LINES)
    assert whole_text(file_of(model_of(READ, bash(f"mv {A} /srv/old/")), "/srv/old/a.py")) == text_of(LINES)


def test_an_edit_that_cannot_be_placed_takes_numbers_and_the_lines_it_removed() -> None:
    part: Step = ("Read", {"file_path": A, "offset": 1, "limit": 4}, cat_n(LINES[:4]))
    edit = {"file_path": A, "old_string": "    return 1\n\ndef other_total():", "new_string": "    return 3"}
    file = file_of(model_of(part, ("Edit", edit, "The file has been updated.")), A)

    assert numbered_lines(file) == {}
    assert loose_lines(file) == [tuple(LINES[:3])]


def test_an_edit_that_cannot_be_placed_and_keeps_the_number_of_lines_keeps_numbers() -> None:
    part: Step = ("Read", {"file_path": A, "offset": 1, "limit": 4}, cat_n(LINES[:4]))
    edit = {"file_path": A, "old_string": "return 1\n\ndef", "new_string": "return 3\n\ndef"}

    assert numbered_lines(file_of(model_of(part, ("Edit", edit, "The file has been updated.")), A)) == dict(
        enumerate(LINES[:3], 1)
    )


def test_a_read_after_doubt_makes_its_lines_certain_again() -> None:
    part: Step = ("Read", {"file_path": A, "offset": 3, "limit": 2}, cat_n(LINES[2:4], 3))

    assert numbered_lines(file_of(model_of(READ, bash("git stash"), part), A)) == {3: LINES[2], 4: LINES[3]}


def test_a_read_to_the_end_forgets_what_stood_behind_it() -> None:
    again: Step = ("Read", {"file_path": A}, cat_n(LINES[:2]))

    assert whole_text(file_of(model_of(READ, again), A)) == text_of(LINES[:2])


def test_the_last_hunk_of_a_patch_is_placed_before_a_line_that_is_not_empty() -> None:
    body = [f"*** Update File: {A}", "@@", " import ledger_of_mill", "+import more", " ", " def total_of_rows():"]
    file = file_of(model_of(READ, ("apply_patch", patch(*body), PATCHED)), A)

    assert whole_text(file) == text_of([LINES[0], "import more", *LINES[1:]])


# ------------------------------------------------------------------------ a diff names files from its repository's root

DIFF = (
    "diff --git a/mill/a.py b/mill/a.py\n--- a/mill/a.py\n+++ b/mill/a.py\n"
    "@@ -3,2 +3,2 @@\n def total_of_rows():\n-    return 1\n+    return 9\n"
)
IN_REPOSITORY = {
    "at the root": "cd /srv && git diff",
    "below the root": "cd /srv/mill && git diff",
    "far below the root": "cd /srv/mill/ledgers/old && git diff",
    "from nobody knows where": "git diff",
    "in a folder below nobody knows where": "cd mill && git diff",
}


@pytest.mark.parametrize("script", IN_REPOSITORY.values(), ids=IN_REPOSITORY)
def test_a_diff_is_of_the_file_that_is_known_wherever_git_ran(script: str) -> None:
    model = model_of(READ, bash(script, DIFF))

    assert list(model.files) == [A]
    assert model.files[A].name == A
    assert numbered_lines(model.files[A])[4] == "    return 9"


def test_a_diff_of_a_file_that_nobody_has_read_is_named_from_where_its_folder_is_known() -> None:
    named = model_of(bash("cat /srv/mill/b.py", "x = 1"), bash("cd /srv/docs && git diff", DIFF)).files
    within = model_of(bash("cd /srv/mill/old && git diff", DIFF)).files
    elsewhere = model_of(bash("cd /opt/other && git diff", DIFF), READ).files

    assert [*named] == ["/srv/mill/b.py", A]
    assert [*within] == [A]
    assert [*elsewhere] == ["/opt/other/mill/a.py", A]


AGENTS = {
    "Trace the total. Read-only investigation, do NOT edit any files.": True,
    "Do NOT edit anything; this is review only.": True,
    "Read-only.\nPlan: plan.md": True,
    "Trim the comments. Do NOT change any code logic, only comments.": False,
    "Write the docs. The feature is implemented, do not change code.": False,
    "Edit the page. Do NOT edit anything under docs/.": False,
    "Make the `total` field read-only for guests.": False,
    "Do not edit files outside src/.": False,
}


@pytest.mark.parametrize(("prompt", "only_looks"), AGENTS.items())
def test_an_agent_leaves_files_certain_only_where_it_was_told_to_change_none(prompt: str, only_looks: bool) -> None:
    model = model_of(READ, ("Agent", {"description": "a task", "prompt": prompt}, "Done."))

    assert bool(numbered_lines(model.files[A])) is only_looks


SENT_OUT: dict[str, tuple[dict[str, Any], bool]] = {
    "a type that is listed": ({"subagent_type": "Explore", "prompt": "Fix it."}, True),
    "a role in the name of its type": ({"subagent_type": "house:review:go-reviewer", "prompt": "Add no noise."}, True),
    "another type": ({"subagent_type": "dev", "prompt": "Look at it."}, False),
    "a type of Codex": ({"agent_type": "explorer", "message": "Where is it?"}, True),
    "a task that looks": ({"description": "Verify the claim", "prompt": "Trace the total, cite file:line."}, True),
    "one with an order": ({"description": "Verify the claim", "prompt": "Trace the total. Fix it if wrong."}, False),
    "one with an order in a list": ({"description": "Review it", "prompt": "1. Read it\n2. Update the notes"}, False),
    "a task that changes": ({"description": "Task C", "prompt": "Trace the total, cite file:line."}, False),
    "a task that nobody can read": ({"task_name": "review"}, False),
}


@pytest.mark.parametrize(("arguments", "only_looks"), SENT_OUT.values(), ids=SENT_OUT)
def test_an_agent_that_only_looks_is_known_by_its_type_or_its_task(arguments: dict[str, Any], only_looks: bool) -> None:
    model = model_of(READ, ("Agent", arguments, "Done."))

    assert bool(numbered_lines(model.files[A])) is only_looks


UNENDED: dict[str, list[Step]] = {
    "written without one": [("Write", {"file_path": A, "content": "x = 1\ny = 2"}, "ok")],
    "taken by an edit": [
        ("Write", {"file_path": A, "content": "x = 1\nz = 2\n"}, "ok"),
        ("Edit", {"file_path": A, "old_string": "z = 2\n", "new_string": "y = 2"}, "ok"),
    ],
}


@pytest.mark.parametrize("steps", UNENDED.values(), ids=UNENDED)
def test_what_is_appended_to_a_line_without_a_line_break_is_no_line_of_its_own(steps: list[Step]) -> None:
    file = file_of(
        model_of(*steps, bash(f"printf 'w = 3\\nv = 4\\n' >> {A}"), bash(f"cat >> {A} <<'E'\nu = 5\nE\n")), A
    )

    assert "y = 2" not in all_lines(file)
    assert set(numbered_lines(file)) <= {1}
    assert not any("w = 3" in run for run in loose_lines(file))
