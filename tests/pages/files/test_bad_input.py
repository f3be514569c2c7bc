"""Nothing that a session can hold makes the file model raise, and no path is taken for another file's."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.pages.files.shell import commands_in
from tests.pages.files.sessions import (
    agent,
    all_lines,
    call,
    cat_n,
    conversation,
    file_of,
    model_of,
    result,
    user,
    whole_text,
    work_of,
)

ODD_PATHS = [
    "/srv/a b.py",
    "/srv/it's.py",
    '/srv/"quoted".py',
    "/srv/$HOME.py",
    "/srv/[id].tsx",
    "/srv/(group)/page.tsx",
    "/srv/größe-日本.py",
    "/srv/a\tb.py",
    "-n.py",
    "C:\\mill\\a.py",
    "\\\\host\\share\\a.py",
    "~/a.py",
    "/srv/../srv/./a.py",
    "a.py",
]


@pytest.mark.parametrize("path", ODD_PATHS)
def test_a_file_of_any_name_is_read_and_edited(path: str) -> None:
    edit = {"file_path": path, "old_string": "two", "new_string": "three"}
    model = model_of(("Read", {"file_path": path}, cat_n(["one", "two"])), ("Edit", edit, "updated"))

    assert [whole_text(file) for file in model.files.values()] == ["one\nthree\n"]


def test_two_files_of_one_name_are_not_taken_for_one_another() -> None:
    model = model_of(
        ("Read", {"file_path": "/srv/a/mod.py"}, cat_n(["one"])),
        ("Read", {"file_path": "/srv/b/mod.py"}, cat_n(["two"])),
        ("Write", {"file_path": "mod.py", "content": "three\n"}, "ok"),
    )

    assert {key: whole_text(file) for key, file in model.files.items()} == {
        "/srv/a/mod.py": "one\n",
        "/srv/b/mod.py": "two\n",
        "mod.py": "three\n",
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("/srv/a/mod.py", "a/mod.py"),
        ("a/mod.py", "/srv/a/mod.py"),
        ("/srv/a/mod.py", "./a/mod.py"),
        ("C:\\srv\\mod.py", "c:/srv/mod.py"),
        ("/srv/a/mod.py", "/srv/b/../a/mod.py"),
    ],
)
def test_one_file_under_two_spellings_is_one(first: str, second: str) -> None:
    read = ("Read", {"file_path": first}, cat_n(["one"]))
    model = model_of(read, ("Write", {"file_path": second, "content": "two\n"}, "ok"))

    assert [whole_text(file) for file in model.files.values()] == ["two\n"]


def test_a_result_without_a_call_and_a_call_without_a_result_change_nothing() -> None:
    messages = conversation(user("go"), result("none", cat_n(["one"])), call("c1", "Read", {"file_path": "/a.py"}))
    work = work_of(messages)

    assert not work.files.files
    assert not len(work.exchanges)
    assert set(work.open) == {"c1"}


def test_a_tool_that_lies_about_success_is_corrected_by_the_next_read() -> None:
    lie = ("Edit", {"file_path": "/a.py", "old_string": "not there", "new_string": "x\ny\nz"}, "updated")
    read = ("Read", {"file_path": "/a.py"}, cat_n(["one line of the mill", "two"]))

    assert whole_text(file_of(model_of(read, lie, read), "/a.py")) == "one line of the mill\ntwo\n"


def test_an_edit_of_a_file_that_nobody_has_read_is_no_whole_file() -> None:
    file = file_of(
        model_of(("Edit", {"file_path": "/a.py", "old_string": "a\nb", "new_string": "c\nd\ne"}, "ok")), "/a.py"
    )

    assert file.text.length is None
    assert all_lines(file) <= {"d"}


BROKEN_SCRIPTS = [
    "",
    "echo 'open",
    'cat > /a.py <<"EOF',
    "cat <<EOF",
    "cat <<<word",
    "((((",
    "|||&&&;;;",
    "> ",
    "sed -i",
    "git",
    "git -C",
    "mv a",
    "cd",
    "cd cd",
    "tee",
    "head -n",
    "sed -n p",
    "sed -n '99999999999999999999,1p' a.py",
    "python -c",
    "$(",
    "a" * 50_000,
    "\x00here",
    "*** Begin Patch",
    "*** Begin Patch\n*** Update File: \n*** End Patch",
    "*** Begin Patch\n*** Update File: /a.py\n@@\n*** End Patch",
]


@pytest.mark.parametrize("script", BROKEN_SCRIPTS)
def test_broken_scripts_and_odd_output_raise_nothing(script: str) -> None:
    read = ("Read", {"file_path": "/a.py"}, cat_n(["one"]))
    for output in ["", "x", "\x00\ufffd", "1\t" + "y" * 100_000, "@@ -1 +1 @@\n", "{", "[" * 2_000]:
        model_of(read, ("Bash", {"command": script}, output), ("apply_patch", {"input": script}, output))


@settings(max_examples=150)
@given(script=st.text(st.sampled_from(" \n'\"\\$<>|&;(){}#EOFcat-n/a.py*=!"), max_size=40), output=st.text(max_size=30))
def test_no_script_raises(script: str, output: str) -> None:
    commands_in(script)
    model_of(("Read", {"file_path": "a.py"}, cat_n(["one"])), ("Bash", {"command": script}, output))


_NAMES = ("file_path", "path", "old_string", "new_string", "content", "command", "cmd", "edits", "offset", "limit")
_KEYS = st.sampled_from((*_NAMES, "view_range", "input", "replace_all"))
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150)
@given(
    name=st.sampled_from(["Read", "Edit", "Write", "Bash", "apply_patch", "Task", "Grep", ""]),
    arguments=st.dictionaries(_KEYS, _VALUES, max_size=4) | _VALUES,
    text=st.text(max_size=20) | st.just("1\tx"),
)
def test_arguments_of_any_type_raise_nothing(name: str, arguments: Any, text: str) -> None:
    work_of(conversation(user("go"), call("c1", name, json.dumps(arguments)), result("c1", text), agent("done")))


@pytest.mark.parametrize("arguments", ["", "no json", "[1, 2]", '"text"', "null", "{", "[" * 5_000])
def test_arguments_that_are_no_object_are_none(arguments: str) -> None:
    work = work_of(conversation(call("c1", "Read", arguments), result("c1", cat_n(["one"]))))

    assert [exchange.name for exchange in work.exchanges] == ["Read"]
    assert not work.files.files
