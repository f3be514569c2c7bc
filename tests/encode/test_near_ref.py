"""Near references, line by line of the checklist S-NR, and the way back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode.near_ref import (
    DeltaField,
    NearRefConfig,
    extract_delta,
    hint_for,
    render_near_ref_hint,
    undo,
)
from pagefold.encode.notation.json_value import parse

PAD = "x" * 600
STATUS = DeltaField("status", "pending", "success")
DURATION = DeltaField("duration", "12", "34")
HINT = "> [near-ref: tc_42, status: pending→success, duration: 12→34]"
ANY = NearRefConfig(max_delta_bytes=10_000, min_body_bytes=0)


def sample(status: str, duration: int) -> str:
    body = {
        "id": 42,
        "name": "p" * 20,
        "status": status,
        "duration": duration,
        "url": "https://example.com/pipelines/42",
        "commit_sha": "deadbeef" * 4,
        "ref": "refs/heads/main",
        "author": "alice",
        "triggered_by": "webhook",
        "preview": "x" * 400,
    }
    return json.dumps(body, separators=(",", ":"))


def body(fields: str) -> str:
    """A body long enough for a hint, from the text of its other fields."""
    return f'{{{fields},"pad":"{PAD}"}}'


def with_x(lexeme: str) -> str:
    return body(f'"x":{lexeme}')


# The checklist.


def test_s_nr_1_two_changed_fields_are_two_deltas() -> None:
    assert len(sample("pending", 12)) == 640
    assert extract_delta(sample("pending", 12), sample("success", 34)) == [STATUS, DURATION]


def test_s_nr_2_a_short_body_is_refused() -> None:
    assert extract_delta('{"a":1,"b":2}', '{"a":1,"b":3}') is None


def test_s_nr_3_other_keys_are_refused() -> None:
    assert extract_delta(f'{{"a":1,"long":"{PAD}"}}', f'{{"a":1,"different":"{PAD}"}}') is None


def test_s_nr_4_a_nested_change_is_refused() -> None:
    assert extract_delta(body('"meta":{"k":1}'), body('"meta":{"k":2}')) is None


def test_s_nr_5_a_large_delta_is_refused() -> None:
    assert extract_delta(with_x(f'"{"a" * 80}"'), with_x(f'"{"b" * 80}"')) is None


def test_s_nr_6_an_identical_body_has_no_delta() -> None:
    assert extract_delta(sample("ok", 10), sample("ok", 10)) is None


def test_s_nr_7_a_hint_is_rendered_exactly() -> None:
    assert render_near_ref_hint("tc_42", [STATUS, DURATION]) == HINT


def test_s_nr_8_a_hint_stays_within_seventy_bytes() -> None:
    assert len(HINT.encode()) == 65
    assert len(HINT) == 61


@pytest.mark.parametrize(("old", "new", "allowed"), [(600, 499, False), (600, 500, True), (400, 500, True)])
def test_s_nr_9_only_the_bytes_of_the_new_body_count(old: int, new: int, allowed: bool) -> None:
    deltas = extract_delta('{"s":"a"}'.ljust(old), '{"s":"b"}'.ljust(new))
    assert deltas == ([DeltaField("s", "a", "b")] if allowed else None)


def test_s_nr_9_a_body_is_measured_in_bytes_and_not_in_characters() -> None:
    old, new = (f'{{"s":"{s}","pad":"{"é" * 241}"}}' for s in "ab")
    assert (len(new), len(new.encode())) == (259, 500)
    assert extract_delta(old, new) == [DeltaField("s", "a", "b")]
    assert extract_delta(old.replace("éé", "éx", 1), new.replace("éé", "éx", 1)) is None


@pytest.mark.parametrize(
    "broken",
    ["", "words", with_x("1")[:-1], with_x("NaN"), with_x("01"), with_x('"a\nb"'), f'["{PAD}"]', f'"{PAD}"', "7" * 600],
)
def test_s_nr_10_what_is_no_json_object_is_refused_on_either_side(broken: str) -> None:
    assert extract_delta(broken, with_x("2")) is None
    assert extract_delta(with_x("2"), broken) is None


def test_s_nr_10_white_space_around_an_object_is_ignored() -> None:
    assert extract_delta("\n \t" + with_x("1"), "  " + with_x("2") + "\n") == [DeltaField("x", "1", "2")]


def test_s_nr_11_the_payload_counts_bytes_and_separators() -> None:
    old, new = sample("pending", 12), sample("success", 34)
    assert extract_delta(old, new, NearRefConfig(max_delta_bytes=46)) is not None
    assert extract_delta(old, new, NearRefConfig(max_delta_bytes=45)) is None


@pytest.mark.parametrize(("length", "allowed"), [(20, True), (21, False)])
def test_s_nr_11_fifty_bytes_are_allowed_and_fifty_one_refused(length: int, allowed: bool) -> None:
    old, new = "a" * 22, "b" * length
    payload = f", x: {old}→{new}"
    assert (len(payload.encode()) <= 50) is allowed
    assert (extract_delta(with_x(f'"{old}"'), with_x(f'"{new}"')) is not None) is allowed


def test_s_nr_12_the_limits_are_fifty_and_five_hundred_and_can_be_set() -> None:
    assert NearRefConfig() == NearRefConfig(max_delta_bytes=50, min_body_bytes=500)
    assert extract_delta('{"a":1}', '{"a":2}', NearRefConfig(min_body_bytes=7)) == [DeltaField("a", "1", "2")]
    assert extract_delta('{"a":1}', '{"a":2}', NearRefConfig(max_delta_bytes=9, min_body_bytes=0)) is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("null", '"done"', ("", "done")),
        ("null", "7", ("", "7")),
        ("3", "null", ("3", "")),
        ("true", "false", ("true", "false")),
        ("1.50", "-2e+3", ("1.50", "-2e+3")),
        ('"a b"', '"\\u00e9\\""', ("a b", 'é"')),
    ],
)
def test_s_nr_13_scalars_are_printed_bare(old: str, new: str, said: tuple[str, str]) -> None:
    assert extract_delta(with_x(old), with_x(new)) == [DeltaField("x", *said)]


@pytest.mark.parametrize(("old", "new"), [("1", "[1]"), ("[1]", "1"), ("null", "{}"), ("{}", "null"), ("[]", "{}")])
def test_s_nr_14_a_change_to_or_from_a_container_is_refused(old: str, new: str) -> None:
    assert extract_delta(with_x(old), with_x(new)) is None


def test_s_nr_14_an_unchanged_container_is_fine() -> None:
    old, new = (body(f'"meta":{{"k":[1,{{"deep":null}}]}},"n":{n}') for n in (1, 2))
    assert extract_delta(old, new) == [DeltaField("n", "1", "2")]


def test_s_nr_15_a_key_that_comes_or_goes_is_refused_even_with_null() -> None:
    assert extract_delta(body('"a":1'), body('"a":2,"b":null')) is None
    assert extract_delta(body('"a":1,"b":null'), body('"a":2')) is None


def test_s_nr_16_no_deltas_render_the_bare_reference() -> None:
    assert render_near_ref_hint("tc_42", []) == "> [near-ref: tc_42]"


def test_s_nr_17_the_fields_follow_the_new_body() -> None:
    deltas = extract_delta(body('"a":1,"b":1'), body('"b":2,"a":2'))
    assert deltas == [DeltaField("b", "1", "2"), DeltaField("a", "1", "2")]


@pytest.mark.parametrize(
    ("old", "new"),
    [("1", '"1"'), ('"1"', "1"), ("true", '"true"'), ("null", '""'), ('"a"', "1"), ('"a"', "null"), ("2", '" 1"')],
)
def test_s_nr_18_a_changed_type_that_does_not_show_is_refused(old: str, new: str) -> None:
    assert extract_delta(with_x(old), with_x(new)) is None


@pytest.mark.parametrize(("old", "new"), [("1", "1.0"), ("1", "true"), ("false", "0"), ("0", "-0"), ("1.0", "1.00")])
def test_s_nr_18_equality_is_strict_about_types_and_spelling(old: str, new: str) -> None:
    assert extract_delta(with_x(old), with_x(new)) == [DeltaField("x", old, new)]


def test_s_nr_18_a_nested_change_of_type_is_a_change() -> None:
    assert extract_delta(body('"m":[1],"n":1'), body('"m":[true],"n":2')) is None


# The hint that is sent, and the way back.


def test_a_hint_undoes_to_the_new_body() -> None:
    old, new = sample("pending", 12), sample("success", 34)
    assert hint_for("tc_42", old, new) == HINT
    assert undo(HINT, old) == new


def test_a_hint_keeps_lexemes_order_and_nested_values() -> None:
    old = body('"z":1.50,"m":{"b":[1e5,null],"b":2},"flag":true,"": ""')
    new = body('"z":2.00,"m":{"b":[1e5,null],"b":2},"flag":false,"":"a: b"')
    hint = hint_for("call 3", old, new)
    assert hint == "> [near-ref: call 3, z: 1.50→2.00, flag: true→false, : →a: b]"
    assert undo(hint, old) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("null", '"a"'),
        ("1", "null"),
        ("1", "true"),
        ("1", '"a"'),
        ('"a"', '"b,c"'),
        ('"a]"', '"b"'),
        ('"a"', '"b→c"'),
        ('"a"', '"b\\nc"'),
        ('"a"', '"b\\u2028c"'),
        ('"a"', '"\\ud800"'),
    ],
)
def test_a_hint_that_would_be_ambiguous_is_declined(old: str, new: str) -> None:
    assert hint_for("a", with_x(old), with_x(new)) is None


@pytest.mark.parametrize("key", ["a,b", "a]", "a→b", "a\\nb", "a: b"])
def test_a_key_that_would_be_ambiguous_is_declined(key: str) -> None:
    assert hint_for("a", body(f'"a":"b: c","{key}":"c"'), body(f'"a":"b: c","{key}":"d"')) is None


@pytest.mark.parametrize("label", ["", "a,b", "a]", "a\nb"])
def test_a_label_that_would_be_ambiguous_is_declined(label: str) -> None:
    assert hint_for(label, with_x("1"), with_x("2")) is None


def test_what_a_hint_cannot_tell_is_declined() -> None:
    assert hint_for("a", body('"a":1,"b":1'), body('"b":1,"a":2')) is None
    assert hint_for("a", body('"a":1,"a":2'), body('"a":1,"a":3')) is None
    assert hint_for("a", body('"half":"\\ud800","a":1'), body('"half":"\\ud800","a":2')) is None


@pytest.mark.parametrize("depth", [10, 100, 300, 900, 3000, 100_000])
def test_a_deeply_nested_body_is_answered_and_not_raised(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    hint = hint_for("a", body(f'"n":{nested},"a":1'), body(f'"n":{nested},"a":2'))
    assert hint == ("> [near-ref: a, a: 1→2]" if depth == 10 else None)


@pytest.mark.parametrize(
    "hint",
    [
        "",
        "words",
        "> [near-ref: a]",
        "> [near-ref: a, x: 2→3]",
        "> [near-ref: a, y: 1→2]",
        "> [near-ref: a, pad: →x]",
        "> [near-ref: a, x: 1→one]",
        "> [near-ref: a, x: 1→01]",
        "> [near-ref: a, x: 1→2, x: 2→3]",
        "> [near-ref: a, x: 1→2]\n",
    ],
)
def test_a_line_that_is_no_hint_about_this_body_undoes_to_nothing(hint: str) -> None:
    assert undo(hint, with_x("1")) is None


def test_a_hint_about_no_object_undoes_to_nothing() -> None:
    assert undo("> [near-ref: a, x: 1→2]", "[1]") is None


SIGNS = st.text(st.sampled_from('ab:, ]→[>\n"\\\u2028é1.'), max_size=4)
LEXEMES = st.sampled_from(["0", "-0", "1", "1.0", "1.00", "1e2", "1E+2", "-7", "true", "false", "null", "[1]", "{}"])
SCALARS = LEXEMES | (SIGNS | st.text(max_size=3)).map(json.dumps)
TAME = st.text(st.sampled_from("abc_- :."), max_size=5)


def write(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f"{json.dumps(key)}: {lexeme}" for key, lexeme in fields.items()) + "}"


@given(st.data(), st.dictionaries(SIGNS | st.text(max_size=3), SCALARS, max_size=6), st.integers(0, 700))
def test_a_hint_is_declined_or_undoes_exactly(data: st.DataObject, fields: dict[str, str], pad: int) -> None:
    old = {**fields, "padding": json.dumps("x" * pad)}
    changes = data.draw(st.dictionaries(st.sampled_from(list(old)), SCALARS, max_size=3))
    shown, new = write(old), write({**old, **changes})
    hint = hint_for(data.draw(SIGNS), shown, new, data.draw(st.sampled_from([None, ANY])))
    if hint is not None:
        undone = undo(hint, shown)
        assert undone is not None
        assert parse(undone) == parse(new)
        assert len(hint.splitlines()) == 1
        hint.encode()


@given(
    st.dictionaries(st.text(st.sampled_from("abc_-."), min_size=1), st.tuples(TAME, TAME), min_size=1, max_size=4),
    st.tuples(st.integers(), st.integers()),
    st.tuples(st.booleans(), st.booleans()),
)
def test_a_plain_change_always_has_a_hint(
    texts: dict[str, tuple[str, str]], number: tuple[int, int], flag: tuple[bool, bool]
) -> None:
    old, new = (
        json.dumps({**{key: pair[at] for key, pair in texts.items()}, "n": number[at], "f": flag[at]}) for at in (0, 1)
    )
    hint = hint_for("tc_42", old, new, ANY)
    assert (hint is None) is (old == new)
    assert hint is None or parse(undo(hint, old) or "") == parse(new)
