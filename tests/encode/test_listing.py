import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode.codecs.listing import ListingCodec

LISTING = ListingCodec()


def test_what_a_listing_says_of_every_file_is_said_once() -> None:
    text = (
        "total 196\n"
        "drwxr-xr-x 12 root root  4096 Nov 22  2024 .\n"
        "-rw-r--r--  1 root root    96 Nov 22  2024 setup.cfg\n"
        "-rw-r--r--  1 root root 20482 Nov 22  2024 12 Jan 10:00 notes\n"
        "-rw-r--r--  1 ada  root     7 Nov 22  2024 own\n"
        "-rw-r--r--  1 root root     7 Nov 23 10:15 README.md\n"
    )
    shown = (
        '[ls -l: owner and group "root root" left out, "-rw-r--r--  1" where no mode stands, the date where as above'
        "; sizes 6 wide]\n"
        "total 196\n"
        "drwxr-xr-x 12 4096 Nov 22  2024 .\n"
        "96 setup.cfg\n"
        "|-rw-r--r--  1 root root 20482 Nov 22  2024 12 Jan 10:00 notes\n"
        "|-rw-r--r--  1 ada  root     7 Nov 22  2024 own\n"
        "7 Nov 23 10:15 README.md\n"
    )
    assert LISTING.encode(text, str) == shown
    assert LISTING.decode(shown, str) == text


@pytest.mark.parametrize("text", ["", "a/b\n" * 9, "-rw-r--r--  1 a b 1 Jan  1 00:00 x\n" * 3, "rw rw rw rw\n" * 9])
def test_what_is_no_listing_is_declined(text: str) -> None:
    assert LISTING.encode(text, str) is None


NAMES = ["a.py", "b c.py", "|x", "", ".", "..", "é", "x\r", "\u2028", "C:", "\\n", "12 Jan 10:00 x"]
ODD = ["", "|", "/", "Found 3 files", "7 x", "total 8"]
ENTRIES = st.tuples(
    st.sampled_from(["-rw-r--r--", "drwxr-xr-x@", "-rw-r--r--  1 root"]),
    st.sampled_from(["  1", " 12", " 1", " 123"]),
    st.sampled_from([" root root", " ada  staff", ' "x y']),
    st.sampled_from(["   12", " 4096", " 123456"]),
    st.sampled_from([" Nov 22  2024 ", " 21 Jan 19:07 ", " Jan  1 00:00 "]),
    st.sampled_from(NAMES),
).map("".join)


@given(st.lists(ENTRIES | ENTRIES | ENTRIES | st.sampled_from(ODD), max_size=16).map("\n".join))
def test_every_listing_comes_back(text: str) -> None:
    back_and_forth(text)


def back_and_forth(text: str) -> None:
    shown = LISTING.encode(text, str)
    if shown is not None:
        assert LISTING.owns(shown.split("\n")[0])
        assert LISTING.decode(shown, str) == text


def test_large_texts_take_no_longer_than_their_length() -> None:
    back_and_forth("-rw-r--r-- 1 a b 1 Jan  1 00:00 x\n" * 100_000)
    back_and_forth("-rw-r--r--" + " 1" * 500_000)
    back_and_forth("rw\n" * 200_000)
