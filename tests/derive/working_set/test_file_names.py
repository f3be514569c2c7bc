"""The index of names in files: as the files are known now, in doubt where they are."""

from pagefold.derive.working_set.file_names import name_passages
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.text import FileText

LINES = ["mill = grind_flour(9)", "def grind_flour(sacks):", "    return mill_stone * sacks", "", "def sift_bran():"]
CERTAIN = "names in file mill.py as it is now, each behind the number of its line"


def listed(text: FileText, *names: str) -> list[tuple[str, list[tuple[int | str | None, str]]]]:
    files = {"mill.py": KnownFile("mill.py", text)}
    return [
        (f"{found.label}{found.doubt and f', seen before {found.doubt}'}", [(line[2], line[0]) for line in found.lines])
        for found in name_passages(files, set(names))
    ]


def test_names_stand_in_the_order_of_the_file_each_where_it_is_defined() -> None:
    text = FileText().shown(10, LINES, 0)

    assert listed(text, "sift_bran", "mill_stone", "grind_flour") == [
        (CERTAIN, [(11, "grind_flour"), (12, "mill_stone"), (14, "sift_bran")]),
    ]
    assert listed(text, "nobody_knows") == []


def test_numbers_colours_and_hashes_are_no_names() -> None:
    text = FileText().shown(1, ["deadbeef = 12345 + c0ffee11", "FACADE1 = bead_1"], 0)

    assert listed(text, "deadbeef", "12345", "c0ffee11", "FACADE1", "bead_1") == [(CERTAIN, [(2, "bead_1")])]


def test_a_name_that_was_replaced_is_not_listed() -> None:
    text = FileText().shown(10, LINES, 0).edited("mill_stone", "mill_wheel", 1)

    assert listed(text, "mill_stone") == []
    assert listed(text, "mill_wheel") == [(CERTAIN, [(12, "mill_wheel")])]


def test_a_title_speaks_of_numbers_only_where_some_are_known() -> None:
    text = FileText().shown(None, LINES, 0)
    both = text.shown(40, ["def weigh_sacks():", "    return 1"], 1)

    assert listed(text, "grind_flour") == [("names in file mill.py as it is now", [(None, "grind_flour")])]
    assert listed(both, "grind_flour", "weigh_sacks")[0][0] == f"{CERTAIN} where that is certain"


def test_names_in_doubt_stand_apart_and_without_numbers() -> None:
    text = FileText().shown(10, LINES, 0).doubted("git stash", 1).shown(13, LINES[3:], 2)

    assert listed(text, "sift_bran", "grind_flour") == [
        (CERTAIN, [(14, "sift_bran")]),
        ("names in file mill.py, seen before `git stash`, which may have changed it", [(None, "grind_flour")]),
    ]


def test_a_certain_use_comes_before_a_definition_in_doubt() -> None:
    text = FileText().shown(10, LINES, 0).doubted("git stash", 1).shown(10, LINES[:1], 2)

    assert listed(text, "grind_flour") == [(CERTAIN, [(10, "grind_flour")])]


def test_the_first_to_be_suspected_stays_named() -> None:
    text = FileText().shown(10, LINES, 0).doubted("sed -i s/a/b/ mill.py", 1).doubted("make", 2).doubted("git pull", 3)

    assert listed(text, "mill_stone")[0][0] == (
        "names in file mill.py, seen before `sed -i s/a/b/ mill.py`, then 1 other, then `git pull`, "
        "which may have changed it"
    )
    assert "sed" not in listed(text.shown(10, LINES, 4).doubted("make", 5), "mill_stone")[0][0]
