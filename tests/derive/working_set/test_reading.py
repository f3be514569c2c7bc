"""What is kept up message by message: in pieces as at once, and a long history costs no more than what is new of it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from pagefold.derive.entry import Entry
from pagefold.derive.values import KnownFacts
from pagefold.derive.working_set.reading import WorkReading, reading_of
from pagefold.derive.working_set.said import names_in
from pagefold.log import Log
from pagefold.pages.exchanges import Work
from tests.pages.files.sessions import agent, call, cat_n, conversation, result, user

TODO = {"todos": [{"content": "Grind the flour", "status": "pending"}]}
MESSAGES = conversation(
    {"role": "system", "content": "Be brief."},
    user("Mend the mill."),
    agent("I shall look."),
    call("r", "Read", {"file_path": "/srv/a.py"}),
    result("r", cat_n(["a = 1", "b = 2"])),
    call("t", "TodoWrite", TODO),
    result("t", "ok"),
    call("q", "AskUserQuestion", {"questions": [{"question": "Which?"}]}),
    result("q", "The second."),
    user("Go on."),
)
ENTRIES = [Entry(message, message, 10, place // 2) for place, message in enumerate(MESSAGES)]


@given(st.lists(st.integers(0, len(ENTRIES)), max_size=4))
def test_it_is_the_same_read_in_pieces_or_at_once(ends: list[int]) -> None:
    log, reading = Log(ENTRIES), WorkReading(Work())
    for end in [*sorted(ends), len(ENTRIES)]:
        reading = reading.through(log.upto(end))
    assert reading == reading_of(ENTRIES)
    assert reading.fixed == (0,)
    assert reading.plan.lines == ["[ ] Grind the flour"]
    assert [saying.place for saying in reading.said] == [1, 2, 8, 9]


def test_of_old_answers_only_the_newest_are_offered() -> None:
    said = conversation(user("Go."), *(agent(f"Answer {at}.") for at in range(500)), user("And?"))
    reading = reading_of([Entry(message, message, 1, at) for at, message in enumerate(said)])
    assert [saying.place for saying in reading.said] == [0, *range(101, 502)]


@given(st.lists(st.dictionaries(st.sampled_from("abcdefghijklmnop"), st.integers(1, 9), max_size=5), max_size=9))
def test_known_facts_are_as_they_were_said_last(steps: list[dict[str, int]]) -> None:
    known, plain = KnownFacts(), dict[str, object]()
    for place, step in enumerate(steps, 1):
        mentions = {fact: (turn, 0, 0, 1, False, turn) for fact, turn in step.items()}
        known = known.with_newer({**known.newer, **mentions}, place)
        plain |= mentions
    assert known.all == plain
    assert known.of("abx") == {fact: plain[fact] for fact in "ab" if fact in plain}


@given(st.text("ab.-_ /\n", max_size=12), st.text("ab.-_", min_size=1, max_size=4))
def test_a_name_is_found_where_it_stands_by_itself(text: str, name: str) -> None:
    stands = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None
    assert (name in names_in(text)) is stands
