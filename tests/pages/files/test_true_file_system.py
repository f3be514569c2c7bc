"""Several real files under random calls, told in the words of real tools: whatever succeeds, fails halfway, is refused
or changes files unseen, the model holds no line for certain that the real file has not got there.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.pages.files.model import FileModel
from pagefold.pages.files.text import lines_of
from tests.pages.files.sessions import Step, cat_n, model_of

FOLDERS = ("/srv/mill", "/srv/other")
PATHS = (f"{FOLDERS[0]}/a.py", f"{FOLDERS[1]}/a.py", f"{FOLDERS[0]}/b c.py")
OK = "The file has been updated."

Operation = tuple[str, int, int, int]
"""What is done, and three numbers that say to which file, where, and with what."""


@dataclass
class Disk:
    """Real files. Every tool answers as a real one does; what a script does before it fails is done."""

    files: dict[str, str]
    committed: dict[str, str] = field(default_factory=dict)
    made: int = 0

    def __post_init__(self) -> None:
        self.committed = dict(self.files)

    def line(self, c: int) -> str:
        self.made += 1
        return ("", "}", f"total_{self.made} = amount_of_row({self.made})")[c % 3]

    def path(self, a: int) -> str:
        return PATHS[a % len(PATHS)]

    def do(self, operation: Operation) -> Step:
        kind, *numbers = operation
        step: Callable[..., Step] = getattr(self, kind)
        return step(*numbers)

    def read(self, a: int, b: int, c: int) -> Step:
        path = self.path(a)
        if path not in self.files:
            return "Read", {"file_path": path}, "<tool_use_error>File does not exist.</tool_use_error>"
        lines = lines_of(self.files[path])
        begin, limit = b % (len(lines) + 1), 1 + c % 6
        shown = cat_n(lines[begin : begin + limit], begin + 1) or "<system-reminder>nothing there</system-reminder>"
        return "Read", {"file_path": path, "offset": begin + 1, "limit": limit}, shown

    def cat(self, a: int, b: int, c: int) -> Step:
        """By a path from the folder that the script enters; two files there have the same."""
        folder, name = self.path(a).rsplit("/", 1)
        script = f"cd {folder} && cat '{name}'"
        if self.path(a) not in self.files:
            return "Bash", {"command": script}, f"Exit code 1\ncat: {name}: No such file or directory"
        return "Bash", {"command": script}, self.files[self.path(a)]

    def edit(self, a: int, b: int, c: int) -> Step:
        path, text = self.path(a), self.files.get(self.path(a), "")
        lines = lines_of(text)
        old = "\n".join(lines[b % (len(lines) + 1) :][: 1 + c % 3])
        new = "\n".join(self.line(c + at) for at in range(c % 4))
        arguments = {"file_path": path, "old_string": old, "new_string": new}
        if not old or old == new or text.count(old) != 1:
            return "Edit", arguments, "<tool_use_error>String to replace not found in file.</tool_use_error>"
        self.files[path] = text.replace(old, new)
        return "Edit", arguments, OK

    def refused(self, a: int, b: int, c: int) -> Step:
        before = dict(self.files)
        name, arguments, _ = self.edit(a, b, c)
        self.files = before
        return name, arguments, "The user doesn't want to proceed with this tool use."

    def write(self, a: int, b: int, c: int) -> Step:
        text = "".join(self.line(c + at) + "\n" for at in range(b % 5))
        self.files[self.path(a)] = text
        return "Write", {"file_path": self.path(a), "content": text}, OK

    def script(self, a: int, b: int, c: int) -> Step:
        """Commands one after another, each only where the one before it went well; one of them may fail."""
        said: list[str] = []
        commands: list[str] = []
        failed = False
        for at in range(1 + b % 3):
            kind = (b + c * at) % 5
            path, to = self.path(a + at), self.path(a + at + 1)
            if kind == 0:
                text = self.line(c) + "\n"
                commands.append(f"cat > '{path}' <<'EOF'\n{text}EOF\n")
                if not failed:
                    self.files[path] = text
                commands.append("true")
                continue
            if kind == 1:
                commands.append(f"rm '{path}'")
                works = path in self.files
                if works and not failed:
                    del self.files[path]
                said += [] if works or failed else [f"rm: cannot remove '{path}'"]
            elif kind in (2, 3):
                commands.append(f"{'mv' if kind == 2 else 'cp'} '{path}' '{to}'")
                works = path in self.files
                if works and not failed:
                    self.files[to] = self.files[path] if kind == 3 else self.files.pop(path)
                said += [] if works or failed else [f"{commands[-1][:2]}: cannot stat '{path}'"]
            else:
                commands.append("make test")
                works = c % 2 == 0
                said += [] if works or failed else ["make: *** [test] Error 1"]
            failed = failed or not works
        script = " && ".join(commands).replace("EOF\n && true", "EOF\ntrue")
        result = "\n".join((["Exit code 1"] if failed else []) + said)
        return "Bash", {"command": script}, result

    def checkout(self, a: int, b: int, c: int) -> Step:
        if c % 2:
            self.files = dict(self.committed)
            return "Bash", {"command": "git stash"}, "Saved working directory"
        if self.path(a) in self.committed:
            self.files[self.path(a)] = self.committed[self.path(a)]
        return "Bash", {"command": f"git checkout -- '{self.path(a)}'"}, ""

    def commit(self, a: int, b: int, c: int) -> Step:
        self.committed = dict(self.files)
        return "Bash", {"command": "git commit -am x"}, "[main 1234567] x"

    def substitute(self, a: int, b: int, c: int) -> Step:
        if self.path(a) in self.files:
            self.files[self.path(a)] = self.files[self.path(a)].replace("total", "sum")
            return "Bash", {"command": f"sed -i s/total/sum/g '{self.path(a)}'"}, ""
        return "Bash", {"command": f"sed -i s/total/sum/g '{self.path(a)}'"}, "Exit code 1\nsed: can't read"


OPERATIONS = ["read", "cat", "edit", "refused", "write", "script", "checkout", "commit", "substitute"]
LINES = ["", "}", "x = 1", "total_of_mill = rows(0)"]
STEPS = 14


def untrue(model: FileModel, disk: Disk) -> list[str]:
    """The lines that the model holds for certain and that the disk has not got."""
    wrong: list[str] = []
    for key, known in model.files.items():
        real = lines_of(disk.files[key]) if key in disk.files else []
        for region in known.text.regions:
            for index, (line, seen) in enumerate(zip(region.lines, region.seen, strict=True)):
                if not known.text.is_certain(seen):
                    continue
                number = None if region.start is None else region.start + index
                is_there = line in real if number is None else real[number - 1 : number] == [line]
                wrong += [] if is_there else [f"{key}:{number}: {line!r}"]
    return wrong


@settings(max_examples=300)
@given(seed=st.integers(0, 1 << 32))
def test_nothing_is_certain_that_is_not_so(seed: int) -> None:
    """By a seed, and not by a list of operations: small lists, which hypothesis prefers, hardly ever go wrong."""
    dice = random.Random(seed)
    disk = Disk({path: "".join(f"{line}\n" for line in dice.choices(LINES, k=dice.randint(0, 6))) for path in PATHS})
    model, told = FileModel(), list[Step]()
    for place in range(STEPS):
        a, b, c = dice.choices(range(41), k=3)
        told.append(disk.do((dice.choice(OPERATIONS), a, b, c)))
        model = model_of(told[-1], model=model, place=place)

        assert untrue(model, disk) == [], told


def test_the_simulation_does_what_it_says() -> None:
    disk = Disk({PATHS[0]: "x = 1\n"})

    assert disk.do(("cat", 0, 0, 0))[2] == "x = 1\n"
    assert disk.do(("refused", 0, 0, 2))[2].startswith("The user doesn't want")
    assert disk.files == {PATHS[0]: "x = 1\n"}
    disk.do(("write", 1, 2, 2))
    assert sorted(disk.files) == sorted(PATHS[:2])


@pytest.mark.parametrize("lie", ["text", "number"])
def test_the_check_notices_what_is_untrue(lie: str) -> None:
    disk = Disk({PATHS[0]: "x = 1\ny = 2\n"})
    read: Step = ("Read", {"file_path": PATHS[0]}, cat_n(["z = 3"] if lie == "text" else ["y = 2", "x = 1"]))

    assert untrue(model_of(read), disk)
