"""The seventeen models that ship as priors: common tools of coding agents, with the figures of a large corpus.

They hold until a user's entry replaces one. What pagefold itself learned from recorded sessions is kept apart, in
`learned`, so that either can be seen for what it is.
"""

from pagefold.tools.model import CostModel, FollowUpLink, SideEffectClass, ToolFieldGroup, ToolValueModel, ValueClass

_AUDIT = ("TaskUpdate", "TaskCreate", "TaskGet", "TaskList", "TodoWrite")


def default_tool_value_models() -> dict[str, ToolValueModel]:
    """A fresh mapping by tool name; whoever gets it may change it."""
    return {**_reading(), **_writing(), **_searching_the_web(), **_others()}


def _reading() -> dict[str, ToolValueModel]:
    return {
        "Read": ToolValueModel(
            value_class=ValueClass.CRITICAL,
            cost_model=CostModel(typical_kb=2.5, max_kb=43.0, latency_ms_p50=50),
            follow_up=(FollowUpLink("Read", 0.45),),
            side_effect_class=SideEffectClass.PURE,
            open_world=False,
            watch=("file_path",),
        ),
        "Grep": ToolValueModel(
            value_class=ValueClass.CRITICAL,
            cost_model=CostModel(typical_kb=0.3, max_kb=10.5, latency_ms_p50=80),
            follow_up=(
                FollowUpLink("Read", 0.35, "path", "file_path"),
                # For information: an edit is never run early.
                FollowUpLink("Edit", 0.07, "path", "file_path"),
                FollowUpLink("Grep", 0.39),
            ),
            side_effect_class=SideEffectClass.PURE,
            open_world=False,
        ),
        "Glob": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            cost_model=CostModel(typical_kb=0.2, max_kb=16.6, latency_ms_p50=60),
            follow_up=(
                FollowUpLink("Read", 0.32, "match_path", "file_path"),
                # For information: no pattern follows from a path.
                FollowUpLink("Grep", 0.13),
                FollowUpLink("Glob", 0.41),
            ),
            side_effect_class=SideEffectClass.READ_ONLY,
            open_world=False,
        ),
        "ToolSearch": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            cost_model=CostModel(typical_kb=0.0, max_kb=0.1),
            # Over half of its repeated calls find nothing.
            fail_fast_after_n=2,
            side_effect_class=SideEffectClass.READ_ONLY,
            open_world=False,
        ),
    }


def _writing() -> dict[str, ToolValueModel]:
    local = SideEffectClass.MUTATES_LOCAL
    return {
        "Edit": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            cost_model=CostModel(typical_kb=0.2, max_kb=1.0, latency_ms_p50=20),
            follow_up=(FollowUpLink("Bash", 0.27), FollowUpLink("Read", 0.14)),
            invalidates=("Read", "Grep"),
            side_effect_class=local,
        ),
        "Write": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            cost_model=CostModel(typical_kb=0.2),
            invalidates=("Read", "Grep", "Glob"),
            side_effect_class=local,
        ),
        "MultiEdit": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            cost_model=CostModel(typical_kb=0.2),
            invalidates=("Read", "Grep"),
            side_effect_class=local,
        ),
        "NotebookEdit": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            cost_model=CostModel(typical_kb=0.5),
            invalidates=("Read",),
            side_effect_class=local,
        ),
    }


def _searching_the_web() -> dict[str, ToolValueModel]:
    return {
        "WebSearch": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            field_groups={
                "must_have": ToolFieldGroup(("title", "url"), 1.0, default_include=True),
                "nice_to_have": ToolFieldGroup(("snippet",), 0.3, default_include=False),
            },
            cost_model=CostModel(typical_kb=3.1, max_kb=7.2, latency_ms_p50=900, freshness_ttl_s=3600),
            follow_up=(FollowUpLink("WebFetch", 0.65, "url", "url"),),
            side_effect_class=SideEffectClass.READ_ONLY,
            open_world=True,
        ),
        "WebFetch": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            cost_model=CostModel(typical_kb=1.2, max_kb=24.0, latency_ms_p50=800, freshness_ttl_s=900),
            side_effect_class=SideEffectClass.READ_ONLY,
            open_world=True,
        ),
    }


def _others() -> dict[str, ToolValueModel]:
    return {
        # `git status` reads and `rm -rf` does not, a sub-agent runs anything: neither is ever run early.
        "Bash": ToolValueModel(
            value_class=ValueClass.CRITICAL,
            cost_model=CostModel(typical_kb=0.2, max_kb=9.0, latency_ms_p50=200),
            side_effect_class=SideEffectClass.INDETERMINATE,
        ),
        "Agent": ToolValueModel(
            value_class=ValueClass.SUPPORTING,
            cost_model=CostModel(typical_kb=6.5, max_kb=23.7, latency_ms_p50=60_000),
            side_effect_class=SideEffectClass.INDETERMINATE,
        ),
        **{name: ToolValueModel.audit_only() for name in _AUDIT},
    }
