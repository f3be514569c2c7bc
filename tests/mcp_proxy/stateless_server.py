"""A server of the stateless era (MCP 2026-07-28), by the Python SDK. Run by a Python that has `mcp`.

stateless_server.py stdio | PORT
"""

import sys

from mcp.server.caching import CacheHint  # type: ignore[import-not-found, unused-ignore]
from mcp.server.mcpserver import Context, MCPServer  # type: ignore[import-not-found, unused-ignore]
from mcp_types import (  # type: ignore[import-not-found, unused-ignore]
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
)

server = MCPServer(
    "stateless",
    version="1",
    cache_hints={"tools/list": CacheHint(60_000, "public"), "server/discover": CacheHint(30_000, "private")},
    log_level="CRITICAL",
)


@server.tool()  # type: ignore[untyped-decorator, unused-ignore]
def rows() -> str:
    """Returns a table."""
    cells = ",".join(f'{{"id": {number}, "name": "row {number}", "ok": true}}' for number in range(60))
    return f"[{cells}]"


@server.tool()  # type: ignore[untyped-decorator, unused-ignore]
async def touch(ctx: Context) -> str:
    """Says to who listens that the tools have changed."""
    await ctx.notify_tools_changed()
    return "touched"


@server.tool()  # type: ignore[untyped-decorator, unused-ignore]
async def ask(ctx: Context) -> str | InputRequiredResult:
    """Asks the user for a colour, in a second round of the same call."""
    if not ctx.input_responses:
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
        asked = ElicitRequestFormParams(message="Which colour?", requested_schema=schema)
        return InputRequiredResult(input_requests={"c": ElicitRequest(params=asked)}, request_state="state 1")
    return f"{ctx.request_state}: {ctx.input_responses['c'].content}"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
