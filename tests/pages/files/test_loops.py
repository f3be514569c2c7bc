"""Files that a loop, or one command, prints one after another: told apart where titles or counts make that certain."""

import pytest

from pagefold.pages.files.shell import commands_in
from tests.pages.files.sessions import all_lines, file_of, model_of, numbered_lines

ONE = ["import mill", "", "total = 1"]
TWO = ["def rows():", "    return 2", "", "x = 3"]
FILES = {"a.py": ONE, "b.py": TWO}


def text(*parts: list[str]) -> str:
    return "".join(line + "\n" for part in parts for line in part)


def nl(lines: list[str]) -> list[str]:
    return [f"{number:6}\t{line}" for number, line in enumerate(lines, 1)]


LOOP = "for f in a.py b.py; do"
TOLD = {
    "titles of a script": (f'{LOOP} echo "== $f"; cat "$f"; done', text(["== a.py"], ONE, ["== b.py"], TWO)),
    "on lines of their own": (f"{LOOP}\n  echo $f:\n  cat $f\ndone", text(["a.py:"], ONE, ["b.py:"], TWO)),
    "behind an empty line": (f'{LOOP} echo; echo "# $f"; cat $f; done', text(["", "# a.py"], ONE, ["", "# b.py"], TWO)),
    "before an empty line": (f'{LOOP} echo "# $f"; cat $f; echo; done', text(["# a.py"], ONE, ["", "# b.py"], TWO)),
    "one title for all": (f"{LOOP} echo ----; cat $f; done", text(["----"], ONE, ["----"], TWO)),
    "printf": (
        f"{LOOP} printf '\\n### %s\\n' \"$f\"; nl -ba $f; done",
        text(["", "### a.py"], nl(ONE), ["", "### b.py"], nl(TWO)),
    ),
    "less than was asked for": (f"{LOOP} echo =$f; sed -n '1,9p' $f; done", text(["=a.py"], ONE, ["=b.py"], TWO)),
    "messages elsewhere": (f"{LOOP} echo =$f; cat $f; done 2>/dev/null", text(["=a.py"], ONE, ["=b.py"], TWO)),
    "something behind it": (
        f"{LOOP} echo =$f; cat $f; done && echo end",
        text(["=a.py"], ONE, ["=b.py"], TWO, ["end"]),
    ),
    "titles of head": ("head -n 9 a.py b.py", text(["==> a.py <=="], ONE, ["", "==> b.py <=="], TWO)),
    "titles of head, shorter": ("head -9 a.py b.py", text(["==> a.py <=="], ONE, ["", "==> b.py <=="], TWO)),
    "titles of tail": ("tail -n +1 a.py b.py", text(["==> a.py <=="], ONE, ["", "==> b.py <=="], TWO)),
    "no line break at the end": ("tail -n +1 a.py b.py", text(["==> a.py <=="], ONE, ["==> b.py <=="], TWO)),
    "titles below a title": (
        "echo files; head -9 a.py b.py",
        text(["files", "==> a.py <=="], ONE, ["", "==> b.py <=="], TWO),
    ),
    "all that was asked for": ("sed -n '1,3p' a.py; sed -n '1,4p' b.py", text(ONE, TWO)),
    "by a variable": (
        "d=.; for f in $d/a.py $d/b.py; do echo =$f; cat $f; done",
        text(["=./a.py"], ONE, ["=./b.py"], TWO),
    ),
}


@pytest.mark.parametrize(("script", "printed"), TOLD.values(), ids=TOLD)
def test_files_between_certain_borders_are_told_apart(script: str, printed: str) -> None:
    model = model_of(("Bash", {"command": script}, printed))

    assert {name: numbered_lines(file_of(model, name)) for name in FILES} == {
        name: dict(enumerate(lines, 1)) for name, lines in FILES.items()
    }


def test_between_titles_files_are_told_apart_from_what_else_was_printed() -> None:
    script = "echo one; cat a.py; echo tests; make test; echo two; sed -n '1,9p' b.py; echo end; git log"
    printed = text(["one"], ONE, ["tests"], ["ok", "3 passed"], ["two"], TWO, ["end"], ["1a2b3c4 Grind"])
    model = model_of(("Bash", {"command": script}, printed))

    assert {name: list(numbered_lines(file).values()) for name, file in model.files.items()} == FILES


NOT_TOLD = {
    "a title that other output holds": (
        "echo one; cat a.py; echo two; make test; echo end",
        text(["one"], ONE, ["two"], ["two"], ["end"]),
    ),
    "a title that was not reached": (
        "echo one && cat a.py && make test && echo end",
        text(["one"], ONE, ["make: *** no rule"]),
    ),
    "a title that a file holds": (f"{LOOP} echo ---; cat $f; done", text(["---"], ONE, ["---"], TWO, ["---"], ONE)),
    "no titles": (f"{LOOP} cat $f; done", text(ONE, TWO)),
    "fewer lines than were asked for": (f"{LOOP} sed -n '1,4p' $f; done", text(ONE, TWO)),
    "a list that only the shell knows": (
        "for f in *.py; do echo =$f; cat $f; done",
        text(["=a.py"], ONE, ["=b.py"], TWO),
    ),
    "a variable that may hold several": ("for f in $FILES; do echo =x; cat $f; done", text(["=x"], ONE)),
    "a loop that may end early": (f"{LOOP} echo =$f; cat $f; break; done", text(["=a.py"], ONE)),
    "a loop whose output is cut": (f"{LOOP} echo =$f; cat $f; done | head -5", text(["=a.py"], ONE, ["=b.py"])),
    "a file that is not there": (
        f"{LOOP} echo =$f; cat $f; done",
        text(["=a.py"], ["cat: a.py: No such file or directory"], ["=b.py"], TWO),
    ),
    "a title that stands twice": (
        "head -9 a.py b.py",
        text(["==> a.py <=="], ["==> b.py <=="], ["", "==> b.py <=="], TWO),
    ),
    "more lines than were asked for": ("head -2 a.py b.py", text(["==> a.py <=="], ONE, ["", "==> b.py <=="], TWO)),
}


@pytest.mark.parametrize(("script", "printed"), NOT_TOLD.values(), ids=NOT_TOLD)
def test_nothing_is_told_where_a_border_is_not_certain(script: str, printed: str) -> None:
    files = model_of(("Bash", {"command": script}, printed)).files

    assert {name: all_lines(file) for name, file in files.items() if all_lines(file)} == {}


def test_a_loop_changes_only_the_files_that_it_names() -> None:
    reads = [
        ("Read", {"file_path": f"/srv/{name}"}, text(nl(lines))) for name, lines in [*FILES.items(), ("c.py", ONE)]
    ]
    model = model_of(*reads, ("Bash", {"command": f"cd /srv; {LOOP} sed -i s/1/2/ $f; done"}, ""))

    assert {name for name, file in model.files.items() if not numbered_lines(file)} == {"/srv/a.py", "/srv/b.py"}


SCRIPTS = {
    "for f in a b; do rm $f; done": [("", "rm a"), (";", "rm b")],
    "cd x && for f in a b; do ls; rm $f; done": [
        ("", "cd x"),
        ("&&", "ls"),
        ("&&", "rm a"),
        ("&&", "ls"),
        ("&&", "rm b"),
    ],
    "make || for f in a b; do rm $f; done": [("", "make"), ("||", "for f in a b"), ("do", "rm $f"), (";", "done")],
}


@pytest.mark.parametrize(("script", "expected"), SCRIPTS.items(), ids=SCRIPTS)
def test_a_plain_loop_is_read_turn_by_turn(script: str, expected: list[tuple[str, str]]) -> None:
    assert [(command.before, " ".join(command.words)) for command in commands_in(script)] == expected
