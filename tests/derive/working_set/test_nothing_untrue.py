"""What a digest says about what it leaves out: marks that nothing can imitate, and no answer cut to another one."""

import pytest

from pagefold.derive.entry import Standings, enter
from pagefold.derive.values import NEVER, SHIPPED, mentioned
from pagefold.derive.working_set.attention import Attention
from pagefold.derive.working_set.chunks import Chunk, chunks_of
from pagefold.derive.working_set.digest import Material, working_set
from pagefold.derive.working_set.file_views import doubt_about, file_views
from pagefold.derive.working_set.names import Names
from pagefold.derive.working_set.parts import LEFT_OUT, Part, rendered
from pagefold.derive.working_set.quoted import ends_of, quoted
from pagefold.derive.working_set.reading import reading_of
from pagefold.derive.working_set.record import Record
from pagefold.pages.facts import facts_of
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.text import FileText
from pagefold.wire.message import Message
from tests.pages.files.sessions import agent, call, conversation, result, user

RECORD = Record(0, "pf-aaaaaaaaaa", "pf-bbbbbbbbbb")
STATUS = (
    "On branch mill\nChanges not staged for commit:\n\tmodified: rows_of_mill.py\n\tmodified: b.py\n\nno changes added"
)


def digest(messages: list[Message], wanted: str = "", place: int = 2) -> str:
    """The digest of all messages, in which one name stands nowhere else than at a place."""
    standings, entries = Standings(), []
    for at, message in enumerate(messages):
        standings, entry = enter(standings, message, at, "o200k")
        entries.append(entry)
    known = {fact: mentioned(NEVER, 1, place, own=False, user=False) for fact in facts_of(wanted)}
    material = Material(entries, len(entries), len(entries), reading_of(entries))
    made = working_set(material, Names(known, SHIPPED, 1e-9, 10), 8_000)
    return rendered(made.parts, RECORD, len(entries))


def asked(script: str, printed: str) -> list[Message]:
    return conversation(
        user("Mend it."), call("c1", "Bash", {"command": script}), result("c1", printed), agent("Done."), user("Go on.")
    )


def test_a_cut_within_a_line_is_marked_by_what_no_text_can_hold() -> None:
    said = [(f"keep {LEFT_OUT}… this", 1, None, 0), ("and that", 1, None, 2)]
    text = rendered((Part("user, message 1, in part:", tuple(quoted(said)), cuts=True),), RECORD, 1)
    tag = text[: text.index("]") + 1]

    assert text.split("\n")[-1] == f"keep … this {tag} … and that"


def test_a_line_that_is_quoted_in_part_is_marked_at_its_ends() -> None:
    lines = [("head of it,", 0, None, 0), ("its midst,", 0, None, 1), ("its tail", 0, None, 2), ("another", 1, None, 0)]
    ends = ends_of(lines)

    assert list(quoted(lines, ends)) == ["head of it,its midst,its tail", "another"]
    assert list(quoted(lines[:1], ends)) == [f"head of it, {LEFT_OUT}"]
    assert list(quoted(lines[1:2], ends)) == [f"{LEFT_OUT} its midst, {LEFT_OUT}"]
    assert list(quoted(lines[2:], ends)) == [f"{LEFT_OUT} its tail", "another"]


def test_what_git_says_of_its_state_is_quoted_whole() -> None:
    whole = "\n".join(filter(None, STATUS.split("\n")))

    assert f"from Bash git status:\n{whole}" in digest(asked("git status", STATUS), "rows_of_mill.py")
    assert whole not in digest(asked("git log --stat", STATUS), "rows_of_mill.py")


def test_a_line_is_quoted_with_the_heading_that_says_of_what_it_is() -> None:
    rooms = [f"===== room {at} =====\nthe_door_{at} is shut\nthe_stone_{at} turns\nnothing else" for at in range(6)]
    text = digest(asked("for room in *; do look $room; done", "\n".join(rooms)), "the_stone_3")

    assert "===== room 3 =====\nthe_stone_3 turns" in text
    assert "===== room 2 =====" not in text


def test_a_call_about_a_file_is_not_quoted_as_if_it_had_no_command() -> None:
    script = f"rg -n 'wheel|stone' {'rooms_of_it/' * 20}a.py"
    messages = conversation(
        user("Mend it."),
        call("c1", "exec_command", {"cmd": script, "workdir": "/srv/the_mill_2"}),
        result("c1", "3:wheel = 1"),
        agent("Done."),
        user("Go on."),
    )

    text = digest(messages, "the_mill_2", 1)
    assert ", single lines:\nexec_command /srv/the_mill_2" in text


def test_a_long_state_of_git_is_not_quoted_in_part() -> None:
    long = STATUS + "\n\tnew: c.py" * 60

    assert "rows_of_mill.py" not in digest(asked("cd /srv && git status | cat", long), "rows_of_mill.py")


@pytest.mark.parametrize("flag", ["--short", "-s", "-bs", "--porcelain=v2"])
def test_lines_of_a_state_without_headings_stand_for_themselves(flag: str) -> None:
    state = "\n".join([*(f"?? mill_{at}/" for at in range(90)), "?? rows_of_mill.py"])
    said = digest(asked(f"git status {flag} && ls | head -2", state), "rows_of_mill.py")

    assert ", single lines:\n?? rows_of_mill.py" in said
    assert "rows_of_mill.py" not in digest(asked(f"git status && ls {flag}", state), "rows_of_mill.py")


def test_a_plan_that_the_user_refused_is_told_as_refused() -> None:
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    plan = call("c1", "ExitPlanMode", {"plan": "Tear the mill down."})
    refused = digest(conversation(user("Plan it."), plan, result("c1", refusal), user("No.")))
    taken = digest(conversation(user("Plan it."), plan, result("c1", "ok"), user("Yes.")))

    assert "the plan as you last wrote it, which the user refused:\nTear the mill down." in refused
    assert "your plan, which the user approved, message 3:\nTear the mill down." in taken
    assert "as you last wrote it" not in taken


def test_an_approved_plan_stands_whole_beside_the_list_that_was_made_of_it() -> None:
    told = digest(
        conversation(
            user("Plan it."),
            call("c1", "ExitPlanMode", {"plan": "# Plan\n\n1. Tear down the wheel."}),
            result("c1", "User has approved your plan.\n\n## Approved Plan:\n# Plan\n\n1. Mend the wheel."),
            call("c2", "TodoWrite", {"todos": [{"content": "Wheel", "status": "pending"}]}),
            result("c2", "ok"),
            user("Go on."),
        )
    )

    assert "approved, message 3:\n# Plan\n\n1. Mend the wheel." in told
    assert "as you last wrote it:\n[ ] Wheel" in told
    assert "Tear down" not in told


PROPOSED = (
    "This is what I would do:\n\n- Grind the flour first.\n- Sift it twice.\n- Keep the bran for the horses.\n" * 4
)


@pytest.mark.parametrize(
    ("asked_for", "whole"),
    [("yes", True), ("Go ahead, but sift it once.", True), ("No, start over.", False), ("What is bran?", False)],
)
def test_a_proposal_that_the_user_took_up_stays_whole_however_old(asked_for: str, *, whole: bool) -> None:
    later = [message for at in range(4) for message in (agent(f"Bag {at} is ground."), user(f"And bag {at + 1}?"))]
    told = digest(conversation(user("How?"), agent(PROPOSED), user(asked_for), *later))

    assert (PROPOSED.strip() in told) is whole


def test_pieces_of_a_file_without_numbers_are_told_as_such() -> None:
    lines = [f"total_{at} = amount_of_row({at})" for at in range(12)]
    text = FileText().shown(1, lines[:4], 0).shown(None, lines[5:9], 1).shown(None, lines[8:12], 2)
    file, now = KnownFile("a.py", text, touched=2), Attention(3, 9, frozenset(), "", [0, 1, 2, 3])

    (view,) = file_views({"a.py": file}, list(chunks_of({"a.py": file}, now)))
    assert view.title.startswith(
        "file a.py, as it is now: lines 1-4, pieces without certain numbers, which may overlap"
    )


def test_lines_without_numbers_that_are_cut_at_an_end_are_marked() -> None:
    lines = tuple(f"total_{at} = amount_of_row({at})" for at in range(9))
    sure = FileText().shown(1, lines, 0)
    unsure = sure.doubted("make", 1)
    chunks = [Chunk("a.py", 0, begin, begin + 3, 10, 1.0, 0, lines[begin : begin + 3]) for begin in (0, 3, 6)]

    def shown(text: FileText, *which: int) -> tuple[str | None, ...]:
        (view,) = file_views({"a.py": KnownFile("a.py", text)}, [chunks[at] for at in which])
        return view.lines

    assert shown(unsure, 0) == (*lines[:3], None)
    assert shown(unsure, 1) == (None, *lines[3:6], None)
    assert shown(unsure, 0, 2) == (*lines[:3], None, *lines[6:])
    assert shown(unsure, 0, 1, 2) == lines
    assert None not in shown(sure, 1)  # its title says which lines these are


def test_a_throw_away_copy_is_less_likely_needed_than_the_file_at_work() -> None:
    text = FileText().written("def total():\n    return 1\n\n\ndef rest():\n    return 2\n", 0)
    files = {path: KnownFile(path, text) for path in ("/tmp/a.py", "/srv/mill/a.py", "/tmp/own.py")}
    now = Attention(3, 9, frozenset(), "", [0, 1, 2, 3])
    need = {chunk.key: chunk.need for chunk in chunks_of(files, now)}

    assert need["/tmp/a.py"] < need["/srv/mill/a.py"] == need["/tmp/own.py"]


def test_files_that_were_deleted_are_told_as_such_and_shown_nowhere() -> None:
    lines = "\n".join(f"{number}\tdef total_{number}():" for number in range(1, 9))
    told = digest(
        conversation(
            user("Mend it."),
            call("c1", "Read", {"file_path": "/srv/mill/old.py"}),
            result("c1", lines),
            call("c2", "Bash", {"command": "rm /srv/mill/old.py && make"}),
            result("c2", "Exit code 2\nmake: *** [all] Error 1"),
            agent("It is gone."),
            user("Go on."),
        )
    )

    gone = "files that are known to be deleted or moved away; there may be others:"
    assert f"{gone}\n/srv/mill/old.py (message 5)" in told
    assert "def total_" not in told


def test_a_file_in_doubt_is_told_as_changed_where_this_session_changed_it() -> None:
    edit = {"file_path": "/srv/mill/a.py", "old_string": "wheel_one = 1", "new_string": "wheel_one = 2"}
    text = digest(
        conversation(
            user("Mend the mill."),
            call("c1", "Write", {"file_path": "/srv/mill/a.py", "content": "wheel_one = 1\nstone_one = 2\nsack = 3\n"}),
            result("c1", "File created successfully"),
            call("c2", "Edit", edit),
            result("c2", "The file has been updated."),
            call("c3", "Agent", {"description": "Sift", "prompt": "Sift it."}),
            result("c3", "Sifted."),
            *(agent(f"Step {step} is done.") for step in range(6)),
        )
    )
    assert "file /srv/mill/a.py, changed in this session, lines, seen at least in part before `the agent" in text


def test_a_file_that_may_have_been_removed_is_told_so() -> None:
    text = FileText().shown(1, ["def total_of_rows():"] * 8, 0)

    assert doubt_about(text.doubted("rm $F", 1), 0) == "`rm $F`, which may have changed or removed it"
    assert doubt_about(text.doubted("git pull", 1), 0) == "`git pull`, which may have changed it"


def test_the_state_of_the_working_copy_is_told_with_what_may_have_changed_since() -> None:
    status = "On branch mend\nUntracked files:\n\tnotes.txt\n"
    asking = [call("c1", "Bash", {"command": "git status"}), result("c1", status)]
    writing = [call("c2", "Write", {"file_path": "/srv/a.py", "content": "x"}), result("c2", "ok")]

    now = digest(conversation(user("Mend it."), *asking, user("Go on.")))
    later = digest(conversation(user("Mend it."), *asking, *writing, user("Go on.")))

    told = "from git, what it last told of the working copy:\non branch mend (message 3)"
    assert f"{told}; not committed: untracked notes.txt (message 3)" in now
    changed = ", and what may have changed since message 5"
    assert f"{told}; not committed: untracked notes.txt (message 3){changed}\n" in f"{later}\n"


def test_what_the_user_typed_behind_a_command_is_told_as_the_users() -> None:
    typed = (
        "<command-name>/{0}</command-name>\n<command-message>{0}</command-message>\n<command-args>{1}</command-args>"
    )
    text = digest(
        conversation(
            user("Mend the mill."),
            user(typed.format("compact", "Keep the plan of the wheel.")),
            agent("I do."),
            user(typed.format("clear", "")),
            user("Go on."),
        )
    )
    client = typed.format("clear", "")

    assert "user, behind /compact, message 2:\nKeep the plan of the wheel.\n[" in text
    assert f"put in by the client, not by the user, message 4:\n{client}\n[" in text


EXPANDED = "# Grind\n\n" + "\n".join(f"{step}. Look at the stone of room {step}." for step in range(60))
CALLED = "<command-message>grind</command-message>\n<command-name>/grind</command-name>"
GIVEN = f"{CALLED}\n<command-args>rye</command-args>"


@pytest.mark.parametrize(
    ("given", "titles"),
    [
        (
            [user(GIVEN), user(EXPANDED)],
            ["user, behind /grind, message 2", "put in by the client, not by the user, message 3"],
        ),
        ([user(CALLED), user(EXPANDED)], ["put in by the client, not by the user, message 3"]),
        (
            [user(f"{GIVEN}\n{EXPANDED}")],
            ["user, behind /grind, message 2", "put in by the client, not by the user, message 2"],
        ),
    ],
)
def test_the_text_of_a_command_is_not_told_as_the_users(given: list[dict[str, object]], titles: list[str]) -> None:
    text = digest(conversation(user("Mend the mill."), *given, agent("I grind."), user("Go on.")))

    assert all(title in text for title in titles)
    assert f"not by the user, message {1 + len(given)}:\n# Grind" in text
    assert "] user, message 2:" not in text
    assert "] user, message 3:" not in text


def test_the_instructions_of_a_project_stand_whole_as_what_the_client_put_in() -> None:
    text = f"# AGENTS.md instructions for /srv/mill\n{EXPANDED}"
    later = [turn for at in range(6) for turn in (agent(f"I looked at stone {at} now."), user("Go on."))]

    assert f"put in by the client, not by the user, message 1:\n{text}\n" in digest(conversation(user(text), *later))
