"""Files of MCP clients: servers put behind the proxy and taken from behind it, with every other byte as it was."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pagefold.errors import ConfigError
from pagefold.mcp_proxy.client_table import CLIENTS
from pagefold.mcp_proxy.clients import unwrapped, wrapped
from tests.mcp_proxy.peer import environment

OURS = ["/usr/bin/pagefold"]
JSON = """{
  "theme": "dark",   "number": 1.10,
  "mcpServers": {
    "git": {
      "command": "mcp-server-git",
      "env": {"TOKEN": "s3cret"}
    },
    "files": { "command": "npx", "args": ["-y", "@scope/files", "."] },
    "web": { "type": "http", "url": "https://example.com/mcp" }
  }
}
"""
TOML = """# mine
model = "x"

[mcp_servers.git]
command = "mcp-server-git"  # old
startup_timeout_sec = 20

[mcp_servers."my files".env]
KEY = "s3cret"

[mcp_servers."my files"]
command = 'npx'
args = [
  "-y",  # yes
  "@scope/files",
]

[mcp_servers.web]
url = "https://example.com/mcp"
"""


@pytest.mark.parametrize("client", ["claude-code", "cursor"])
def test_json_is_changed_where_the_commands_stand(client: str) -> None:
    made = wrapped(CLIENTS[client], JSON, OURS, "f")
    servers = json.loads(made.text)["mcpServers"]
    assert servers["git"]["command"] == "/usr/bin/pagefold"
    assert servers["git"]["args"] == ["mcp", "--name", "git", "--", "mcp-server-git"]
    assert servers["files"]["args"] == ["mcp", "--name", "files", "--no-tools", "--", "npx", "-y", "@scope/files", "."]
    assert (made.changed, made.left) == (("git", "files"), {"web": "has no command"})
    assert '"theme": "dark",   "number": 1.10,' in made.text
    assert '"env": {"TOKEN": "s3cret"}' in made.text
    again = wrapped(CLIENTS[client], made.text, OURS, "f")
    assert (again.text, again.left["git"]) == (made.text, "is behind pagefold already")
    back = json.loads(unwrapped(CLIENTS[client], made.text, OURS, "f").text)["mcpServers"]
    assert back["files"] == json.loads(JSON)["mcpServers"]["files"]
    assert (back["git"]["command"], back["git"]["args"]) == ("mcp-server-git", [])


def test_toml_keeps_its_comments_and_tables() -> None:
    made = wrapped(CLIENTS["codex"], TOML, OURS, "f")
    servers = tomllib.loads(made.text)["mcp_servers"]
    assert servers["git"] == {
        "command": "/usr/bin/pagefold",
        "args": ["mcp", "--name", "git", "--", "mcp-server-git"],
        "startup_timeout_sec": 20,
    }
    assert servers["my files"]["args"] == ["mcp", "--name", "my files", "--no-tools", "--", "npx", "-y", "@scope/files"]
    assert servers["my files"]["env"] == {"KEY": "s3cret"}
    assert made.text.startswith("# mine\n")
    back = tomllib.loads(unwrapped(CLIENTS["codex"], made.text, OURS, "f").text)["mcp_servers"]
    assert back["my files"] == tomllib.loads(TOML)["mcp_servers"]["my files"]


def test_one_list_of_words_stays_one() -> None:
    text = '{"mcp": {"a": {"type": "local", "command": ["npx", "-y", "x"], "enabled": true}}}'
    made = wrapped(CLIENTS["opencode"], text, OURS, "f")
    assert json.loads(made.text)["mcp"]["a"]["command"] == [
        "/usr/bin/pagefold",
        "mcp",
        "--name",
        "a",
        "--",
        "npx",
        "-y",
        "x",
    ]
    assert json.loads(unwrapped(CLIENTS["opencode"], made.text, OURS, "f").text) == json.loads(text)


@pytest.mark.parametrize(
    ("client", "text"),
    [("claude-code", "{}"), ("claude-code", '{"mcpServers": {} // x'), ("codex", "= 1"), ("codex", "a = 1")],
)
def test_a_file_that_cannot_be_changed_is_refused(client: str, text: str) -> None:
    with pytest.raises(ConfigError, match=r"^f: "):
        wrapped(CLIENTS[client], text, OURS, "f")


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude-code", ".mcp.json", JSON),
        ("cursor", ".cursor/mcp.json", JSON),
        ("vscode", ".vscode/mcp.json", JSON.replace("mcpServers", "servers")),
        ("codex", ".codex/config.toml", TOML),
        ("opencode", "opencode.json", '{"mcp": {"a": {"command": ["x"]}}}'),
    ],
)
def test_init_shows_the_change_keeps_the_file_and_takes_it_back(
    client: str, name: str, text: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)

    def init(*options: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pagefold", "init", client, *options],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert "+" in init("--dry-run")
    assert file.read_text() == text
    shown = init()
    assert "pagefold" in shown
    assert "s3cret" not in shown
    assert file.read_text() != text
    assert (file.stat().st_mode & 0o777, file.with_name(file.name + ".before-pagefold").read_text()) == (0o600, text)
    assert "nothing to change" in init()
    init("--undo")
    assert file.read_text() == text
    assert not file.with_name(file.name + ".before-pagefold").exists()


def test_init_says_where_it_looked(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pagefold", "init", "claude-code"],
        cwd=tmp_path,
        env={key: value for key, value in environment(tmp_path).items() if key != "CLAUDE_CONFIG_DIR"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "expected some in .mcp.json, ~/.claude.json" in done.stderr


@pytest.mark.parametrize("below", ["", "src/deep"])
def test_init_finds_the_servers_that_claude_code_keeps_for_one_folder(below: str, tmp_path: Path) -> None:
    """`claude mcp add` writes them there by default, under the root of the repository."""
    shop, home = tmp_path / "shop", tmp_path / "home"
    (shop / below).mkdir(parents=True)
    (shop / ".git").mkdir()
    home.mkdir()
    servers = {"mcpServers": {"files": {"type": "stdio", "command": "server", "args": ["."], "env": {}}}}
    text = json.dumps({"projects": {str(shop): servers, str(tmp_path / "other"): servers}, "numStartups": 3}, indent=2)
    (home / ".claude.json").write_text(text)

    def init(*options: str, cwd: Path = shop / below) -> tuple[int, str]:
        given = {key: value for key, value in environment(home).items() if key != "CLAUDE_CONFIG_DIR"}
        command = [sys.executable, "-m", "pagefold", "init", "claude-code", *options]
        done = subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    own = home / ".config" / "pagefold" / "pagefold.toml"
    own.parent.mkdir(parents=True)
    mine = "# mine\n[mcp]\nbudget = 900\n[store]\n"
    own.write_text(mine)
    assert init() == (0, "")
    named = '# mine\n[mcp]\ncontext_servers = "pagefold, files"\nbudget = 900\n[store]\n'
    assert own.read_text() == named
    assert init() == (0, "")
    assert own.read_text() == named
    made = json.loads((home / ".claude.json").read_text())["projects"]
    assert made[str(shop)]["mcpServers"]["files"]["args"][-6:] == ["mcp", "--name", "files", "--", "server", "."]
    assert made[str(tmp_path / "other")] == servers
    assert init("--undo") == (0, "")
    assert own.read_text() == mine
    assert (home / ".claude.json").read_text() == text
    code, output = init(cwd=tmp_path)
    assert (code, "no MCP servers of claude-code found" in output) == (2, True)
