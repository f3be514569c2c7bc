"""Which model is in force, and what the listing says of it."""

import json
from pathlib import Path

import pytest

from pagefold import config
from pagefold.cli import main
from pagefold.errors import ConfigError
from pagefold.settings.tools import FollowUpLink, ToolFieldGroup
from pagefold.tools.from_settings import registry_of
from pagefold.tools.model import CostModel, SideEffectClass, ToolValueModel, ValueClass
from pagefold.tools.registry import Layer, ToolRegistry

PURE = ToolValueModel(side_effect_class=SideEffectClass.PURE)
OPTIONAL = ToolValueModel(value_class=ValueClass.OPTIONAL)

TABLE = """
[tools."mcp__github__*"]
value_class = "supporting"
side_effect_class = "read_only"
rate_limit_host = "api.github.com"
open_world = true
invalidates = ["Read", "mcp__github__*"]
watch = ["path"]
memoise = true
speculate = false
fail_fast_after_n = 3

[[tools."mcp__github__*".follow_up]]
tool = "x"
probability = 0.6
projection = "id"
projection_arg = "n"
keep = ["repo"]
limit = 2
most = 9
constants = {full = true}

[tools."mcp__github__*".cost_model]
typical_kb = 2.5
max_kb = 10.0
latency_ms_p50 = 300
dollars = 0.01
freshness_ttl_s = 60

[tools."mcp__github__*".field_groups.more]
fields = ["body"]
estimated_value = 0.25
default_include = false

[prefetch]
hosts = ["api.github.com"]
parallel = 2
"""


@pytest.mark.parametrize(
    ("tool", "pattern", "layer"),
    [
        ("mcp__s__get", "mcp__s__get", Layer.USER),
        ("mcp__s__other", "mcp__s__*", Layer.USER),
        ("mcp__t__x", "mcp__*", Layer.USER),
        ("Read", "Read", Layer.SHIPPED),
        ("mcp__filesystem__read_file", "mcp__filesystem__read_file", Layer.LEARNED),
        ("filesystem-read_file", "mcp__filesystem__read_file", Layer.LEARNED),
        ("filesystem_read_file", "mcp__filesystem__read_file", Layer.LEARNED),
        ("anything", "*", Layer.USER),
    ],
)
def test_a_name_goes_before_a_glob_and_that_before_the_star(tool: str, pattern: str, layer: Layer) -> None:
    found = ToolRegistry(dict.fromkeys(("*", "mcp__*", "mcp__s__*", "mcp__s__get"), OPTIONAL)).find(tool)

    assert found is not None
    assert (found.pattern, found.layer) == (pattern, layer)


def test_nothing_is_known_where_no_entry_matches() -> None:
    assert ToolRegistry().find("unheard_of") is None


def test_a_link_is_spelled_as_the_tool_before_it() -> None:
    registry = ToolRegistry()

    assert registry.next_tool("filesystem-list_directory", "mcp__pdf-tools__get_pdf_info") == "pdf-tools-get_pdf_info"
    assert registry.next_tool("mcp__filesystem__list_directory", "mcp__excel__x") == "mcp__excel__x"
    assert registry.next_tool("Grep", "Read") == "Read"


def test_a_server_is_known_however_its_tools_are_spelled() -> None:
    assert [ToolRegistry().server(name) for name in ("google-cloud-bigquery_run_query", "mcp__a__b", "Read")] == [
        "google-cloud", "a", None
    ]  # fmt: skip


def test_the_listing_tells_what_another_layer_replaced() -> None:
    entries = ToolRegistry({"Read": OPTIONAL}).entries()
    rows = [(match.layer, in_force) for match, in_force in entries if match.pattern == "Read"]

    assert rows == [(Layer.USER, True), (Layer.SHIPPED, False)]


def test_a_users_table_says_all_that_a_model_can(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(TABLE)
    settings = config.load({"config": "own.toml"}, {}, tmp_path).settings

    assert {table.name: ToolValueModel.of(table) for table in settings.tools} == {
        "mcp__github__*": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            field_groups={"more": ToolFieldGroup(("body",), 0.25, default_include=False)},
            cost_model=CostModel(2.5, 10.0, 300, 0.01, 60),
            follow_up=(FollowUpLink("x", 0.6, "id", "n", ("repo",), (("full", True),), 2, 9),),
            invalidates=("Read", "mcp__github__*"),
            fail_fast_after_n=3,
            side_effect_class=SideEffectClass.READ_ONLY,
            rate_limit_host="api.github.com",
            speculate=False,
            open_world=True,
            watch=("path",),
            memoise=True,
        )
    }
    assert (settings.prefetch.hosts, settings.prefetch.parallel) == (("api.github.com",), 2)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('value_class = "high"', 'tools.x.value_class = "high": expected one of critical, supporting'),
        ("invalidates = [1]", "tools.x.invalidates = a list: expected a list of names"),
        ("follow_up = [{probability = 1.0}]", "tools.x.follow_up = a list: expected a list of tables with tool"),
        ('follow_up = [{tool = "a", odds = 1.0}]', "tools.x.follow_up = a list: expected a list of tables with tool"),
        ("field_groups.a.fields = 1", "tools.x.field_groups = a table: expected tables with fields"),
        ("cost_model.typical_kb = -1", "tools.x.cost_model.typical_kb = -1: expected a number of at least 0"),
    ],
)
def test_a_table_that_will_not_do_is_refused(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f"[tools.x]\n{line}\n")

    with pytest.raises(ConfigError) as refused:
        config.load({"config": "own.toml"}, {}, tmp_path)

    assert str(refused.value).startswith(f"own.toml:2: {message}")


@pytest.mark.parametrize(
    "line",
    ['tools.x.side_effect_class = "pure"', "tools.x.open_world = false", "tools.x.memoise = true",
     'prefetch.hosts = ["evil.example"]', 'tools.x.rate_limit_host = "a"'],
)  # fmt: skip
def test_a_projects_file_loosens_nothing(line: str, tmp_path: Path) -> None:
    (tmp_path / "pagefold.toml").write_text(line)

    with pytest.raises(ConfigError, match="not in a project's file"):
        config.load({}, {}, tmp_path)


def test_a_projects_file_may_be_stricter(tmp_path: Path) -> None:
    (tmp_path / "pagefold.toml").write_text('[tools.Read]\nside_effect_class = "mutates_local"\nspeculate = false\n')

    found = registry_of(config.load({}, {}, tmp_path).settings).find("Read")

    assert found is not None
    assert not found.model.is_speculatable()


def test_the_command_tells_layer_entry_and_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[tools."mcp__x__*"]\nvalue_class = "optional"\n')
    asked = ["tools", "--config", str(own), "--json", "mcp__x__y", "Bash", "filesystem-read_file", "unheard_of"]

    assert main(asked) == 0

    rows = json.loads(capsys.readouterr().out)
    told = [(row["tool"], row["layer"], row["entry"], row["model"] and row["model"]["is_speculatable"]) for row in rows]
    assert told == [
        ("mcp__x__y", "user", "mcp__x__*", False),
        ("Bash", "shipped", "Bash", False),
        ("filesystem-read_file", "learned", "mcp__filesystem__read_file", True),
        ("unheard_of", None, None, None),
    ]


def test_the_command_lists_every_entry_in_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[tools.Read]\nvalue_class = "optional"\n[tools."*"]\nvalue_class = "optional"\n')

    assert main(["tools", "--config", str(own), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["tool"]: row["layer"] for row in rows}.items() >= {
        "Read": "user",
        "*": "user",
        "Grep": "shipped",
    }.items()
    assert len({row["tool"] for row in rows}) == len(rows)

    assert main(["tools", "--config", str(own), "--layer", "user"]) == 0
    shown = capsys.readouterr().out
    assert "Read" in shown
    assert "Grep" not in shown
