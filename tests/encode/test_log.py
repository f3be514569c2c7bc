import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode.codecs.log import LogCodec

LOG = LogCodec()
PLAIN = "[log: what stands before the time is left out where it is as above]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "2026-11-01T09:00:59.482 INFO [worker-0] http.access: GET /items/18 200\n"
            "2026-11-01T09:00:59.818 DEBUG [worker-1] cache: hit key=items:20\n"
            "2026-11-01T09:01:01.690 INFO [worker-2] queue: heartbeat ok\n"
            "2026-11-02T09:01:01.750 WARN [worker-3] http.access: GET /items/57 200\n",
            f"{PLAIN}\n2026-11-01T09:00:59.482 INFO [worker-0] http.access: GET /items/18 200\n"
            "09:00:59.818 DEBUG [worker-1] cache: hit key=items:20\n"
            "09:01:01.690 INFO [worker-2] queue: heartbeat ok\n"
            "2026-11-02T09:01:01.750 WARN [worker-3] http.access: GET /items/57 200\n",
            id="a date",
        ),
        pytest.param(
            "build\tSet up\t2026-07-02T03:12:14.82Z a\nbuild\tSet up\t2026-07-02T03:12:14.83Z b\n"
            "build\tTest\t2026-07-02T03:12:15.00Z c\nbuild\tTest\t2026-07-02T03:12:15.01Z d",
            f"{PLAIN}\nbuild\tSet up\t2026-07-02T03:12:14.82Z a\n03:12:14.83Z b\n"
            "build\tTest\t2026-07-02T03:12:15.00Z c\n03:12:15.01Z d",
            id="the job and the step",
        ),
        pytest.param(
            "Jan  8 16:25:34 a\nJan  8 16:25:35 b\nTraceback:\n12:00:00 lines\n|\nJan  8 16:25:36 c\nJan  8 16:25:37 d",
            f"{PLAIN}\nJan  8 16:25:34 a\n16:25:35 b\nTraceback:\n|12:00:00 lines\n||\n16:25:36 c\n16:25:37 d",
            id="lines between are kept and never mistaken for a time",
        ),
    ],
)
def test_what_stands_before_a_time_is_said_where_it_changes(text: str, shown: str) -> None:
    assert LOG.encode(text, str) == shown
    assert LOG.decode(shown, str) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "09:00:00 a\n09:00:01 b\n",
        "no times\n" * 10,
        "key: value\nother: value\n" * 10,
        "12:30 noon\n13:30 later\n" * 5,
        "09:00:00 a\n" * 4 + "no time\n" * 10,
        "09:00:00 a\n" * 9,
    ],
)
def test_what_is_no_log_is_declined(text: str) -> None:
    assert LOG.encode(text, str) is None


TIMES = [
    f"{date}09:{minute}:{second}"
    for date in ("2026-11-01T", "", "[")
    for minute in ("01", "02")
    for second in ("00", "59.1", "07,25")
]
RESTS = [
    "",
    " ",
    "Z",
    " a b",
    "  a b",
    " a  b",
    " [w-1] x:",
    " [w-23] y: z",
    " [w-] :",
    "] m",
    ":11 q",
    " *",
    ' "',
    " …",
    "\r",
]
ODD = ["", "|", "|12", "12 x", "09:01", "09:01:02:03", PLAIN, "\u2028", "\x0b\x85", "1:02:03:04:05", "é 11:11:11"]
LINES = st.one_of(
    st.sampled_from(ODD), st.tuples(st.sampled_from(TIMES), st.sampled_from(RESTS)).map("".join), st.text(max_size=8)
)


@given(st.lists(LINES, min_size=4, max_size=24).map("\n".join))
def test_every_text_comes_back(text: str) -> None:
    back_and_forth(text)


@given(
    st.lists(st.sampled_from(TIMES[:3]), min_size=8, max_size=8),
    st.lists(st.sampled_from(RESTS), min_size=1, max_size=3),
)
def test_every_column_comes_back(times: list[str], rests: list[str]) -> None:
    back_and_forth("\n".join(f"{time}{rests[index % len(rests)]}" for index, time in enumerate(times)))


def back_and_forth(text: str) -> None:
    shown = LOG.encode(text, str)
    if shown is not None:
        assert LOG.owns(shown.split("\n")[0])
        assert LOG.decode(shown, str) == text


def test_large_texts_take_no_longer_than_their_length() -> None:
    back_and_forth("1" * 1_000_000)
    back_and_forth("a:" * 500_000)
    back_and_forth(" ".join(["09:00:00"] * 100_000))
    back_and_forth("09:00:00 a\n" * 200_000)
    back_and_forth("::::::\n" * 200_000)
    back_and_forth("\n".join(["09:00:00 " + "[" * 250_000] * 4))
