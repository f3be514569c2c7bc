"""Reassembly and budgets over recorded results: a few of every family here, all of them in bench/trim.py."""

import hashlib
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest

from pagefold.encode.cursor import read_cursor
from pagefold.encode.trim import trim
from pagefold.pages.page import id_of
from pagefold.tokens import counter
from tests.encode.paging import pieces
from tests.shared import FAMILIES, needs_traces

count = counter("o200k").count
_SESSIONS, _RESULTS = 12, 8
_BUDGETS = (100, 137, 260, 512, 1_000, 1_999, 4_000)


def large_results(path: Path) -> Iterator[str]:
    """Results of over two thousand tokens, of the first sessions."""
    found = 0
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for _, line in zip(range(_SESSIONS), lines, strict=False):
            for message in json.loads(line)["messages"]:
                text = message.get("content")
                if message["role"] == "tool" and isinstance(text, str) and len(text) > 6_000 and count(text) > 2_000:
                    yield text
                    found += 1
                    if found == _RESULTS:
                        return


@needs_traces
@pytest.mark.parametrize("path", FAMILIES, ids=lambda path: path.name.split(".")[0])
def test_first_chunk_and_all_cursors_are_a_recorded_result_byte_for_byte(path: Path) -> None:
    for text in large_results(path):
        budget = _BUDGETS[hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[0] % len(_BUDGETS)]
        trimmed = trim(text, budget, tool="fetch")
        assert count(trimmed.text) <= budget

        found = list(trimmed.shown)
        if trimmed.cursor is not None:
            page = id_of(text.encode("utf-8", "surrogatepass"))
            for piece in pieces(text, read_cursor(trimmed.cursor, page, len(text)), count):
                assert count(piece.text) <= budget
                assert all(text[start:end] in piece.text for start, end in piece.parts)
                found += piece.parts

        assert sum(end - start for start, end in found) == len(text)
        assert "".join(text[start:end] for start, end in sorted(found)) == text
