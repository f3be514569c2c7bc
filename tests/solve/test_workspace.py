"""The tools of a workspace, and what they refuse."""

import socket
import time

import pytest

from pagefold.solve.kinds import tasks
from pagefold.solve.workspace import Workspace, _can_be_alone


@pytest.fixture
def workspace() -> Workspace:
    return Workspace(tasks(1_500, 1, ["locked-file"], ["shop"])[0])


def test_tools_do_what_they_say(workspace: Workspace) -> None:
    with workspace:
        assert workspace.use("Write", {"file_path": "a/b.txt", "content": "one\ntwo\n"}) == (
            "The file a/b.txt has been written.",
            False,
        )
        assert workspace.use("Read", {"file_path": "a/b.txt"}) == ("     1\tone\n     2\ttwo", False)
        edit = {"file_path": "a/b.txt", "old_string": "two", "new_string": "three"}
        assert workspace.use("Edit", edit) == ("The file a/b.txt has been updated.", False)
        assert "stands 0 times" in workspace.use("Edit", edit)[0]
        assert workspace.use("Grep", {"pattern": "^thr"}) == ("a/b.txt:2:three", False)
        assert workspace.use("Bash", {"command": "cat a/b.txt; exit 3"}) == ("Exit code 3\none\nthree\n", True)


@pytest.mark.parametrize("path", ["../out.txt", "/etc/passwd", "a/../../out.txt"])
def test_nothing_outside_is_touched(workspace: Workspace, path: str) -> None:
    with workspace:
        assert "outside the working directory" in workspace.use("Write", {"file_path": path, "content": ""})[0]
        assert workspace.use("Read", {"file_path": path})[1]


def test_bad_calls_are_told(workspace: Workspace) -> None:
    with workspace:
        assert workspace.use("Read", {}) == ("Error: Read needs 'file_path'.", True)
        assert workspace.use("Fly", {})[1]
        assert workspace.use("Grep", {"pattern": "("})[1]


def test_commands_reach_no_network_where_that_can_be_had(workspace: Workspace) -> None:
    program = "import socket; s = socket.socket(); s.settimeout(2); s.connect(('127.0.0.1', {port}))"
    if not _can_be_alone():
        pytest.skip("this system gives a command no network of its own")
    with workspace, socket.create_server(("127.0.0.1", 0)) as server:
        _, failed = workspace.use("Bash", {"command": f'python3 -c "{program.format(port=server.getsockname()[1])}"'})
        assert failed


def test_memory_and_files_have_a_limit(workspace: Workspace) -> None:
    with workspace:
        assert "MemoryError" in workspace.use("Bash", {"command": "python -c 'bytes(2 << 30)'"})[0]
        assert workspace.use("Bash", {"command": "head -c 100000000 /dev/zero > large"})[1]
        assert (workspace.root / "large").stat().st_size == 64 << 20


def test_what_a_command_leaves_running_is_ended(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagefold.solve.workspace.SECONDS", 1)
    with workspace:
        said, failed = workspace.use("Bash", {"command": "(sleep 3; touch late.txt) & echo begun"})
        assert (said, failed) == ("Exit code 124\nstopped after 1 seconds", True)
        time.sleep(3)
        assert not (workspace.root / "late.txt").exists()


def test_the_directory_goes(workspace: Workspace) -> None:
    with workspace:
        root = workspace.root
        assert root.exists()
    assert not root.exists()
