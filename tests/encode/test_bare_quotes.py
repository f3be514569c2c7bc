"""JSON whose strings hold quotes that nobody escaped: it is read as it is meant, and comes back as it stood."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode import decode, encode
from pagefold.encode.codecs.json_codec import JsonCodec
from pagefold.encode.literal_forms import agrees
from pagefold.encode.notation.bare_quotes import bare_quotes, escape_quotes

CODEC = JsonCodec(exact=True)
ROWS = [{"id": at, "tags": [], "html": f'<b class="price">{at}.99</b>'} for at in range(12)]
SHOWN = """[JSON indent 2, quotes in strings bare]
#1
#1 12 rows: id=0..,tags=[],html
"<b class=\\"price\\">0.99</b>\""""


def bare(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace('\\"', '"')


def test_rows_with_bare_quotes_are_a_table_and_come_back() -> None:
    shown = encode(bare(ROWS))
    assert shown.text.startswith(SHOWN)
    assert shown.tokens < 0.6 * shown.before
    assert decode(shown.text) == bare(ROWS)
    assert shown.skipped == ()


def test_strings_of_a_list_are_mended_too() -> None:
    assert escape_quotes('[\n  "a "b" c",\n  "d"\n]') == '[\n  "a \\"b\\" c",\n  "d"\n]'


@pytest.mark.parametrize("cut", range(1, 90, 7))
def test_where_it_breaks_off_the_torn_end_follows(cut: int) -> None:
    text = bare(ROWS)[:-cut]
    form = CODEC.encode(text, lambda inside: inside)
    assert form is not None
    assert "quotes in strings bare]" in form
    assert CODEC.decode(form, lambda inside: inside) == text
    assert agrees(form, text)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROWS, indent=2),  # all are escaped
        '[\n  "a "b" c", "d "e" f"\n]',  # two strings in a line: which quotes are whose?
        '{\n  "a": "b", "c": "d"\n}',
        '{"a": "b "c" d"}',
        '[\n  "a "b" c",\n  "an \\"escaped\\" one"\n]',
        "plain",
    ],
)
def test_what_could_be_read_in_another_way_is_left_alone(text: str) -> None:
    assert escape_quotes(text) is None


def test_quotes_below_the_place_where_it_is_torn_stay_as_they_are() -> None:
    text = bare(ROWS).replace('"id": 9', '"id" 9')
    shown = encode(text)
    assert shown.skipped == ()
    assert shown.codecs == ("json",)
    assert "cut off 1 deep before the last 17 lines, quotes in strings bare]" in shown.text
    assert decode(shown.text) == text


SAID = st.text(st.sampled_from('ab ,:"\\{}[]<>='), max_size=8)


@given(st.lists(st.dictionaries(st.sampled_from(("a", "b c", "href")), SAID | st.integers(), max_size=3), max_size=4))
def test_whatever_stands_in_strings_it_is_mended_to_what_was_meant_or_left_alone(value: object) -> None:
    text = json.dumps(value, indent=2)
    stood = bare_quotes(text)
    mended = escape_quotes(stood)
    if mended is not None and "\\" not in stood:
        assert json.loads(mended) == value
    form = CODEC.encode(stood, lambda inside: inside)
    if form is not None:
        assert CODEC.decode(form, lambda inside: inside) == stood
        assert agrees(form, stood)
