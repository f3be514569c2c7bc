"""Models for tools that today's agents use, beyond the shipped seventeen: learned from recorded sessions.

Sizes and follow-ups are measured; a follow-up is here only where it would have paid in three recorded sessions or more.
Tools of which recordings say nothing appear with their effect alone. Where the address of a server is the user's own,
the server's name stands for its host.
"""

from collections.abc import Iterator, Mapping

from pagefold.tools import recorded
from pagefold.tools.model import CostModel, FollowUpLink, SideEffectClass, ToolValueModel, ValueClass

_PURE = SideEffectClass.PURE
_READ = SideEffectClass.READ_ONLY
_LOCAL = SideEffectClass.MUTATES_LOCAL
_UNKNOWN = SideEffectClass.INDETERMINATE

# server -> its host (None: it stays on this machine; empty: the host is in the call), its tools
_SERVERS: Mapping[str, tuple[str | None, recorded.Rows]] = {
    "arxiv_local": ("export.arxiv.org", recorded.ARXIV_LOCAL),
    "canvas": ("canvas", recorded.CANVAS),
    "emails": ("emails", recorded.EMAILS),
    "excel": (None, recorded.EXCEL),
    "fetch": ("", recorded.FETCH),
    "filesystem": (None, recorded.FILESYSTEM),
    "git": (None, recorded.GIT),
    "github": ("api.github.com", recorded.GITHUB),
    "google-cloud": ("googleapis.com", recorded.GOOGLE_CLOUD),
    "google_map": ("maps.googleapis.com", recorded.GOOGLE_MAP),
    "google_sheet": ("sheets.googleapis.com", recorded.GOOGLE_SHEET),
    "k8s": ("k8s", recorded.K8S),
    "linear-server": ("api.linear.app", recorded.LINEAR_SERVER),
    "memory": (None, recorded.MEMORY),
    "notion": ("api.notion.com", recorded.NOTION),
    "pdf-tools": (None, recorded.PDF_TOOLS),
    "playwright": ("", recorded.PLAYWRIGHT_WITH_CHUNK),
    "playwright_with_chunk": ("", recorded.PLAYWRIGHT_WITH_CHUNK),
    "snowflake": ("snowflake", recorded.SNOWFLAKE),
    "woocommerce": ("woocommerce", recorded.WOOCOMMERCE),
    "yahoo-finance": ("query1.finance.yahoo.com", recorded.YAHOO_FINANCE),
}

# The arguments that name the files an answer is made of: looked at again before it is served.
_WATCH: Mapping[str, tuple[str, ...]] = {
    "mcp__excel__get_workbook_metadata": ("filepath",),
    "mcp__excel__read_data_from_excel": ("filepath",),
    "mcp__filesystem__list_directory": ("path",),
    "mcp__filesystem__read_file": ("path",),
    "mcp__filesystem__read_media_file": ("path",),
    "mcp__filesystem__read_multiple_files": ("paths",),
    "mcp__filesystem__read_text_file": ("path",),
    "mcp__pdf-tools__get_pdf_info": ("pdf_file_path",),
    "mcp__pdf-tools__read_pdf_pages": ("pdf_file_path",),
}

# What follows, with how many of the calls would have been used. Fitted on recorded sessions; see docs/tools.md.
_LINKS: Mapping[str, tuple[FollowUpLink, ...]] = {
    "mcp__filesystem__list_directory": (
        FollowUpLink("mcp__filesystem__read_file", 0.37, "$files", "path", limit=3, most=3),  # 29 of 77
        FollowUpLink("mcp__pdf-tools__get_pdf_info", 0.37, "$files.pdf", "pdf_file_path", limit=3, most=10),  # 13 of 33
        FollowUpLink("mcp__excel__get_workbook_metadata", 0.50, "$files.xlsx", "filepath", limit=1, most=2),  # 8 of 14
    ),
    "mcp__excel__get_workbook_metadata": (
        FollowUpLink(
            "mcp__excel__read_data_from_excel", 0.64, "sheets[]", "sheet_name", keep=("filepath",), limit=3, most=4
        ),  # 21 of 31
    ),
    "mcp__excel__write_data_to_excel": (
        FollowUpLink("mcp__excel__read_data_from_excel", 0.38, "$call", keep=("filepath", "sheet_name")),  # 5 of 11
    ),
    "mcp__google_sheet__list_spreadsheets": (
        FollowUpLink("mcp__google_sheet__list_sheets", 0.75, "id", "spreadsheet_id", limit=1, most=1),  # 9 of 10
    ),
    "mcp__notion__API-retrieve-a-database": (
        FollowUpLink("mcp__notion__API-post-database-query", 0.47, "$call", keep=("database_id",)),  # 7 of 13
    ),
    "mcp__emails__search_emails": (
        FollowUpLink("mcp__emails__read_email", 0.71, "ID", "email_id", limit=3, most=3),  # 5 of 5
    ),
    "mcp__snowflake__list_databases": (
        FollowUpLink("mcp__snowflake__list_schemas", 0.67, "DATABASE_NAME", "database", limit=1, most=1),  # 4 of 4
    ),
    "mcp__snowflake__list_schemas": (
        FollowUpLink(
            "mcp__snowflake__list_tables", 0.67, "SCHEMA_NAME", "schema", keep=("database",), limit=1, most=2
        ),  # 4 of 4
    ),
}

# No recording has times for these: a read on this machine is taken to be as slow as Read, one elsewhere as WebFetch.
_HERE_MS, _ELSEWHERE_MS = 50, 800


def learned_tool_value_models() -> dict[str, ToolValueModel]:
    """A fresh mapping by tool name; MCP tools stand under `mcp__server__tool`."""
    return {**dict(_agents_own()), **dict(_of_servers())}


def _of_servers() -> Iterator[tuple[str, ToolValueModel]]:
    for server, (host, rows) in _SERVERS.items():
        for tool, effect, typical, largest in rows:
            name = f"mcp__{server}__{tool}"
            yield (
                name,
                ToolValueModel(
                    value_class=ValueClass.SUPPORTING,
                    cost_model=CostModel(
                        1.0 if typical is None else typical, largest, _HERE_MS if host is None else _ELSEWHERE_MS
                    ),
                    follow_up=_LINKS.get(name, ()),
                    side_effect_class=effect,
                    rate_limit_host=host or None,
                    open_world=host is not None,
                    watch=_WATCH.get(name, ()),
                ),
            )


def _agents_own() -> Iterator[tuple[str, ToolValueModel]]:
    """What coding agents bring along under names of their own."""
    for name, effect, typical, largest in _AGENTS:
        worth = ValueClass.SUPPORTING if effect is not _UNKNOWN else ValueClass.CRITICAL
        cost = CostModel(1.0 if typical is None else typical, largest)
        here = False if effect is _PURE or effect is _LOCAL else None
        yield name, ToolValueModel(value_class=worth, cost_model=cost, side_effect_class=effect, open_world=here)
    for name in ("update_plan", "todowrite", "todoread", "ExitPlanMode", "EnterPlanMode", "AskUserQuestion"):
        yield name, ToolValueModel.audit_only()


_AGENTS: recorded.Rows = (
    # Claude Code
    ("LS", _PURE, None, None),
    ("LSP", _READ, 0.1, 1.4),
    ("NotebookRead", _PURE, None, None),
    ("BashOutput", _UNKNOWN, None, None),
    ("KillShell", _UNKNOWN, None, None),
    ("Skill", _UNKNOWN, 0.1, 0.1),
    ("Task", _UNKNOWN, 2.1, 27.1),
    ("TaskOutput", _UNKNOWN, 8.7, 16.0),
    # Codex
    ("apply_patch", _LOCAL, None, None),
    ("exec_command", _UNKNOWN, None, None),
    ("shell", _UNKNOWN, None, None),
    ("view_image", _PURE, None, None),
    ("write_stdin", _UNKNOWN, None, None),
    # OpenCode; bash, edit and write are also what other small agents call theirs
    ("bash", _UNKNOWN, 0.6, 7.9),
    ("edit", _LOCAL, 2.4, 4.3),
    ("glob", _PURE, None, None),
    ("grep", _PURE, None, None),
    ("list", _PURE, None, None),
    ("multiedit", _LOCAL, None, None),
    ("patch", _LOCAL, None, None),
    ("read", _PURE, None, None),
    ("task", _UNKNOWN, None, None),
    ("webfetch", _READ, None, None),
    ("write", _LOCAL, None, None),
)
