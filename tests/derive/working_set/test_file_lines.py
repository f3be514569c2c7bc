"""Lines of files that are quoted by the names they hold: as the files are known now, in doubt where they are."""

from pagefold.derive.working_set.file_lines import file_passages
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.text import FileText

LINES = ["def grind_flour(sacks):", "    return mill_stone * sacks", "", "def sift_bran():", "    return sieve_one"]


def quotable(text: FileText, *names: str) -> list[tuple[str, list[tuple[int | str | None, str]]]]:
    files = {"mill.py": KnownFile("mill.py", text)}
    return [
        (f"{found.label}{found.doubt and f', seen before {found.doubt}'}", [(line[2], line[0]) for line in found.lines])
        for found in file_passages(files, set(names))
    ]


def test_lines_with_a_name_are_quoted_with_their_numbers() -> None:
    text = FileText().shown(10, LINES, 0)

    assert quotable(text, "sieve_one", "grind_flour") == [
        ("file mill.py as it is now", [(10, LINES[0]), (14, LINES[4])]),
    ]
    assert quotable(text, "nobody_knows") == []


def test_a_line_that_was_replaced_is_not_quoted() -> None:
    text = FileText().shown(10, LINES, 0).edited("sieve_one", "sieve_two", 1)

    assert quotable(text, "sieve_one") == []
    assert quotable(text, "sieve_two") == [("file mill.py as it is now", [(14, "    return sieve_two")])]


def test_lines_in_doubt_stand_apart_and_without_numbers() -> None:
    text = FileText().shown(10, LINES, 0).doubted("git stash", 1).shown(13, LINES[3:], 2)

    assert quotable(text, "sieve_one", "grind_flour") == [
        ("file mill.py, seen before `git stash`, which may have changed it", [(None, LINES[0])]),
        ("file mill.py as it is now", [(14, LINES[4])]),
    ]


def test_the_first_to_be_suspected_stays_named() -> None:
    text = FileText().shown(10, LINES, 0).doubted("sed -i s/a/b/ mill.py", 1).doubted("make", 2).doubted("git pull", 3)

    assert quotable(text, "sieve_one")[0][0] == (
        "file mill.py, seen before `sed -i s/a/b/ mill.py`, then `git pull`, which may have changed it"
    )
    assert "sed" not in quotable(text.shown(10, LINES, 4).doubted("make", 5), "sieve_one")[0][0]
