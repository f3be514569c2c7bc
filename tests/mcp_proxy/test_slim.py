"""Tools in fewer tokens: the same instances are admitted, names stay, and the whole is there on demand."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.mcp_proxy.listing import ToolListing
from pagefold.mcp_proxy.relay import ListPage
from pagefold.mcp_proxy.slim import DESCRIBE, described_in_full, lazy, same, schema_in_fewer_words, signature
from pagefold.tokens import counter
from tests.mcp_proxy.peer import Peer, program

NAMES = st.sampled_from(["a", "b", "title", "description", "id"])
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])
LEAVES = st.one_of(
    st.fixed_dictionaries({"type": TYPES}, optional={"title": st.just("T"), "description": st.just("Says. More.")}),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from([1, 1.0, True, "x", None, {"title": 1}]), min_size=1)}),
    st.fixed_dictionaries({"const": st.sampled_from([0, False, "title"])}),
    st.fixed_dictionaries({"type": st.just("string"), "minLength": st.integers(0, 2), "default": st.just("x")}),
    st.fixed_dictionaries({"anyOf": st.lists(st.fixed_dictionaries({"type": TYPES}), min_size=1, max_size=3)}),
    st.booleans(),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
            optional={
                "required": st.lists(NAMES, max_size=2, unique=True),
                "additionalProperties": st.one_of(st.booleans(), st.just({}), inner),
                "title": st.just("Object"),
                "$comment": st.just("c"),
            },
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"minItems": st.integers(0, 1)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}, optional={"title": st.just("x")}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, 1.5, "", "x", "title"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def admits(schema: Any, value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@settings(deadline=None, max_examples=400)
@given(SCHEMAS, st.lists(VALUES, min_size=3, max_size=8))
def test_a_smaller_schema_admits_the_same(schema: Any, values: list[Any]) -> None:
    smaller = schema_in_fewer_words(schema)
    assert [admits(smaller, value) for value in values] == [admits(schema, value) for value in values]
    assert len(json.dumps(smaller)) <= len(json.dumps(schema))


@pytest.mark.parametrize(
    ("schema", "smaller"),
    [
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}, {"type": "object"}),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
            {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
        ),
        ({"properties": {"title": {"type": "string", "title": "T"}}}, {"properties": {"title": {"type": "string"}}}),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            {"type": ["string", "null"], "default": None},
        ),
        ({"enum": [{"title": 1}]}, {"enum": [{"title": 1}]}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        (
            {"allOf": [{"additionalProperties": True}], "unevaluatedProperties": False},
            {"allOf": [{"additionalProperties": True}], "unevaluatedProperties": False},
        ),
    ],
)
def test_what_says_nothing_goes_and_what_says_something_stays(schema: Any, smaller: Any) -> None:
    assert schema_in_fewer_words(schema) == smaller


TOOL = {
    "name": "merge_request",
    "description": "Merge a request. Use it only after checks; it changes the repository.\n\n- long list",
    "inputSchema": {
        "type": "object",
        "properties": {
            "project_id": {"type": "string", "description": "The project or its URL-encoded path"},
            "request_id": {"type": "string", "description": "The ID of the request"},
            "squash": {"type": "boolean", "description": "Squash commits into one. Needs permission."},
        },
        "required": ["project_id"],
    },
    "annotations": {"openWorldHint": True, "readOnlyHint": False, "destructiveHint": False},
}


def test_a_tool_keeps_its_name_arguments_and_hints() -> None:
    first, second = same([TOOL, {**TOOL, "name": "close_request"}])
    assert first["name"] == "merge_request"
    assert first["annotations"] == {"destructiveHint": False}, "the other two are what is assumed anyway"
    assert first["inputSchema"]["properties"]["project_id"]["description"] == "The project or its URL-encoded path"
    assert "description" not in first["inputSchema"]["properties"]["request_id"], "the name says as much"
    assert "description" not in second["inputSchema"]["properties"]["project_id"], "it was said above"
    assert first["inputSchema"]["properties"]["squash"]["description"] == "Squash commits into one."


def test_a_lazy_tool_is_a_signature() -> None:
    (tool,) = lazy([TOOL])
    assert tool["inputSchema"] == {"type": "object"}
    assert tool["description"] == "(project_id,request_id?,squash?)"
    assert signature({"properties": {name: {} for name in "abcdef"}, "required": ["a", "b", "c", "d"]}) == "(a,b,c,d,…)"


def test_the_whole_description_is_there_on_demand() -> None:
    listing = ToolListing(lazy, [DESCRIBE])
    listed = json.loads(listing(json.dumps({"tools": [TOOL]}), ListPage(last=True, only_text=False)))
    assert [tool["name"] for tool in listed["tools"]] == ["merge_request", "context_describe"]
    assert json.loads(described_in_full(listing.whole, {"tools": ["merge_request"]})) == TOOL
    assert "known are merge_request" in described_in_full(listing.whole, {"tools": ["nothing"]})


def test_a_list_that_nobody_wants_smaller_stays_as_it_came() -> None:
    text = json.dumps({"tools": [TOOL, {"name": "b", "inputSchema": {"x": 1.10}}], "_meta": {"a": 1}}, indent=2)
    assert ToolListing(None, [])(text, ListPage(last=True, only_text=False)) == text


def test_a_real_list_of_118_tools_is_under_half_and_under_a_sixth(tmp_path: Path) -> None:
    command = [program("mcp-gitlab")]
    more = {"GITLAB_API_URL": "http://127.0.0.1:9/api/v4", "GITLAB_PERSONAL_ACCESS_TOKEN": "none"}
    with Peer(command, tmp_path, more) as peer:
        peer.greet()
        tools = peer.ask("tools/list")["result"]["tools"]
    count = counter("o200k").count

    def tokens(listed: list[Any]) -> int:
        return count(json.dumps(listed, separators=(",", ":"), ensure_ascii=False))

    assert len(tools) == 118
    smaller, signatures = same(tools), lazy(tools)
    assert tokens(smaller) <= 0.45 * tokens(tools)
    assert tokens(signatures) <= 0.15 * tokens(tools)
    assert (
        [tool["name"] for tool in smaller] == [tool["name"] for tool in signatures] == [tool["name"] for tool in tools]
    )
    for tool, less in zip(tools, smaller, strict=True):
        for value in (
            {},
            {"project_id": "1"},
            {"project_id": 1},
            {"project_id": "1", "merge_request_iid": "2", "x": None},
        ):
            assert admits(less["inputSchema"], value) == admits(tool["inputSchema"], value)
