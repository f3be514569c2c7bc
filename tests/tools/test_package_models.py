"""The tool models in shipped.toml and learned.toml keep to the rules of a user's own `[tools.NAME]` tables."""

import pytest

from pagefold.package_data import package_toml
from pagefold.settings.knobs import KNOBS, generic_path, setting_values
from pagefold.tools.defaults import learned_tool_value_models
from pagefold.tools.model import SideEffectClass

SHIPPED, LEARNED = (package_toml("pagefold.tools", name) for name in ("shipped.toml", "learned.toml"))
TOOLS = [*setting_values(SHIPPED["tools"], ("tools",)), *setting_values(LEARNED["tools"], ("tools",))]
SERVERS = LEARNED["servers"]


@pytest.mark.parametrize(("path", "value"), TOOLS, ids=[".".join(path) for path, _ in TOOLS])
def test_each_value_of_a_table_is_one_that_a_settings_file_may_hold(path: tuple[str, ...], value: object) -> None:
    assert KNOBS[generic_path(path)].rule.admits(value)


def test_a_file_holds_tables_of_tools_and_of_servers_and_nothing_else() -> None:
    assert (set(SHIPPED), set(LEARNED)) == ({"tools"}, {"tools", "servers"})


@pytest.mark.parametrize("server", SERVERS, ids=[server["names"][0] for server in SERVERS])
def test_each_line_of_a_server_is_an_effect_and_two_sizes_or_none(server: dict[str, object]) -> None:
    assert {"names", "tools"} <= set(server) <= {"names", "tools", "host"}
    assert isinstance(server["names"], list)
    assert isinstance(server["tools"], dict)
    assert isinstance(server.get("host", ""), str)
    for effect, *sizes in server["tools"].values():
        assert effect in list(SideEffectClass)
        assert len(sizes) in (0, 2)
        assert sizes == sorted(sizes)
        assert all(type(size) is float and size >= 0 for size in sizes)


def test_no_server_stands_in_the_file_twice() -> None:
    names = [name for server in SERVERS for name in server["names"]]

    assert len(names) == len(set(names))


def test_a_table_of_a_servers_tool_adds_the_files_it_reads_and_what_follows() -> None:
    lines = {f"mcp__{name}__{tool}" for server in SERVERS for name in server["names"] for tool in server["tools"]}
    named = {name: table for name, table in LEARNED["tools"].items() if name.startswith("mcp__")}
    models = learned_tool_value_models()

    assert set(named) <= lines <= set(models)
    for name, table in named.items():
        assert set(table) <= {"watch", "follow_up"}
        assert list(models[name].watch) == table.get("watch", [])
        assert [link.tool for link in models[name].follow_up] == [link["tool"] for link in table.get("follow_up", [])]
        assert models[name].side_effect_class is not SideEffectClass.INDETERMINATE
