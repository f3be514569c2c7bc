"""Whatever is done to a file, the model never gives a line a number that it has not got in the real file.

A real file is edited and read by random calls, told in the words of real tools. Between the calls the model is held
against the file.
"""

import difflib
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.pages.files.model import FileModel
from pagefold.pages.files.text import lines_of
from tests.pages.files.sessions import Step, cat_n, file_of, loose_lines, model_of, numbered_lines

PATH = "/srv/mill/ledger.py"
SHORT = ("", "}", "    pass", "x")

Operation = tuple[str, int, int, int, int]
"""What is done, and four numbers that say where and with what."""


@dataclass
class RealFile:
    """A file on a disk, and the tools that work on it. Every tool answers as the real one does."""

    text: str
    made: int = 0
    base: str = ""
    done: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.base = self.text

    @property
    def lines(self) -> list[str]:
        return lines_of(self.text)

    def fresh(self, count: int, kind: int) -> list[str]:
        """New lines: telling ones that are new, short ones that stand everywhere, or copies of what is there."""
        found = []
        for at in range(count):
            choice, lines = (kind + at) % 4, self.lines
            if choice == 3 and lines:
                found.append(lines[kind % len(lines)])
            elif choice == 2:
                found.append(SHORT[(kind + at) % len(SHORT)])
            else:
                self.made += 1
                found.append(f"    total_{self.made} = amount({self.made})")
        return found

    def span(self, a: int, b: int) -> tuple[int, int]:
        count = len(self.lines)
        begin = a % (count + 1) if count else 0
        return begin, min(count, begin + b % 5)

    def call(self, name: str, arguments: dict[str, Any], result: str) -> Step:
        return name, arguments, result

    def do(self, operation: Operation) -> Step:
        kind, a, b, c, d = operation
        step: Step = getattr(self, kind)(a, b, c, d)
        return step

    def read(self, a: int, b: int, c: int, d: int) -> Step:
        begin, limit = a % (len(self.lines) + 1), 1 + b % 7
        shown = self.lines[begin : begin + limit]
        arguments = {"file_path": PATH, "offset": begin + 1, "limit": limit}
        return "Read", arguments, cat_n(shown, begin + 1, "\t" if c % 2 else "→") or "<system-reminder>none"

    def read_all(self, a: int, b: int, c: int, d: int) -> Step:
        return "Read", {"file_path": PATH}, cat_n(self.lines) or "<system-reminder>the file is empty</system-reminder>"

    def sed(self, a: int, b: int, c: int, d: int) -> Step:
        begin, count = a % (len(self.lines) + 1), 1 + b % 7
        shown = self.lines[begin : begin + count]
        script = f"sed -n '{begin + 1},{begin + count}p' {PATH}"
        frame = "Chunk ID: e0a7ef\nWall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n"
        return "exec_command", {"cmd": script}, frame + "".join(line + "\n" for line in shown)

    def grep(self, a: int, b: int, c: int, d: int) -> Step:
        hits = [f"{at}:{line}" for at, line in enumerate(self.lines, 1) if f"_{a % 20}" in line]
        return "Bash", {"command": f"grep -n '_{a % 20}' {PATH}"}, "\n".join(hits)

    def edit(self, a: int, b: int, c: int, d: int) -> Step:
        """One text replaced by another: whole lines, or from the middle of a line to the middle of another."""
        begin, end = self.span(a, b)
        old = "\n".join(self.lines[begin:end])
        new = "\n".join(self.fresh(c % 4, d))
        if d % 3 == 1:
            old, new = old + "\n", new + "\n" if new else ""
        elif d % 3 == 2:
            old = old[c % 4 : len(old) - d % 5]
        return self._edit(old, new, every=False)

    def edit_everywhere(self, a: int, b: int, c: int, d: int) -> Step:
        begin, end = self.span(a, 1 + b % 2)
        old = "\n".join(self.lines[begin:end])
        return self._edit(old, "\n".join(self.fresh(c % 3, d)), every=True)

    def insert(self, a: int, b: int, c: int, d: int) -> Step:
        begin, end = self.span(a, 1 + b % 2)
        old = "\n".join(self.lines[begin:end])
        return self._edit(old, "\n".join([old, *self.fresh(1 + c % 3, d)]), every=False)

    def delete(self, a: int, b: int, c: int, d: int) -> Step:
        begin, end = self.span(a, 1 + b % 3)
        return self._edit("".join(line + "\n" for line in self.lines[begin:end]), "", every=False)

    def _edit(self, old: str, new: str, *, every: bool) -> Step:
        arguments = {"file_path": PATH, "old_string": old, "new_string": new, "replace_all": every}
        times = self.text.count(old) if old else 0
        if not old or old == new or times == 0:
            return "Edit", arguments, "<tool_use_error>String to replace not found in file.</tool_use_error>"
        if times > 1 and not every:
            return "Edit", arguments, f"<tool_use_error>Found {times} matches of the string.</tool_use_error>"
        self.text = self.text.replace(old, new)
        return "Edit", arguments, f"The file {PATH} has been updated successfully."

    def patch(self, a: int, b: int, c: int, d: int) -> Step:
        """A patch of two hunks at most. Every hunk is placed where its lines first stand below the hunk before it."""
        lines, hunks, at = self.lines, list[tuple[list[str], list[str]]](), 0
        for number in range(1 + c % 2):
            begin = at + (a + number * b) % (len(lines) - at + 1)
            end = min(len(lines), begin + 1 + b % 4)
            around = 1 + d % 2 if b % 3 else 0
            inner = lines[begin:end]
            new = [*inner[:around], *self.fresh((c + number) % 3, d), *inner[len(inner) - around :]]
            if inner and self._is_meant(inner):
                hunks.append((inner, new if around * 2 <= len(inner) else [*inner, "    added"]))
            at = end
        body = ["*** Begin Patch", f"*** Update File: {PATH}"]
        result, cursor = lines, 0
        for old, new in hunks:
            place = next((at for at in range(cursor, len(result)) if result[at : at + len(old)] == old), None)
            if place is None:
                failed = "Exit code: 1\nOutput:\napply_patch verification failed: Failed to find expected lines"
                return "apply_patch", {"input": "\n".join([*body, *self._hunk(old, new), "*** End Patch"])}, failed
            result = [*result[:place], *new, *result[place + len(old) :]]
            cursor = place + len(new)
            body += self._hunk(old, new)
        self.text = "".join(line + "\n" for line in result)
        said = f"Exit code: 0\nWall time: 0.2 seconds\nOutput:\nSuccess. Updated the following files:\nM {PATH}\n"
        return "apply_patch", {"input": "\n".join([*body, "*** End Patch"])}, said

    def _is_meant(self, old: list[str]) -> bool:
        """Whether an agent can have meant one place by these lines: some stand once, or all are so short that it may
        have overlooked that they stand elsewhere too."""
        telling = [line for line in old if len(line.strip()) >= 12]
        return not telling or any(self.lines.count(line) == 1 for line in telling)

    @staticmethod
    def _hunk(old: list[str], new: list[str]) -> list[str]:
        return ["@@", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]

    def write(self, a: int, b: int, c: int, d: int) -> Step:
        if a % 3:  # a whole write makes all else easy, so it is rare
            return self.read(a, b, c, d)
        self.text = "".join(line + "\n" for line in self.fresh(b % 12, d))
        return "Write", {"file_path": PATH, "content": self.text}, f"File created successfully at: {PATH}"

    def append(self, a: int, b: int, c: int, d: int) -> Step:
        """Lines put behind the last one: told by the script, or not."""
        lines = self.fresh(1 + b % 4, d)
        self.text += "".join(line + "\n" for line in lines)
        document = "\n".join(["", *lines, "EOF"])
        scripts = (
            f"cat >> {PATH} << 'EOF'{document}",
            f"cd /srv && cat >> mill/ledger.py << 'EOF'{document}\ncat {PATH} | wc -l",
            f"tee -a {PATH} > /dev/null << 'EOF'{document}",
            f"cat more >> {PATH}",
        )
        return "Bash", {"command": scripts[a % len(scripts)]}, ""

    def unseen(self, a: int, b: int, c: int, d: int) -> Step:
        """Something that the model cannot follow changes the file, and says so."""
        begin, end = self.span(a, b)
        lines = [*self.lines[:begin], *self.fresh(c % 3, d), *self.lines[end:]]
        self.text = "".join(line + "\n" for line in lines)
        scripts = (f"sed -i 's/a/b/' {PATH}", "git stash pop", f"git checkout -- {PATH}", f"make {PATH} | tee {PATH}")
        return "Bash", {"command": scripts[d % len(scripts)]}, ""

    def diff(self, a: int, b: int, c: int, d: int) -> Step:
        pairs = difflib.unified_diff(lines_of(self.base), self.lines, "a" + PATH, "b" + PATH, lineterm="", n=1 + a % 3)
        return "Bash", {"command": f"git diff {PATH}"}, "\n".join(["diff --git a b", *pairs])


OPERATIONS = (
    *("read", "read", "sed", "sed", "read_all", "grep", "edit", "edit", "edit_everywhere", "insert", "delete"),
    *("patch", "patch", "write", "diff", "append"),
)
WITH_DOUBT = (*OPERATIONS, "unseen", "unseen")


def operations(kinds: tuple[str, ...]) -> st.SearchStrategy[list[Operation]]:
    numbers = st.integers(0, 60)
    return st.lists(st.tuples(st.sampled_from(kinds), numbers, numbers, numbers, numbers), min_size=2, max_size=14)


def starting_text(size: int) -> str:
    lines = [SHORT[at % len(SHORT)] if at % 3 == 2 else f"    value_{at} = compute({at})" for at in range(size)]
    return "".join(line + "\n" for line in lines)


def check(real: RealFile, model: FileModel) -> None:
    if PATH not in model.files:
        return
    file, lines = file_of(model, PATH), real.lines
    shown = lines or [""]  # an editor shows one empty line of an empty file
    for number, line in numbered_lines(file).items():
        there = shown[number - 1] if 0 < number <= len(shown) else "nothing"
        assert there == line, f"line {number} is {there!r}, and the model says {line!r}"
    if file.text.doubted_at < 0:
        assert file.text.length in (None, len(lines))
        standing = set(shown)
        for run in loose_lines(file):
            assert set(run) <= standing, f"{sorted(set(run) - standing)} do not stand in the file"


def run(size: int, done: list[Operation]) -> None:
    real, model = RealFile(starting_text(size)), FileModel()
    for place, operation in enumerate(done):
        model = model_of(real.do(operation), model=model, place=place)
        check(real, model)


@settings(max_examples=250)
@given(size=st.integers(0, 24), done=operations(OPERATIONS))
def test_a_numbered_line_stands_in_the_real_file_where_the_model_says(size: int, done: list[Operation]) -> None:
    run(size, done)


@settings(max_examples=250)
@given(size=st.integers(0, 24), done=operations(WITH_DOUBT))
def test_only_lines_in_doubt_are_wrong_after_something_changed_the_file_unseen(
    size: int, done: list[Operation]
) -> None:
    run(size, done)


FOUND: dict[str, tuple[int, list[Operation]]] = {
    "a line read behind lines that a script appended, before a diff shows both": (
        4,
        [
            ("read_all", 0, 0, 0, 0),
            ("append", 0, 0, 0, 0),
            ("append", 0, 0, 0, 0),
            ("read", 47, 0, 0, 0),
            ("diff", 0, 0, 0, 0),
        ],
    ),
    "a line read behind lines that nobody showed": (
        4,
        [("read_all", 0, 0, 0, 0), ("append", 3, 1, 0, 0), ("read", 5, 0, 0, 0), ("diff", 0, 0, 0, 0)],
    ),
    "the line break behind a patch is no line of it": (1, [("read", 0, 0, 0, 0), ("patch", 0, 0, 1, 0)]),
    "a reminder is no text": (0, [("read_all", 0, 0, 0, 0)]),
    "a text at the end of the file": (
        19,
        [("edit", 17, 2, 2, 1), ("edit", 27, 1, 2, 1), ("read_all", 0, 0, 0, 0), ("edit_everywhere", 8, 1, 0, 0)],
    ),
    "one tie is not enough": (11, [("delete", 0, 0, 0, 0), ("patch", 49, 9, 1, 35), ("read", 0, 47, 0, 0)]),
    "every line break": (
        24,
        [
            ("read", 0, 3, 0, 0),
            ("edit", 16, 2, 0, 0),
            ("delete", 0, 0, 0, 0),
            ("edit", 16, 2, 0, 0),
            ("edit_everywhere", 59, 1, 0, 0),
        ],
    ),
    "lines known twice": (10, [("patch", 9, 1, 0, 0), ("read", 5, 60, 0, 0), ("patch", 8, 9, 0, 0)]),
    "a diff of lines that were appended": (
        1,
        [("read", 0, 0, 0, 0), ("append", 0, 1, 0, 0), ("read", 0, 1, 0, 0), ("diff", 0, 0, 0, 0)],
    ),
    "a hunk without its number": (
        19,
        [("read", 8, 6, 0, 1), ("edit", 0, 2, 0, 0), ("read", 26, 0, 0, 1), ("patch", 43, 3, 0, 7)],
    ),
}


@pytest.mark.parametrize(("size", "done"), FOUND.values(), ids=FOUND)
def test_what_was_once_untrue_is_so_no_more(size: int, done: list[Operation]) -> None:
    run(size, done)
