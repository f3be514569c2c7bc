import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode.codecs.log import LogCodec

LOG = LogCodec()
PLAIN = "[log: date, hour and minute left out where as above]"


def test_what_changes_is_said_and_what_frames_a_column_is_said_once() -> None:
    text = (
        "2026-11-01T09:00:59.482 INFO  [worker-0] http.access: GET /items/18 200\n"
        "2026-11-01T09:00:59.818 DEBUG [worker-1] cache: hit key=items:20\n"
        "2026-11-01T09:01:01.690 INFO  [worker-2] queue: heartbeat ok\n"
        "2026-11-02T09:01:01.750 WARN  [worker-3] http.access: GET /items/57 200\n"
    )
    assert LOG.encode(text, str) == (
        f'{PLAIN[:-1]}; "TIME * * * …" is short for "TIME * [worker-*] *: …"]\n'
        "2026-11-01T09:00:59.482 INFO  0 http.access GET /items/18 200\n"
        "59.818 DEBUG 1 cache hit key=items:20\n"
        "09:01:01.690 INFO  2 queue heartbeat ok\n"
        "2026-11-02T09:01:01.750 WARN  3 http.access GET /items/57 200\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "Found 4 log entries:\n"
            "[2025-10-21T13:17:57.282480+00:00] CRITICAL: No message\n"
            "[2025-10-21T12:37:31.518004+00:00] CRITICAL: No message\n"
            "[2025-10-21T12:37:26.535760+00:00] CRITICAL: No message\n"
            "[2025-10-21T12:37:21.473445+00:00] CRITICAL: No message",
            f'{PLAIN[:-1]}; "TIME …" is short for "TIME+00:00] CRITICAL: No message …"]\n'
            "Found 4 log entries:\n[2025-10-21T13:17:57.282480\n12:37:31.518004\n26.535760\n21.473445",
            id="fixed words are left out",
        ),
        pytest.param(
            "Jan  8 16:25:34 a\nJan  8 16:25:35 b\nTraceback:\n12 lines\n|\nJan  8 16:25:36 c\nJan  8 16:25:37 d\r\n",
            f"{PLAIN}\nJan  8 16:25:34 a\n35 b\nTraceback:\n|12 lines\n||\n36 c\n37 d\r\n",
            id="lines between are kept and never mistaken for a time",
        ),
        pytest.param(
            "09:00:00 a\n09:00:01 b\n09:00:01 c\n09:01:00 d",
            f"{PLAIN}\n09:00:00 a\n01 b\n01 c\n09:01:00 d",
            id="times without a date",
        ),
        pytest.param(
            "09:00:00 [a-1] x: 1\n09:00:01 [a-2] y: 2\n09:00\n09:00:02 [a-3] x: 3\n09:00:03 [a-4] y: 4",
            f'{PLAIN[:-1]}; "TIME * * …" is short for "TIME [a-*] *: …"]\n'
            "09:00:00 1 x 1\n01 2 y 2\n|09:00\n02 3 x 3\n03 4 y 4",
            id="a short line among framed columns",
        ),
    ],
)
def test_other_logs(text: str, shown: str) -> None:
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
