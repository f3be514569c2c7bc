"""From which folder a path begins: what a shell has left, may have left, or was put back to."""

from typing import Any

import pytest

from pagefold.pages.files.folders import START, located
from pagefold.pages.files.shell import commands_in
from tests.pages.files.sessions import (
    Step,
    agent,
    all_lines,
    call,
    cat_n,
    conversation,
    file_of,
    model_of,
    numbered_lines,
    result,
    user,
    whole_text,
    work_of,
)

ROOT = "/srv/mill"
LINES = ["import ledger_of_mill", "def total_of_rows():"]
OTHER = ["import rows_of_mill", "def sum_of_rows():"]
TEXT = "".join(line + "\n" for line in LINES)
READ: Step = ("Read", {"file_path": f"{ROOT}/a.py"}, cat_n(LINES))


def bash(script: str, output: str = "") -> Step:
    return "Bash", {"command": script}, output


ENTERED: dict[str, tuple[str, str, list[tuple[str, ...]]]] = {
    "a subshell's cd ends with it": ("(cd sub && make) && cat a.py", "", [("",)]),
    "so does that of a substitution": ("X=$(cd sub && pwd); cat a.py", "", [("",)]),
    "braces are no subshell": ("{ cd sub; }; cat a.py", "", [("sub",)]),
    "a subshell in a subshell": ("(cd a && (cd b && cat a.py) && cat b.py)", "", [("a/b",), ("a",)]),
    "a cd that failed": ("cd sub; cat a.py", "bash: line 1: cd: sub: No such file or directory", [("",)]),
    "a cd that failed in zsh": ("cd sub; cat a.py", "(eval):cd:1: no such file or directory: sub", [("",)]),
    "a cd that may have been done": ("test -d sub && ls || cd sub; cat a.py", "", [("sub", "")]),
    "a cd in a branch": ("if make; then cd sub; fi; cat a.py", "", [("sub", "")]),
    "a folder that only the shell knows": ('cd "$(mktemp -d)" && cat a.py', "", [()]),
    "the folder before": ("cd sub && make && cd - && cat a.py", "", [("",)]),
    "the folder of the user": ("cd && cat a.py", "", [("~",)]),
    "git goes elsewhere first": ("git -C sub cat a.py; cat b.py", "", [("sub",), ("",)]),
}


@pytest.mark.parametrize(("script", "printed", "expected"), ENTERED.values(), ids=ENTERED)
def test_a_command_runs_in_the_folder_that_was_entered(
    script: str, printed: str, expected: list[tuple[str, ...]]
) -> None:
    commands, _ = located(commands_in(script), START, printed)

    assert [command.folders for command in commands if "cat" in command.words] == expected


STAYED = {
    "a script that failed": bash("cd sub && make", "Exit code 2\nmake: *** [all] Error 1"),
    "one that runs in the background": bash("cd sub && make", "Command running in background with ID: b1"),
    "one that was refused": bash("cd sub && make", "The user doesn't want to proceed with this tool use."),
    "a cd in a subshell": bash("(cd sub && make)", "made"),
    "a reset": bash("cd sub && make", f"made\nShell cwd was reset to {ROOT}"),
}


@pytest.mark.parametrize("step", STAYED.values(), ids=STAYED)
def test_a_shell_stands_where_it_stood_after(step: Step) -> None:
    before = bash(f"cd {ROOT}", "")

    assert whole_text(file_of(model_of(before, step, bash("cat a.py", TEXT)), f"{ROOT}/a.py")) == TEXT


def test_what_a_later_command_shows_is_of_the_folder_that_it_ran_in() -> None:
    model = model_of(bash(f"mkdir -p x && cd {ROOT} && cat a.py", TEXT))

    assert numbered_lines(file_of(model, f"{ROOT}/a.py")) == dict(enumerate(LINES, 1))


def test_a_file_in_a_folder_that_only_the_shell_knows_is_no_other() -> None:
    model = model_of(READ, bash("cd $(mktemp -d) && cat a.py", "".join(line + "\n" for line in OTHER)))

    assert {key: all_lines(file) for key, file in model.files.items()} == {f"{ROOT}/a.py": set(LINES)}


def test_a_file_removed_where_nobody_knows_is_in_doubt_and_not_forgotten() -> None:
    file = file_of(model_of(READ, bash('cd "$X" && rm a.py')), f"{ROOT}/a.py")

    assert numbered_lines(file) == {}
    assert all_lines(file) == set(LINES)


def test_search_hits_are_of_the_folder_that_the_shell_stands_in() -> None:
    hits = ("Grep", {"pattern": "def", "path": f"{ROOT}/sub", "output_mode": "content", "-n": True}, "b.py:2:def b():")

    assert set(model_of(bash(f"cd {ROOT}/sub"), hits).files) == {f"{ROOT}/sub/b.py"}


def test_a_patch_in_a_script_is_of_the_folder_that_the_script_entered() -> None:
    patch = "apply_patch <<'E'\n*** Begin Patch\n*** Delete File: a.py\n*** End Patch\nE"

    model = model_of(READ, ("exec_command", {"cmd": f"cd sub && {patch}", "workdir": ROOT}, "Success."))

    assert f"{ROOT}/a.py" in model.files, "it is sub/a.py that was deleted"


@pytest.mark.parametrize(("path", "known"), [("sub/a.py", True), ("sub/b.py", False), ("a.py", False)])
def test_after_the_user_has_spoken_a_path_is_known_only_by_a_file_that_is(path: str, known: bool) -> None:
    """A session that was gone on with in a new process has a shell that stands where it first did, and nothing says
    so: `sub/a.py` is the known one in either folder, the others may be any."""
    work = work_of(
        conversation(
            user("Mend it."),
            call("c1", "Read", {"file_path": f"{ROOT}/sub/a.py"}),
            result("c1", cat_n(OTHER)),
            call("c2", "Bash", {"command": f"cd {ROOT}/sub && make"}),
            result("c2", "made"),
            agent("Made."),
            user("Go on."),
            call("c3", "Bash", {"command": f"cat {path}"}),
            result("c3", TEXT),
        )
    )

    assert set(work.files.files) == {f"{ROOT}/sub/a.py"}
    assert all_lines(work.files.files[f"{ROOT}/sub/a.py"]) == set(LINES if known else OTHER)


NOTIFICATION = """<task-notification><status>completed</status><summary>Agent "Mend it" finished</summary>
<result>Mended.</result></task-notification>"""


@pytest.mark.parametrize("spoken", [[], [user(NOTIFICATION)]], ids=["its result", "its notification"])
def test_an_agent_may_have_put_the_shell_back_to_where_it_began(spoken: list[dict[str, Any]]) -> None:
    """Agents of Claude Code share the shell and are put back to the folder of the project behind every command."""
    diff = "diff --git a/docs/a.md b/docs/a.md\n--- a/docs/a.md\n+++ b/docs/a.md\n@@ -1 +1 @@\n-one\n+two\n"
    entered = [call("c1", "Bash", {"command": f"cd {ROOT}/sub && make"}), result("c1", "made")]
    sent = [call("c2", "Agent", {"description": "Mend it", "prompt": "Do."}), result("c2", "Async agent launched")]
    steps = [*sent, *entered, *spoken] if spoken else [*entered, *sent]

    work = work_of(
        conversation(user("Go."), *steps, call("c3", "Bash", {"command": "git diff docs/a.md"}), result("c3", diff))
    )

    assert set(work.files.files) == {"docs/a.md"}


SOMETIMES = {
    "behind what may have failed unseen": "grep -q rows a.py && rm a.py; echo done",
    "in a branch": "if make; then echo made; rm a.py; fi",
    "in a group that runs if something fails": "make || { echo broken; rm a.py; }",
}


@pytest.mark.parametrize("script", SOMETIMES.values(), ids=SOMETIMES)
def test_what_a_script_may_not_have_reached_is_in_doubt(script: str) -> None:
    file = file_of(model_of(READ, bash(f"cd {ROOT} && {script}", "done")), f"{ROOT}/a.py")

    assert numbered_lines(file) == {}
    assert all_lines(file) == set(LINES)


@pytest.mark.parametrize("script", ["make && rm a.py", "make && rm a.py && make test | tail -3"])
def test_what_a_script_must_have_reached_to_go_well_was_done(script: str) -> None:
    assert f"{ROOT}/a.py" not in model_of(READ, bash(f"cd {ROOT} && {script}", "ok")).files
