"""The shipped models: checklist S-TD, cell by cell."""

from typing import Any

import pytest

from pagefold.settings.tools import FollowUpLink, ToolFieldGroup
from pagefold.tools.defaults import default_tool_value_models, learned_tool_value_models
from pagefold.tools.model import CostModel, SideEffectClass, ToolValueModel, ValueClass
from pagefold.tools.prefetch import NEVER, may_dispatch
from pagefold.tools.registry import Layer, ToolRegistry

MODELS = default_tool_value_models()
SIX = ("Bash", "Agent", "Edit", "Write", "MultiEdit", "NotebookEdit")
AUDIT = ("TaskUpdate", "TaskCreate", "TaskGet", "TaskList", "TodoWrite")

# tool: class, typical kB, largest kB, latency, freshness, effect, fail fast
TABLE: dict[str, tuple[Any, ...]] = {
    "Read": ("critical", 2.5, 43.0, 50, None, "pure", None),
    "Edit": ("supporting", 0.2, 1.0, 20, None, "mutates_local", None),
    "Write": ("supporting", 0.2, None, None, None, "mutates_local", None),
    "MultiEdit": ("supporting", 0.2, None, None, None, "mutates_local", None),
    "NotebookEdit": ("supporting", 0.5, None, None, None, "mutates_local", None),
    "Bash": ("critical", 0.2, 9.0, 200, None, "indeterminate", None),
    "Grep": ("critical", 0.3, 10.5, 80, None, "pure", None),
    "Glob": ("supporting", 0.2, 16.6, 60, None, "read_only", None),
    "WebSearch": ("supporting", 3.1, 7.2, 900, 3600, "read_only", None),
    "WebFetch": ("supporting", 1.2, 24.0, 800, 900, "read_only", None),
    **dict.fromkeys(AUDIT, ("audit_only", 1.0, None, None, None, "indeterminate", None)),
    "ToolSearch": ("supporting", 0.0, 0.1, None, None, "read_only", 2),
    "Agent": ("supporting", 6.5, 23.7, 60_000, None, "indeterminate", None),
}
LINKS: dict[str, list[tuple[Any, ...]]] = {
    "Read": [("Read", 0.45, None, None)],
    "Edit": [("Bash", 0.27, None, None), ("Read", 0.14, None, None)],
    "Grep": [("Read", 0.35, "path", "file_path"), ("Edit", 0.07, "path", "file_path"), ("Grep", 0.39, None, None)],
    "Glob": [("Read", 0.32, "match_path", "file_path"), ("Grep", 0.13, None, None), ("Glob", 0.41, None, None)],
    "WebSearch": [("WebFetch", 0.65, "url", "url")],
}
INVALIDATES = {
    "Edit": ["Read", "Grep"],
    "Write": ["Read", "Grep", "Glob"],
    "MultiEdit": ["Read", "Grep"],
    "NotebookEdit": ["Read"],
}


@pytest.mark.requirement("S-TD-1")
def test_the_common_tools_have_models() -> None:
    wanted = "Read Edit Write Bash Grep Glob WebSearch WebFetch TaskUpdate TodoWrite ToolSearch Agent"
    assert set(wanted.split()) <= set(MODELS)


@pytest.mark.requirement("S-TD-2")
@pytest.mark.requirement("S-TD-11")
@pytest.mark.parametrize("tool", AUDIT)
def test_what_is_for_the_record_is_outside_the_budget_and_never_run_early(tool: str) -> None:
    assert MODELS[tool].value_class is ValueClass.AUDIT_ONLY
    assert MODELS[tool].excluded_from_budget()
    assert not MODELS[tool].is_speculatable()


@pytest.mark.requirement("S-TD-3")
def test_read_is_critical_and_typically_two_and_a_half_kilobytes() -> None:
    assert (MODELS["Read"].value_class, MODELS["Read"].cost_model.typical_kb) == (ValueClass.CRITICAL, 2.5)


@pytest.mark.requirement("S-TD-4")
def test_grep_leads_to_read_and_to_edit_by_path() -> None:
    links = {link.tool: link.projection for link in MODELS["Grep"].follow_up}
    assert (links["Read"], links["Edit"]) == ("path", "path")


@pytest.mark.requirement("S-TD-5")
def test_snippets_go_first() -> None:
    groups = MODELS["WebSearch"].field_groups
    assert groups["must_have"] == ToolFieldGroup(("title", "url"), 1.0, default_include=True)
    assert groups["nice_to_have"] == ToolFieldGroup(("snippet",), 0.3, default_include=False)


@pytest.mark.requirement("S-TD-6")
@pytest.mark.parametrize("tool", SIX)
def test_what_writes_or_may_write_is_never_run_early(tool: str) -> None:
    assert not MODELS[tool].is_speculatable()
    assert not may_dispatch(tool, ToolRegistry().find(tool), {})
    assert tool.casefold() in NEVER


@pytest.mark.requirement("S-TD-7")
@pytest.mark.parametrize("tool", ["Read", "Grep", "Glob", "WebSearch", "WebFetch", "ToolSearch"])
def test_what_only_reads_may_be_run_early_by_its_class(tool: str) -> None:
    assert MODELS[tool].is_speculatable()


@pytest.mark.requirement("S-TD-8")
def test_tool_search_gives_up_after_two_empty_answers() -> None:
    assert MODELS["ToolSearch"].fail_fast_after_n == 2


@pytest.mark.requirement("S-TD-9")
@pytest.mark.parametrize("tool", ["Edit", "Write", "MultiEdit"])
def test_what_writes_files_makes_reads_old(tool: str) -> None:
    assert "Read" in MODELS[tool].invalidates


@pytest.mark.requirement("S-TD-10")
def test_there_are_exactly_seventeen() -> None:
    assert sorted(MODELS) == sorted(TABLE)
    assert len(MODELS) == 17


@pytest.mark.requirement("S-TD-10")
@pytest.mark.parametrize("tool", TABLE)
def test_every_cell_is_the_tables(tool: str) -> None:
    model, cost = MODELS[tool], MODELS[tool].cost_model
    row = (model.value_class, cost.typical_kb, cost.max_kb, cost.latency_ms_p50, cost.freshness_ttl_s)
    assert (*row, model.side_effect_class, model.fail_fast_after_n) == TABLE[tool]
    links = [(link.tool, link.probability, link.projection, link.projection_arg) for link in model.follow_up]
    assert links == LINKS.get(tool, [])
    assert list(model.invalidates) == INVALIDATES.get(tool, [])
    assert (cost.dollars, model.rate_limit_host, model.speculate) == (None, None, None)
    assert bool(model.field_groups) is (tool == "WebSearch")


@pytest.mark.requirement("S-TD-12")
def test_effects_are_what_the_tools_do() -> None:
    local = {tool for tool, model in MODELS.items() if model.side_effect_class is SideEffectClass.MUTATES_LOCAL}
    assert local == {"Edit", "Write", "MultiEdit", "NotebookEdit"}
    assert {MODELS[tool].side_effect_class for tool in ("Bash", "Agent")} == {SideEffectClass.INDETERMINATE}


@pytest.mark.requirement("S-TD-13")
def test_a_new_file_makes_globs_old_and_a_notebook_only_reads() -> None:
    assert "Glob" in MODELS["Write"].invalidates
    assert MODELS["NotebookEdit"].invalidates == ("Read",)


@pytest.mark.requirement("S-TD-14")
def test_a_users_entry_replaces_the_shipped_one_as_a_whole_and_the_others_stay() -> None:
    registry = ToolRegistry({"Read": ToolValueModel(value_class=ValueClass.OPTIONAL)})

    read, grep = registry.find("Read"), registry.find("Grep")

    assert read is not None
    assert grep is not None
    assert (read.layer, read.model) == (Layer.USER, ToolValueModel(value_class=ValueClass.OPTIONAL))
    assert not read.model.is_speculatable()
    assert (grep.layer, grep.model) == (Layer.SHIPPED, MODELS["Grep"])


def test_what_nobody_stated_has_the_types_defaults() -> None:
    model = ToolValueModel()

    assert (model.value_class, model.side_effect_class) == (ValueClass.CRITICAL, SideEffectClass.INDETERMINATE)
    assert model.cost_model == CostModel(1.0, None, None, None, None)
    assert FollowUpLink("x").probability == 0.5
    assert (ToolFieldGroup().estimated_value, ToolFieldGroup().default_include) == (0.5, True)


def test_a_mapping_of_models_is_fresh_each_time() -> None:
    default_tool_value_models().clear()
    assert len(default_tool_value_models()) == 17


def test_learned_models_stand_apart_from_the_seventeen() -> None:
    assert not set(learned_tool_value_models()) & set(MODELS)


def test_no_learned_model_writes_and_is_speculatable() -> None:
    for name, model in learned_tool_value_models().items():
        verbs = ("write", "create", "update", "delete", "send", "move", "edit", "upload", "patch", "submit", "click")
        if any(verb in name.rpartition("__")[2] for verb in verbs):
            assert not model.is_speculatable(), name


def test_every_learned_link_leads_to_a_learned_tool_that_may_be_read_early() -> None:
    models = learned_tool_value_models()
    for name, model in models.items():
        for link in model.follow_up:
            assert models[link.tool].is_speculatable(), (name, link.tool)
            assert link.projection is not None
