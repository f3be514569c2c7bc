"""Arguments out of answers: checklist S-PJ, and where the original was wrong."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.settings.tools import FollowUpLink
from pagefold.tools.projection import PROVIDERS, candidates, extract_host, likeliest, opened


def arguments_for(
    tool: str, result: Any, wanted: FollowUpLink, arguments: dict[str, Any] | None = None
) -> Sequence[dict[str, Any]]:
    return likeliest(candidates(tool, result, wanted, arguments or {}), wanted)


def link(tool: str, projection: str | None = "path", arg: str | None = "file_path", **more: Any) -> FollowUpLink:
    return FollowUpLink(tool, 1.0, projection, arg, **more)


def paths(*names: str) -> list[dict[str, str]]:
    return [{"file_path": name} for name in names]


HITS = "src/main.rs:10:fn foo() {}\nsrc/main.rs:42:fn bar() {}\nsrc/lib.rs:5:fn baz() {}\nsrc/db.rs:1:use std;\n"
WEB = {"results": [{"title": "A", "url": "https://example.com/a"}, {"title": "B", "url": "https://example.com/b"}]}
NESTED = {"outer": {"inner": [{"id": 1, "deep": {"target_field": "value-1"}}, {"deep": {"target_field": "value-2"}}]}}
KEYS = {"items": [{"key": "k1"}, {"key": "k2"}]}

CASES = [
    ("S-PJ-1", "Glob", ["src/main.rs", "src/lib.rs", "src/api.rs", "src/db.rs"], link("Read", "match_path"),
     paths("src/main.rs", "src/lib.rs", "src/api.rs")),
    ("S-PJ-2", "Glob", [{"path": "a.rs", "size": 100}, {"path": "b.rs", "size": 200}], link("Read"),
     paths("a.rs", "b.rs")),
    ("S-PJ-3", "Glob", "src/main.rs\n\nsrc/lib.rs\n  src/api.rs  \n", link("Read", "match_path"),
     paths("src/main.rs", "src/lib.rs", "src/api.rs")),
    ("S-PJ-4", "Grep", HITS, link("Read"), paths("src/main.rs", "src/lib.rs", "src/db.rs")),
    ("S-PJ-5", "Grep", [{"path": "a.rs"}, {"path": "a.rs"}, {"path": "b.rs"}], link("Read"), paths("a.rs", "b.rs")),
    ("S-PJ-6", "WebSearch", WEB, link("WebFetch", "url", "url"), [{"url": "https://example.com/a"}]),
    ("S-PJ-7", "custom_list", NESTED, link("custom_get", "target_field", "identifier"),
     [{"identifier": "value-1"}, {"identifier": "value-2"}]),
    ("S-PJ-8", "prev", {"x": 1}, link("next", None, None), []),
    ("S-PJ-15", "produce", KEYS, link("consume", "key", "name"), [{"name": "k1"}, {"name": "k2"}]),
    ("S-PJ-17", "Glob", ["a.rs"], link("Read", "path", None), paths("a.rs")),
    ("S-PJ-17", "Grep", "a.rs:1:x", link("Edit", "path", None), paths("a.rs")),
    ("S-PJ-17", "WebSearch", WEB, link("WebFetch", "url", None), [{"url": "https://example.com/a"}]),
    ("S-PJ-17", "produce", KEYS, link("consume", "key", None), []),
    ("S-PJ-18", "Glob", ["a", {"path": "b"}, {"match_path": "c"}], link("Read"), paths("a", "b", "c")),
    ("S-PJ-18", "Glob", ["a", 7, {"size": 1}, "a"], link("Read"), paths("a", "a")),
    ("S-PJ-18", "Glob", {"path": "a"}, link("Read"), []),
    ("S-PJ-18", "Glob", 7, link("Read"), []),
    ("S-PJ-19", "Grep", " a.rs :1:x\nb.rs\n:leading\n", link("Read"), paths("a.rs", "b.rs")),
    ("S-PJ-20", "Grep", ["bare", {"path": "a"}, {"file": "b"}, {"path": "a"}, {"path": "c"}, {"path": "d"}],
     link("Read"), paths("a", "b", "c")),
    ("S-PJ-21", "WebSearch", [{"url": 5}, {"title": "x"}, {"url": "https://b"}], link("WebFetch", "url", "url"),
     [{"url": "https://b"}]),
    ("S-PJ-21", "WebSearch", {"results": "none"}, link("WebFetch", "url", "url"), []),
    ("S-PJ-21", "WebSearch", {"url": "https://b"}, link("WebFetch", "url", "url"), []),
    ("S-PJ-22", "a", {"k": {"k": 1}, "l": [{"k": [2]}, {"k": None}]}, link("b", "k", "v"),
     [{"v": {"k": 1}}, {"v": 1}, {"v": [2]}]),
    ("S-PJ-22", "a", [{"k": 1}, {"k": 1}], link("b", "k", "v"), [{"v": 1}, {"v": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("checklist", "tool", "result", "wanted", "arguments"), CASES)
def test_an_answer_gives_the_next_calls_arguments(
    checklist: str, tool: str, result: Any, wanted: FollowUpLink, arguments: list[dict[str, Any]]
) -> None:
    assert arguments_for(tool, result, wanted) == arguments, checklist


# As text, a number is a line like any other.
@pytest.mark.parametrize(
    ("checklist", "tool", "result", "wanted", "arguments"), [case for case in CASES if case[2] != 7]
)
@pytest.mark.parametrize(
    "envelope",
    [
        json.dumps,
        lambda value: {"type": "text", "text": value if isinstance(value, str) else json.dumps(value)},
        lambda value: {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]},
        lambda value: json.dumps([{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]),
        lambda value: {"content": [{"type": "text", "text": "?"}], "structuredContent": {"result": value}},
    ],
    ids=["json text", "block", "mcp result", "list of blocks", "structured"],
)
def test_text_and_envelopes_are_opened_first(
    checklist: str, tool: str, result: Any, wanted: FollowUpLink, arguments: list[dict[str, Any]], envelope: Any
) -> None:
    assert arguments_for(tool, envelope(result), wanted) == arguments, checklist


@pytest.mark.parametrize(
    ("checklist", "url", "host"),
    [
        ("S-PJ-9", "https://api.github.com/repos/x/y", "api.github.com"),
        ("S-PJ-9", "https://gitlab.example.com/project/-/issues", "gitlab.example.com"),
        ("S-PJ-10", "http://Example.COM:8080/foo", "example.com"),
        ("S-PJ-10", "https://API.OPENAI.COM", "api.openai.com"),
        ("S-PJ-11", "https://user:pass@host.example.org/x", "host.example.org"),
        ("S-PJ-11", "ftp://anonymous@ftp.example.org", "ftp.example.org"),
        ("S-PJ-12", "https://[::1]:80/p", "[::1]"),
        ("S-PJ-12", "http://[2001:db8::1]/foo", "[2001:db8::1]"),
        ("S-PJ-13", "/local/path", None),
        ("S-PJ-13", "just-a-string", None),
        ("S-PJ-13", "", None),
        ("S-PJ-13", "https://", None),
        ("S-PJ-14", "https://example.com/foo?bar=1&baz=2", "example.com"),
        ("S-PJ-14", "https://example.com#anchor", "example.com"),
        ("S-PJ-16", "https://user:p@host.example.org/x", "host.example.org"),
        ("S-PJ-23", "https://a@b@c.example/x", "c.example"),
        ("S-PJ-23", "https://x.example?u=http://y.example", "x.example"),
        ("S-PJ-23", "https://[::1", None),
        ("S-PJ-23", "https://:80", None),
        ("S-PJ-23", "https://BÜCHER.example", "bÜcher.example"),
        ("S-PJ-23", "urn:isbn:1", None),
        ("S-PJ-23", "mailto:a@b.example", None),
    ],
)
def test_the_host_of_an_address(checklist: str, url: str, host: str | None) -> None:
    assert extract_host(url) == host, checklist


@given(st.text())
def test_any_text_has_a_host_or_none(text: str) -> None:
    host = extract_host(text)
    assert host is None or ("://" in text and host != "")


# ---- what the original got wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status",
    ["No files found", "No matches found", "Found 12 files", "(Results are truncated. Use a path.)", "--", "Error: no"],
)
@pytest.mark.parametrize("tool", ["Glob", "Grep"])
def test_a_status_is_no_path(tool: str, status: str) -> None:
    assert arguments_for(tool, f"{status}\nsrc/a.py\n", link("Read")) == paths("src/a.py")


def test_a_file_whose_name_begins_like_a_status_is_a_path() -> None:
    assert arguments_for("Glob", "error.rs\nfound.py", link("Read")) == paths("error.rs", "found.py")


def test_windows_paths_keep_their_drive() -> None:
    hits = "C:\\src\\a.rs:10:x\nC:\\src\\a.rs:11:y\nd:/b.rs:1:z\n"
    assert arguments_for("Grep", hits, link("Read")) == paths("C:\\src\\a.rs", "d:/b.rs")


def test_a_line_around_a_hit_is_its_file() -> None:
    assert arguments_for("Grep", "a.rs:2:x\na.rs-3-y z\n--\nb.rs-7-w", link("Read")) == paths("a.rs", "b.rs")


def test_a_link_that_only_informs_gives_nothing() -> None:
    assert arguments_for("Glob", ["a.rs"], FollowUpLink("Grep", 0.13)) == []


def test_json_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    cut = '{"items": [{"id": 1, "name": "a \\"b\\""}, {"id": 22, "name": "c"}, {"id": 3'
    assert arguments_for("list", cut, link("get", "id", "id")) == [{"id": 1}, {"id": 22}]
    assert arguments_for("list", cut, link("get", "name", "n")) == [{"n": 'a "b"'}, {"n": "c"}]


def test_a_python_literal_is_opened() -> None:
    told = "{'filename': 'x.xlsx', 'sheets': ['One', 'Two']}"
    found = arguments_for("meta", told, link("read", "sheets[]", "sheet", keep=("filepath",)), {"filepath": "/x.xlsx"})
    assert found == [{"filepath": "/x.xlsx", "sheet": "One"}, {"filepath": "/x.xlsx", "sheet": "Two"}]


def test_named_lines_are_fields() -> None:
    text = "Folder: Sent\n\n1. ID: 3\n   Subject: hello\n\n2. ID: 2\n- DATABASE_NAME: SHOP\n"
    assert arguments_for("mails", text, link("mail", "ID", "email_id")) == [{"email_id": "3"}, {"email_id": "2"}]
    assert arguments_for("dbs", text, link("schemas", "DATABASE_NAME", "database")) == [{"database": "SHOP"}]


def test_an_argument_that_is_to_be_kept_and_is_not_there_gives_nothing() -> None:
    assert arguments_for("a", {"k": 1}, link("b", "k", "v", keep=("repo",)), {}) == []


def test_kept_and_constant_arguments_go_along() -> None:
    wanted = link("b", "k", "v", keep=("repo",), constants=(("full", True),))
    assert arguments_for("a", {"k": 1}, wanted, {"repo": "r", "page": 2}) == [{"full": True, "repo": "r", "v": 1}]
    assert arguments_for("a", None, link("b", "$call", None, keep=("repo",)), {"repo": "r"}) == [{"repo": "r"}]


def test_of_a_list_that_is_too_long_nothing_is_guessed() -> None:
    assert arguments_for("a", [{"k": n} for n in range(5)], link("b", "k", "v", most=4)) == []
    assert len(arguments_for("a", [{"k": n} for n in range(4)], link("b", "k", "v", most=4, limit=2))) == 2


@pytest.mark.parametrize("folder", ["/w", "/w/"])
def test_a_directory_leads_to_its_text_files(folder: str) -> None:
    listing = "[DIR] src\n[FILE] a.md\n[FILE] b.pdf\n[FILE] .env\n[FILE] c d.csv"
    found = arguments_for(
        "mcp__filesystem__list_directory", listing, link("mcp__filesystem__read_file"), {"path": folder}
    )
    assert found == [{"path": "/w/a.md"}, {"path": "/w/c d.csv"}]
    pdf = link("mcp__pdf-tools__get_pdf_info", "$files.pdf", "pdf_file_path")
    assert arguments_for("mcp__filesystem__list_directory", listing, pdf, {"path": folder}) == [
        {"pdf_file_path": "/w/b.pdf"}
    ]


def test_a_list_of_issues_leads_to_each_issue() -> None:
    repository = {"owner": "o", "repo": "r"}
    found = arguments_for(
        "mcp__github__list_issues", [{"number": 7}, {"x": 1}], link("mcp__github__get_issue"), repository
    )
    assert found == [{"owner": "o", "repo": "r", "issue_number": 7}]
    assert arguments_for("mcp__github__list_issues", [{"number": 7}], link("mcp__github__get_issue"), {}) == []


def test_merge_requests_lead_to_their_discussions() -> None:
    found = arguments_for(
        "mcp__gitlab__list_merge_requests", {"items": [{"iid": 4}]}, link("mcp__gitlab__mr_discussions"),
        {"project_id": "g/p"},
    )  # fmt: skip
    assert found == [{"project_id": "g/p", "merge_request_iid": 4}]
    ours = arguments_for("get_merge_requests", [{"id": 9}], link("get_merge_request_discussions"), {})
    assert ours == [{"merge_request_id": 9}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["k", "path", "url"]), inner),
    max_leaves=20,
)
TOOLS = st.sampled_from(["Glob", "Grep", "WebSearch", "x", *(before.replace("*", "m") for before, _, _ in PROVIDERS)])
NEXT = st.sampled_from(["Read", "Edit", "WebFetch", "y", *(after.replace("*", "m") for _, after, _ in PROVIDERS)])


@given(TOOLS, NEXT, JSON | JSON.map(json.dumps) | st.text(), st.sampled_from([None, "k", "path", "$items", "$urls"]))
def test_any_answer_gives_at_most_three_objects(before: str, after: str, result: Any, projection: str | None) -> None:
    found = arguments_for(before, result, link(after, projection, "v"), {"path": "/p", "owner": "o", "repo": "r"})

    assert len(found) <= 3
    assert all(isinstance(one, dict) for one in found)
    assert (
        found == candidates(before, result, link(after, projection, "v"), {"path": "/p", "owner": "o", "repo": "r"})[:3]
    )


@given(JSON)
def test_a_value_and_its_json_text_open_alike(value: Any) -> None:
    if isinstance(value, dict | list):
        assert opened(json.dumps(value)) == opened(value)


def test_a_deep_answer_is_no_trouble() -> None:
    deep: Any = {"k": 1}
    for _ in range(100_000):
        deep = [deep]
    assert arguments_for("a", deep, link("b", "k", "v")) == [{"v": 1}]
    assert arguments_for("a", "[" * 100_000, link("b", "k", "v")) == []
