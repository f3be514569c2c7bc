"""Drives a server with the Python SDK's client and prints what it saw, as JSON. Run by a Python that has `mcp`.

sdk_client.py MODE COMMAND… | URL
"""

import asyncio
import json
import sys
from typing import Any

from mcp import Client  # type: ignore[import-not-found, unused-ignore]
from mcp.client.stdio import StdioServerParameters, stdio_client  # type: ignore[import-not-found, unused-ignore]


def plain(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(mode: str, target: list[str]) -> None:
    server: Any = target[0]
    if not target[0].startswith("http"):
        server = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    seen: dict[str, Any] = {"progress": []}

    async def progress(done: float, total: float | None, message: str | None) -> None:
        seen["progress"].append([done, total, message])

    async with Client(server, mode=mode) as client:
        seen["version"] = client.protocol_version
        seen["capabilities"] = plain(client.server_capabilities)
        seen["tools"] = plain(await client.list_tools())
        for kind in ("list_prompts", "list_resources", "list_resource_templates"):
            try:
                seen[kind] = plain(await getattr(client, kind)())
            except Exception as error:  # noqa: BLE001 - what goes wrong is part of what is compared
                seen[kind] = repr(error)
        for name, arguments in json.loads(sys.stdin.read()):
            try:
                result = plain(await client.call_tool(name, arguments, progress_callback=progress))
            except Exception as error:  # noqa: BLE001 - the same
                result = repr(error)
            seen.setdefault("calls", []).append([name, result])
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
