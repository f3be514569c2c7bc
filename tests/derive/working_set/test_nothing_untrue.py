"""What a digest says about what it leaves out: marks that nothing can imitate, and no answer cut to another one."""

from pagefold.derive.entry import Standings, enter
from pagefold.derive.values import NEVER, SHIPPED, mentioned
from pagefold.derive.working_set.attention import Attention
from pagefold.derive.working_set.chunks import chunks_of
from pagefold.derive.working_set.digest import Material, working_set
from pagefold.derive.working_set.file_views import file_views
from pagefold.derive.working_set.names import Names
from pagefold.derive.working_set.parts import LEFT_OUT, Part, rendered
from pagefold.derive.working_set.quoted import quoted
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


def digest(messages: list[Message], wanted: str = "") -> str:
    """The digest of all messages, in which one name stands nowhere else."""
    standings, entries = Standings(), []
    for place, message in enumerate(messages):
        standings, entry = enter(standings, message, place, "o200k")
        entries.append(entry)
    known = {fact: mentioned(NEVER, 1, 2, own=False, user=False) for fact in facts_of(wanted)}
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


def test_what_git_says_of_its_state_is_quoted_whole() -> None:
    whole = "\n".join(filter(None, STATUS.split("\n")))

    assert f"from Bash git status:\n{whole}" in digest(asked("git status", STATUS), "rows_of_mill.py")
    assert whole not in digest(asked("git log --stat", STATUS), "rows_of_mill.py")


def test_a_long_state_of_git_is_not_quoted_in_part() -> None:
    long = STATUS + "\n\tnew: c.py" * 60

    assert "rows_of_mill.py" not in digest(asked("cd /srv && git status", long), "rows_of_mill.py")


def test_a_plan_that_the_user_refused_is_told_as_refused() -> None:
    refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected"
    plan = call("c1", "ExitPlanMode", {"plan": "Tear the mill down."})
    refused = digest(conversation(user("Plan it."), plan, result("c1", refusal), user("No.")))
    taken = digest(conversation(user("Plan it."), plan, result("c1", "ok"), user("Yes.")))

    assert "the plan as you last wrote it, which the user refused:\nTear the mill down." in refused
    assert "the plan as you last wrote it:\nTear the mill down." in taken


def test_pieces_of_a_file_without_numbers_are_told_as_such() -> None:
    lines = [f"total_{at} = amount_of_row({at})" for at in range(12)]
    text = FileText().shown(1, lines[:4], 0).shown(None, lines[5:9], 1).shown(None, lines[8:12], 2)
    file, now = KnownFile("a.py", text, touched=2), Attention(3, 9, frozenset(), "", [0, 1, 2, 3])

    (view,) = file_views({"a.py": file}, list(chunks_of({"a.py": file}, now)))
    assert view.title.startswith(
        "file a.py, as it is now: lines 1-4, pieces without certain numbers, which may overlap"
    )


def test_a_throw_away_copy_is_less_likely_needed_than_the_file_at_work() -> None:
    text = FileText().written("def total():\n    return 1\n\n\ndef rest():\n    return 2\n", 0)
    files = {path: KnownFile(path, text) for path in ("/tmp/a.py", "/srv/mill/a.py", "/tmp/own.py")}
    now = Attention(3, 9, frozenset(), "", [0, 1, 2, 3])
    need = {chunk.key: chunk.need for chunk in chunks_of(files, now)}

    assert need["/tmp/a.py"] < need["/srv/mill/a.py"] == need["/tmp/own.py"]
