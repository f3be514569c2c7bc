import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode.output_parameters import OutputRequest, ParameterError, split_arguments, with_parameters

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}


def test_a_tool_gets_three_parameters_and_keeps_its_own() -> None:
    schema, names = with_parameters(SCHEMA)

    assert list(schema["properties"]) == ["q", "format", "budget", "chunk"]
    assert schema["required"] == ["q"]
    assert names == {"format": "format", "budget": "budget", "chunk": "chunk"}
    assert list(SCHEMA["properties"]) == ["q"]  # type: ignore[call-overload]
    assert (schema["properties"]["budget"]["minimum"], schema["properties"]["budget"]["maximum"]) == (100, 100_000)


@pytest.mark.parametrize(
    ("known", "expected"),
    [(["format"], "format_"), (["format", "format_"], "format__"), (["format_"], "format")],
)
def test_a_name_that_is_taken_gets_an_underscore_then_two(known: list[str], expected: str) -> None:
    _, names = with_parameters({"properties": {name: {} for name in known}})

    assert names["format"] == expected


def test_a_schema_that_is_none_gets_one_and_one_for_no_object_is_left_alone() -> None:
    assert set(with_parameters(None)[0]["properties"]) == {"format", "budget", "chunk"}
    assert with_parameters({"type": "string"}) == ({"type": "string"}, {})


def test_what_was_asked_of_us_is_taken_out_again() -> None:
    names = with_parameters({"properties": {"format": {}}})[1]

    rest, asked = split_arguments({"format": "pdf", "format_": "json", "budget": "500", "chunk": 2.0, "x": None}, names)

    assert rest == {"format": "pdf", "x": None}
    assert asked == OutputRequest("json", 500, 2)
    assert split_arguments({}, names) == ({}, OutputRequest())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"budget": 0}, "budget = 0: expected a whole number from 100 to 100000"),
        ({"budget": 1}, "budget = 1"),
        ({"budget": -5}, "budget = -5"),
        ({"budget": 100_001}, "budget = 100001"),
        ({"budget": True}, "budget = True"),
        ({"budget": 1.5}, "budget = 1.5"),
        ({"budget": "many"}, "budget = 'many'"),
        ({"chunk": 0}, "chunk = 0: expected a whole number of 1 or more"),
        ({"format": "xml"}, "format = 'xml': expected one of auto, json, toon"),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_words(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said.replace("(", r"\(")):
        split_arguments(arguments, with_parameters(SCHEMA)[1])


@given(st.dictionaries(st.text(max_size=8), st.integers(), max_size=6))
def test_a_tool_s_own_arguments_always_come_back(arguments: dict[str, int]) -> None:
    schema = {"type": "object", "properties": {name: {} for name in arguments}}

    assert split_arguments(arguments | {"never": 1}, with_parameters(schema)[1]) == (
        arguments | {"never": 1},
        OutputRequest(),
    )
