"""Scripts that print and change files in one go, and calls that show several files."""

import json

import pytest

from tests.pages.files.sessions import Step, cat_n, file_of, model_of, numbered_lines, whole_text

A, B = "/srv/mill/a.py", "/srv/mill/b.py"
LINES = ["import ledger_of_mill", "", "def total_of_rows():", "    return 1"]
NEW = ["import ledger_of_mill", "", "def total_of_all_rows():", "    return 1"]
READ: Step = ("Read", {"file_path": A}, cat_n(LINES))
READ_B: Step = ("Read", {"file_path": B}, cat_n(["def other_of_mill():"]))
DIFF = "--- a/srv/mill/b.py\n+++ b/srv/mill/b.py\n@@ -1,1 +1,1 @@\n-def other_of_mill():\n+def others_of_mill():\n"


def text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def bash(script: str, output: str = "") -> Step:
    return "Bash", {"command": script}, output


AFTER_A_CHANGE = [
    f"sed -i 's/of_rows/of_all_rows/' {A} && cat {A}",
    f"make rows > {A}; cat {A}",
    f"cp {B} {A} && cat {A}",
]


@pytest.mark.parametrize("script", AFTER_A_CHANGE)
def test_what_a_script_shows_after_it_changed_a_file_is_the_file_as_it_is(script: str) -> None:
    assert whole_text(file_of(model_of(READ, READ_B, bash(script, text(NEW))), A)) == text(NEW)


BEFORE_A_CHANGE = [
    f"cat {A} && sed -i 's/of_rows/of_all_rows/' {A}",
    f"cat {A}; rm -f {B}; make rows > {A}",
    "cd /srv/mill && cat a.py && touch a.py && cp b.py a.py",
]


@pytest.mark.parametrize("script", BEFORE_A_CHANGE)
def test_what_a_script_shows_before_it_changes_a_file_is_not_the_file_as_it_is(script: str) -> None:
    files = model_of(READ, bash(script, text(LINES))).files

    assert A not in files or numbered_lines(files[A]) == {}


def test_an_error_before_a_view_is_no_line_of_the_file() -> None:
    step = bash(f"cp {B} {A}.new; cat {A}", f"cp: cannot stat '{B}': No such file or directory\n" + text(LINES))

    assert model_of(step).files == {}


def test_the_folder_that_is_printed_first_is_no_line_of_the_file() -> None:
    model = model_of(bash(f"pwd && cat {A}", "/srv/mill\n" + text(LINES)))

    assert numbered_lines(file_of(model, A)) == dict(enumerate(LINES, 1))


def test_lines_that_went_into_a_file_are_not_taken_from_the_next_output() -> None:
    model = model_of(bash(f"head -2 {B} > /tmp/b; cat {A}", text(LINES)))

    assert B not in model.files
    assert numbered_lines(file_of(model, A)) == dict(enumerate(LINES, 1))


def test_a_shorter_part_of_a_range_does_not_tell_where_the_file_ends() -> None:
    model = model_of(bash(f"sed -n '3,40p' {A} | head -2", text(LINES[2:])))

    assert numbered_lines(file_of(model, A)) == {3: LINES[2], 4: LINES[3]}
    assert file_of(model, A).text.length is None


@pytest.mark.parametrize("script", [f"cd / && patch -p1 <<'E'\n{DIFF}E\n", f"patch {B} < /tmp/mend.diff"])
def test_a_patch_puts_the_files_in_doubt_that_it_names(script: str) -> None:
    model = model_of(READ, READ_B, bash(script, "patching file srv/mill/b.py\n"))

    assert numbered_lines(model.files[A]) == dict(enumerate(LINES, 1))
    assert numbered_lines(model.files[B]) == {}


def several(*shown: tuple[str, list[str]], asked: tuple[str, ...] = (A, B)) -> Step:
    printed = "\n---\n".join(f"{path}:\n{text(lines)}\n" for path, lines in shown)
    return "filesystem-read_multiple_files", {"paths": list(asked)}, json.dumps({"type": "text", "text": printed})


def test_several_files_that_one_call_shows_are_known() -> None:
    dashes = ["kind: mill", "---", "kind: ledger"]
    model = model_of(several((A, LINES), (B, dashes)))

    assert whole_text(file_of(model, A)) == text(LINES)
    assert whole_text(file_of(model, B)) == text(dashes)


def test_nothing_is_known_where_the_borders_between_files_are_not_certain() -> None:
    quoting = [*LINES, "", "---", f"{B}:", "print()"]

    assert model_of(several((A, quoting), (B, LINES))).files == {}
    assert model_of(several((A, LINES))).files == {}


C = "/srv/mill/sub/a.py"


@pytest.mark.parametrize(
    ("first", "printed", "path"),
    [
        ("cd sub && ls", "a.py\n", C),
        ("cd /srv/mill/sub", "", C),
        ("cd sub && cd ..", "", A),
        ("(cd sub && ls)", "a.py\n", A),
        ("cd sub && ls", "bash: line 1: cd: sub: No such file or directory", A),
        ("cd sub && ls", "a.py\nShell cwd was reset to /srv/mill", A),
    ],
)
def test_a_shell_that_keeps_its_folder_shows_files_from_there(first: str, printed: str, path: str) -> None:
    both: list[Step] = [("Read", {"file_path": name}, cat_n(["def before():"])) for name in (A, C)]
    there = bash("cd /srv/mill", "")
    model = model_of(*both, there, bash(first, printed), bash("cat a.py", text(LINES)))

    assert whole_text(file_of(model, path)) == text(LINES)
    assert whole_text(file_of(model, C if path == A else A)) == "def before():\n"


def test_a_redirect_into_a_folder_that_only_the_shell_knows_puts_no_other_files_in_doubt() -> None:
    model = model_of(READ, bash('sort rows > "$TEMP/rows.txt"'))

    assert numbered_lines(file_of(model, A)) == dict(enumerate(LINES, 1))


def _nl(lines: list[str], start: int = 1) -> str:
    return "".join(f"{number:6}\t{line}\n" for number, line in enumerate(lines, start))


ONE, TWO = ["import mill", "", "total = 1"], ["def rows():", "    return 2", "", "x = 3"]


def test_files_that_one_script_numbers_are_told_apart_by_their_numbers() -> None:
    script = "nl -ba a.py; nl -ba b.py | sed -n '2,4p'; nl -ba c.py | sed -n '1,40p'"
    output = _nl(ONE) + _nl(TWO[1:], 2) + _nl(TWO)
    model = model_of(("Bash", {"command": script}, output))

    assert numbered_lines(model.files["a.py"]) == dict(enumerate(ONE, 1))
    assert numbered_lines(model.files["b.py"]) == dict(enumerate(TWO[1:], 2))
    assert numbered_lines(model.files["c.py"]) == dict(enumerate(TWO, 1))


def test_nothing_is_told_of_files_whose_numbers_go_on_in_the_next() -> None:
    script = "nl -ba a.py; nl -ba b.py | sed -n '4,5p'"

    assert not model_of(("Bash", {"command": script}, _nl(ONE) + _nl(["y = 4"], 4))).files
    assert not model_of(("Bash", {"command": "nl a.py; nl -ba b.py"}, _nl(ONE) + _nl(TWO))).files
