"""Drives `stateless_server.py` with the Python SDK's client, and prints what it saw as JSON.

stateless_client.py MODE COMMAND… | URL
"""

import asyncio
import json
import sys
from typing import Any

from mcp import Client  # type: ignore[import-not-found, unused-ignore]
from mcp.client.stdio import StdioServerParameters, stdio_client  # type: ignore[import-not-found, unused-ignore]
from mcp_types import ElicitResult  # type: ignore[import-not-found, unused-ignore]


async def blue(context: Any, params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"colour": "blue"})


async def main(mode: str, target: list[str]) -> None:
    server: Any = target[0]
    if not target[0].startswith("http"):
        server = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    async with Client(server, mode=mode, elicitation_callback=blue) as client:
        listed = await client.list_tools()
        seen: dict[str, Any] = {
            "version": client.protocol_version,
            "fresh": [listed.ttl_ms, listed.cache_scope, listed.result_type],
            "tools": [tool.name for tool in listed.tools],
            "rows": (await client.call_tool("rows", {})).content[0].text,
            "asked": (await client.call_tool("ask", {})).content[0].text,
        }
        async with asyncio.timeout(20), client.listen(tools_list_changed=True) as events:
            await client.call_tool("touch", {})
            seen["event"] = type(await anext(aiter(events))).__name__
        if "context_status" in seen["tools"]:
            seen["own"] = (await client.call_tool("context_status", {})).result_type
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
