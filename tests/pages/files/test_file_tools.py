"""Which tools are known to show and change files: those that ship, and those that a user's settings name."""

import json
from typing import Any

import pytest

from pagefold import Context
from pagefold.derive.learned import learned_of
from pagefold.derive.pinned_policy import PinnedPolicy, parse
from pagefold.derive.policies import policy_named
from pagefold.errors import ConfigError
from pagefold.package_data import package_toml
from pagefold.pages.files.file_tools import KNOWN_TOOLS, Does, FileTools, file_tools
from pagefold.pages.files.model import FileModel
from pagefold.pages.files.own_tools import own_tools
from pagefold.pages.files.recognise import changes_of
from pagefold.pages.outcome import ending_of
from pagefold.settings.knobs import KNOBS, file_tool_tables, generic_path, setting_values, settings_of
from tests.pages.files.sessions import Step, agent, call, cat_n, file_of, result, user, whole_text

SHIPPED = package_toml("pagefold.pages.files", "file_tools.toml")
A = "/srv/mill/a.py"
OLD, NEW = "one\ntwo\n", "one\nthree\n"
PATCH = f"*** Begin Patch\n*** Update File: {A}\n@@\n one\n-two\n+three\n*** End Patch\n"
# Every value but these is one that a user's own table may hold: a task list is read by one agent's tools only.
_NOT_FOR_USERS = ("program", "new_task", "task_state")


@pytest.mark.parametrize(("path", "value"), list(setting_values(SHIPPED["file_tools"], ("file_tools",))))
def test_each_shipped_table_is_one_that_a_settings_file_may_hold(path: tuple[str, ...], value: object) -> None:
    assert value in _NOT_FOR_USERS or KNOBS[generic_path(path)].rule.admits(value)


def test_every_choice_of_a_settings_file_is_something_a_tool_can_do() -> None:
    words = KNOBS["file_tools", "NAME", "does"].rule.words.removeprefix("one of ").split(", ")

    assert {*words, *_NOT_FOR_USERS} == {str(does) for does in Does}


def after(*steps: Step, tools: FileTools = KNOWN_TOOLS) -> FileModel:
    model = FileModel()
    for place, (name, arguments, text) in enumerate(steps):
        model = model.after(changes_of(name, arguments, text, ending_of(text), tools), place)
    return model


READS: dict[str, Step] = {
    "Claude Code": ("Read", {"file_path": A}, cat_n(["one", "two"])),
    "OpenCode": ("read", {"filePath": A}, cat_n(["one", "two"], mark="\t")),
    "editor": ("str_replace_based_edit_tool", {"command": "view", "path": A}, cat_n(["one", "two"])),
    "MCP by two underscores": ("mcp__files__read_text_file", {"path": A}, OLD),
    "MCP by a dash": ("files-read_file", {"path": A}, OLD),
    "MCP by one underscore": ("files_read_text_file", {"path": A}, OLD),
    "Codex": ("exec_command", {"cmd": f"cat {A}"}, f"Chunk ID: e0\nProcess exited with code 0\nOutput:\n{OLD}"),
    "older Codex": ("shell", {"command": ["bash", "-lc", f"cat {A}"]}, json.dumps({"output": OLD})),
    "older Codex in words": ("shell", {"command": ["cat", A], "workdir": "/srv"}, json.dumps({"output": OLD})),
    "a shell in a container": ("container.exec", {"cmd": ["bash", "-lc", "cat a.py"], "workdir": "/srv/mill"}, OLD),
    "a bash agent": ("bash", {"command": f"cat {A}"}, f"<returncode>0</returncode>\n<output>\n{OLD}</output>"),
    "Gemini": ("run_shell_command", {"command": f"cat {A}"}, OLD),
    "not listed": ("fetch_and_show", {"path": A}, OLD),
}
CHANGES: dict[str, Step] = {
    "Claude Code": ("Edit", {"file_path": A, "old_string": "two", "new_string": "three"}, "updated"),
    "many edits": ("MultiEdit", {"file_path": A, "edits": [{"old_string": "two", "new_string": "three"}]}, "ok"),
    "OpenCode": ("edit", {"filePath": A, "oldString": "two", "newString": "three"}, ""),
    "editor": (
        "str_replace_editor",
        {"command": "str_replace", "path": A, "old_str": "two", "new_str": "three"},
        "edited",
    ),
    "MCP": ("mcp__files__edit_file", {"path": A, "edits": [{"oldText": "two", "newText": "three"}]}, "ok"),
    "patch": ("apply_patch", {"input": PATCH}, "Success"),
    "patch by OpenCode": ("patch", {"patchText": PATCH}, "ok"),
    "patch by older Codex": ("shell", {"command": ["apply_patch", PATCH]}, json.dumps({"output": "Success"})),
    "patch by a shell": ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}EOF\n"}, "Success"),
    "write": ("Write", {"file_path": A, "content": NEW}, "ok"),
    "write by MCP": ("files-write_file", {"path": A, "content": NEW}, "ok"),
    "not listed": ("save_text", {"path": A, "text": NEW}, "ok"),
}


@pytest.mark.parametrize("step", READS.values(), ids=READS)
def test_a_read_of_every_agent_shows_the_file(step: Step) -> None:
    assert whole_text(file_of(after(step), A)) == OLD


@pytest.mark.parametrize("step", CHANGES.values(), ids=CHANGES)
def test_a_change_of_every_agent_changes_the_file(step: Step) -> None:
    assert whole_text(file_of(after(READS["Claude Code"], step), A)) == NEW


NOTHING: dict[str, Step] = {
    "a dry run": ("edit_file", {"path": A, "edits": [{"oldText": "two", "newText": "x"}], "dryRun": True}, "diff"),
    "a listing": ("files-list_directory", {"path": A}, "[FILE] x"),
    "a task of another kind": ("mcp__work__spawn_task", {"prompt": "Write it anew."}, "ok"),
    "words that are no texts": ("shell", {"command": ["bash", "-lc", 3]}, "x"),
    "no words": ("shell", {"command": []}, "x"),
}


@pytest.mark.parametrize("step", NOTHING.values(), ids=NOTHING)
def test_what_changes_nothing_leaves_every_file_certain(step: Step) -> None:
    assert whole_text(file_of(after(READS["Claude Code"], step), A)) == OLD


OWN: dict[str, dict[str, Any]] = {
    "open_document": {"does": "read", "path": ["document"], "limit": ["lines"]},
    "swap": {"does": "edit", "path": ["document"], "old": ["find"], "new": ["put"], "everywhere": ["all"]},
    "put": {"does": "write", "path": ["document"], "content": ["words"]},
    "ship": {"does": "move", "path": ["from"], "to": ["into"]},
    "drop": {"does": "remove"},
    "sh": {"does": "shell", "script": ["run"], "folder": ["in"]},
    "what_changed": {"does": "diff", "folder": ["tree"]},
    "sync": {"does": "change_any"},
    "look_for": {"does": "search", "path": ["document"]},
    "Edit": {"does": "nothing"},
}
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
OPENED: Step = ("open_document", {"document": A, "encoding": "utf-8"}, OLD)


def own(tables: dict[str, dict[str, Any]] = OWN) -> FileTools:
    return file_tools(own_tools(file_tool_tables(tables)))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (("swap", {"document": A, "find": "two", "put": "three", "all": True}, "ok"), NEW),
        (("put", {"document": A, "words": NEW}, "ok"), NEW),
        (("sh", {"run": "printf x; cat > a.py <<'E'\none\nthree\nE", "in": "/srv/mill"}, "x"), NEW),
        (("what_changed", {"tree": "/srv/mill"}, DIFF), NEW),
        (("Edit", {"file_path": A, "old_string": "two", "new_string": "three"}, "ok"), OLD),
        (("swap", {"document": A, "find": "two", "put": "three"}, "Error: no"), OLD),
        (("look_for", {"document": A, "pattern": "o"}, "2:two"), OLD),
    ],
)
def test_tools_of_the_users_own_are_known_by_their_tables(step: Step, expected: str) -> None:
    assert whole_text(file_of(after(OPENED, step, tools=own()), A)) == expected


def test_a_read_by_an_own_tool_is_whole_unless_its_table_says_that_a_part_was_asked_for() -> None:
    part: Step = ("open_document", {"document": A, "lines": "1-2"}, OLD)

    assert A in after(OPENED, tools=own()).files
    assert A not in after(part, tools=own()).files
    assert A not in after(OPENED).files


def test_own_tools_move_remove_and_doubt() -> None:
    moved = after(OPENED, ("ship", {"from": A, "into": "/srv/b.py"}, "ok"), tools=own())
    removed = after(OPENED, ("drop", {"path": A}, "ok"), tools=own())
    doubted = after(OPENED, ("sync", {}, "ok"), tools=own())

    assert whole_text(file_of(moved, "/srv/b.py")) == OLD
    assert not removed.files
    assert file_of(doubted, A).text.doubted_at == 1


def test_a_type_of_agents_that_only_look_is_the_users_to_name() -> None:
    tools = own({"Agent": {"does": "delegate", "only_look": ["house-critic-2"]}})
    sent = {"subagent_type": "house-critic-2", "prompt": "Fix what you like."}
    other = {"subagent_type": "house-builder", "prompt": "Fix what you like."}

    assert file_of(after(READS["Claude Code"], ("Agent", sent, "Done."), tools=tools), A).text.doubted_at < 0
    assert file_of(after(READS["Claude Code"], ("Agent", other, "Done."), tools=tools), A).text.doubted_at == 1


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"x": {"does": "fly"}}, "file_tools.x.does = 'fly': expected one of read, write, edit"),
        ({"x": {"path": "document"}}, "file_tools.x.path = 'document': expected a list of names"),
        ({"x": {"pth": ["a"]}}, "unknown setting file_tools.x.pth"),
    ],
)
def test_a_table_that_will_not_do_is_refused_in_one_sentence(tables: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence.replace(".", r"\.")):
        Context(file_tools=tables)


def test_a_history_keeps_the_tools_that_it_began_with() -> None:
    learned = learned_of(settings_of({("file_tools", "open_document", "does"): "read"}))
    policy: Any = policy_named("economic", learned=learned)
    begun = parse(PinnedPolicy(policy).to_json())

    assert begun is not None
    assert begun.policy == policy
    assert policy.file_tools == (("open_document", (("does", ("read",)),)),)


def test_a_fold_shows_a_file_that_only_the_users_own_tool_reads() -> None:
    lines = [f"def total_{number}(row): return row.amount * {number}" for number in range(40)]
    steps = [user("Mend the mill."), call("c0", "open_document", {"document": A, "how": "plain"})]
    steps += [result("c0", "\n".join(lines) + "\n")]
    for number in range(1, 30):
        thought = " ".join(f"thought_{at * number}" for at in range(150))
        steps += [call(f"c{number}", "think", {"about": number}), result(f"c{number}", thought)]
    steps += [agent("So far so good."), user(f"Go on with {A}.")]
    digests = []
    for tables in ({}, OWN):
        with Context(window=16_000, file_tools=tables) as context:
            context.add(*steps)
            digests.append(json.dumps(context.request()))

    assert [f"file {A}, as it is now" in digest for digest in digests] == [False, True]
