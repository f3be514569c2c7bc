import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode.codecs.hits import HitsCodec

HITS = HitsCodec()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "tests/test_loans.py:12:    def test_renews(self) -> None:\n"
            "tests/test_loans.py-13-        loan = self.loans[barcode]\n"
            "--\n"
            "tests/test_loans.py:71:    def test_returns(self) -> None:\n"
            "tests/test_fines.py:30:    def test_starts_at_zero(self) -> None:\n"
            "3 matches\n",
            "[hits by file]\ntests/test_loans.py:\n12:    def test_renews(self) -> None:\n"
            "13-        loan = self.loans[barcode]\n--\n71:    def test_returns(self) -> None:\n"
            "tests/test_fines.py:30:    def test_starts_at_zero(self) -> None:\n3 matches\n",
            id="lines around hits, a hit alone, another line",
        ),
        pytest.param(
            "s/a.py-1-before\ns/a.py:2:5:hit\ns/a.py-3-after\n--\ns/b.py:3:1:x\ns/b.py:4:7:y",
            "[hits by file]\ns/a.py:\n1-before\n2:5:hit\n3-after\n--\ns/b.py:\n3:1:x\n4:7:y",
            id="columns, and lines before a hit",
        ),
        pytest.param(
            "/home/shop/s/a.py-1-before\ns/a.py:2:hit\ns/a.py-3-with: colon\n--\ns/b.py:3:x\ns/b.py:4:y",
            "[hits by file; /home/shop/ stood before the path in lines without a colon]\n"
            "s/a.py:\n1-before\n2:hit\n3-with: colon\n--\ns/b.py:\n3:x\n4:y",
            id="paths that were cut in some lines",
        ),
        pytest.param(
            "C:\\shop\\a.py:1:x\r\nC:\\shop\\a.py:2:y\r\nC:\\shop\\b.py:7:z\r\n",
            "[hits by file]\nC:\\shop\\a.py:\n1:x\r\n2:y\r\nC:\\shop\\b.py:7:z\r\n",
            id="on Windows",
        ),
    ],
)
def test_what_hits_have_in_common_is_said_once(text: str, shown: str) -> None:
    assert HITS.encode(text, str) == shown
    assert HITS.decode(shown, str) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.py:1:x\na.py:2:y\n",
        "a:1:x\na:2:y\n12-a:3:z\n12-a:4:z\n",
        "a:1:x\na:2:y\nb:3:z\n4:w\n",
        "2026-11-01 09:00:01 a\n2026-11-01 09:00:02 b\n2026-11-01 09:01:02 c\n",
        "prose: with colons\n" * 9,
        "a.py:1:x\na.py:2:y\na.py:3:z\n" + "something else\n" * 9,
    ],
)
def test_what_is_no_search_or_could_be_misread_is_declined(text: str) -> None:
    assert HITS.encode(text, str) is None


PATHS = ["a.py", "s/a.py", "s/b c.py", "s/", "C:\\s\\a.py", "12", "12-3", "|p", "--", "a-1-b", "é", "x\u2028"]
MARKS = [":1:", ":12:", "-3-", ":4:5:", ":", "-"]
TEXTS = ["", " x", "def f_one() -> None:", "def f_two() -> None:", "a*b", '"', '"]', "x:1:y", "\r", "FILE:LINE:*"]
ODD = ["", "--", "|", "[hits by file]", "1:x", "2-y", "no hit", "a:b"]
FOUND = st.tuples(st.sampled_from(PATHS), st.sampled_from(MARKS), st.sampled_from(TEXTS)).map("".join)


@given(st.lists(FOUND | FOUND | st.sampled_from(ODD), max_size=16).map("\n".join))
def test_every_text_comes_back(text: str) -> None:
    back_and_forth(text)


@given(
    st.sampled_from(PATHS),
    st.lists(st.tuples(st.sampled_from(MARKS[:4]), st.sampled_from(TEXTS)).map("".join), min_size=3),
)
def test_every_search_in_one_file_comes_back(path: str, found: list[str]) -> None:
    back_and_forth("\n".join(f"{path}{line}" for line in found))


def back_and_forth(text: str) -> None:
    shown = HITS.encode(text, str)
    if shown is not None:
        assert HITS.owns(shown.split("\n")[0])
        assert HITS.decode(shown, str) == text


def test_a_path_is_written_again_after_many_lines() -> None:
    shown = HITS.encode("\n".join(f"s/a.py:{number}:x" for number in range(1, 60)), str)

    assert shown is not None
    assert shown.split("\n").count("s/a.py:") == 3
    assert shown.split("\n")[27] == "s/a.py:"


def test_large_texts_take_no_longer_than_their_length() -> None:
    back_and_forth("a" * 1_000_000)
    back_and_forth("1:" * 500_000)
    back_and_forth("a:1:x\n" * 200_000)
    back_and_forth("\n".join(f"a/{index % 3}:{index}:x" for index in range(200_000)))
    back_and_forth("\n".join([f"a:{index}:{'x ' * 100_000}" for index in range(5)]))
    back_and_forth("-1" * 500_000)
