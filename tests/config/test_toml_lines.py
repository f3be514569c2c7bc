"""On which line of a TOML text a key stands."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.settings import toml_lines
from pagefold.settings.toml_lines import key_lines
from pagefold.settings.toml_text import KeyPath, toml_key
from tests.config.loading import loaded_from


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a = 1\n\n# b = 0\nb = 2", {"a": 1, "b": 4}),
        ("[t]\na = 1\n[ u . v ] # [w]\nb = 2", {"t": 1, "t.a": 2, "u": 3, "u.v": 3, "u.v.b": 4}),
        ("a.b.c = 1\na.d = 2", {"a": 1, "a.b": 1, "a.b.c": 1, "a.d": 2}),
        (
            '"a.b" = 1\n\'c = d\' . e = 2\n["]"]\nf = 1',
            {'"a.b"': 1, '"c = d"': 2, '"c = d".e': 2, '"]"': 3, '"]".f': 4},
        ),
        ("a = { b = 1, c.d = { e = 2 } }", {"a": 1, "a.b": 1, "a.c": 1, "a.c.d": 1, "a.c.d.e": 1}),
        ("a = {}\n[b]", {"a": 1, "b": 2}),
        ("[[a]]\nb = 1\n[a.c]\nd = 1\n[[a]]\nb = 2\n[e]\nf = 1", {"a": 1, "e": 7, "e.f": 8}),
        ("[a]\n[[a.b]]\nc = 1\n[[a.b.d]]\ne = 1\n[a.f]\ng = 1", {"a": 1, "a.b": 2, "a.f": 6, "a.f.g": 7}),
        ('a = """\nb = 1\n[c]\n"""\nd = 1', {"a": 1, "d": 5}),
        ("a = '''\n\\'''\nb = \"\"\"x\\\n  \"\"\"\nc = 1", {"a": 1, "b": 3, "c": 5}),
        ('"x=y".z = """\n= 1"""\nb = 1', {'"x=y"': 1, '"x=y".z': 1, "b": 3}),
        ("a.e = { b = '''\n''', c = 1 }\nd = 1", {"a": 1, "a.e": 1, "d": 3}),
        ("a = [\n  1, # ]\n  '[b]',\n]\nc = 1", {"a": 1, "c": 5}),
        ("a = [\n { b = 1 },\n]\nc = [{ d = 1 }]", {"a": 1, "c": 4}),
        ("a = 1\r\n\r\nb = '''\r\n'''\r\nc = 1", {"a": 1, "b": 3, "c": 5}),
        ("a = 'x\u2028y\x85z'\nb = 1", {"a": 1, "b": 2}),
        ("[b.c]\n[b]\nd = 1", {"b": 1, "b.c": 1, "b.d": 3}),
        ("", {}),
    ],
)
def test_the_line_of_a_key_is_that_on_which_it_first_stands(text: str, lines: dict[str, int]) -> None:
    assert {toml_key(path): line for path, line in key_lines(text).items()} == lines


def test_past_a_statement_too_long_to_follow_lines_are_left_out_and_not_guessed(tmp_path: Path) -> None:
    long = "store.path = '''" + "\n" * 500 + "'''"

    loaded = loaded_from(f"window = 1\n{long}\npolicy = 'p'", tmp_path)

    assert (loaded.origins["window"], loaded.origins["policy"]) == ("pagefold.toml:1", "pagefold.toml")


NAMES = st.sampled_from(["a", "b", "c", '"a"', "'b'", '"="', '"[x]"', "'#'", '"\\""', "1"])
KEYS = st.lists(NAMES, min_size=1, max_size=3).map(" . ".join)
SCALARS = st.sampled_from(
    ["1", "'='", '"#"', '"""\na = 1\n[b]\n"""', "'''\n\n'''", "[\n 1, # ]\n '''\n''' ]", '"\\"="', "[{ a = 1 }]"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(st.tuples(KEYS, inner), max_size=3).map(
        lambda pairs: "{ " + ", ".join(f"{key} = {value}" for key, value in pairs) + " }"
    ),
    max_leaves=4,
)
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, KEYS, VALUES),
    st.builds("  {} = {} # x = 1".format, KEYS, SCALARS),
    KEYS.map("[{}]".format),
    KEYS.map("[[ {} ]] # [a]".format),
    st.sampled_from(["", "# a = 1", "   "]),
)


def accepted(statements: list[str]) -> str:
    """Those of the statements, in their order, that make a text tomllib accepts."""
    text = ""
    for statement in statements:
        try:
            tomllib.loads(text + statement)
        except tomllib.TOMLDecodeError:
            continue
        text += statement + "\n"
    return text


def holds(text: str, path: KeyPath) -> bool:
    inner: object = tomllib.loads(text)
    for part in path:
        if not isinstance(inner, dict) or part not in inner:
            return False
        inner = inner[part]
    return True


@given(st.lists(STATEMENTS, max_size=12).map(accepted))
def test_a_key_is_absent_before_its_line_and_there_once_its_statement_ends(text: str) -> None:
    lines = text.split("\n")

    for path, line in key_lines(text).items():
        assert not holds("\n".join(lines[: line - 1]), path)
        for end in range(line, len(lines) + 1):
            try:
                there = holds("\n".join(lines[:end]), path)
            except tomllib.TOMLDecodeError:
                continue
            assert there
            break


@given(st.lists(STATEMENTS, max_size=12).map(accepted))
def test_every_key_outside_lists_and_long_values_has_a_line(text: str) -> None:
    found = key_lines(text)

    assert {path[0] for path in found} == set(tomllib.loads(text))
    if '"""' not in text and "'''" not in text:
        assert set(found) == set(toml_lines._paths(tomllib.loads(text)))
