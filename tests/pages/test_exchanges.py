"""Calls with what became of them, message by message."""

import json

import pytest

from pagefold.pages.exchanges import Work, label_of
from pagefold.pages.files.changes import Act
from pagefold.pages.outcome import Outcome
from tests.pages.files.sessions import (
    call,
    cat_n,
    conversation,
    file_of,
    numbered_lines,
    result,
    user,
    whole_text,
    work_of,
)

A = "/srv/mill/a.py"
EDIT = {"file_path": A, "old_string": "two", "new_string": "three"}
SESSION = conversation(
    user("Mend the mill."),
    call("c1", "Read", {"file_path": A}),
    result("c1", cat_n(["one", "two"])),
    call("c2", "Edit", EDIT),
    result("c2", "The user doesn't want to proceed with this tool use."),
    call("c3", "Edit", EDIT),
    result("c3", "<tool_use_error>File has not been read yet.</tool_use_error>"),
    call("c4", "Edit", EDIT),
    result("c4", "The file has been updated."),
    call("c5", "Bash", {"command": "make test", "description": "Run the tests"}),
    result("c5", "Exit code 2\nmake: *** No rule to make target 'test'."),
    call("c6", "TodoWrite", {"todos": [{"content": "mend", "status": "pending"}]}),
    result("c6", "ok"),
)


def test_every_call_has_its_outcome_and_what_it_did_to_files() -> None:
    work = work_of(SESSION)

    assert [(one.call_id, one.ending.outcome, one.act) for one in work.exchanges] == [
        ("c1", Outcome.OK, Act.SHOWED),
        ("c2", Outcome.REFUSED, Act.OTHER),
        ("c3", Outcome.FAILED, Act.OTHER),
        ("c4", Outcome.OK, Act.CHANGED),
        ("c5", Outcome.FAILED, Act.OTHER),
        ("c6", Outcome.OK, Act.OTHER),
    ]
    assert [(one.called, one.answered) for one in work.exchanges] == [(at, at + 1) for at in range(1, 13, 2)]
    assert work.exchanges[4].purpose == "Run the tests"
    assert work.exchanges[4].ending.line == "make: *** No rule to make target 'test'."
    assert work.plan == 11
    assert not work.open
    assert whole_text(file_of(work.files, A)) == "one\nthree\n"


def test_the_same_messages_give_the_same_work() -> None:
    assert work_of(SESSION) == work_of(SESSION)


@pytest.mark.parametrize("cut", range(len(SESSION) + 1))
def test_a_step_leaves_the_work_before_it_as_it_was(cut: int) -> None:
    before, again = work_of(SESSION[:cut]), work_of(SESSION[:cut])
    going_on = before
    for place, message in enumerate(SESSION[cut:], cut):
        going_on = going_on.after(message, place)

    assert before == again
    assert before.files == again.files
    assert going_on == work_of(SESSION)


def test_two_histories_that_part_do_not_see_one_another() -> None:
    start = work_of(SESSION[:8])
    ok = start.after(SESSION[8], 8)
    refused = start.after(conversation(result("c4", "User rejected the edit."))[0], 8)

    assert whole_text(file_of(ok.files, A)) == "one\nthree\n"
    assert whole_text(file_of(refused.files, A)) == "one\ntwo\n"
    assert [one.ending.outcome for one in refused.exchanges][-1] is Outcome.REFUSED


def test_results_in_another_order_than_their_calls_find_them() -> None:
    messages = conversation(
        call("r", "Read", {"file_path": A}),
        call("e", "Bash", {"command": "ls"}),
        result("e", "a.py"),
        result("r", cat_n(["one"])),
    )

    assert [(one.call_id, one.called) for one in work_of(messages).exchanges] == [("e", 1), ("r", 0)]
    assert Work() == Work()


def test_a_patch_is_known_by_the_files_it_changes() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-old\n+new\n*** Add File: src/b.py\n+text\n*** End Patch\n"
    work = work_of(conversation(user("Mend."), call("c1", "apply_patch", {"input": patch}), result("c1", "Success.")))

    assert [exchange.label for exchange in work.exchanges] == ["apply_patch src/a.py src/b.py"]


@pytest.mark.parametrize(
    ("script", "printed", "told"),
    [
        ("git fetch origin main", "error: cannot open '.git/FETCH_HEAD'", Outcome.UNCLEAR),
        ("python3 mill.py", "Traceback (most recent call last):\n  File 'a'\nValueError: 1", Outcome.UNCLEAR),
        ("git fetch origin main", "From https://example.com/mill", Outcome.OK),
        ("rg -n error src", "error: a line of a file", Outcome.OK),
    ],
)
def test_a_program_whose_shell_printed_errors_is_not_called_ok(script: str, printed: str, told: Outcome) -> None:
    code = f"const r = await tools.exec_command({json.dumps({'cmd': script})}); text(r.output);"
    answer = f"Script completed\nWall time 0.1 seconds\nOutput:\n\n{printed}\n"
    work = work_of(conversation(user("Go."), call("c1", "exec", {"input": code}), result("c1", answer)))

    assert work.exchanges[-1].ending.outcome is told


@pytest.mark.parametrize(("prompt", "certain"), [("Trim the comments.", False), ("Read-only review.", True)])
def test_what_was_read_while_an_agent_was_at_work_is_in_doubt_when_it_was_waited_for(
    prompt: str, certain: bool
) -> None:
    ended = "<retrieval_status>success</retrieval_status>\n<task_type>local_agent</task_type>\n<output>\nDone."
    work = work_of(
        conversation(
            user("Mend the mill."),
            call("c1", "Task", {"description": "Trim", "prompt": prompt, "run_in_background": True}),
            result("c1", "Async agent launched successfully."),
            call("c2", "Read", {"file_path": A}),
            result("c2", cat_n(["one", "two"])),
            call("c3", "TaskOutput", {"task_id": "a1"}),
            result("c3", ended),
        )
    )

    assert bool(numbered_lines(file_of(work.files, A))) is certain
    assert work.exchanges[2].delegated


def test_what_a_command_in_the_background_printed_is_no_agents_report() -> None:
    ended = "<retrieval_status>success</retrieval_status>\n<task_type>local_bash</task_type>\n<output>\nDone."
    work = work_of(conversation(call("c1", "TaskOutput", {"task_id": "b1"}), result("c1", ended)))

    assert not work.exchanges[0].delegated


def test_a_patch_in_a_program_is_named_by_its_files() -> None:
    """In a string literal of a program the line breaks of a patch are escaped."""
    patch = "*** Begin Patch\n*** Update File: /srv/mill/a.py\n@@\n-two\n+three\n*** End Patch\n"
    program = f"const patch = {json.dumps(patch)};\ntext(await tools.apply_patch(patch));\n"
    work = work_of(
        conversation(
            user("Mend the mill."),
            call("c1", "exec", {"input": program}),
            result("c1", "Script completed\nWall time 0.1 seconds\nOutput:\n\n{}"),
        )
    )

    assert work.exchanges[0].line == "exec /srv/mill/a.py: ok"


def test_an_agent_is_told_by_what_it_is_for() -> None:
    prompt = "Mill: /srv/mill. " + "We are sweeping all rooms of the mill, one batch for each agent. " * 4
    sent = [{"description": f"Sweep batch {at}", "prompt": f"{prompt} Batch {at}."} for at in range(2)]
    steps = [message for at in range(2) for message in (call(f"c{at}", "Agent", sent[at]), result(f"c{at}", "Swept."))]

    work = work_of(conversation(user("Sweep it."), *steps))

    assert [one.line for one in work.exchanges] == ["Agent Sweep batch 0: ok", "Agent Sweep batch 1: ok"]


@pytest.mark.parametrize(
    ("name", "arguments", "label"),
    [
        ("Bash", {"command": "make test | tail -5", "timeout": 60_000}, "Bash make test | tail -5"),
        (
            "exec_command",
            {"cmd": "rg -n wheel src", "workdir": "/srv/mill", "yield_time_ms": 30_000},
            "exec_command rg -n wheel src (in /srv/mill)",
        ),
        ("Read", {"file_path": "/srv/mill/a.py", "offset": 3, "limit": 1}, "Read /srv/mill/a.py 3 1"),
    ],
)
def test_what_stands_beside_a_script_does_not_pass_for_a_part_of_it(
    name: str, arguments: dict[str, object], label: str
) -> None:
    assert label_of(name, arguments) == label
