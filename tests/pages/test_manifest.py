"""Names of sessions and pages in object storage, and the manifest: any name is safe, any two are apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.errors import WireError
from pagefold.pages.kinds import PageKind
from pagefold.pages.manifest import (
    ManifestEntry,
    ManifestPart,
    folder_of,
    handle_folder,
    in_order,
    named_by,
    page_key,
    parse_part,
    render_part,
    session_of,
)
from pagefold.pages.page import handle_of, id_of

anything = st.text(st.characters(codec=None), min_size=1, max_size=120)


def entry(content: bytes, place: int, *, first_put: float = 0.0, name: str = "") -> ManifestEntry:
    return ManifestEntry(id_of(content), PageKind.EVIDENCE, name, len(content), first_put, place)


@given(first=anything, second=anything)
def test_a_session_of_any_name_has_one_folder_of_its_own(first: str, second: str) -> None:
    folder = folder_of("history/", first)

    assert folder.startswith("history/")
    assert folder.count("/") == 1
    assert "." not in folder
    assert folder.isascii()
    assert len(folder) <= 220
    assert session_of(folder) in (first, None)
    assert (folder == folder_of("history/", second)) == (first == second)


def test_a_session_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        folder_of("history/", "")


@given(contents=st.lists(st.binary(max_size=8), min_size=1, max_size=6, unique=True))
def test_one_folder_leads_from_a_handle_to_its_page(contents: list[bytes]) -> None:
    keys = [page_key("f", id_of(content)) for content in contents]
    for content in contents:
        page = id_of(content)
        folder = handle_folder("f", handle_of(page))
        assert folder is not None
        assert page_key("f", page).startswith(folder + "/")
        assert named_by(handle_of(page), keys) == [page]
    assert handle_folder("f", "no handle") is None
    assert named_by("no handle", keys) == []


@given(
    session=anything,
    names=st.lists(st.tuples(st.sampled_from([None, *PageKind]), anything, st.floats(0, 1e12)), max_size=5),
)
def test_a_part_comes_back_as_it_was(session: str, names: list[tuple[PageKind | None, str, float]]) -> None:
    entries = tuple(
        ManifestEntry(id_of(b"%d" % n), kind, name, n, first_put, n) for n, (kind, name, first_put) in enumerate(names)
    )
    part = ManifestPart(session, "store", entries)

    assert parse_part(render_part(part)) == part


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"pagefold": 2, "session": "s", "store": "x"}', b'{"pagefold": 1}', b"\xff"],
)
def test_what_is_no_manifest_is_refused(content: bytes) -> None:
    with pytest.raises(WireError):
        parse_part(content)


def test_a_page_id_that_is_none_is_refused_so_that_no_key_leaves_its_folder() -> None:
    part = render_part(ManifestPart("s", "x", (entry(b"a", 1),))).replace(id_of(b"a").encode(), b"../../other")
    with pytest.raises(WireError):
        parse_part(part)


def test_pages_come_in_the_order_of_their_store_each_once_and_the_earlier_store_first() -> None:
    late = ManifestPart("s", "late", (entry(b"x", 1, first_put=50.0), entry(b"b", 2, first_put=51.0, name="second")))
    early = [
        ManifestPart("s", "early", (entry(b"c", 3, first_put=2.0), entry(b"a", 1, first_put=9.0))),
        ManifestPart("s", "early", (entry(b"b", 2, first_put=9.0, name="first"), entry(b"a", 1, first_put=9.0))),
    ]

    found = in_order([late, *early])

    assert [one.page for one in found] == [id_of(one) for one in (b"a", b"b", b"c", b"x")]
    assert found[1].name == "first"
