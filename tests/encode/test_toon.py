"""TOON: the library we rely on conforms to the specification, and the codec refuses what TOON cannot give back."""

import json
from pathlib import Path
from typing import Any

import pytest
import toons

from pagefold.encode.codecs.toon import ToonCodec
from pagefold.encode.notation.json_value import parse
from tests.shared import SHARED

FIXTURES = sorted((SHARED / "toon" / "fixtures").glob("*/*.json"))
needs_fixtures = pytest.mark.skipif(not FIXTURES, reason="the TOON fixtures (../shared/toon) are not on this machine")


def options(case: dict[str, Any]) -> dict[str, Any]:
    given = case.get("options") or {}
    names = {"indent": "indent_size", "indentSize": "indent_size"}
    return {names.get(name, name): value for name, value in given.items()}


@needs_fixtures
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_case_of_the_specification_passes(path: Path) -> None:
    for case in json.loads(path.read_text())["tests"]:
        call = toons.dumps if path.parent.name == "encode" else toons.loads
        if case.get("shouldError"):
            with pytest.raises(ValueError):
                call(case["input"], **options(case))
        else:
            assert call(case["input"], **options(case)) == case["expected"], case["name"]


@pytest.mark.parametrize("text", ['{"a": 1, "b": [1, 2]}', '[{"id": 1, "name": "x"}, {"id": 2, "name": "y"}]'])
def test_json_that_toon_can_say_comes_back(text: str) -> None:
    shown = ToonCodec().encode(text, str)

    assert shown is not None
    assert parse(ToonCodec().decode(shown, str)) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1.0}',
        '{"a": -0.0}',
        '{"a": 1, "a": 2}',
        '[{"a": 1, "b": 2}, {"b": 3, "a": 4}]',
        '{"a": 1e5}',
        "no json",
        "3",
    ],
)
def test_what_toon_would_respell_or_reorder_is_refused(text: str) -> None:
    assert ToonCodec().encode(text, str) is None
