import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode.codec import Codec
from pagefold.encode.codecs.paths import ListingCodec, PathsCodec

PATHS, LISTING = PathsCodec(), ListingCodec()
RULE = "a name without / is in the directory above it"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "Found 5 files\n/home/ada/shop/src/loans/model.py\n/home/ada/shop/src/loans/rules.py\n"
            "/home/ada/shop/README.md\n/home/ada/shop/tests/test_rules.py\n/home/ada/shop/tests/data/\n",
            f"[paths below /home/ada/shop/; {RULE}]\n|Found 5 files\nsrc/loans/\nmodel.py\nrules.py\n"
            "./\nREADME.md\ntests/test_rules.py\n|/home/ada/shop/tests/data/\n",
            id="grouped by directory",
        ),
        pytest.param(
            "./a/x.py\n./b/x.py\n./c/x.py\n./d/x.py\n\n(4 rows)",
            "[paths below ./]\na/x.py\nb/x.py\nc/x.py\nd/x.py\n\n|(4 rows)",
            id="nothing to group",
        ),
        pytest.param(
            "/r/a.py\n/r/b.py\n./a.py\n./b.py",
            f"[paths; {RULE}]\n/r/\na.py\nb.py\n|./a.py\n|./b.py",
            id="here and elsewhere",
        ),
        pytest.param(
            "C:\\shop\\a\\x.py\r\nC:\\shop\\a\\y.py\r\nC:\\shop\\b\\x.py\r\nC:\\shop\\b\\y.py\r\n",
            f"[paths below C:\\shop\\; {RULE.replace('/', chr(92))}]\na\\\nx.py\r\ny.py\r\nb\\\nx.py\r\ny.py\r\n",
            id="on Windows",
        ),
    ],
)
def test_what_paths_begin_with_is_said_once(text: str, shown: str) -> None:
    assert PATHS.encode(text, str) == shown
    assert PATHS.decode(shown, str) == text


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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/b\n",
        "and/or\n" * 2,
        "a sentence, with a/b in it\n" * 9,
        "// a comment\n" * 9,
        "x\ny\nz\na/b\n",
        "a/b:1:x\n" * 9,
    ],
)
def test_what_is_no_list_of_files_is_declined(text: str) -> None:
    assert PATHS.encode(text, str) is None
    assert LISTING.encode(text, str) is None


NAMES = ["a.py", "b c.py", "|x", "", ".", "..", "é", "x\r", "\u2028", "C:", "\\n", "12 Jan 10:00 x"]
PLACES = ["/r/", "/r/s/", "/r/s/t/", "/", "./", "r/", "", "C:\\r\\", "C:\\r\\s\\", "|/"]
ODD = ["", "|", "/", "Found 3 files", "[paths below /r/]", f"[paths; {RULE}]", "7 x", "total 8"]
FILES = st.tuples(st.sampled_from(PLACES), st.sampled_from(NAMES)).map("".join)
ENTRIES = st.tuples(
    st.sampled_from(["-rw-r--r--", "drwxr-xr-x@", "-rw-r--r--  1 root"]),
    st.sampled_from(["  1", " 12", " 1", " 123"]),
    st.sampled_from([" root root", " ada  staff", ' "x y']),
    st.sampled_from(["   12", " 4096", " 123456"]),
    st.sampled_from([" Nov 22  2024 ", " 21 Jan 19:07 ", " Jan  1 00:00 "]),
    st.sampled_from(NAMES),
).map("".join)


@given(st.lists(FILES | st.sampled_from(ODD), max_size=16).map("\n".join))
def test_every_list_of_paths_comes_back(text: str) -> None:
    back_and_forth(text)


@given(st.lists(ENTRIES | ENTRIES | ENTRIES | st.sampled_from(ODD), max_size=16).map("\n".join))
def test_every_listing_comes_back(text: str) -> None:
    back_and_forth(text)


def back_and_forth(text: str) -> None:
    codecs: tuple[Codec, ...] = (PATHS, LISTING)
    for codec in codecs:
        shown = codec.encode(text, str)
        if shown is not None:
            assert codec.owns(shown.split("\n")[0])
            assert codec.decode(shown, str) == text


def test_large_texts_take_no_longer_than_their_length() -> None:
    back_and_forth("/" * 1_000_000)
    back_and_forth("/a\n" * 200_000)
    back_and_forth("\n".join(f"/a/{index % 7}/{index}" for index in range(200_000)))
    back_and_forth("-rw-r--r-- 1 a b 1 Jan  1 00:00 x\n" * 100_000)
    back_and_forth("-rw-r--r--" + " 1" * 500_000)
    back_and_forth("rw\n" * 200_000)
