"""Lines out of a stream that may hold anything, wherever it is cut."""

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.mcp_proxy.lines import LineSplitter, Overlong, id_of


def read(pieces: list[bytes], limit: int) -> list[bytes | Overlong]:
    lines = LineSplitter(limit)
    read = [line for piece in pieces for line in lines.feed(piece)]
    return [*read, *lines.finish()]


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=8),
    st.lists(st.integers(0, 200), max_size=6),
    st.integers(1, 25),
)
def test_lines_do_not_depend_on_the_cuts_and_overlong_ones_are_let_go(
    lines: list[bytes], cuts: list[int], limit: int
) -> None:
    data = b"\n".join(lines)
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    pieces = [data[start:end] for start, end in pairwise(places)]
    expected = [
        Overlong(len(line), line, line) if len(line) > limit else line
        for line in lines
        if len(line) > limit or line.strip(b" \t\r")
    ]
    assert read(pieces, limit) == expected


def test_a_line_of_any_length_takes_little_memory() -> None:
    lines = LineSplitter(1000)
    for _ in range(100):
        assert lines.feed(b"x" * 100_000) == []
        assert lines._over is not None
        assert len(lines._rest) + len(lines._over.head) + len(lines._over.tail) < 20_000
    assert lines.feed(b'","id":7}\n{"next":1}\n') == [Overlong(10_000_009, b"x" * 4096, lines_tail()), b'{"next":1}']


def lines_tail() -> bytes:
    return (b"x" * 4096 + b'","id":7}')[-4096:]


@pytest.mark.parametrize("id", [0, -3, 12345678901234567890, "a", 'with " and \\ in it', ""])
def test_the_id_is_found_in_front_and_behind(id: object) -> None:
    large = {"content": [{"type": "text", "text": "x" * 9000, "id": 5}]}
    for message in (
        {"jsonrpc": "2.0", "id": id, "result": large},
        {"id": id, "result": large, "jsonrpc": "2.0"},
        {"result": large, "jsonrpc": "2.0", "id": id},
        {"jsonrpc": "2.0", "result": large, "id": id},
        {"result": large, "id": id, "jsonrpc": "2.0"},
    ):
        for separators in ((",", ":"), (", ", ": ")):
            data = json.dumps(message, separators=separators).encode()
            assert id_of(data[:4096], data[-4096:]) == json.dumps(id)


def test_no_id_is_invented() -> None:
    assert id_of(b'{"jsonrpc":"2.0","method":"x","params":{', b'{"id":3}]}') == ""
    assert id_of(b"xxx", b"yyy") == ""
