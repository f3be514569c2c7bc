import gc
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pagefold.pages.history import History, Showing
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import Page, PageId, id_of

places = st.sampled_from([(kind, level) for kind in PageKind for level in kind.degradation_path()])
# Digits and colons, to look for two lists of parts that spell the same bytes.
parts = st.text("1:a", max_size=3) | st.text(st.characters(exclude_categories=()), max_size=2)
showings = st.builds(
    lambda page, place, codec, name, call: Showing(PageId(page), place[0], place[1], codec, name, call),
    parts, places, parts, parts, parts,
)  # fmt: skip


def showing(content: bytes, **more: str) -> Showing:
    return Showing(id_of(content), PageKind.EVIDENCE, **more)  # type: ignore[arg-type]


def history_of(shown: list[Showing]) -> History:
    history = History()
    for one in shown:
        history = history.shown(one)
    return history


def alive() -> int:
    gc.collect()
    return sum(type(one) is History for one in gc.get_objects())


def test_an_empty_history_has_no_showings_and_an_id_of_its_own() -> None:
    assert list(History()) == []
    assert len(History()) == 0
    assert History() == History()
    assert History().id != History().shown(showing(b"a")).id


@given(st.lists(showings, max_size=6))
def test_a_history_gives_its_showings_back_in_order(shown: list[Showing]) -> None:
    history = history_of(shown)

    assert list(history) == shown
    assert len(history) == len(shown)


@given(st.lists(showings, max_size=4), showings)
def test_appending_leaves_the_history_before_as_it_was(shown: list[Showing], one_more: Showing) -> None:
    history = history_of(shown)
    was = history.id

    longer = history.shown(one_more)

    assert (history.id, list(history)) == (was, shown)
    assert list(longer) == [*shown, one_more]
    assert longer != history


def test_a_history_cannot_be_changed_in_place() -> None:
    history = History().shown(showing(b"a"))

    with pytest.raises(FrozenInstanceError):
        history.newest = None  # type: ignore[misc]


def test_a_fork_shares_its_beginning_and_sees_nothing_of_its_sibling() -> None:
    trunk = history_of([showing(b"a"), showing(b"b")])

    left, right = trunk.shown(showing(b"left")), trunk.shown(showing(b"right"))
    left = left.shown(showing(b"more"))

    assert list(left) == [*trunk, showing(b"left"), showing(b"more")]
    assert list(right) == [*trunk, showing(b"right")]
    assert len({trunk, left, right}) == 3


@given(st.lists(showings, max_size=3), st.lists(showings, max_size=3))
@example([showing(b"a", codec="1", name="")], [showing(b"a", codec="", name="1")])
@example([showing(b"a", codec="x1:y", name="z")], [showing(b"a", codec="x", name="y1:z")])
@example([showing(b"a", name="\ud83d\ude00")], [showing(b"a", name="\U0001f600")])
@example([showing(b"a", name="ab")], [showing(b"a", call_id="ab")])
def test_two_histories_have_one_id_if_and_only_if_they_show_the_same(one: list[Showing], other: list[Showing]) -> None:
    left, right = history_of(one), history_of(other)

    assert (left.id == right.id) == (left == right) == (one == other)
    assert one != other or hash(left) == hash(right)


@given(st.lists(showings, min_size=1, max_size=5))
def test_the_same_showings_made_apart_give_the_same_id(shown: list[Showing]) -> None:
    assert history_of(shown).id == history_of(list(shown)).id
    assert history_of(shown).id != history_of(shown[:-1]).id


def test_a_page_is_shown_with_its_name_at_the_level_and_for_the_call_given() -> None:
    page = Page.of(PageKind.EVIDENCE, "text", "read a.py")

    history = History().shows(page, level=ResidencyLevel.POINTER, call_id="call_1")

    expected = Showing(page.id, PageKind.EVIDENCE, ResidencyLevel.POINTER, "", "read a.py", "call_1")
    assert list(history) == [expected]


@pytest.mark.parametrize("kind", PageKind)
@pytest.mark.parametrize("level", ResidencyLevel)
def test_a_showing_outside_its_kinds_levels_is_refused_with_a_reason(kind: PageKind, level: ResidencyLevel) -> None:
    if kind.allows(level):
        assert Showing(id_of(b""), kind, level).level is level
    else:
        with pytest.raises(ValueError, match=f"a {kind} page may not stand at {level}"):
            Showing(id_of(b""), kind, level)


def test_a_constraint_is_never_shown_as_a_pointer() -> None:
    page = Page.of(PageKind.CONSTRAINT, "never delete the production database")

    with pytest.raises(ValueError, match="may not stand at pointer: its levels are full, structured"):
        History().shows(page, level=ResidencyLevel.POINTER)


def test_a_history_of_a_hundred_thousand_showings_is_walked_and_freed_without_recursion() -> None:
    before = alive()
    history = history_of([showing(b"again")] * 100_000)

    assert len(history) == sum(1 for _ in history) == 100_000
    assert len(repr(history)) < 1000

    del history
    assert alive() == before
