"""What is known of MCP clients: the files in which each lists its servers, how those are written, and what to do next.

The facts are from the clients' public documentation; a new client is a new row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Path = tuple[str, ...]
_SEARCH, _FIRST_PARTY = "ENABLE_TOOL_SEARCH", "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"


@dataclass(frozen=True, slots=True)
class McpClient:
    """Where a client lists its servers: in which files of the project and of the user's home, under which `section`.

    Where there is `by_folder`, the same section under it and a folder's path holds the servers of that folder alone.
    With `one_list`, a command and its arguments are one list. `user_on` names the files on other platforms.
    `then` says what makes the client read its file again. `proxy` is what sets the address of the model for good, in
    the user's file of settings: `{url}` stands for the model proxy's address.
    """

    name: str
    title: str
    section: str
    project: tuple[str, ...]
    user: tuple[str, ...]
    then: str
    one_list: bool = False
    toml: bool = False
    by_folder: str = ""
    user_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proxy: Mapping[Path, str] = field(default_factory=dict)

    def user_files(self, platform: str) -> tuple[str, ...]:
        """The user's files on a platform, from the folder where the client keeps its own."""
        return self.user_on.get(platform, self.user)


CLIENTS: Mapping[str, McpClient] = {
    client.name: client
    for client in (
        McpClient(
            "claude-code",
            "Claude Code",
            "mcpServers",
            (".mcp.json",),
            (".claude.json",),
            "start Claude Code anew; `claude mcp list` shows its servers",
            by_folder="projects",
            proxy={
                ("env", "ANTHROPIC_BASE_URL"): "{url}",
                # Behind another address it would send every tool's schema and take the window for a smaller one.
                ("env", _SEARCH): "true",
                ("env", _FIRST_PARTY): "1",
            },
        ),
        McpClient(
            "codex",
            "Codex",
            "mcp_servers",
            (".codex/config.toml",),
            (".codex/config.toml",),
            "start Codex anew; `codex mcp list` shows its servers",
            toml=True,
            proxy={("openai_base_url",): "{url}/v1"},
        ),
        McpClient(
            "opencode",
            "OpenCode",
            "mcp",
            ("opencode.json", "opencode.jsonc"),
            (".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
            "start OpenCode anew; `opencode mcp list` shows its servers",
            one_list=True,
            proxy={
                ("provider", "anthropic", "options", "baseURL"): "{url}/v1",
                ("provider", "openai", "options", "baseURL"): "{url}/v1",
            },
        ),
        McpClient(
            "cursor",
            "Cursor",
            "mcpServers",
            (".cursor/mcp.json",),
            (".cursor/mcp.json",),
            "restart Cursor, or toggle the servers in its settings under MCP",
        ),
        McpClient(
            "vscode",
            "VS Code",
            "servers",
            (".vscode/mcp.json",),
            (".config/Code/User/mcp.json",),
            "run `MCP: List Servers` in VS Code, and restart each",
            user_on={
                "darwin": ("Library/Application Support/Code/User/mcp.json",),
                "win32": ("AppData/Roaming/Code/User/mcp.json",),
            },
        ),
        McpClient(
            "copilot",
            "Copilot CLI",
            "mcpServers",
            (),
            (".copilot/mcp-config.json",),
            "start Copilot CLI anew; `/mcp` shows its servers",
        ),
        McpClient(
            "zed",
            "Zed",
            "context_servers",
            (".zed/settings.json",),
            (".config/zed/settings.json",),
            "Zed reads its settings again by itself; the agent's settings show the servers",
            user_on={"win32": ("AppData/Roaming/Zed/settings.json",)},
        ),
        McpClient(
            "gemini",
            "Gemini CLI",
            "mcpServers",
            (".gemini/settings.json",),
            (".gemini/settings.json",),
            "start Gemini CLI anew; `gemini mcp list` shows its servers",
        ),
    )
}
