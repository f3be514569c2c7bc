"""A throw-away directory in which an agent works, and the tools it has there: Read, Edit, Write, Grep and Bash.

Commands run with a limit on time, memory and output, in a network namespace of their own where the system allows one;
what they leave running is ended with them. Nothing outside the directory is offered; the directory goes when the task
is over.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from pagefold.solve.task import Task

SECONDS, OUTPUT = 20, 60_000
# By a shell, since nothing may run between fork and exec where there are threads: 20 s, 64 MB of a file, 1 GB.
_LIMITED = ("/bin/sh", "-c", 'ulimit -t 20; ulimit -f 131072; ulimit -v 1048576 2>/dev/null; exec "$@"', "limited")
REFUSED = "The user doesn't want to proceed with this edit of {path}. Nothing was changed."
LOCKED = "Error: {path} is locked by another program. Nothing was changed."

_PATH = {"file_path": {"type": "string", "description": "a path below the working directory"}}
TOOLS: list[dict[str, Any]] = [
    {
        "name": name,
        "description": description,
        "input_schema": {"type": "object", "properties": properties, "required": list(properties)},
    }
    for name, description, properties in (
        ("Read", "Shows a file with line numbers.", _PATH),
        (
            "Edit",
            "Replaces a text of a file, which has to stand there once, by another.",
            {**_PATH, "old_string": {"type": "string"}, "new_string": {"type": "string"}},
        ),
        ("Write", "Writes a file.", {**_PATH, "content": {"type": "string"}}),
        (
            "Grep",
            "Lists the lines below the working directory that match a regular expression.",
            {"pattern": {"type": "string"}},
        ),
        ("Bash", "Runs a command in the working directory.", {"command": {"type": "string"}}),
    )
]


class Workspace:
    """The files of one task while somebody works on it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.root = Path(mkdtemp(prefix="pagefold-solve-")).resolve()
        self._stopped: set[str] = set()
        for path, text in task.files.items():
            self._at(path).parent.mkdir(parents=True, exist_ok=True)
            self._at(path).write_text(text, encoding="utf-8")

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *reason: object) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def remove(self, path: str) -> None:
        self._at(path).unlink(missing_ok=True)

    def use(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """What a tool says, and whether it failed."""
        try:
            match name:
                case "Read":
                    return self._read(str(arguments["file_path"])), False
                case "Edit":
                    return self._edit(*(str(arguments[key]) for key in ("file_path", "old_string", "new_string")))
                case "Write":
                    path = str(arguments["file_path"])
                    self._at(path).parent.mkdir(parents=True, exist_ok=True)
                    self._at(path).write_text(str(arguments["content"]), encoding="utf-8")
                    return f"The file {path} has been written.", False
                case "Grep":
                    return self._grep(str(arguments["pattern"])), False
                case "Bash":
                    return self._bash(str(arguments["command"]))
        except KeyError as error:
            return f"Error: {name} needs {error}.", True
        except (OSError, re.error, UnicodeDecodeError, ValueError) as error:
            return f"Error: {error}", True
        return f"Error: there is no tool {json.dumps(name)}.", True

    def is_solved(self) -> bool:
        """Whether the task's own check says that the work is done."""
        return self._run([sys.executable, "-I", "-B", "-c", self._task.check])[1] == 0

    def _at(self, path: str) -> Path:
        found = (self.root / path).resolve()
        if not found.is_relative_to(self.root):
            raise ValueError(f"{path} is outside the working directory")
        return found

    def _read(self, path: str) -> str:
        lines = self._at(path).read_text(encoding="utf-8").split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
        return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1))

    def _edit(self, path: str, old: str, new: str) -> tuple[str, bool]:
        if path not in self._stopped and path in self._task.refuses | self._task.locked:
            self._stopped.add(path)
            return (REFUSED if path in self._task.refuses else LOCKED).format(path=path), True
        text = self._at(path).read_text(encoding="utf-8")
        if text.count(old) != 1:
            return f"Error: the text to replace stands {text.count(old)} times in {path}. Nothing was changed.", True
        self._at(path).write_text(text.replace(old, new), encoding="utf-8")
        return f"The file {path} has been updated.", False

    def _grep(self, pattern: str) -> str:
        matches = re.compile(pattern).search
        hits = [
            f"{file.relative_to(self.root)}:{number}:{line}"
            for file in sorted(self.root.rglob("*"))
            if file.is_file()
            for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").split("\n"), 1)
            if matches(line)
        ]
        return "\n".join(hits)[:OUTPUT] or "No matches."

    def _bash(self, command: str) -> tuple[str, bool]:
        said, code = self._run(["/bin/sh", "-c", command])
        return (f"Exit code {code}\n{said}" if code else said or "(no output)"), code != 0

    def _run(self, command: list[str]) -> tuple[str, int]:
        alone = ["unshare", "--map-root-user", "--net"] if _can_be_alone() else []
        environment = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(self.root),
            "LANG": "C.UTF-8",
        }
        with subprocess.Popen(  # noqa: S603
            [*alone, *_LIMITED, *command],
            cwd=self.root,
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as running:
            try:
                output, _ = running.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return f"stopped after {SECONDS} seconds", 124
            finally:
                with suppress(ProcessLookupError):  # all of them have ended
                    if sys.platform != "win32":
                        os.killpg(running.pid, signal.SIGKILL)
        return output.decode("utf-8", "replace")[:OUTPUT], running.returncode


@cache
def _can_be_alone() -> bool:
    """Whether this system lets a command have a network of its own, with nothing in it."""
    program = shutil.which("unshare")
    if program is None:
        return False
    tried = [program, "--map-root-user", "--net", "true"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0  # noqa: S603
