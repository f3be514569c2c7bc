"""What the work is about now decides which lines of files stand in a digest."""

import pytest

from pagefold.derive.entry import Entry
from pagefold.derive.working_set.attention import Attention, attention_of
from pagefold.derive.working_set.chunks import chunks_of
from pagefold.derive.working_set.reading import reading_of
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.text import FileText
from pagefold.wire.message import Message
from tests.pages.files.sessions import agent, call, conversation, result, user


def attention(messages: list[Message], cut: int) -> Attention:
    entries = [Entry(message, message, len(message.text) // 4, place) for place, message in enumerate(messages)]
    return attention_of(reading_of(entries), entries, cut, len(entries))


def step(name: str, status: str) -> dict[str, str]:
    return {"content": f"mend {name}", "status": status, "activeForm": "mending"}


SESSION = conversation(
    user("Mend first_ask."),
    agent("I mend first_answer."),
    user("Then second_ask."),
    call("c1", "Agent", {"description": "look", "prompt": "Look at it."}),
    result("c1", "The fault is in render.go:95, cache_key_of_template." + " It was looked for." * 20),
    call("c4", "TodoWrite", {"todos": [step("done_step", "completed"), step("open_step", "pending")]}),
    result("c4", "Todos have been modified."),
    agent("I saw second_answer."),
    call("c2", "Bash", {"command": "make"}),
    result("c2", "old_output_of_make"),
    agent("I saw third_answer."),
    user("Now last_ask."),
    agent("I make last_answer."),
    call("c3", "Bash", {"command": "make"}),
    result("c3", "mill.go:12: undefined row_of_ledger"),
)


def test_it_is_what_was_said_reported_and_shown_last() -> None:
    now = attention(SESSION, 12)

    about = {"second_ask", "last_ask", "last_answer", "third_answer", "cache_key_of_template", "row_of_ledger"}
    assert about | {"open_step"} <= now.words
    assert now.words.isdisjoint({"first_ask", "first_answer", "old_output_of_make", "done_step"})
    assert "render.go" in now.text
    assert "mill.go" in now.text


LINES = [f"total_{at} = amount({at})" for at in range(20)]
RARE = ["def cache_key_of_template(text):", "    return text", *LINES]


@pytest.mark.parametrize(
    ("about", "first"),
    [("cache_key_of_template", "b.py"), ("see a.py:3", "a.py"), ("see b.py", "b.py")],
)
def test_lines_that_the_work_is_about_are_more_likely_needed(about: str, first: str) -> None:
    files = {
        "a.py": KnownFile("a.py", FileText().written("\n".join(LINES), 0)),
        "b.py": KnownFile("b.py", FileText().written("\n".join(RARE), 0)),
    }
    none = Attention(3, 9, frozenset(), "", [0, 1, 2, 3])
    now = Attention(3, 9, frozenset(about.split()), about, [0, 1, 2, 3])
    before = {chunk.key: chunk.need for chunk in chunks_of(files, none)}
    after = {chunk.key: chunk.need for chunk in chunks_of(files, now)}

    assert after[first] > before[first]
    assert max(after, key=lambda key: after[key] / before[key]) == first


def test_a_name_that_many_chunks_hold_says_little() -> None:
    now = Attention(3, 9, frozenset({"total_of_rows"}), "total_of_rows", [0, 1, 2, 3])
    text = FileText().written("def total_of_rows():\n    return 1\n    pass\n", 0)
    alone = next(chunks_of({"a.py": KnownFile("a.py", text)}, now)).need
    many = next(chunks_of({f"{at}.py": KnownFile(f"{at}.py", text) for at in range(9)}, now)).need

    assert many < alone
