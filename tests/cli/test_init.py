"""`pagefold init` on files as the clients write them: what is changed, what others may read of it, and the way back.

Those of Claude Code, Codex and OpenCode were written by the clients themselves; the others are as documented.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from pagefold.mcp_proxy.client_settings import with_values, without_values
from pagefold.mcp_proxy.client_table import CLIENTS
from tests.cli.program import pagefold

FILES = Path(__file__).parent / "client_files"
# client, the file's name here, where it is, whether a project's
PLACES = [
    ("claude-code", "claude-code.project.json", ".mcp.json", True),
    ("claude-code", "claude-code.user.json", "home/.claude.json", False),
    ("codex", "codex.project.toml", ".codex/config.toml", True),
    ("codex", "codex.user.toml", "home/.codex/config.toml", False),
    ("opencode", "opencode.user.jsonc", "opencode.jsonc", True),
    ("opencode", "opencode.user.jsonc", "home/.config/opencode/opencode.jsonc", False),
    ("cursor", "cursor.project.json", ".cursor/mcp.json", True),
    ("vscode", "vscode.project.json", ".vscode/mcp.json", True),
    ("vscode", "vscode.project.json", "home/.config/Code/User/mcp.json", False),
    ("copilot", "copilot.user.json", "home/.copilot/mcp-config.json", False),
    ("zed", "zed.user.json", ".zed/settings.json", True),
    ("zed", "zed.user.json", "home/.config/zed/settings.json", False),
    ("gemini", "gemini.user.json", ".gemini/settings.json", True),
    ("gemini", "gemini.user.json", "home/.gemini/settings.json", False),
]


def comments(text: str) -> list[str]:
    return [line.rpartition("//" if "//" in line else "#")[2] for line in text.splitlines() if " // " in line]


def init(tmp_path: Path, *words: str, code: int = 0) -> str:
    """Runs it in the project `tmp_path`, with the home below it."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    done = pagefold("init", *words, home=tmp_path, code=code, HOME=str(home))
    return (done.stderr if code else done.stdout).decode()


@pytest.mark.parametrize(("client", "name", "place", "shared"), PLACES)
def test_servers_are_put_behind_pagefold_and_undo_brings_the_very_file_back(
    client: str, name: str, place: str, shared: bool, tmp_path: Path
) -> None:
    file, before = tmp_path / place, (FILES / name).read_bytes()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(before)

    assert "Nothing was changed: without --dry-run" in init(tmp_path, client, "--dry-run").splitlines()[-1]
    assert file.read_bytes() == before
    last = init(tmp_path, client).splitlines()[-1]
    after = file.read_text()
    assert '"mcp", "--name"' in after
    assert comments(after) == comments(before.decode())
    assert f"{file.name}.before-pagefold" in last
    assert CLIENTS[client].then in last
    paths = [str(Path(sys.executable).parent), sys.executable, str(tmp_path)]
    assert any(path in after for path in paths) is not shared
    assert ("needs `pagefold` on the PATH" in last) is shared
    assert init(tmp_path, client).splitlines()[-1] == "Nothing was changed."
    assert CLIENTS[client].then in init(tmp_path, client, "--undo").splitlines()[-1]
    assert file.read_bytes() == before
    assert [one.name for one in file.parent.glob("*.before-pagefold")] == []
    assert list((tmp_path / "home").rglob("pagefold*")) == []


@pytest.mark.parametrize("mine", ["", "policy = 'economic'\n", "[store]\npath = 'x'\n\n[mcp]\ntools = true\n"])
def test_undo_takes_the_names_of_servers_out_of_ones_settings_when_the_last_client_is_undone(
    mine: str, tmp_path: Path
) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"one": {"command": "a"}}}')
    (tmp_path / ".cursor" / "mcp.json").write_text('{"mcpServers": {"two": {"command": "b"}}}')
    settings = tmp_path / "home" / ".config" / "pagefold" / "pagefold.toml"
    if mine:
        settings.parent.mkdir(parents=True)
        settings.write_text(mine)
    for client in ("claude-code", "cursor"):
        init(tmp_path, client)

    said = init(tmp_path, "claude-code", "--undo")
    assert 'context_servers = "pagefold, two"' in settings.read_text()
    assert '+context_servers = "pagefold, two"' in said
    init(tmp_path, "cursor", "--undo", "--dry-run")
    assert settings.exists()
    said = init(tmp_path, "cursor", "--undo")
    assert '-context_servers = "pagefold, two"' in said
    assert (settings.read_text() if settings.exists() else "") == mine
    assert settings.parent.exists() is bool(mine)


@pytest.mark.parametrize(
    ("client", "place", "before"),
    [
        ("claude-code", ".claude/settings.json", '{\n  "env": {"KEEP": "1"},\n  "model": "x"\n}\n'),
        ("claude-code", ".claude/settings.json", None),
        ("codex", ".codex/config.toml", '# mine\nmodel = "x"\n\n[mcp_servers.web]\nurl = "https://example.com"\n'),
        ("codex", ".codex/config.toml", None),
        ("opencode", ".config/opencode/opencode.jsonc", '{\n  // mine\n  "model": "x", // last\n}\n'),
        ("opencode", ".config/opencode/opencode.json", None),
    ],
)
def test_the_address_of_the_model_is_set_for_good_and_taken_out(
    client: str, place: str, before: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "home" / place
    file.parent.mkdir(parents=True)
    if before is not None:
        file.write_text(before)

    last = init(tmp_path, client, "--proxy").splitlines()[-1]
    assert "http://127.0.0.1:8377" in file.read_text()
    assert "pagefold serve" in last
    assert "mine" not in (before or "") or "mine" in file.read_text()
    init(tmp_path, client, "--proxy", "--undo")
    assert (file.read_text() if file.exists() else None) == before


def test_init_knows_an_agent_by_the_name_by_which_run_starts_it(tmp_path: Path) -> None:
    assert init(tmp_path, "claude", "--hook", "--dry-run") == init(tmp_path, "claude-code", "--hook", "--dry-run")


def test_an_address_that_the_user_set_stays(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".claude" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"env": {"ANTHROPIC_BASE_URL": "https://gateway.example"}}')

    assert "env.ANTHROPIC_BASE_URL is yours" in init(tmp_path, "claude-code", "--proxy")
    assert json.loads(file.read_text())["env"]["ANTHROPIC_BASE_URL"] == "https://gateway.example"


@pytest.mark.parametrize("order", [("--hook", "--statusline", "--proxy"), ("--proxy", "--hook", "--statusline")])
@pytest.mark.parametrize("before", [None, '{ "model":"x",\n"n": 1.10}\n'])
def test_hook_status_line_and_address_are_taken_out_in_any_order(
    order: tuple[str, ...], before: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "home" / ".claude" / "settings.json"
    if before is not None:
        file.parent.mkdir(parents=True)
        file.write_text(before)
    for flag in order:
        last = init(tmp_path, "claude-code", flag).splitlines()[-1]
        assert last.endswith("Next: start Claude Code anew.")
        assert ("There was no such file before" in last) is (before is None and flag == order[0])
    assert json.loads(file.read_text())["statusLine"]["command"].endswith(" statusline")
    for flag in order:
        assert "brings it back" not in init(tmp_path, "claude-code", flag, "--undo")
    assert (file.read_text() if file.exists() else None) == before
    assert [one.name for one in file.parent.glob("*.before-pagefold")] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("zed", "--proxy"), "Zed has no setting for it that is known here; claude-code, codex, opencode have"),
        (("codex", "--statusline"), "codex has no status line"),
        (("gemini",), "expected some in .gemini/settings.json, ~/.gemini/settings.json"),
        (("claude-code",), "`init claude-code --hook` and `pagefold run claude` need none"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in init(tmp_path, *words, code=2)


def test_another_provider_of_codex_is_not_sent_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".codex" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('model_provider = "azure"\n')
    assert "model_provider = 'azure'" in init(tmp_path, "codex", "--proxy", code=2)
    assert file.read_text() == 'model_provider = "azure"\n'


def test_json_says_what_was_done_and_what_is_next(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_bytes((FILES / "claude-code.project.json").read_bytes())
    (one,) = json.loads(init(tmp_path, "claude-code", "--json"))
    assert (one["changed"], one["backup"]) == (["everything"], os.path.join(tmp_path, ".mcp.json.before-pagefold"))  # noqa: PTH118
    assert "Next: start Claude Code anew" in one["next"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"a": 1}',
        '{ "a": 1 }\n',
        '{\n  // c\n  "a": 1, // x\n  "env": {\n    "Z": "q",\n  },\n}\n',
        '{\r\n\t"a": {}\r\n}\r\n',
        '{\n  "x": "// no comment, \\" }" /* y */\n}',
        '// first {\n{\n  "env": { "Z": [1, 2,], },\n}',
    ],
)
def test_values_are_set_and_taken_out_without_touching_another_byte(text: str) -> None:
    values: dict[tuple[str, ...], object] = {
        ("env", "A"): "http://127.0.0.1:1",
        ("env", "B"): "1",
        ("deep", "er"): {"x": [1]},
    }
    made = with_values(text, values, lambda found, wanted: bool(found == wanted), "f")
    assert len(made.changed) == 3
    back = without_values(made.text, values, lambda found, wanted: bool(found == wanted), "f")
    assert back.text == text
