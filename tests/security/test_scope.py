"""What one conversation, project or principal was shown, no other recalls, finds or is told of.

Finding S2 of the review: at 2ac9f8b a conversation behind the proxy recalled any page of the store by its handle.
"""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.adapters.library import Library
from pagefold.config import load, project_scope
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.page import handle_of, id_of
from pagefold.pages.recall import Recalled
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.search import SearchResults
from tests.security.attack import calling, post, provider, request_of, serving

SECRET = "the secret word of another conversation is xylophone"


def test_a_conversation_recalls_and_finds_nothing_of_another(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    put = ("store", "put", "secret.txt", "--history", "theirs", "--store", "s.sqlite3")
    subprocess.run([sys.executable, "-m", "pagefold", *put], cwd=tmp_path, check=True, capture_output=True)
    handle = handle_of(id_of(SECRET.encode()))

    with provider() as model, serving(tmp_path, model, "--store", "s.sqlite3", "--recall", "inline") as url:
        model.answers = [calling("context_recall", handle=handle), calling("context_search", query="xylophone")]
        assert post(url, request_of("fine"))[0] == 200

    recalled, found = (str(body["messages"][-1]) for body in model.bodies[1:3])
    assert f"There is no page {handle}" in recalled
    assert "No page speaks of" in found
    assert SECRET not in str(model.bodies)


def test_a_project_is_a_scope_of_its_own_unless_they_are_joined(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    (one / ".git").mkdir(parents=True)
    (one / "src").mkdir()
    other.mkdir()
    apart, joined = (load({"store.projects": how}, {}, tmp_path).settings for how in ("apart", "joined"))

    assert project_scope(apart, one / "src") == project_scope(apart, one) == StoreScope("", str(one.resolve()))
    assert project_scope(apart, other) == StoreScope("", str(other.resolve()))
    assert project_scope(joined, one) == project_scope(joined, other) == THIS_USER


def test_parts_of_a_conversation_share_their_project_and_a_history_follows_into_another() -> None:
    store = MemoryStore()
    with closing(Library(store.scoped(StoreScope("", "/a")))) as here:
        handle = handle_of(here.put(b"shown to the parent", history="parent"))
        asked = {"handle": handle}

        shown = ("shown to the parent", False)
        assert here.answer_call("context_recall", asked, budget=100, within="sub-agent") == shown
        there = Library(store.scoped(StoreScope("", "/b")))
        assert there.answer_call("context_recall", asked, budget=100, within="parent") == shown
        text, failed = there.answer_call("context_recall", asked, budget=100, within="sub-agent")
        assert failed
        assert text.startswith("There is no page")
        everything = Library(store)
        assert everything.answer_call("context_recall", asked, budget=100, within="other", alone=True)[1]


PRINCIPALS, PROJECTS, HISTORIES = ("", "ann"), ("/a", "/b"), ("h", "i")
PUTS = st.tuples(st.sampled_from(PRINCIPALS), st.sampled_from(PROJECTS), st.sampled_from(HISTORIES), st.integers(0, 5))


@settings(max_examples=60, deadline=None)
@given(st.lists(PUTS, max_size=12))
def test_whatever_two_principals_put_in_two_projects_nothing_crosses(puts: list[tuple[str, str, str, int]]) -> None:
    store = MemoryStore()
    own: dict[tuple[str, str], set[int]] = {}
    for principal, project, history, number in puts:
        view = Library(store.scoped(StoreScope(principal, project)))
        page = view.put(b"page number %d" % number, history=history, name=f"Read {principal}{project}.txt")
        view.store.pages.hold(page, history)
        own.setdefault((principal, project), set()).add(number)
    for principal in PRINCIPALS:
        for project in PROJECTS:
            view, numbers = Library(store.scoped(StoreScope(principal, project))), own.get((principal, project), set())
            recalled = [view.recall(handle_of(id_of(b"page number %d" % number))) for number in range(6)]
            assert {number for number in range(6) if isinstance(recalled[number], Recalled)} == numbers
            found = view.search("page number", limit=50)
            assert isinstance(found, SearchResults)
            assert {hit.page for hit in found.found} == {id_of(b"page number %d" % number) for number in numbers}
            assert {hit.name for hit in found.found} <= {f"Read {principal}{project}.txt"}
            status = view.status()
            assert (status.pages, status.held) == (len(numbers), len(numbers))
            listed = {page for history in HISTORIES for page in view.store.pages.listed(history)}
            assert listed == {hit.page for hit in found.found}
