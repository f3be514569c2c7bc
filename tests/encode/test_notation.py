"""The notation: whatever JSON says comes back, and what it looks like is pinned by examples."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode.literal_forms import agrees
from pagefold.encode.notation.json_value import Members, Number, parse, plain
from pagefold.encode.notation.prefix_names import PrefixNames
from pagefold.encode.notation.read import read
from pagefold.encode.notation.write import write

WORDS = st.sampled_from(
    [
        "a",
        "id",
        "name",
        "user",
        "x-y",
        "null",
        "true",
        "12",
        "1.0",
        "-0",
        "",
        " ",
        "a b",
        "a,b",
        "a:b",
        "{",
        "}",
        "[]",
        '"',
        "$a",
        "$a=b",
        "*1",
        "&1",
        "#1",
        "<1>",
        "!",
        "= 1",
        "https://a.example/users",
        "https://a.example/users/17",
        "é",
        "\n",
        "a\nb",
        "2026-01-02T03:04:05Z",
        "2026-01-03T03:04:05Z",
        "..",
        "0..",
        "{id}",
        "*",
        "a*b",
        "\\",
        "\u2028",
        "\x00",
        "=",
        ".",
    ]
)
NUMBERS = st.sampled_from(["0", "-0", "1", "2", "3", "1.10", "1E+2", "1e5", "123456789012345678901234567890"])
SCALARS = st.one_of(
    WORDS, st.text(max_size=12), st.none(), st.booleans(), NUMBERS.map(Number), st.integers().map(str).map(Number)
)


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Members]:
    return st.lists(st.tuples(WORDS, values), max_size=5).map(Members)


def rows(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Objects that share most keys: what tables are made of."""
    keys = st.lists(WORDS, min_size=1, max_size=4, unique=True)

    def table(names: list[str]) -> st.SearchStrategy[list[Any]]:
        row = st.tuples(*[st.one_of(values, st.just(...)) for _ in names]).map(
            lambda cells: Members((name, cell) for name, cell in zip(names, cells, strict=True) if cell is not ...)
        )
        return st.lists(row, min_size=2, max_size=7)

    return keys.flatmap(table)


VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=5), objects(inner), rows(inner)), max_leaves=30
)


@given(VALUES)
@settings(deadline=None, max_examples=500)
def test_any_value_comes_back_with_its_types_its_order_and_its_lexemes(value: Any) -> None:
    text = write(value)

    assert text is not None
    assert read(text) == value


@given(rows(SCALARS))
@settings(deadline=None, max_examples=300)
def test_any_table_comes_back(value: list[Any]) -> None:
    text = write(value)

    assert text is not None
    assert read(text) == value


def test_a_number_is_not_the_string_of_its_digits_nor_another_spelling() -> None:
    assert Number("1") != "1"
    assert "1" != Number("1")  # noqa: SIM300 - the other side of the comparison
    assert Number("1") != Number("1.0")
    assert parse("[1]") != parse('["1"]')
    assert parse("{}") != parse("[]")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('{"a": 1, "b": "two words", "c": null, "d": "3"}', '{a:1,b:two words,c:null,d:"3"}'),
        ('{"a": "x, y", "b": "", "c": "true"}', '{a:"x, y",b:"",c:"true"}'),
        ('[1, [2, "a"], {}]', "[1,[2,a],{}]"),
        ('{"a": 1, "a": 2}', "{a:1,a:2}"),
        (
            '[{"id": 17, "name": "Ada", "kind": "user"}, {"id": 29, "name": "Lovelace, A.", "kind": "user"}]',
            '#1\n#1 2 rows: id,name,kind=user\n17,Ada\n29,"Lovelace, A."',
        ),
        (
            '[{"n": 4, "u": "https://a.example/n/4"}, {"n": 9, "u": "https://a.example/n/9"}, {"n": 5, "u": "https://a.example/n/5"}]',
            "$a=https://a.example/n\n#1\n#1 3 rows: n,u\n4,$a/4\n9,$a/9\n5,$a/5",
        ),
        (
            (
                '[{"number": 1, "title": {"long": "p", "short": 3}}, {"number": 2, "title": {"long": "q"}},'
                ' {"number": 3, "title": null}, {"number": 4, "title": {"long": "r", "short": 4}}]'
            ),
            "#1\n#1 4 rows: number=1..,title,title.long,title.short\n,p,3\n,q,\nnull,,\n,r,4",
        ),
        (
            (
                '[{"date": "2026-01-02T10:00:00Z", "value": 1.5}, {"date": "2026-01-03T10:00:00Z", "value": 1.50},'
                ' {"date": "2026-01-04T10:00:00Z", "value": 2}]'
            ),
            "#1\n#1 3 rows: date,value\n2026-01-02T10:00:00Z,1.5\n2026-01-03T10:00:00Z,1.50\n2026-01-04T10:00:00Z,2",
        ),
        ('[["a", 1], ["b", 2], ["c", 3]]', "#1\n#1 3 lists:\na,1\nb,2\nc,3"),
        (
            (
                '{"one": {"login": "octocat", "site": "https://a.example/octocat"},'
                ' "two": {"login": "octocat", "site": "https://a.example/octocat"}}'
            ),
            "{one:&1{login:octocat,site:https://a.example/octocat},two:*1}",
        ),
    ],
)
def test_the_notation_looks_like_this(value: str, text: str) -> None:
    assert write(parse(value)) == text
    assert read(text) == parse(value)


def test_strings_that_begin_alike_are_named_once() -> None:
    base = "https://api.example.org/repos/octo/hello"
    value = {f"{name}_url": f"{base}/{name}" for name in ("forks", "pulls", "issues", "stars")}

    assert write(parse(json.dumps(value))) == (
        f"$a={base}\n{{forks_url:$a/forks,pulls_url:$a/pulls,issues_url:$a/issues,stars_url:$a/stars}}"
    )


def test_a_word_that_recurs_gets_no_name_that_would_save_no_token() -> None:
    value = [{"kind": ["product_type", "low_selling"], "at": at} for at in range(9)]

    assert "$" not in (write(parse(json.dumps(value))) or "$")


def test_a_last_row_that_breaks_off_leaves_the_others_their_constants() -> None:
    value = [{"id": at * 7, "state": "open", "locked": False, "labels": None} for at in range(5)] + [{"id": 40}]
    text = "#1\n#1 6 rows: id,state=open,locked=false,labels=null\n0\n7\n14\n21\n28\n!{id:40}"

    assert write(parse(json.dumps(value))) == text
    assert read(text) == parse(json.dumps(value))


@given(
    st.dictionaries(
        st.lists(st.sampled_from(["https://a.example", "o", "n", "x y", 'a"b', "12"]), max_size=12).map("/".join),
        st.integers(1, 9),
    )
)
@settings(deadline=None)
def test_a_string_is_said_by_the_longest_name_it_begins_with(strings: dict[str, int]) -> None:
    names = PrefixNames(strings)

    for string in strings:
        assert names.prefix_of(string) == max(filter(string.startswith, names.letters), key=len, default="")


@pytest.mark.parametrize(
    "text",
    [
        '[{"a":{"x":1},"b":2,"a":{"y":3}},{"a":{"x":1,"y":2}},{"a":{"x":4},"b":5,"a":{"y":6}}]',
        '[{"a":{"b":{"c":1,"d":2}},"e":3},{"e":4},{"a":{"b":{"d":5}},"e":6}]',
        '[{"a":true,"b":[1]},{"a":1,"b":[true]},{"a":"1","b":["true"]}]',
    ],
)
def test_rows_put_together_what_stood_together(text: str) -> None:
    shown = write(parse(text))

    assert shown is not None
    assert read(shown) == parse(text)


def test_a_row_that_stands_whole_counts_as_one() -> None:
    rows = [{"id": 7 + n, "state": "open", "title": f"title {n}"} for n in range(8)]
    rows[3] = {"title": "title 3", "state": "open", "id": 99}  # its keys come in another order
    shown = write(parse(json.dumps(rows)))

    assert shown is not None
    assert "id=7.." in shown
    assert "\n!{title:title 3," in shown
    assert read(shown) == parse(json.dumps(rows))
    assert agrees(f"[JSON]\n{shown}", json.dumps(rows)), "read with a finger on the row, it says another number"


@pytest.mark.parametrize(
    "row", ['{"a":null,"a":{"b":1},"c":2}', '{"a":{"b":1},"c":2,"a":{"b":2}}', '{"a":1,"b":2,"a":3}']
)
def test_rows_with_a_key_twice_make_no_table(row: str) -> None:
    text = f"[{','.join([row] * 3 + [row.replace('2', '5')] * 6)}]"
    shown = write(parse(text))

    assert shown is not None
    assert "rows:" not in shown
    assert read(shown) == parse(text)


def test_no_word_is_cut_in_two_by_what_a_column_shares() -> None:
    text = write(parse('[{"sha": "abc123x", "n": 1}, {"sha": "abc129y", "n": 2}]'))

    assert text is not None
    assert "abc123x" in text
    assert "abc129y" in text


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    assert write(parse("[" * 150 + "]" * 150)) is None


@pytest.mark.parametrize("text", ["", "{", "[1", "{a}", "#1", "*1", "$z", "[1]x", "#1\n#1 2 rows: a\n1,2\n3"])
def test_what_is_not_in_the_notation_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError, IndexError)):
        read(text)


def test_plain_gives_what_the_standard_parser_gives() -> None:
    text = '{"a": [1, 2.5, -0, 1E2, "x", null, true], "b": {"c": 12345678901234567890}}'

    assert plain(parse(text)) == json.loads(text)
