"""Pages that read like memories: exchanges, the contents that list them, and the place of each in its conversation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.pages.contents import Contents, ContentsEntry, FileEntry, called, contents_of, contents_page, said
from pagefold.pages.exchange_page import exchange_page, result_in
from pagefold.pages.exchanges import Exchange, Work
from pagefold.pages.memory_store import MemoryPages
from pagefold.pages.outcome import CallEnding, Outcome
from pagefold.pages.page import Page
from pagefold.pages.recall_frame import PageFrame, frame_of
from tests.pages.files.sessions import call, cat_n, conversation, result, user, work_of

A = "/srv/mill/a.py"
TEXTS = st.text(max_size=40) | st.sampled_from(["[its result]", "x\n[its result]\ny", "[the call] x", "a\r\nb"])
ONE_LINE = st.text(max_size=30).map(lambda text: " ".join(text.split())) | st.just("pf-aaaaaaaaaa message 3, user: x")
HANDLES = st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=10, max_size=10).map("pf-{}".format)


def exchange(line: str = "") -> Exchange:
    ending = CallEnding(Outcome.FAILED, line) if line else CallEnding(Outcome.OK)
    return Exchange("Bash", "Bash make", "", 3, 4, "c1", ending)


@given(arguments=st.dictionaries(st.text(max_size=8), TEXTS | st.integers(), max_size=3), text=TEXTS)
def test_the_result_of_an_exchange_is_found_in_its_page_byte_for_byte(arguments: dict[str, object], text: str) -> None:
    assert result_in(exchange_page(exchange(), arguments, text).text) == text


def test_the_page_of_an_exchange_tells_the_call_and_its_outcome_before_the_result() -> None:
    page = exchange_page(
        exchange("make: no rule"), {"command": "make\ntest", "timeout": 3}, "Exit code 2\nmake: no rule"
    )

    assert page.name == "Bash make: FAILED: make: no rule"
    assert page.text.split("\n") == [
        "[the call] Bash",
        "    command:",
        "        make",
        "        test",
        "    timeout: 3",
        "[what became of it] FAILED: make: no rule",
        "[its result]",
        "Exit code 2",
        "make: no rule",
    ]


def test_a_text_that_is_no_exchange_is_its_own_result() -> None:
    assert result_in("a\n[its result]\nb") == "a\n[its result]\nb"


def kept(*pages: Page, history: str = "h") -> MemoryPages:
    store = MemoryPages()
    for page in pages:
        store.put(page.content, history=history, kind=page.kind, name=page.name)
    return store


@given(
    entries=st.lists(st.builds(ContentsEntry, st.integers(1, 99), ONE_LINE, HANDLES | st.just("")), max_size=5),
    files=st.lists(st.builds(FileEntry, HANDLES, ONE_LINE, st.integers(1, 99), st.just("lines 1-3")), max_size=3),
)
def test_contents_are_read_back_as_they_were_listed(entries: list[ContentsEntry], files: list[FileEntry]) -> None:
    page = contents_page(entries, files, "pf-bbbbbbbbbb", "pf-cccccccccc")

    read = contents_of(kept(page), "h")
    assert read.files == tuple(files)
    # An entry without a handle whose text happens to look like a file's line is no concern: it has nothing to recall.
    assert [entry for entry in read.entries if entry.handle] == [entry for entry in entries if entry.handle]
    assert contents_of(kept(page), "other") == Contents()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("go on", ("user: go on", True)),
        ("  go on\n", ("user: go on", True)),
        ("go\non", ("user: go on", False)),
        ("x" * 200, ("user: " + "x" * 159 + "…", False)),
    ],
)
def test_what_was_said_is_listed_on_one_line(text: str, expected: tuple[str, bool]) -> None:
    assert said(True, text) == expected


ENTRIES = [
    ContentsEntry(1, "user: mend the mill"),
    ContentsEntry(3, called("Read a.py: ok"), "pf-aaaaaaaaaa"),
    ContentsEntry(5, called("Bash make: FAILED: no rule"), "pf-bbbbbbbbbb"),
    ContentsEntry(6, "you: so it is", "pf-cccccccccc"),
]


def test_a_page_is_told_with_what_was_asked_and_what_came_before_and_after() -> None:
    store = kept(contents_page(ENTRIES, [], "", "pf-rrrrrrrrrr"))

    assert frame_of(store, "pf-bbbbbbbbbb", "h").text.split("\n") == [
        "[message 5 of this conversation, a call and its result; it was done for message 1, user: mend the mill]",
        "[before it: pf-aaaaaaaaaa message 3, called Read a.py: ok]",
        "[after it: pf-cccccccccc message 6, you: so it is]",
    ]
    assert "after it" not in frame_of(store, "pf-cccccccccc", "h").text
    assert "message 6 of this conversation, said by you" in frame_of(store, "pf-cccccccccc", "h").text


def test_a_page_of_another_history_or_of_none_is_told_as_it_is() -> None:
    store = kept(contents_page(ENTRIES, [], "", "pf-rrrrrrrrrr"))

    assert [frame_of(store, "pf-bbbbbbbbbb", history) for history in ("other", "", None)] == [PageFrame()] * 3
    assert frame_of(store, "pf-rrrrrrrrrr", "h") == PageFrame()


READ = [user("Mend."), call("c1", "Read", {"file_path": A}), result("c1", cat_n(["one", "two"]))]
EDIT = {"file_path": "a.py", "old_string": "two", "new_string": "three"}
SINCE = {
    "nothing": ([], "[nothing has changed it since, as far as is known]"),
    "an edit": (
        [call("c2", "Edit", EDIT), result("c2", "ok")],
        "[changed since: message 5, Edit a.py two three: ok]",
    ),
    "a failed edit": (
        [call("c2", "Edit", EDIT), result("c2", "<tool_use_error>no")],
        "[nothing has changed it since, as far as is known]",
    ),
    "a checkout": (
        [call("c2", "Bash", {"command": "git stash"}), result("c2", "")],
        "[changed since: `git stash` in message 5 may have changed it]",
    ),
    "a removal": (
        [call("c2", "Bash", {"command": f"rm {A}"}), result("c2", "")],
        "[it is no longer known under this name: it was removed or moved since]",
    ),
}


@pytest.mark.parametrize(("more", "expected"), SINCE.values(), ids=SINCE)
def test_a_file_is_told_with_what_became_of_it_since(more: list[dict[str, object]], expected: str) -> None:
    now = FileEntry("pf-ffffffffff", A, 3, "lines 1-2 of 2")
    store = kept(contents_page([], [FileEntry("pf-eeeeeeeeee", A, 1), now], "", "pf-rrrrrrrrrr"))

    def work() -> Work:
        return work_of(conversation(*READ, *more))

    assert frame_of(store, "pf-ffffffffff", "h", work).text.split("\n") == [
        f"[file {A} as it was known after message 3, lines 1-2 of 2]",
        expected,
        f"[the same file: pf-eeeeeeeeee file {A}, after message 1]",
    ]
